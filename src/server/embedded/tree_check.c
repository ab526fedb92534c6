/* SPDX-License-Identifier: MIT */

/*
 * A run is over when the subprocess has ended and its pipe is closed, in either order. The handles
 * of libuv are used again for the next run, after both were closed.
 *
 * A subprocess that dies by a fault (SIGSEGV, SIGBUS) has met damage that kept it from reading. One
 * that is killed otherwise, or cannot be started, says nothing about the data: the check is
 * repeated after a minute.
 */
#include "server/embedded/tree_check.h"

#include "core/units.h"
#include "engine/engine.h"
#include "engine/offline/checker.h"
#include "server/embedded/damage.h"
#include "server/loop_state.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RETRY_MS = 60 * 1000,
    GROWTH_BYTES_MAX = 64 << 20, /* of the file, for one snapshot of the check */
    PARTS = 2,                   /* of a run that have to end: the subprocess and its pipe */
};

enum result {
    RESULT_NONE,
    RESULT_DONE,
    RESULT_DAMAGED,
    RESULT_FAILED,
};

struct bel_tree_check {
    struct bel_tree_check_options options;
    uv_timer_t timer;
    uv_process_t process;
    uv_pipe_t pipe;
    unsigned parts_left; /* of the run; 0: not running */
    bool is_stopping;
    enum result result;
    int signal; /* that ended the subprocess; or 0 */
    uint64_t begun_ns;
    char line[BEL_CHECKER_LINE_BYTES];
    size_t bytes; /* of an incomplete line */
    char why[BEL_CHECKER_LINE_BYTES];
    int err;
};

static uint64_t now_ns(void)
{
    return bel_clock_mono(bel_clock_system()).ns;
}

static struct bel_tree_check_stats *stats_of(struct bel_tree_check *check)
{
    return &check->options.metrics->tree_check;
}

/* --- lines --- */

static void take_progress(struct bel_tree_check *check, const char *text)
{
    struct bel_tree_check_stats *stats = stats_of(check);
    uint64_t numbers[6];
    int count =
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5]);
    if (count != 6) return;
    stats->pages_done = numbers[0];
    stats->pages = numbers[1];
    stats->rows = numbers[2];
    stats->growth_bytes = numbers[3];
    stats->growth_bytes_max = numbers[4];
    stats->snapshots = numbers[5];
}

static void take_line(struct bel_tree_check *check, const char *line)
{
    static const struct {
        const char *word;
        enum result result;
    } words[] = {{"done", RESULT_DONE}, {"damaged ", RESULT_DAMAGED}, {"failed ", RESULT_FAILED}};
    if (strncmp(line, "progress ", 9) == 0) take_progress(check, line + 9);
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t bytes = strlen(words[i].word);
        if (strncmp(line, words[i].word, bytes) != 0) continue;
        check->result = words[i].result;
        (void)snprintf(check->why, sizeof check->why, "%s", line + bytes);
    }
}

static void take_bytes(struct bel_tree_check *check, const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n') {
            check->line[check->bytes] = 0;
            take_line(check, check->line);
            check->bytes = 0;
        } else if (check->bytes + 1 < sizeof check->line) {
            check->line[check->bytes++] = data[i];
        }
    }
}

/* --- the end of a run --- */

static void start_run(uv_timer_t *timer);

static void wait_ms(struct bel_tree_check *check, uint64_t ms)
{
    if (!check->is_stopping) (void)uv_timer_start(&check->timer, start_run, ms, 0);
}

static void finish_done(struct bel_tree_check *check)
{
    struct bel_tree_check_stats *stats = stats_of(check);
    uint64_t ms = (now_ns() - check->begun_ns) / NS_PER_MS;
    bel__engine_trust(check->options.engine);
    stats->done++;
    stats->last_done.ns = now_ns();
    stats->growth_bytes = 0;
    BEL_LOG(check->options.log, BEL_LOG_INFO, "tree checked", BEL_LOG_NUMBER("rows", stats->rows),
            BEL_LOG_NUMBER("pages", stats->pages), BEL_LOG_NUMBER("ms", ms),
            BEL_LOG_NUMBER("snapshots", stats->snapshots),
            BEL_LOG_NUMBER("grown_bytes", stats->growth_bytes_max));
    if (check->options.config->scrub_ms > 0) wait_ms(check, check->options.config->scrub_ms);
}

static void finish_damaged(struct bel_tree_check *check, const char *why)
{
    bel__damage_log(check->options.log, check->options.config->data, why);
    check->err = BEL_ECORRUPT;
    bel__loop_wake(check->options.loop); /* for a turn, after which the error is asked for */
}

static void finish_failed(struct bel_tree_check *check, const char *why)
{
    stats_of(check)->failed++;
    BEL_LOG(check->options.log, BEL_LOG_WARN, "the check of the tree failed and will be repeated",
            BEL_LOG_TEXT("why", why), BEL_LOG_NUMBER("signal", check->signal));
    wait_ms(check, RETRY_MS);
}

static bool is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE ||
           number == SIGILL;
}

static void finish_run(struct bel_tree_check *check)
{
    char why[64];
    stats_of(check)->is_running = false;
    if (check->is_stopping) return;
    if (check->result == RESULT_DONE) {
        finish_done(check);
    } else if (check->result == RESULT_DAMAGED) {
        finish_damaged(check, check->why);
    } else if (is_fault(check->signal)) {
        (void)snprintf(why, sizeof why, "tree is damaged: reading it ended in signal %d",
                       check->signal);
        finish_damaged(check, why);
    } else {
        finish_failed(check, check->result == RESULT_FAILED ? check->why : "it ended early");
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct bel_tree_check *check = handle->data;
    assert(check->parts_left > 0);
    check->parts_left--;
    if (check->parts_left == 0) finish_run(check);
}

/* --- a run --- */

static void on_exit_of_process(uv_process_t *process, int64_t status, int number)
{
    struct bel_tree_check *check = process->data;
    (void)status;
    check->signal = number;
    if (!uv_is_closing((uv_handle_t *)process)) uv_close((uv_handle_t *)process, on_closed);
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    struct bel_tree_check *check = handle->data;
    struct bel_loop *loop = check->options.loop;
    (void)wanted;
    *out = uv_buf_init(loop->bytes, sizeof loop->bytes);
}

static void on_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct bel_tree_check *check = stream->data;
    if (count > 0) take_bytes(check, buffer->base, (size_t)count);
    if (count >= 0 || uv_is_closing((uv_handle_t *)stream)) return;
    uv_close((uv_handle_t *)stream, on_closed);
}

static int spawn(struct bel_tree_check *check)
{
    char pid[32], growth[32], program[] = "belfry", verb[] = BEL_CHECKER_VERB;
    char folder[BEL_CONFIG_PATH_BYTES];
    char *arguments[] = {program, verb, folder, pid, growth, NULL};
    uv_stdio_container_t streams[] = {
        {.flags = UV_IGNORE},
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
         .data.stream = (uv_stream_t *)&check->pipe},
        {.flags = UV_IGNORE},
    };
    uv_process_options_t options = {.exit_cb = on_exit_of_process,
                                    .file = check->options.program,
                                    .args = arguments,
                                    .stdio_count = 3,
                                    .stdio = streams};
    (void)snprintf(folder, sizeof folder, "%s", check->options.config->data);
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    (void)snprintf(growth, sizeof growth, "%d", GROWTH_BYTES_MAX);
    return uv_spawn(&check->options.loop->uv, &check->process, &options);
}

static void start_run(uv_timer_t *timer)
{
    struct bel_tree_check *check = timer->data;
    struct bel_tree_check_stats *stats = stats_of(check);
    assert(check->parts_left == 0);
    check->result = RESULT_NONE;
    check->signal = 0;
    check->bytes = 0;
    check->begun_ns = now_ns();
    (void)uv_pipe_init(&check->options.loop->uv, &check->pipe, 0);
    check->pipe.data = check->process.data = check;
    check->parts_left = PARTS;
    stats->is_running = true;
    stats->pages_done = stats->rows = stats->growth_bytes = stats->growth_bytes_max = 0;
    int status = spawn(check);
    if (status == 0) {
        status = uv_read_start((uv_stream_t *)&check->pipe, give_buffer, on_bytes);
        assert(status == 0);
        return;
    }
    check->result = RESULT_FAILED;
    (void)snprintf(check->why, sizeof check->why, "%s", uv_strerror(status));
    uv_close((uv_handle_t *)&check->pipe, on_closed);
    uv_close((uv_handle_t *)&check->process, on_closed);
}

int bel__tree_check_start(const struct bel_tree_check_options *options, struct bel_tree_check **out)
{
    struct bel_tree_check *check = calloc(1, sizeof *check);
    if (check == NULL) return BEL_ENOMEM;
    check->options = *options;
    check->timer.data = check;
    if (uv_timer_init(&options->loop->uv, &check->timer) != 0) {
        free(check);
        return BEL_EIO;
    }
    if (!options->is_checked) {
        start_run(&check->timer);
    } else {
        stats_of(check)->done++;
        stats_of(check)->last_done.ns = now_ns();
        if (options->config->scrub_ms > 0) wait_ms(check, options->config->scrub_ms);
    }
    *out = check;
    return 0;
}

int bel__tree_check_error(const struct bel_tree_check *check)
{
    return check == NULL ? 0 : check->err;
}

void bel__tree_check_stop(struct bel_tree_check *check)
{
    if (check == NULL) return;
    check->is_stopping = true;
    (void)uv_timer_stop(&check->timer);
    if (check->parts_left == 0 || uv_is_closing((uv_handle_t *)&check->process)) return;
    pid_t pid = uv_process_get_pid(&check->process);
    if (pid <= 0) return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0); /* so that the next server finds no reader of the tree */
}

void bel__tree_check_destroy(struct bel_tree_check *check)
{
    free(check);
}
