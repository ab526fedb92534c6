/* SPDX-License-Identifier: MIT */

/*
 * Runs each operation many times, for callgrind to count its instructions:
 *
 *     valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no instructions DIR
 *
 * Makes a dump for each operation, named after it, and prints how many operations it covers. The
 * engine in memory gets commands without a session; the one in DIR gets them in RESP, as a server
 * does. Time and random numbers are fixed, so that every run counts the same.
 */
#include "belfry/wheel.h"
#include "core/buffer.h"
#include "engine/engine.h"
#include "harness.h"
#include "session/session.h"
#include "store/store.h"

#include <gnu/libc-version.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum {
    OPS = 1000,
    BATCH = 100,
    PIPELINE = 50,
    JOBS = 200, /* of BATCH tasks each, queued beside those that are measured */
    TIMERS = 10000,
    START_S = 5000,
    TURN_NS = 20000,
    ID_BYTES = 26, /* that the engine makes */
    TEXT_BYTES = 64 << 10,
    SEED = 4711,
    CROWD_FEW = 100, /* topics that come due at once */
    CROWD_MANY = 2000,
};

const struct engine_traits engine_traits = {.name = "instructions"};

static struct bel_entropy_seeded entropy;
static struct bel_now now = {.boot = {UINT64_C(1000) * START_S * BENCH_MS},
                             .wall = {INT64_C(1767225600000)},
                             .real = {UINT64_C(1000) * START_S * BENCH_MS}};
static struct bel_engine *engine;
static struct bel_backend *backend;

/* --- measuring --- */

static void begin(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

/* Starts or stops counting, between begin() and end(). */
static void toggle(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static void end(const char *name, size_t count)
{
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
    printf("{\"name\": \"%s\", \"count\": %zu}\n", name, count);
}

static void begin_all(void)
{
    begin();
    toggle();
}

static void end_all(const char *name, size_t count)
{
    toggle();
    end(name, count);
}

/* --- commands to the backend --- */

static struct bel_request requests[BATCH];
static char token_bytes[OPS][BEL_TOKEN_BYTES_MAX];
static struct bel_view tokens[OPS];
static size_t tokens_count;
static char id_bytes[OPS][BEL_ID_BYTES_MAX];
static struct bel_view ids[OPS];
static size_t ids_count;
static size_t waiting; /* requests without a reply */

static struct bel_view view(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

static void take_turn(void)
{
    now.boot.ns += TURN_NS;
    now.real.ns += TURN_NS;
    now.wall.ms = INT64_C(1767225600000) + (int64_t)(now.boot.ns / BENCH_MS) - 1000 * START_S;
    (void)bel_backend_turn(backend, now);
}

static void answered(struct bel_request *request, const struct bel_reply *reply)
{
    if (reply->err != 0) bench_fail(reply->why[0] != 0 ? reply->why : bel_error_text(reply->err));
    if (request->command.verb == BEL_VERB_CLAIM) {
        for (size_t i = 0; i < reply->deliveries.count && tokens_count < OPS; i++) {
            struct bel_view token = reply->deliveries.items[i].token;
            memcpy(token_bytes[tokens_count], token.data, token.bytes);
            tokens[tokens_count] = (struct bel_view){token_bytes[tokens_count], token.bytes};
            tokens_count++;
        }
    }
    if (request->command.verb == BEL_VERB_SCHEDULE && ids_count < OPS) {
        memcpy(id_bytes[ids_count], reply->id.data, reply->id.bytes);
        ids[ids_count] = (struct bel_view){id_bytes[ids_count], reply->id.bytes};
        ids_count++;
    }
    waiting--;
}

static void turns(void)
{
    while (waiting > 0) {
        take_turn();
    }
}

static void submit(struct bel_request *request, struct bel_command command)
{
    *request = (struct bel_request){.command = command, .done = answered};
    waiting++;
    bel_backend_submit(backend, request);
}

static void ask(struct bel_command command)
{
    submit(&requests[0], command);
    turns();
}

/* Schedules timers in one turn, `delay_ms` from now. */
static void schedule(const char *topic, uint64_t delay_ms, size_t count)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view(topic);
    command.schedule.payload = view("the payload of a timer: 32 bytes");
    if (delay_ms > 0) {
        command.schedule.when = BEL_WHEN_IN;
        command.schedule.delay_ms = delay_ms;
    }
    for (size_t i = 0; i < count; i++) {
        submit(&requests[i], command);
    }
    turns();
}

static void claim(const char *name, uint32_t count)
{
    struct bel_view topic = view(name);
    struct bel_command command = {.verb = BEL_VERB_CLAIM};
    command.claim = (struct bel_claim){.topics = &topic, .topics_count = 1, .count = count};
    ask(command);
}

static void ack(const struct bel_view *of, size_t count)
{
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){.tokens = of, .tokens_count = count};
    ask(command);
}

static void cancel(struct bel_view id)
{
    struct bel_command command = {.verb = BEL_VERB_CANCEL};
    command.cancel = (struct bel_cancel){.topic = view("mail"), .ids = &id, .ids_count = 1};
    ask(command);
}

static void submit_job(unsigned number)
{
    static char text[TEXT_BYTES];
    int at = snprintf(text, sizeof text, "{\"id\":\"j%u\",\"tasks\":[", number);
    for (unsigned i = 0; i < BATCH; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{\"id\":\"t%u\",\"topic\":\"work\",\"payload\":\"x\"}", i > 0 ? "," : "",
                       i);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "]}");
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    command.job_submit.text = (struct bel_view){text, (size_t)at};
    ask(command);
}

/* --- the engine --- */

static void open_engine(const char *folder)
{
    struct bel_engine_options options = {.folder = folder, .now = now};
    struct bel_store_options durable = {
        .path = folder, .entropy = &entropy.entropy, .is_buffered = true};
    struct bel_store *store;
    bel__entropy_seed(&entropy, SEED);
    /* Valgrind has no room for a map of LMDB; nothing gets into the tree here. */
    if (folder != NULL && bel__tree_memory_create(&durable.tree) != 0) bench_fail("out of memory");
    int err =
        folder == NULL ? bel__store_open_memory(&store) : bel__store_open(&durable, &store, NULL);
    if (err == 0) err = bel__engine_open_on(&options, store, &entropy.entropy, &engine);
    if (err) bench_fail("cannot open an engine");
    backend = bel_engine_backend(engine);
}

static void lifecycles(size_t batch)
{
    for (size_t i = 0; i < OPS; i += batch) {
        tokens_count = 0;
        schedule("mail", 0, batch);
        claim("mail", (uint32_t)batch);
        if (tokens_count != batch) bench_fail("a claim got less");
        ack(tokens, batch);
    }
}

static void measure_verbs(void)
{
    lifecycles(1); /* the first ones allocate memory */
    ids_count = tokens_count = 0;
    begin_all();
    for (size_t i = 0; i < OPS; i++) {
        schedule("mail", 0, 1);
    }
    end_all("schedule", OPS);
    begin_all();
    for (size_t i = 0; i < OPS; i++) {
        claim("mail", 1);
    }
    end_all("claim", OPS);
    begin_all();
    for (size_t i = 0; i < OPS; i++) {
        ack(&tokens[i], 1);
    }
    end_all("ack", OPS);
    ids_count = 0;
    for (size_t i = 0; i < OPS; i++) {
        schedule("mail", BENCH_HOUR_MS, 1);
    }
    begin_all();
    for (size_t i = 0; i < OPS; i++) {
        cancel(ids[i]);
    }
    end_all("cancel", OPS);
    begin_all();
    for (size_t i = 0; i < OPS; i++) {
        ids_count = 0;
        schedule("mail", BENCH_HOUR_MS, 1);
        cancel(ids[0]);
    }
    end_all("schedule and cancel", OPS);
}

static void measure_lifecycles(void)
{
    begin_all();
    lifecycles(1);
    end_all("lifecycle", OPS);
    lifecycles(BATCH);
    begin_all();
    lifecycles(BATCH);
    end_all("lifecycle, batches of 100", OPS);
}

static void run_tasks(void)
{
    for (size_t i = 0; i < OPS; i += BATCH) {
        tokens_count = 0;
        claim("work", BATCH);
        if (tokens_count != BATCH) bench_fail("a claim of tasks got less");
        ack(tokens, BATCH);
    }
}

static void measure_tasks(void)
{
    unsigned jobs = 0;
    for (; jobs < JOBS; jobs++) {
        submit_job(jobs);
    }
    begin_all();
    for (unsigned i = 0; i < OPS / BATCH; i++) {
        submit_job(jobs++);
    }
    end_all("task: submit, jobs of 100", OPS);
    run_tasks();
    begin_all();
    run_tasks();
    end_all("task: claim and ack, batches of 100", OPS);
}

/* Timers in many topics are due at once, and each topic has a claim that waits. */
static void measure_crowd(const char *name, size_t topics)
{
    static struct bel_request crowd[CROWD_MANY];
    static char names[CROWD_MANY][ID_BYTES];
    static struct bel_view views[CROWD_MANY];
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.payload = view("the payload of a timer: 32 bytes");
    command.schedule.when = BEL_WHEN_IN;
    command.schedule.delay_ms = 1000;
    for (size_t i = 0; i < topics; i++) {
        int bytes = snprintf(names[i], sizeof names[i], "crowd-%u", (unsigned)i);
        command.schedule.topic = views[i] = (struct bel_view){names[i], (size_t)bytes};
        submit(&crowd[i], command);
    }
    turns();
    command = (struct bel_command){.verb = BEL_VERB_CLAIM};
    for (size_t i = 0; i < topics; i++) {
        command.claim = (struct bel_claim){
            .topics = &views[i], .topics_count = 1, .count = 1, .wait_ms = BENCH_HOUR_MS};
        submit(&crowd[i], command);
    }
    while (bel_backend_turn(backend, now).due.ns <= now.boot.ns) {} /* until all wait */
    if (waiting != topics) bench_fail("a claim does not wait");
    now.boot.ns += UINT64_C(1000) * BENCH_MS;
    now.real.ns += UINT64_C(1000) * BENCH_MS;
    begin_all();
    turns();
    end_all(name, topics);
    for (size_t i = 0; i < tokens_count; i++) {
        ack(&tokens[i], 1);
    }
    tokens_count = 0;
}

/* --- RESP, and a log --- */

static struct bel_service service;
static struct bel_session *session;
static bool is_ready;
static char said[TEXT_BYTES];
static size_t said_bytes;

static void be_ready(void *context)
{
    (void)context;
    is_ready = true;
}

static void open_session(void)
{
    struct bel_session_owner owner = {.backend = backend, .ready = be_ready};
    service = (struct bel_service){.now = &now, .payload_bytes_max = BEL_PAYLOAD_BYTES_DEFAULT};
    if (bel__session_create(&service, &owner, &session) != 0) bench_fail("out of memory");
}

/* Adds a command to those that are sent next. */
static void say(size_t count, const struct bel_view *words)
{
    said_bytes += (size_t)snprintf(said + said_bytes, sizeof said - said_bytes, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        said_bytes +=
            (size_t)snprintf(said + said_bytes, sizeof said - said_bytes, "$%zu\r\n%.*s\r\n",
                             words[i].bytes, (int)words[i].bytes, (const char *)words[i].data);
    }
}

/* Sends what was said, and takes turns until all replies are there; this is counted. */
static struct bel_buffer *talk(void)
{
    toggle();
    if (bel__session_receive(session, said, said_bytes) != 0) bench_fail("too much input");
    do {
        is_ready = false;
        while (bel__session_step(session, BATCH)) {}
        take_turn();
    } while (is_ready || !bel__session_is_idle(session));
    toggle();
    said_bytes = 0;
    return bel__session_output(session);
}

static void forget(struct bel_buffer *out)
{
    const uint8_t *data = bel__buffer_data(out);
    if (data == NULL || out->count == 0 || *data == '-') bench_fail("an error reply");
    bel__buffer_consume(out, out->count);
    bel__session_trim(session);
}

/* Notes the texts of `bytes` bytes in the replies, ids or tokens, behind `count` words. Returns the
 * number of words. */
static size_t note(struct bel_buffer *out, size_t bytes, struct bel_view *words, size_t count)
{
    static char copies[BATCH][BEL_TOKEN_BYTES_MAX];
    char mark[16];
    size_t mark_bytes = (size_t)snprintf(mark, sizeof mark, "$%zu\r\n", bytes);
    const char *at = (const char *)bel__buffer_data(out), *stop = at + out->count;
    while ((at = memmem(at, (size_t)(stop - at), mark, mark_bytes)) != NULL) {
        if (count == BATCH) bench_fail("too many texts in the replies");
        memcpy(copies[count], at + mark_bytes, bytes);
        words[count] = (struct bel_view){copies[count], bytes};
        at += mark_bytes + bytes;
        count++;
    }
    forget(out);
    return count;
}

/* Says `count` times that a timer is to be made, with an id or without. */
static void say_schedules(size_t count, bool has_id, bool is_later)
{
    static unsigned number;
    char id[32];
    for (size_t i = 0; i < count; i++) {
        struct bel_view words[7] = {view("SCHEDULE"), view("mail"),
                                    view("the payload of a timer: 32 bytes")};
        size_t words_count = 3;
        (void)snprintf(id, sizeof id, "order-%08u", number++);
        if (has_id) words[words_count++] = view("ID"), words[words_count++] = view(id);
        if (is_later) words[words_count++] = view("IN"), words[words_count++] = view("1h");
        say(words_count, words);
    }
}

static void server_schedules(size_t batch, bool has_id)
{
    for (size_t i = 0; i < OPS; i += batch) {
        say_schedules(batch, has_id, true);
        forget(talk());
    }
}

static void server_lifecycles(size_t batch)
{
    for (size_t i = 0; i < OPS; i += batch) {
        char number[16];
        (void)snprintf(number, sizeof number, "%zu", batch);
        struct bel_view words[BATCH] = {view("CLAIM"), view("mail"), view("COUNT"), view(number)};
        say_schedules(batch, false, false);
        forget(talk());
        say(4, words);
        words[0] = view("ACK");
        size_t count = note(talk(), BEL_TOKEN_BYTES, words, 1);
        if (count != 1 + batch) bench_fail("a claim got less");
        say(count, words);
        forget(talk());
    }
}

static void server_cancels(size_t batch)
{
    for (size_t i = 0; i < OPS; i += batch) {
        struct bel_view words[BATCH], cancel[3] = {view("CANCEL"), view("mail")};
        say_schedules(batch, false, true);
        size_t count = note(talk(), ID_BYTES, words, 0);
        if (count != batch) bench_fail("too few ids");
        for (size_t k = 0; k < batch; k++) {
            cancel[2] = words[k];
            say(3, cancel);
        }
        forget(talk());
    }
}

static void measure_server(void)
{
    open_session();
    server_lifecycles(PIPELINE); /* the first ones allocate memory */
    begin();
    server_schedules(1, false);
    end("server: schedule", OPS);
    begin();
    server_schedules(PIPELINE, false);
    end("server: schedule, pipeline of 50", OPS);
    begin();
    server_schedules(PIPELINE, true);
    end("server: schedule with an id, pipeline of 50", OPS);
    begin();
    server_lifecycles(1);
    end("server: lifecycle", OPS);
    begin();
    server_lifecycles(PIPELINE);
    end("server: lifecycle, batches of 50", OPS);
    begin();
    server_cancels(PIPELINE);
    end("server: schedule and cancel, pipeline of 50", OPS);
    bel__session_destroy(session);
}

/* --- the wheel --- */

static void measure_wheel(void)
{
    static bel_timer_t timers[TIMERS];
    struct bench_random random = {.state = SEED};
    struct bel_wheel_timer popped;
    struct bel_wheel *wheel;
    size_t count = 0;
    if (bel_wheel_create(&(struct bel_wheel_options){0}, &wheel) != 0) bench_fail("no wheel");
    for (int round = 0; round < 2; round++) { /* the first one allocates memory */
        if (round == 1) begin_all();
        for (size_t i = 0; i < TIMERS; i++) {
            uint64_t due = bench_hour_delay((uint32_t)bench_random_next(&random));
            if (bel_wheel_arm(wheel, due, 0, i, &timers[i]) != 0) bench_fail("cannot arm");
        }
        if (round == 1) end_all("wheel: arm", TIMERS);
        if (round == 0) {
            begin_all();
            for (size_t i = 0; i < TIMERS; i++) {
                count += bel_wheel_cancel(wheel, timers[i]);
            }
            end_all("wheel: cancel", TIMERS);
        }
    }
    begin_all();
    for (uint64_t at = 0; at != BEL_NEVER; at = bel_wheel_next(wheel)) {
        while (bel_wheel_pop(wheel, at, &popped)) {
            count++;
        }
    }
    end_all("wheel: pop", TIMERS);
    if (count != 2 * TIMERS) bench_fail("timers were lost");
    bel_wheel_destroy(wheel);
}

/* Advances to the millisecond of the next timer and pops one. Returns its user word. */
static size_t pop_next(struct bel_wheel *wheel, uint64_t *at)
{
    struct bel_wheel_timer popped;
    uint64_t next;
    while (!bel_wheel_pop(wheel, *at, &popped)) {
        next = bel_wheel_next(wheel);
        if (next > *at) *at = bench_ceil_ms(next);
    }
    return popped.user;
}

static void arm_within_hour(struct bel_wheel *wheel, struct bench_random *random, uint64_t at,
                            size_t which, bel_timer_t *timers)
{
    uint64_t due = at + bench_hour_delay((uint32_t)bench_random_next(random));
    if (bel_wheel_arm(wheel, due, 0, which, &timers[which]) != 0) bench_fail("cannot arm");
}

/* W3 of script/bench timers with a number of timers: of four operations two arm one, one cancels a
 * random one, and one pops the next. */
static void measure_mixed(const char *name, size_t armed)
{
    static bel_timer_t timers[TIMERS];
    struct bench_random random = {.state = SEED};
    struct bel_wheel *wheel;
    uint64_t at = 0;
    if (bel_wheel_create(&(struct bel_wheel_options){0}, &wheel) != 0) bench_fail("no wheel");
    for (size_t i = 0; i < armed; i++) {
        arm_within_hour(wheel, &random, at, i, timers);
    }
    for (size_t i = 0; i < 4 * armed; i++) {
        if (i == 2 * armed) begin_all();
        size_t which = bench_scale((uint32_t)bench_random_next(&random), (uint32_t)armed);
        if (!bel_wheel_cancel(wheel, timers[which])) bench_fail("cannot cancel");
        arm_within_hour(wheel, &random, at, which, timers);
        arm_within_hour(wheel, &random, at, pop_next(wheel, &at), timers);
    }
    end_all(name, 2 * armed * 4);
    bel_wheel_destroy(wheel);
}

/* Restarts timers as W2 does. */
static void measure_rearm(void)
{
    static bel_timer_t timers[TIMERS];
    struct bench_random random = {.state = SEED};
    struct bel_wheel *wheel;
    uint64_t at = 0;
    if (bel_wheel_create(&(struct bel_wheel_options){0}, &wheel) != 0) bench_fail("no wheel");
    for (size_t i = 0; i < TIMERS; i++) {
        arm_within_hour(wheel, &random, at, i, timers);
    }
    begin_all();
    for (size_t i = 0; i < TIMERS; i++) {
        uint64_t due = BENCH_HOUR_MS * (uint64_t)BENCH_MS + at++;
        if (bel_wheel_rearm(wheel, timers[i], due) != 0) bench_fail("cannot rearm");
    }
    end_all("wheel: rearm", TIMERS);
    bel_wheel_destroy(wheel);
}

int main(int argc, char **argv)
{
    if (argc != 2) bench_fail("give a folder");
    printf("{\"compiler\": \"%s\", \"libc\": \"%s\"}\n", __VERSION__, gnu_get_libc_version());
    measure_wheel();
    measure_rearm();
    measure_mixed("wheel: mixed, 1,000 armed", 1000);
    measure_mixed("wheel: mixed, 10,000 armed", 10000);
    open_engine(NULL);
    measure_verbs();
    measure_lifecycles();
    measure_tasks();
    bel_engine_close(engine);
    open_engine(NULL);
    measure_crowd("a waiting claim, 100 topics due at once", CROWD_FEW);
    measure_crowd("a waiting claim, 2,000 topics due at once", CROWD_MANY);
    bel_engine_close(engine);
    open_engine(argv[1]);
    measure_server();
    bel_engine_close(engine);
    return 0;
}
