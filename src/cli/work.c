/* SPDX-License-Identifier: MIT */

/*
 * belfry work: runs a program for each due timer. A crew (belfry/crew.h) claims timers, and each of
 * its threads, the hands, runs the program for one timer at a time. The main thread waits for
 * signals:
 *
 *     SIGTERM, SIGINT              stop claiming; running programs have --grace to finish
 *     --grace over, or 2nd signal  end the programs and release their timers
 *
 * A claim that fails with a permanent error stops the worker as well, and so does a program that
 * cannot be started.
 */
#include "belfry/crew.h"
#include "belfry/instant.h"
#include "cli/connect.h"
#include "cli/duration.h"
#include "cli/handler.h"
#include "cli/print.h"
#include "cli/program.h"
#include "cli/topic_hint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEASE_MS_MAX = 24 * 3600 * 1000,
    GRACE_MS_MAX = 7 * 24 * 3600 * 1000,
    LAST_MS = 10000, /* how long to wait for programs that were ended */
    LOOK_MS = 200,   /* how often to check for a second signal */
};

static const char usage[] =
    "usage: belfry work TOPIC ... [OPTION ...] -- PROGRAM [ARGUMENT ...]\n"
    "\n"
    "Runs a program for each due timer. The program gets the payload on standard input,\n"
    "and BELFRY_ID, BELFRY_TOPIC, BELFRY_ATTEMPT, BELFRY_DUE_MS, BELFRY_CORRELATION,\n"
    "BELFRY_TOKEN and BELFRY_HEADER_<NAME> in its environment. Exit status 0: done.\n"
    "75: release, due again after 1s. 65: reject, no retry. 69: failed because of the\n"
    "resource of the timer, counts for its circuit breaker. Any other: failed, retried by\n"
    "the policy; the last line of standard error is the reason. SIGTERM stops claiming and\n"
    "lets running programs finish. For a task of a job, BELFRY_JOB and BELFRY_TASK are set,\n"
    "and the file $BELFRY_RESULTS has the results of the tasks before it, as a JSON object,\n"
    "{} if there are none.\n"
    "\n"
    "    -j N                programs at once (default 5)\n"
    "    --lease DURATION    how long a claim lasts and is extended by (default: that of the\n"
    "                        timer or the topic, or 30s)\n"
    "    --grace DURATION    time to finish after SIGTERM (default 15s)\n"
    "    --name NAME         name of the worker (default: host name and process id)\n"
    "    --result            what the program writes to standard output is the result of the\n"
    "                        timer, up to 64 KiB, without the newline at its end\n";

/* --- arguments --- */

struct arguments {
    struct cli_connect connect;
    struct cli_handler handler;
    const char **topics;
    size_t topics_count;
    uint64_t hands, lease_ms, grace_ms;
    const char *name;
    atomic_int refused; /* the exit status after a permanent error of a claim; or CLI_OK */
};

static int read_duration(const char *name, const char *text, uint64_t max, uint64_t *out)
{
    struct bel_text_error why;
    int err = bel__cli_duration(text, out, &why);
    if (err) return bel__cli_refuse_value(name, "a duration", text, &why);
    if (*out <= max) return CLI_OK;
    fprintf(stderr, "belfry: %s %s is too long\n", name, text);
    return CLI_USAGE;
}

static int read_lease(const char *text, uint64_t *out)
{
    int status = read_duration("--lease", text, LEASE_MS_MAX, out);
    if (status != CLI_OK || *out > 0) return status;
    fprintf(stderr, "belfry: --lease %s: a lease must be at least 1 ms\n", text);
    return CLI_USAGE;
}

static int read_hands(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    if (errno == 0 && *end == '\0' && end != text && *out >= 1 && *out <= BEL_CREW_HANDS_MAX) {
        return CLI_OK;
    }
    fprintf(stderr, "belfry: -j %s: expected a number from 1 to %d\n", text, BEL_CREW_HANDS_MAX);
    return CLI_USAGE;
}

/* Parses one option. Sets `*used` to whether its value was in the next argument. */
static int take_option(struct arguments *arguments, const char *text, const char *next, bool *used)
{
    const char *equals = strchr(text, '=');
    char name[32];
    size_t bytes = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : next;
    bool has = false, has_value = true;
    (void)snprintf(name, sizeof name, "%.*s", (int)bytes, text);
    int status = bel__connect_option(&arguments->connect, name, value, &has, &has_value);
    *used = has_value && equals == NULL;
    if (status != CLI_OK || has) return status;
    if (strcmp(name, "result") == 0 && equals == NULL) {
        arguments->handler.has_result = true;
        *used = false;
        return CLI_OK;
    }
    *used = equals == NULL;
    bool is_known = strcmp(name, "lease") == 0 || strcmp(name, "grace") == 0 ||
                    strcmp(name, "name") == 0 || strcmp(name, "jobs") == 0;
    if (!is_known) {
        fprintf(stderr, "belfry work: unknown option --%s; see belfry help work\n", name);
        return CLI_USAGE;
    }
    if (value == NULL) {
        fprintf(stderr, "belfry work: option needs a value: --%s; see belfry help work\n", name);
        return CLI_USAGE;
    }
    if (name[0] == 'l') return read_lease(value, &arguments->lease_ms);
    if (name[0] == 'g') return read_duration("--grace", value, GRACE_MS_MAX, &arguments->grace_ms);
    if (name[0] == 'j') return read_hands(value, &arguments->hands);
    arguments->name = value;
    return CLI_OK;
}

static int check_arguments(const struct arguments *arguments)
{
    if (arguments->topics_count == 0 || arguments->handler.argv == NULL ||
        arguments->handler.argv[0] == NULL) {
        fprintf(stderr, "belfry work: expected TOPIC ... -- PROGRAM; see belfry help work\n");
        return CLI_USAGE;
    }
    struct bel_why why = {0};
    if (bel__program_check(arguments->handler.argv[0], &why)) return CLI_OK;
    fprintf(stderr, "belfry: %s\n", why.text);
    return CLI_FAILED;
}

/* Parses the arguments. Returns -1 on success, otherwise the exit status. */
static int read_arguments(struct arguments *arguments, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        bool used = false;
        int status = CLI_OK;
        if (strcmp(text, "--") == 0) {
            arguments->handler.argv = argv + i + 1;
            break;
        }
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            fputs(usage, stdout);
            fputs(bel__connect_help, stdout);
            return CLI_OK;
        }
        if (text[0] != '-') {
            arguments->topics[arguments->topics_count++] = text;
        } else if (text[1] == 'j') {
            const char *value = text[2] != '\0' ? text + 2 : argv[i + 1];
            status = read_hands(value != NULL ? value : "", &arguments->hands);
            used = text[2] == '\0';
        } else if (text[1] == '-') {
            status = take_option(arguments, text + 2, argv[i + 1], &used);
        } else {
            fprintf(stderr, "belfry work: unknown option %s; see belfry help work\n", text);
            return CLI_USAGE;
        }
        if (status != CLI_OK) return status;
        i += used;
    }
    int status = check_arguments(arguments);
    return status == CLI_OK ? -1 : status;
}

/* --- callbacks of the crew --- */

static _Thread_local int exit_status; /* of the program that this hand has run last */

static const char *outcome_of(const struct bel_report *report)
{
    static const char *const kinds[] = {
        [BEL_REPORT_DONE] = "done",         [BEL_REPORT_FAILED] = "failed",
        [BEL_REPORT_RELEASED] = "released", [BEL_REPORT_REJECTED] = "rejected",
        [BEL_REPORT_LIMITED] = "limited",   [BEL_REPORT_RESOURCE] = "failed"};
    return kinds[report->kind];
}

/* Returns whether a timer that has failed comes again, at the due time of the verdict. */
static bool comes_again(const struct bel_verdict *verdict)
{
    return verdict->state == BEL_SCHEDULED || verdict->state == BEL_READY;
}

static void print_object(const struct bel_errand *errand, const struct bel_report *report)
{
    const char *outcome = bel_errand_is_lost(errand) ? "lost" : outcome_of(report);
    flockfile(stdout);
    printf("{\"topic\": ");
    bel__cli_print_json_view(errand->topic);
    printf(", \"id\": ");
    bel__cli_print_json_view(errand->id);
    printf(", \"attempt\": %" PRIu64 ", \"outcome\": \"%s\", \"status\": %d", errand->attempt,
           outcome, exit_status);
    if (report->reason[0] != '\0') {
        printf(", \"reason\": ");
        bel__cli_print_json(report->reason);
    }
    if (report->has_verdict) printf(", \"state\": \"%s\"", bel_state_name(report->verdict.state));
    if (report->has_verdict && comes_again(&report->verdict)) {
        printf(", \"due_ms\": %" PRId64, report->verdict.due.ms);
    }
    printf("}\n");
    (void)fflush(stdout);
    funlockfile(stdout);
}

/* Prints what becomes of a timer that has failed: "; dead after 3 attempts". The next attempt is a
 * time and not a duration: the clock of the server may differ. */
static void print_verdict(const struct bel_errand *errand, const struct bel_verdict *verdict)
{
    char due[BEL_INSTANT_BYTES];
    if (comes_again(verdict)) {
        (void)bel_instant_print(verdict->due, due, sizeof due);
        fprintf(stderr, "; next attempt at %s", due);
        return;
    }
    fprintf(stderr, "; %s after %" PRIu64 " attempt%s", bel_state_name(verdict->state),
            errand->attempt, errand->attempt == 1 ? "" : "s");
}

static void print_line(const struct bel_errand *errand, const struct bel_report *report)
{
    if (report->kind == BEL_REPORT_DONE) return;
    flockfile(stderr);
    fprintf(stderr, "belfry: %s %s: %s%s%s", (const char *)errand->topic.data,
            (const char *)errand->id.data, outcome_of(report),
            report->reason[0] != '\0' ? ": " : "", report->reason);
    if (report->has_verdict) print_verdict(errand, &report->verdict);
    fputs("\n", stderr);
    funlockfile(stderr);
}

/* Prints the outcome of a timer. Is called after the server has answered: only then is it known
 * whether the lease was still valid, and whether the timer comes again. */
static void print_outcome(void *context, const struct bel_errand *errand,
                          const struct bel_report *report)
{
    const struct arguments *arguments = context;
    if (arguments->connect.is_json) {
        print_object(errand, report);
    } else {
        print_line(errand, report);
    }
}

/* Stops the worker in the same way as a signal from outside, with an exit status. */
static void stop(struct arguments *arguments, int status)
{
    if (atomic_exchange(&arguments->refused, status) != CLI_OK) return;
    (void)kill(getpid(), SIGTERM);
}

/* Runs the program for a timer. A program that cannot be started stops the worker: each timer would
 * be released again and again. */
static void work(void *context, const struct bel_errand *errand, struct bel_report *report)
{
    struct arguments *arguments = context;
    if (bel__handler_run(&arguments->handler, errand, report, &exit_status)) return;
    stop(arguments, CLI_FAILED);
}

/* Prints an error of the connection or of a claim. An invalid or forbidden claim is permanent:
 * stops the worker. After any other error the crew tries again. */
static void trouble(void *context, const char *text)
{
    static const char *const lasting[] = {"BADARG", "ERR", "NOPERM", "UNSUPPORTED"};
    struct arguments *arguments = context;
    fprintf(stderr, "belfry: %s\n", text);
    for (unsigned i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
        size_t bytes = strlen(lasting[i]);
        if (strncmp(text, lasting[i], bytes) != 0 || text[bytes] != ' ') continue;
        stop(arguments, bel__connect_exit((struct bel_view){text, bytes}));
    }
}

/* Waits until the crew has finished, for up to `grace_ms` or until another signal. Returns whether
 * it has finished. */
static bool finish(struct bel_crew *crew, const sigset_t *signals, uint64_t grace_ms)
{
    const struct timespec at_once = {0, 0};
    for (uint64_t waited = 0;; waited += LOOK_MS) {
        uint64_t left = waited < grace_ms ? grace_ms - waited : 0;
        if (bel_crew_stop(crew, (uint32_t)(left < LOOK_MS ? left : LOOK_MS)) == 0) return true;
        if (left == 0 || sigtimedwait(signals, NULL, &at_once) > 0) return false;
    }
}

static int run_until_told(const struct arguments *arguments, struct bel_crew *crew, int end_fd,
                          const sigset_t *signals)
{
    int signal;
    (void)sigwait(signals, &signal);
    bool is_over = finish(crew, signals, arguments->grace_ms);
    if (!is_over) {
        fprintf(stderr, "belfry: terminating the running programs\n");
        (void)close(end_fd); /* wakes every hand */
        is_over = finish(crew, signals, LAST_MS);
    }
    if (is_over) {
        bel_crew_destroy(crew);
        return atomic_load(&arguments->refused);
    }
    fprintf(stderr, "belfry: some programs are still running; their leases will expire\n");
    return CLI_TIMED_OUT;
}

/* Connects once, so that a wrong address or key ends the program instead of being retried. Reports
 * topics that do not exist: they may be mistyped. */
static int check_connection(const struct arguments *arguments)
{
    struct bel_client *client;
    int status = bel__connect_open(&arguments->connect, &client);
    if (status != CLI_OK) return status;
    for (size_t i = 0; i < arguments->topics_count; i++) {
        const char *topic = arguments->topics[i];
        (void)bel__topic_hint_yet(client, (struct bel_view){topic, strlen(topic)});
    }
    bel_client_close(client);
    return CLI_OK;
}

static int run_crew(struct arguments *arguments)
{
    struct bel_crew_options options = {.address = bel__connect_target(&arguments->connect),
                                       .client = {.timeout_ms = arguments->connect.timeout_ms},
                                       .topics = arguments->topics,
                                       .topics_count = arguments->topics_count,
                                       .hands = (unsigned)arguments->hands,
                                       .lease_ms = (uint32_t)arguments->lease_ms,
                                       .work = work,
                                       .trouble = trouble,
                                       .told = print_outcome,
                                       .context = arguments};
    struct bel_crew *crew;
    char key[CLI_KEY_BYTES_MAX], name[128] = "";
    int pair[2];
    sigset_t signals;
    int status = bel__connect_key(&arguments->connect, key, &options.client.key.bytes);
    if (status != CLI_OK) return status;
    options.client.key.data = key;
    (void)gethostname(name, sizeof name - 16);
    size_t used = strnlen(name, sizeof name - 16);
    (void)snprintf(name + used, sizeof name - used, ":%d", (int)getpid());
    options.name = arguments->name != NULL ? arguments->name : name;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe2(pair, O_CLOEXEC) != 0) {
        fprintf(stderr, "belfry: %s\n", bel__cli_problem(errno));
        return CLI_FAILED;
    }
    arguments->handler.end_fd = pair[0];
    int err = bel_crew_start(&options, &crew);
    explicit_bzero(key, sizeof key);
    if (err) {
        fprintf(stderr, "belfry: %s\n", bel_error_text(err));
        return CLI_FAILED;
    }
    return run_until_told(arguments, crew, pair[1], &signals);
}

int bel__cli_work(int argc, char **argv)
{
    struct arguments arguments = {.hands = BEL_CREW_HANDS_DEFAULT,
                                  .grace_ms = BEL_CREW_GRACE_MS_DEFAULT};
    arguments.topics = calloc((size_t)argc, sizeof arguments.topics[0]);
    if (arguments.topics == NULL) return CLI_FAILED;
    int status = read_arguments(&arguments, argc, argv);
    if (status < 0) {
        status = check_connection(&arguments);
        if (status == CLI_OK) status = run_crew(&arguments);
    }
    free(arguments.topics);
    return status;
}
