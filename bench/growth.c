/* SPDX-License-Identifier: MIT */

/*
 * Costs that must not grow with the work beside them, one section per run:
 *
 *     growth due topics=8000       a timer in each topic, all due at once, and a claim that waits
 *     growth schedule topics=1000  timers to topics in turn, due in 30 days, 100 in a turn
 *     growth agenda plans=100000   AGENDA of a day in steps of an hour
 *     growth agenda timers=200000  AGENDA of a day in steps of a minute
 *     growth late ready=10000      how late a plan rings beside so many ready timers
 *
 * Prints one line of JSON: the CPU time of the engine's turns, in memory and in virtual time. It is
 * that of the best of some rounds; turn_max_ms is the longest turn of that round.
 */
#include "belfry/engine.h"
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 7,
    BATCH = 100,
    BURST = 50000, /* schedules of a round */
    TOPICS_MAX = 100000,
    NAME_BYTES = 32,
    READY_MAX = 1000, /* for the section `late` */
};

const struct engine_traits engine_traits = {.name = "belfry"};

static struct bel_now now = {.boot = {UINT64_C(1000) * 1000 * BENCH_MS},
                             .wall = {INT64_C(1767225600000)},
                             .real = {UINT64_C(1000) * 1000 * BENCH_MS}};
static struct bel_engine *engine;
static struct bel_backend *backend;
static uint64_t turn_ns, turn_ns_max; /* CPU time of all turns, and of the longest */
static size_t waiting;                /* requests without a reply */
static struct bel_request *requests;
static char (*names)[NAME_BYTES]; /* of topics */

static void open_engine(uint32_t ready_max)
{
    struct bel_engine_options options = {.now = now, .ready_max = ready_max};
    struct bel_engine_why why;
    if (bel_engine_open(&options, &engine, &why) != 0) bench_fail(why.text);
    backend = bel_engine_backend(engine);
    requests = bench_alloc(TOPICS_MAX, sizeof requests[0]);
}

static uint64_t cpu_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct bel_next take_turn(void)
{
    uint64_t start = cpu_ns();
    struct bel_next next = bel_backend_turn(backend, now);
    uint64_t took = cpu_ns() - start;
    turn_ns += took;
    if (took > turn_ns_max) turn_ns_max = took;
    return next;
}

static void turns(void)
{
    while (waiting > 0) {
        (void)take_turn();
    }
}

static void pass(uint64_t ms)
{
    now.boot.ns += ms * BENCH_MS;
    now.real.ns += ms * BENCH_MS;
    now.wall.ms += (int64_t)ms;
}

static char token_bytes[BATCH][BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[BATCH];
static size_t tokens_count;
static uint64_t told; /* the sum of the steps of an agenda */
static int told_err;
static int64_t told_due; /* of a plan: its next time */

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    enum bel_verb verb = request->command.verb;
    waiting--;
    told_err = reply->err;
    if (reply->err != 0 && verb != BEL_VERB_AGENDA) {
        bench_fail(reply->why[0] != 0 ? reply->why : bel_error_text(reply->err));
    }
    if (verb == BEL_VERB_AGENDA) {
        told = 0;
        for (size_t i = 0; i < reply->steps.count; i++) {
            told += reply->steps.items[i].count;
        }
    } else if (verb == BEL_VERB_GET) {
        told_due = reply->timers.items[0].due.ms;
    } else if (verb == BEL_VERB_CLAIM) {
        for (size_t i = 0; i < reply->deliveries.count && tokens_count < BATCH; i++) {
            struct bel_view token = reply->deliveries.items[i].token;
            memcpy(token_bytes[tokens_count], token.data, token.bytes);
            tokens[tokens_count] = (struct bel_view){token_bytes[tokens_count], token.bytes};
            tokens_count++;
        }
    }
}

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void submit(size_t index, struct bel_command command)
{
    requests[index] = (struct bel_request){.command = command, .done = answered};
    waiting++;
    bel_backend_submit(backend, &requests[index]);
}

static void ask(struct bel_command command)
{
    submit(0, command);
    turns();
}

static void name_topics(size_t count)
{
    names = bench_alloc(count, sizeof names[0]);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[0], "topic-%zu", i);
    }
}

static struct bel_command schedule_of(const char *topic, uint64_t delay_ms)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view(topic);
    command.schedule.payload = view("the payload of a timer: 32 bytes");
    command.schedule.when = BEL_WHEN_IN;
    command.schedule.delay_ms = delay_ms;
    return command;
}

static void ack_all(const char *name)
{
    struct bel_view topic = view(name);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    do {
        command = (struct bel_command){.verb = BEL_VERB_CLAIM};
        command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = BATCH};
        tokens_count = 0;
        ask(command);
        if (tokens_count == 0) return;
        command = (struct bel_command){.verb = BEL_VERB_ACK};
        command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = tokens_count};
        ask(command);
    } while (true);
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- the sections --- */

static void run_due(size_t topics)
{
    struct bel_view *views = bench_alloc(topics, sizeof views[0]);
    uint64_t best = UINT64_MAX;
    name_topics(topics);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < topics; i++) {
            submit(i, schedule_of(names[i], 1000));
        }
        turns();
        for (size_t i = 0; i < topics; i++) {
            struct bel_command command = {.verb = BEL_VERB_CLAIM};
            views[i] = view(names[i]);
            command.claim = (struct bel_claim){
                .topics = &views[i], .topics_count = 1, .count = 1, .wait_ms = 1000000};
            submit(i, command);
        }
        while (take_turn().due.ns <= now.boot.ns) {} /* until all claims are parked */
        if (waiting != topics) bench_fail("a claim does not wait");
        pass(1001);
        turn_ns = 0;
        turns();
        best = min(best, turn_ns);
        for (size_t i = 0; i < topics; i++) {
            ack_all(names[i]);
        }
    }
    printf("{\"section\": \"due\", \"topics\": %zu, \"us\": %.2f}\n", topics,
           (double)best / (double)topics / 1e3);
}

static void run_schedule(size_t topics)
{
    uint64_t best = UINT64_MAX;
    struct bench_random random = {.state = 1};
    size_t next = 0;
    name_topics(topics);
    for (int round = 0; round < ROUNDS; round++) {
        turn_ns = 0;
        for (size_t i = 0; i < BURST; i += BATCH) {
            for (size_t k = 0; k < BATCH; k++) {
                uint64_t delay_ms =
                    1 + bench_random_next(&random) % (UINT64_C(30) * 24 * BENCH_HOUR_MS);
                submit(k, schedule_of(names[next++ % topics], delay_ms));
            }
            turns();
        }
        best = min(best, turn_ns);
    }
    printf("{\"section\": \"schedule\", \"topics\": %zu, \"us\": %.2f}\n", topics,
           (double)best / BURST / 1e3);
}

static void run_agenda(uint64_t plans, uint64_t timers)
{
    struct bel_command command;
    uint64_t best = UINT64_MAX, longest = 0;
    for (uint64_t i = 0; i < plans + timers;) {
        for (size_t k = 0; k < BATCH && i < plans + timers; k++, i++) {
            command = schedule_of("mail", i * 86400000 / (plans + timers));
            if (i < plans) {
                command.schedule.plan =
                    (struct bel_recurrence){.kind = BEL_PLAN_EVERY, .rule = view("1d")};
            }
            submit(k, command);
        }
        turns();
    }
    for (int round = 0; round < ROUNDS; round++) {
        command = (struct bel_command){.verb = BEL_VERB_AGENDA};
        command.agenda.topic = view("mail");
        command.agenda.step_ms = timers > 0 ? 60000 : 3600000;
        turn_ns = turn_ns_max = 0;
        ask(command);
        if (turn_ns < best) longest = turn_ns_max;
        best = min(best, turn_ns);
    }
    printf("{\"section\": \"agenda\", \"plans\": %" PRIu64 ", \"timers\": %" PRIu64
           ", \"ms\": %.2f, \"turn_max_ms\": %.2f, \"err\": %d, \"found\": %" PRIu64 "}\n",
           plans, timers, (double)best / 1e6, (double)longest / 1e6, told_err, told);
}

static void add_plan(const char *id, const char *every, enum bel_overlap overlap)
{
    struct bel_command command = schedule_of("mail", 0);
    command.schedule.id = view(id);
    command.schedule.plan = (struct bel_recurrence){.kind = BEL_PLAN_EVERY,
                                                    .rule = view(every),
                                                    .overlap = overlap,
                                                    .misfire = BEL_MISFIRE_ALL};
    ask(command);
}

/* Rings a plan once a second beside `ready` timers that nobody claims, with room for READY_MAX. */
static void run_late(uint64_t ready)
{
    uint64_t late_ms = 0;
    for (uint64_t i = 0; i < ready; i += BATCH) {
        for (size_t k = 0; k < BATCH; k++) {
            submit(k, schedule_of("mail", 0));
        }
        turns();
    }
    add_plan("tick", "1s", BEL_OVERLAP_ALLOW);
    for (int round = 0; round < 30; round++) {
        pass(1000);
        while (take_turn().due.ns <= now.boot.ns) {}
        struct bel_command command = {.verb = BEL_VERB_GET};
        command.target = (struct bel_target){.topic = view("mail"), .id = view("tick")};
        ask(command);
        if (now.wall.ms - told_due >= (int64_t)late_ms)
            late_ms = (uint64_t)(now.wall.ms - told_due);
    }
    printf("{\"section\": \"late\", \"ready\": %" PRIu64 ", \"late_ms\": %" PRIu64 "}\n", ready,
           late_ms);
}

/* Returns the value of an argument name=value; or `otherwise`. */
static uint64_t number_of(char **argv, const char *name, uint64_t otherwise)
{
    size_t bytes = strlen(name);
    for (; *argv != NULL; argv++) {
        if (strncmp(*argv, name, bytes) != 0 || (*argv)[bytes] != '=') continue;
        return bench_parse_number(*argv + bytes + 1, 10000000);
    }
    return otherwise;
}

int main(int argc, char **argv)
{
    const char *section = argc > 1 ? argv[1] : "";
    open_engine(strcmp(section, "late") == 0 ? READY_MAX : 0);
    if (strcmp(section, "due") == 0) {
        run_due(number_of(argv, "topics", 8000));
    } else if (strcmp(section, "schedule") == 0) {
        run_schedule(number_of(argv, "topics", 1000));
    } else if (strcmp(section, "agenda") == 0) {
        run_agenda(number_of(argv, "plans", 0), number_of(argv, "timers", 0));
    } else if (strcmp(section, "late") == 0) {
        run_late(number_of(argv, "ready", 0));
    } else {
        bench_fail("unknown section");
    }
    bel_engine_close(engine);
    return 0;
}
