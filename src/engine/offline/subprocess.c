/* SPDX-License-Identifier: MIT */

/*
 * A piece goes through a pipe after its length. The last piece is the result, with the highest bit
 * of its length set.
 */
#include "engine/offline/subprocess.h"

#include "belfry/clock.h"
#include "core/units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PIECE_BYTES_MAX = 256 << 20, /* larger than any row as text */
};

#define IS_RESULT (UINT32_C(1) << 31)

struct bel_subprocess {
    int pipe;
};

struct result {
    int err;
    struct bel_why why;
};

static int send_all(int pipe, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = write(pipe, (const char *)data + done, bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return BEL_ECLOSED;
        done += (size_t)count;
    }
    return 0;
}

/* The reading end of a pipe, and when to stop waiting for it. */
struct source {
    int pipe;
    uint64_t end_ns; /* by the monotonic clock; 0: no limit */
};

/* Waits until the pipe can be read. Returns false if the time is over. */
static bool wait_for(const struct source *source)
{
    struct pollfd wanted = {.fd = source->pipe, .events = POLLIN};
    if (source->end_ns == 0) return true;
    for (;;) {
        uint64_t now_ns = bel_clock_mono(bel_clock_system()).ns;
        if (now_ns >= source->end_ns) return false;
        uint64_t ms = (source->end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
        int count = poll(&wanted, 1, ms < INT_MAX ? (int)ms : INT_MAX);
        if (count > 0 || (count < 0 && errno != EINTR)) return true;
    }
}

/* Reads exactly `bytes` bytes. Returns BEL_ECLOSED if the pipe ends before, BEL_EBUSY if the time
 * is over. */
static int receive_all(const struct source *source, void *out, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        if (!wait_for(source)) return BEL_EBUSY;
        ssize_t count = read(source->pipe, (char *)out + done, bytes - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return BEL_ECLOSED;
        done += (size_t)count;
    }
    return 0;
}

int bel__subprocess_send(struct bel_subprocess *process, struct bel_view piece)
{
    uint32_t bytes = (uint32_t)piece.bytes;
    assert(piece.bytes <= PIECE_BYTES_MAX);
    int err = send_all(process->pipe, &bytes, sizeof bytes);
    return err ? err : send_all(process->pipe, piece.data, piece.bytes);
}

/* Runs the task in the subprocess. If it dies, it prints nothing and dumps no core. It ends with
 * its parent, whose lock of the data directory it has inherited. */
static _Noreturn void run_in_child(const struct bel_subprocess_task *task, int pipe, pid_t parent)
{
    struct bel_subprocess process = {pipe};
    struct result result = {0};
    uint32_t mark = IS_RESULT | (uint32_t)sizeof result;
    const struct rlimit none = {0, 0};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* the parent had ended before */
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGPIPE, SIG_IGN);
    if (nowhere >= 0) (void)dup2(nowhere, STDERR_FILENO);
    result.err = task->run(task->context, &process, &result.why);
    (void)send_all(pipe, &mark, sizeof mark);
    (void)send_all(pipe, &result, sizeof result);
    _exit(0);
}

/* Reads one piece. Returns true after the result or an error. */
static bool take_piece(struct bel_subprocess_task *task, const struct source *source,
                       struct result *result)
{
    uint32_t bytes;
    int err = receive_all(source, &bytes, sizeof bytes);
    if (!err && (bytes & IS_RESULT)) {
        err = receive_all(source, result, sizeof *result);
        if (!err) return true;
    }
    char *piece = err ? NULL : malloc((size_t)bytes + 1);
    if (!err && piece != NULL) err = receive_all(source, piece, bytes);
    task->is_late = err == BEL_EBUSY;
    result->err = !err && piece == NULL ? BEL_ENOMEM : err;
    if (!result->err && task->receive != NULL) {
        result->err = task->receive(task->context, (struct bel_view){piece, bytes});
    }
    free(piece);
    return result->err != 0;
}

static int receive_pieces(struct bel_subprocess_task *task, pid_t child, int pipe,
                          struct bel_why *why)
{
    struct source source = {.pipe = pipe};
    struct result result = {0};
    int status = 0;
    if (task->ms_max > 0) {
        source.end_ns = bel_clock_mono(bel_clock_system()).ns + task->ms_max * NS_PER_MS;
    }
    while (!take_piece(task, &source, &result)) {}
    if (task->is_late) (void)kill(child, SIGKILL);
    (void)close(pipe); /* a subprocess that still sends gets EPIPE */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (result.err == BEL_ECLOSED) {
        int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        return bel__why_say(why, BEL_ECORRUPT, "tree is damaged: reading it ended in signal %d",
                            number);
    }
    result.why.text[sizeof result.why.text - 1] = 0;
    if (why != NULL) *why = result.why;
    return result.err;
}

int bel__subprocess_run(struct bel_subprocess_task *task, struct bel_why *why)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return bel__why_system(why, BEL_EIO, "a pipe", "made");
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        run_in_child(task, ends[1], parent);
    }
    (void)close(ends[1]);
    if (child < 0) {
        int err = errno == ENOMEM ? BEL_ENOMEM : BEL_EIO;
        (void)close(ends[0]);
        return bel__why_system(why, err, "a process", "made");
    }
    return receive_pieces(task, child, ends[0], why);
}
