/* SPDX-License-Identifier: MIT */

/*
 * The calling thread polls five descriptors until the program has exited:
 *
 *     input     payload ---> standard input of the program, until all is written or it is closed
 *     errors    standard error of the program ---> ours; the last line is kept
 *     output    standard output of the program ---> the result, if that is wanted
 *     pidfd     the program has exited
 *     end_fd    the program is to be ended: SIGTERM now, SIGKILL after PATIENCE_MS
 *
 * Subprocesses of the program may keep its standard error open; they are not waited for. The
 * results of the tasks before a task are in a file in memory, open as RESULTS_FD in the program.
 */
#include "cli/handler.h"

#include "belfry/timer.h"
#include "cli/print.h"
#include "cli/program.h"
#include "core/base64.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RELEASE_MS = 1000,  /* delay if the program cannot be started, or exits with 75 */
    PATIENCE_MS = 5000, /* between SIGTERM and SIGKILL */
    LINE_BYTES = BEL_REPORT_REASON_BYTES,
    NAME_BYTES = 300,
    RESULTS_FD = 3,
};

/* A running program. */
struct child {
    pid_t pid;
    int pidfd, input, errors, output; /* -1: closed */
    int end_fd;                       /* -1: SIGTERM was sent */
    bool is_ended;                    /* we have sent a signal */
    struct bel_view payload;          /* the part not yet written */
    char line[LINE_BYTES];            /* the last complete line of its standard error */
    char coming[LINE_BYTES];          /* the line that is being read */
    size_t coming_bytes;
    char *result; /* owned; NULL: it is not wanted */
    size_t result_bytes;
};

/* --- results of other tasks --- */

static const char results_path[] = "/dev/fd/3";

/* Returns a result as JSON: a string, {"base64": ...} if it is not UTF-8, or null. */
static json_t *json_of(const struct bel_task_result *result)
{
    if (!result->has_result) return json_null();
    json_t *text = json_stringn(result->result.data, result->result.bytes);
    if (text != NULL) return text;
    char *base64 = bel__base64_encode(result->result);
    json_t *object = base64 != NULL ? json_pack("{s:s}", "base64", base64) : NULL;
    free(base64);
    return object;
}

static bool is_task(const struct bel_errand *errand)
{
    struct bel_view job;
    return bel_errand_find(errand, "belfry-job", &job);
}

/* Writes the results that a task gets to a file in memory. Returns its descriptor; or -1, and sets
 * errno, to 0 if the timer is not a task. */
static int open_results(const struct bel_errand *errand)
{
    errno = 0;
    if (!is_task(errand)) return -1;
    json_t *all = json_object();
    for (size_t i = 0; i < errand->results_count; i++) {
        const struct bel_task_result *result = &errand->results[i];
        (void)json_object_set_new(all, result->task.data, json_of(result));
    }
    int fd = memfd_create("results", MFD_CLOEXEC);
    bool is_written = fd >= 0 && json_dumpfd(all, fd, JSON_COMPACT) == 0;
    json_decref(all);
    if (is_written) return fd;
    int problem = fd < 0 ? errno : ENOMEM;
    if (fd >= 0) (void)close(fd);
    errno = problem;
    return -1;
}

/* --- the environment --- */

/* Writes the environment variable of a header: BELFRY_HEADER_ and upper case, _ for other bytes. */
static void put_name(char *out, struct bel_view name)
{
    const char *text = name.data;
    size_t used = (size_t)snprintf(out, NAME_BYTES, "BELFRY_HEADER_");
    for (size_t i = 0; i < name.bytes && used < NAME_BYTES - 1; i++) {
        bool is_small = text[i] >= 'a' && text[i] <= 'z';
        bool is_plain = (text[i] >= 'A' && text[i] <= 'Z') || (text[i] >= '0' && text[i] <= '9');
        int byte = is_small ? text[i] - 'a' + 'A' : is_plain ? text[i] : '_';
        out[used++] = (char)byte;
    }
    out[used] = '\0';
}

/* Returns whether a variable must not be inherited: it would belong to another timer. */
static bool is_ours(const char *variable)
{
    static const char *const starts[] = {"BELFRY_HEADER_",
                                         "BELFRY_JOB=", "BELFRY_TASK=", "BELFRY_RESULTS="};
    for (unsigned i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(variable, starts[i], strlen(starts[i])) == 0) return true;
    }
    return false;
}

static void add(char **variables, size_t *count, const char *name, const char *value)
{
    char *variable;
    if (asprintf(&variable, "%s=%s", name, value) >= 0) variables[(*count)++] = variable;
}

/* Builds the environment of the program: the variables of the errand, then ours. Of two variables
 * with one name the first wins. Returns NULL if out of memory. The caller frees the array and its
 * first `*out_owned` strings. */
static char **make_environment(const struct bel_errand *errand, size_t *out_owned)
{
    enum {
        FIELDS = 9
    };
    size_t inherited = 0, count = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    char **variables = calloc(inherited + FIELDS + errand->headers_count + 1, sizeof variables[0]);
    if (variables == NULL) return NULL;
    char number[32], name[NAME_BYTES];
    add(variables, &count, "BELFRY_ID", errand->id.data);
    add(variables, &count, "BELFRY_TOPIC", errand->topic.data);
    add(variables, &count, "BELFRY_TOKEN", errand->token.data);
    add(variables, &count, "BELFRY_CORRELATION", errand->correlation.data);
    (void)snprintf(number, sizeof number, "%" PRIu64, errand->attempt);
    add(variables, &count, "BELFRY_ATTEMPT", number);
    (void)snprintf(number, sizeof number, "%" PRId64, errand->due.ms);
    add(variables, &count, "BELFRY_DUE_MS", number);
    for (size_t i = 0; i < errand->headers_count; i++) {
        put_name(name, errand->headers[i].name);
        add(variables, &count, name, errand->headers[i].value.data);
    }
    struct bel_view value;
    if (bel_errand_find(errand, "belfry-job", &value)) {
        add(variables, &count, "BELFRY_JOB", value.data);
    }
    if (bel_errand_find(errand, "belfry-task", &value)) {
        add(variables, &count, "BELFRY_TASK", value.data);
    }
    if (is_task(errand)) add(variables, &count, "BELFRY_RESULTS", results_path);
    *out_owned = count;
    for (size_t i = 0; i < inherited; i++) {
        if (!is_ours(environ[i])) variables[count++] = environ[i];
    }
    return variables;
}

static void free_environment(char **variables, size_t owned)
{
    for (size_t i = 0; i < owned; i++) {
        free(variables[i]);
    }
    free(variables);
}

/* --- starting --- */

static void close_end(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

/* The descriptors of a program; -1: it inherits ours. */
struct ends {
    int input, errors, output, results;
};

static int add_ends(posix_spawn_file_actions_t *actions, const struct ends *ends)
{
    int problem = posix_spawn_file_actions_adddup2(actions, ends->input, STDIN_FILENO);
    if (!problem) problem = posix_spawn_file_actions_adddup2(actions, ends->errors, STDERR_FILENO);
    if (!problem && ends->output >= 0) {
        problem = posix_spawn_file_actions_adddup2(actions, ends->output, STDOUT_FILENO);
    }
    if (!problem && ends->results >= 0) {
        problem = posix_spawn_file_actions_adddup2(actions, ends->results, RESULTS_FD);
    }
    return problem;
}

/* Starts the program, with the default handling of signals that we block or ignore. */
static int spawn(const struct cli_handler *handler, char **environment, const struct ends *ends,
                 pid_t *out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t none, pipes;
    (void)sigemptyset(&none);
    (void)sigemptyset(&pipes);
    (void)sigaddset(&pipes, SIGPIPE);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&how);
    int problem = add_ends(&actions, ends);
    if (!problem) problem = posix_spawnattr_setsigmask(&how, &none);
    if (!problem) problem = posix_spawnattr_setsigdefault(&how, &pipes);
    if (!problem) problem = posix_spawnattr_setpgroup(&how, 0);
    if (!problem) {
        problem = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETPGROUP);
    }
    if (!problem) {
        problem = posix_spawnp(out, handler->argv[0], &actions, &how, handler->argv, environment);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&how);
    return problem;
}

/* Starts the program. Returns 0 or an errno. */
static int start(const struct cli_handler *handler, const struct bel_errand *errand,
                 struct child *child)
{
    int input[2] = {-1, -1}, errors[2] = {-1, -1}, output[2] = {-1, -1};
    size_t owned = 0;
    char **environment = make_environment(errand, &owned);
    int results = open_results(errand);
    int problem = environment == NULL ? ENOMEM : results < 0 ? errno : 0;
    if (!problem && pipe2(input, O_CLOEXEC) != 0) problem = errno;
    if (!problem && pipe2(errors, O_CLOEXEC) != 0) problem = errno;
    if (!problem && handler->has_result && pipe2(output, O_CLOEXEC) != 0) problem = errno;
    struct ends ends = {input[0], errors[1], output[1], results};
    if (!problem) problem = spawn(handler, environment, &ends, &child->pid);
    if (environment != NULL) free_environment(environment, owned);
    close_end(&input[0]);
    close_end(&errors[1]);
    close_end(&output[1]);
    close_end(&results);
    child->input = input[1];
    child->errors = errors[0];
    child->output = output[0];
    if (problem) {
        close_end(&child->input);
        close_end(&child->errors);
        close_end(&child->output);
        return problem;
    }
    (void)fcntl(child->input, F_SETFL, O_NONBLOCK);
    (void)fcntl(child->errors, F_SETFL, O_NONBLOCK);
    if (child->output >= 0) (void)fcntl(child->output, F_SETFL, O_NONBLOCK);
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    child->payload = errand->payload;
    child->end_fd = handler->end_fd;
    return 0;
}

/* --- running --- */

static void write_payload(struct child *child)
{
    ssize_t written = 0;
    if (child->payload.bytes > 0) {
        written = write(child->input, child->payload.data, child->payload.bytes);
        if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    }
    if (written >= 0) {
        child->payload.data = (const char *)child->payload.data + written;
        child->payload.bytes -= (size_t)written;
    }
    if (written < 0 || child->payload.bytes == 0) close_end(&child->input);
}

/* Makes the line that was read the last line, unless it is empty. */
static void keep_line(struct child *child)
{
    if (child->coming_bytes == 0) return;
    memcpy(child->line, child->coming, child->coming_bytes);
    child->line[child->coming_bytes] = '\0';
    child->coming_bytes = 0;
}

/* Copies available standard error of the program to ours. Returns false at the end of the
 * stream. */
static bool read_errors(struct child *child)
{
    char data[4096];
    ssize_t got = read(child->errors, data, sizeof data);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    (void)fwrite(data, 1, (size_t)got, stderr);
    for (ssize_t i = 0; i < got; i++) {
        if (data[i] == '\n') {
            keep_line(child);
        } else if (child->coming_bytes < LINE_BYTES - 1) {
            child->coming[child->coming_bytes++] = data[i];
        }
    }
    return got > 0;
}

/* Reads available standard output of the program, the result. A byte beyond the limit is kept to
 * tell that there was more. Returns false at the end of the stream. */
static bool read_output(struct child *child)
{
    char data[4096];
    size_t room = BEL_RESULT_BYTES_MAX + 1 - child->result_bytes;
    ssize_t got = read(child->output, data, sizeof data);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    size_t kept = (size_t)got < room ? (size_t)got : room;
    memcpy(child->result + child->result_bytes, data, kept);
    child->result_bytes += kept;
    return got > 0;
}

static void send_signal(struct child *child, int signal)
{
    child->is_ended = true;
    child->end_fd = -1;
    (void)kill(-child->pid, signal);
}

/* Polls the five descriptors once. Returns whether the program has exited. */
static bool poll_once(struct child *child)
{
    struct pollfd sets[] = {{.fd = child->pidfd, .events = POLLIN},
                            {.fd = child->input, .events = POLLOUT},
                            {.fd = child->errors, .events = POLLIN},
                            {.fd = child->end_fd, .events = POLLIN},
                            {.fd = child->output, .events = POLLIN}};
    bool is_impatient = child->is_ended;
    int ready = poll(sets, 5, is_impatient ? PATIENCE_MS : -1);
    if (ready == 0 && is_impatient) send_signal(child, SIGKILL);
    if (ready <= 0) return false;
    if (sets[1].revents) write_payload(child);
    if (sets[2].revents && !read_errors(child)) close_end(&child->errors);
    if (sets[3].revents) send_signal(child, SIGTERM);
    if (sets[4].revents && !read_output(child)) close_end(&child->output);
    if (child->pidfd >= 0) return sets[0].revents != 0;
    /* on a kernel without pidfd_open */
    return child->input < 0 && child->errors < 0 && child->output < 0;
}

/* Waits for the program. Returns its exit status, or 128 + the signal that ended it. */
static int reap(struct child *child)
{
    int status = 0;
    pid_t pid;
    do {
        pid = waitpid(child->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    for (int i = 0; i < 16 && child->errors >= 0; i++) { /* read what is left of its errors */
        struct pollfd set = {.fd = child->errors, .events = POLLIN};
        if (poll(&set, 1, 0) <= 0 || !read_errors(child)) break;
    }
    keep_line(child);
    while (child->output >= 0) { /* what is left of its result is in the pipe */
        struct pollfd set = {.fd = child->output, .events = POLLIN};
        if (poll(&set, 1, 0) <= 0 || !read_output(child)) close_end(&child->output);
    }
    close_end(&child->input);
    close_end(&child->errors);
    close_end(&child->pidfd);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Releases with a delay. Without one the timer would be claimed again at once, in a busy loop. */
static struct bel_report release_for_later(void)
{
    return (struct bel_report){
        .kind = BEL_REPORT_RELEASED, .has_delay = true, .delay_ms = RELEASE_MS};
}

static void judge(const struct child *child, int status, struct bel_report *report)
{
    if (child->is_ended && status != HANDLER_DONE) {
        report->kind = BEL_REPORT_RELEASED;
        return;
    }
    if (status == HANDLER_DONE) {
        if (child->result == NULL) return;
        struct bel_view result = {child->result, child->result_bytes};
        bool ends_a_line = result.bytes > 0 && child->result[result.bytes - 1] == '\n';
        if (result.bytes <= BEL_RESULT_BYTES_MAX && ends_a_line) result.bytes--;
        if (result.bytes > BEL_RESULT_BYTES_MAX) {
            bel_report_fail(report, "the result is larger than 65536 bytes");
        } else if (bel_report_result(report, result) != 0) {
            *report = release_for_later();
        }
        return;
    }
    if (status == HANDLER_RELEASE) {
        *report = release_for_later();
        return;
    }
    if (child->line[0] != '\0') {
        bel_report_fail(report, child->line);
    } else if (status > 128) {
        (void)snprintf(report->reason, sizeof report->reason, "ended by signal %d", status - 128);
    } else {
        (void)snprintf(report->reason, sizeof report->reason, "exit status %d", status);
    }
    report->kind = status == HANDLER_REJECT     ? BEL_REPORT_REJECTED
                   : status == HANDLER_RESOURCE ? BEL_REPORT_RESOURCE
                                                : BEL_REPORT_FAILED;
}

/* Says why the program was not started, and reports the timer: failed if the program cannot be
 * started for this timer, otherwise released. */
static void report_problem(const struct cli_handler *handler, int problem,
                           struct bel_report *report)
{
    struct bel_why why = {0};
    bool is_known = bel__program_is_broken(problem) && !bel__program_check(handler->argv[0], &why);
    if (is_known) {
        fprintf(stderr, "belfry: %s\n", why.text);
    } else {
        fprintf(stderr, "belfry: cannot run %s: %s\n", handler->argv[0], bel__cli_problem(problem));
    }
    *report = release_for_later();
    if (problem != E2BIG) return;
    *report = (struct bel_report){.kind = BEL_REPORT_FAILED};
    bel_report_fail(report, "the headers of the timer are too long for an environment");
}

bool bel__handler_run(const struct cli_handler *handler, const struct bel_errand *errand,
                      struct bel_report *report, int *out_status)
{
    struct child child = {.pidfd = -1, .input = -1, .errors = -1, .output = -1};
    if (handler->has_result) child.result = malloc(BEL_RESULT_BYTES_MAX + 1);
    int problem = handler->has_result && child.result == NULL ? ENOMEM : 0;
    if (!problem) problem = start(handler, errand, &child);
    if (problem) {
        free(child.result);
        report_problem(handler, problem, report);
        *out_status = 127;
        return !bel__program_is_broken(problem);
    }
    bool has_ended = false;
    while (!has_ended) {
        has_ended = poll_once(&child);
    }
    *out_status = reap(&child);
    judge(&child, *out_status, report);
    free(child.result);
    return true;
}
