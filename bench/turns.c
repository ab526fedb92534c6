/* SPDX-License-Identifier: MIT */

/*
 * The longest turn of an engine in this process while much is asked of it at once: one case, or
 * all of them.
 *
 *     turns [CASE] [folder=DIR]          without a folder the store is in memory
 *
 * Prints one line of JSON for each case: the requests, the turns until all of them are answered
 * and no work is left, the CPU time of the longest turn, and the time of all. The CPU time is that
 * of the thread that takes the turns: without what it waits for, such as other processes.
 */
#include "belfry/clock.h"
#include "belfry/engine.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TASKS = 10000,
    JOBS = 3000,
    TIMERS = 30000,
    TOPICS = 30,
    GROUPS = 100000,
    REQUESTS = GROUPS,
    TEXT_BYTES = 4 << 20,
    SHORT_BYTES = 160,
    NAME_BYTES = 16,
    TURNS_MAX = 10 * 1000 * 1000,
    WAIT_MS = 1000 * 1000,
};

#define SECOND_NS (1000 * (uint64_t)BENCH_MS)

const struct engine_traits engine_traits = {.name = "belfry"};

static struct bel_engine *engine;
static struct bel_backend *backend;
static uint64_t ahead_ns; /* of virtual time */
static struct bel_request *requests;
static size_t requests_count, waiting; /* submitted; without a reply */
static char (*texts)[SHORT_BYTES], (*names)[NAME_BYTES];
static char (*token_bytes)[BEL_TOKEN_BYTES_MAX];
static struct bel_view *tokens;
static size_t tokens_count;
static char text[TEXT_BYTES];

static struct bel_now now(void)
{
    const struct bel_clock *clock = bel_clock_system();
    struct bel_now now = {.boot = bel_clock_boot(clock),
                          .wall = bel_clock_wall(clock),
                          .real = bel_clock_mono(clock)};
    now.boot.ns += ahead_ns;
    now.wall.ms += (int64_t)(ahead_ns / BENCH_MS);
    now.real.ns += ahead_ns;
    return now;
}

static double seconds_of(clockid_t clock)
{
    struct timespec time;
    (void)clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct bel_view view(const char *name)
{
    return (struct bel_view){name, strlen(name)};
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err != 0) bench_fail(reply->why[0] != 0 ? reply->why : bel_error_text(reply->err));
    waiting--;
    if (request->command.verb != BEL_VERB_CLAIM) return;
    for (size_t i = 0; i < reply->deliveries.count; i++) {
        struct bel_view token = reply->deliveries.items[i].token;
        memcpy(token_bytes[tokens_count], token.data, token.bytes);
        tokens[tokens_count] = (struct bel_view){token_bytes[tokens_count], token.bytes};
        tokens_count++;
    }
}

static void add(struct bel_command command)
{
    struct bel_request *request = &requests[requests_count++];
    *request = (struct bel_request){.command = command, .done = answered};
    waiting++;
    bel_backend_submit(backend, request);
}

/* Takes turns until everything is answered, and the engine has nothing more to do now. */
static void serve(const char *name)
{
    double longest = 0, begun = seconds_of(CLOCK_MONOTONIC), cpu = 0;
    size_t turns = 0, at = 0;
    for (bool is_over = false; !is_over; turns++) {
        double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        struct bel_next next = bel_backend_turn(backend, now());
        double took = seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
        cpu += took;
        if (took > longest) {
            longest = took;
            at = turns;
        }
        is_over = waiting == 0 && next.due.ns > now().boot.ns;
        if (turns > TURNS_MAX) bench_fail("no end of turns");
    }
    if (name != NULL) {
        printf("{\"section\": \"turns\", \"case\": \"%s\", \"requests\": %zu, \"turns\": %zu, "
               "\"longest_cpu_ms\": %.2f, \"longest_at\": %zu, \"cpu_ms\": %.1f, \"ms\": %.1f}\n",
               name, requests_count, turns, longest * 1e3, at, cpu * 1e3,
               (seconds_of(CLOCK_MONOTONIC) - begun) * 1e3);
        (void)fflush(stdout);
    }
    requests_count = 0;
}

static void ask(struct bel_command command, const char *name)
{
    add(command);
    serve(name);
}

static void claim(uint32_t count)
{
    struct bel_view topic = view("work");
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = count};
    tokens_count = 0;
    ask(command, NULL);
    if (tokens_count == 0) bench_fail("nothing to claim");
}

/* --- one large job --- */

/* How the tasks of a large job come after each other. */
enum shape {
    SHAPE_TWO_EACH,
    SHAPE_FAN,
    SHAPE_CHAIN,
    SHAPE_FAN_IN,
    SHAPE_DENSE
};

static void submit_large(enum shape shape, const char *fields, bool is_replacement,
                         const char *name)
{
    size_t at = (size_t)snprintf(text, sizeof text, "{\"id\":\"large\",%s\"tasks\":[", fields);
    for (unsigned i = 0; i < TASKS; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s{\"id\":\"t%u\",\"topic\":\"work\"",
                               i > 0 ? "," : "", i);
        if (shape == SHAPE_TWO_EACH && i >= 2) {
            at += (size_t)snprintf(text + at, sizeof text - at, ",\"after\":[\"t%u\",\"t%u\"]",
                                   i / 2, i / 2 - 1);
        } else if (shape == SHAPE_DENSE || (shape == SHAPE_FAN_IN && i == TASKS - 1)) {
            unsigned first = shape == SHAPE_DENSE && i > 9 ? i - 9 : 0;
            at += (size_t)snprintf(text + at, sizeof text - at, ",\"after\":[");
            for (unsigned k = first; k < i; k++) {
                at += (size_t)snprintf(text + at, sizeof text - at, "%s\"t%u\"",
                                       k > first ? "," : "", k);
            }
            at += (size_t)snprintf(text + at, sizeof text - at, "]");
        } else if ((shape == SHAPE_FAN || shape == SHAPE_CHAIN) && i >= 1) {
            at += (size_t)snprintf(text + at, sizeof text - at, ",\"after\":[\"t%u\"]",
                                   shape == SHAPE_FAN ? 0 : i - 1);
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "}");
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "]}");
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit =
        (struct bel_job_submit){.text = {text, at}, .is_replacement = is_replacement};
    ask(command, name);
}

static void cancel_large(const char *name)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_CANCEL};
    command.job_target.id = view("large");
    ask(command, name);
}

/* Ends the task that is claimed. */
static void end_first(bool is_dead, const char *name)
{
    struct bel_command command = {.verb = is_dead ? BEL_VERB_FAIL : BEL_VERB_ACK};
    claim(1);
    if (is_dead) {
        command.fail = (struct bel_fail){.token = tokens[0], .dead = true};
    } else {
        command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = 1};
    }
    ask(command, name);
}

static void pass(uint64_t seconds, const char *name)
{
    ahead_ns += seconds * SECOND_NS;
    serve(name);
}

static void run_submit(void)
{
    submit_large(SHAPE_TWO_EACH, "", false, "submit: 10,000 tasks, 20,000 edges");
}

static void run_cancel(void)
{
    submit_large(SHAPE_TWO_EACH, "", false, NULL);
    cancel_large("cancel: 10,000 tasks");
}

static void run_replace(void)
{
    submit_large(SHAPE_TWO_EACH, "", false, NULL);
    submit_large(SHAPE_TWO_EACH, "", true, "replace: 10,000 tasks");
}

static void run_timeout(void)
{
    submit_large(SHAPE_TWO_EACH, "\"timeout\":\"1m\",", false, NULL);
    pass(61, "timeout: 10,000 tasks");
}

static void run_unblock(void)
{
    submit_large(SHAPE_FAN, "", false, NULL);
    end_first(false, "ack of a task before 9,999 others");
}

static void run_skip(void)
{
    submit_large(SHAPE_CHAIN, "", false, NULL);
    end_first(true, "death of the first of a chain of 10,000");
}

static void run_retention(void)
{
    submit_large(SHAPE_TWO_EACH, "", false, NULL);
    cancel_large(NULL);
    pass(UINT64_C(25) * 3600, "retention: 10,000 tasks");
}

static void get_large(const char *name)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_GET};
    command.job_get.id = view("large");
    ask(command, name);
}

static void run_dense(void)
{
    submit_large(SHAPE_DENSE, "", false, "submit: 10,000 tasks, 90,000 edges");
    get_large("JOB GET of 1,000 tasks, 9,000 edges");
    cancel_large("cancel: 10,000 tasks, 90,000 edges");
    submit_large(SHAPE_FAN_IN, "", true, "submit: a task after 9,999");
    for (unsigned i = 0; i < TASKS - 1; i += 1000) {
        claim(1000);
        struct bel_command command = {.verb = BEL_VERB_ACK};
        command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = tokens_count};
        ask(command, i == 0 ? "ack of 1,000 tasks before one" : NULL);
    }
    struct bel_view topic = view("work");
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1};
    tokens_count = 0;
    ask(command, "claim of a task after 9,999");
}

static void run_pause(void)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_PAUSE};
    command.job_target.id = view("large");
    submit_large(SHAPE_FAN, "", false, NULL);
    end_first(false, NULL);
    ask(command, "pause: 9,999 ready tasks");
    command.verb = BEL_VERB_JOB_RESUME;
    ask(command, "resume: 9,999 ready tasks");
}

/* --- many requests at once --- */

static void add_jobs(unsigned tasks)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    for (unsigned i = 0; i < JOBS; i++) {
        (void)snprintf(texts[i], SHORT_BYTES,
                       tasks == 1 ? "{\"id\":\"j%u\",\"tasks\":[{\"id\":\"a\",\"topic\":\"work\"}]}"
                                  : "{\"id\":\"j%u\",\"tasks\":[{\"id\":\"a\",\"topic\":\"work\"},"
                                    "{\"id\":\"b\",\"topic\":\"work\",\"after\":[\"a\"]}]}",
                       i);
        command.job_submit.text = view(texts[i]);
        add(command);
    }
}

static void run_jobs(void)
{
    struct bel_command command = {.verb = BEL_VERB_JOB_CANCEL};
    add_jobs(2);
    serve("3,000 JOB SUBMIT");
    for (unsigned i = 0; i < JOBS; i++) {
        (void)snprintf(names[i], NAME_BYTES, "j%u", i);
        command.job_target.id = view(names[i]);
        add(command);
    }
    serve("3,000 JOB CANCEL");
    pass(UINT64_C(25) * 3600, "3,000 ended jobs: retention");
}

static void add_timers(unsigned topics, bool has_groups, const char *resource)
{
    unsigned count = has_groups ? GROUPS : TIMERS;
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    for (unsigned i = 0; i < count; i++) {
        struct bel_schedule_spec *spec = &command.schedule;
        (void)snprintf(names[i], NAME_BYTES, "n%u", i);
        (void)snprintf(texts[i], NAME_BYTES, "topic%u", i % topics);
        spec->topic = topics > 1 ? view(texts[i]) : view("work");
        if (has_groups) {
            spec->group = view(names[i]);
        } else {
            spec->id = view(names[i]);
        }
        if (resource != NULL) spec->resource = view(resource);
        add(command);
    }
}

static void run_timers(void)
{
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    struct bel_view topic = view("work");
    add_timers(1, false, NULL);
    serve("30,000 SCHEDULE");
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1};
    tokens_count = 0;
    for (unsigned i = 0; i < TIMERS; i++) {
        add(command);
    }
    serve("30,000 CLAIM");
    command.verb = BEL_VERB_ACK;
    for (unsigned i = 0; i < TIMERS; i++) {
        command.ack = (struct bel_ack){.tokens = &tokens[i], .tokens_count = 1};
        add(command);
    }
    serve("30,000 ACK");
    add_timers(1, false, NULL);
    serve(NULL);
    tokens_count = 0;
    for (unsigned i = 0; i < TIMERS; i += 1000) {
        claim(1000);
    }
    pass(60, "30,000 leases that end at once");
    command = (struct bel_command){.verb = BEL_VERB_CANCEL};
    for (unsigned i = 0; i < TIMERS; i++) {
        tokens[i] = view(names[i]);
    }
    command.cancel = (struct bel_cancel){view("work"), tokens, TIMERS};
    ask(command, "CANCEL of 30,000 ids");
}

static void run_purges(void)
{
    struct bel_command command = {.verb = BEL_VERB_PURGE};
    add_timers(TOPICS, false, NULL);
    serve(NULL);
    for (unsigned i = 0; i < TOPICS; i++) {
        (void)snprintf(texts[i], NAME_BYTES, "topic%u", i);
        command.purge =
            (struct bel_purge){.topic = view(texts[i]), .has_state = true, .state = BEL_READY};
        add(command);
    }
    serve("30 PURGE of 1,000 timers");
}

static void limit(enum bel_limit_action action, const char *name)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = action, .resource = view("api")};
    command.limit.has_until = action == BEL_LIMIT_SET;
    command.limit.until_ms = UINT64_C(3600) * 1000;
    ask(command, name);
}

static void run_groups(void)
{
    add_timers(1, true, "api");
    serve("100,000 SCHEDULE, each of a group");
    limit(BEL_LIMIT_SET, "a resource of 100,000 groups closes");
    struct bel_view topic = view("work");
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim =
        (struct bel_claim){.topics = &topic, .topics_count = 1, .count = 1, .wait_ms = WAIT_MS};
    tokens_count = 0;
    add(command);
    waiting--; /* it waits */
    size_t kept = requests_count;
    serve("a claim meets its 100,000 groups");
    requests_count = kept;
    waiting++;
    limit(BEL_LIMIT_CLEAR, "it opens again");
    for (unsigned i = 0; i < 3; i++) {
        claim(1000);
        limit(BEL_LIMIT_SET, "it closes again");
        limit(BEL_LIMIT_CLEAR, "it opens again");
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"submit", run_submit},       {"cancel", run_cancel},   {"replace", run_replace},
    {"timeout", run_timeout},     {"unblock", run_unblock}, {"skip", run_skip},
    {"retention", run_retention}, {"pause", run_pause},     {"dense", run_dense},
    {"jobs", run_jobs},           {"timers", run_timers},   {"purges", run_purges},
    {"groups", run_groups},
};

int main(int argc, char **argv)
{
    const char *folder = NULL, *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "folder=", 7) == 0) {
            folder = argv[i] + 7;
        } else {
            only = argv[i];
        }
    }
    requests = bench_alloc(REQUESTS + 10, sizeof *requests);
    texts = bench_alloc(REQUESTS, sizeof *texts);
    names = bench_alloc(REQUESTS, sizeof *names);
    token_bytes = bench_alloc(TIMERS + 1000, sizeof *token_bytes);
    tokens = bench_alloc(TIMERS + 1000, sizeof *tokens);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[4096];
        struct bel_engine_options options = {0};
        struct bel_engine_why why;
        if (only != NULL && strcmp(only, cases[i].name) != 0) continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "", cases[i].name);
        ahead_ns = 0;
        options.folder = folder != NULL ? path : NULL;
        options.now = now();
        if (bel_engine_open(&options, &engine, &why) != 0) bench_fail(why.text);
        backend = bel_engine_backend(engine);
        cases[i].run();
        bel_engine_close(engine);
    }
    return 0;
}
