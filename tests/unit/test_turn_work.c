/* SPDX-License-Identifier: MIT */

/*
 * What one turn does is bounded, however much clients ask for at once. A turn takes milliseconds
 * because it reads and writes few rows: these are counted here, and no clock is read.
 */
#include "../jobs_rig.h"
#include "store/state.h"

#include <stdlib.h>

enum {
    TASKS = 1500,
    QUERIES = 30,
    PAYLOAD = 100 * 1000,
    PAYLOADS = 100,
    SEGMENT_BYTES = 64 << 20,
    TOPICS = 1000,
    CROWD = 12000,
    JOBS = 1500,
    PURGES = 20,
    LARGE = 500 * 1000,
    LARGE_COUNT = 30,
};

static struct rig_text text;

/* Makes a job of tasks, each after the two before it. */
static void make_ladder(int count)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"j\",\"tasks\":[{\"id\":\"0\",\"topic\":\"t\"}");
    for (int i = 1; i < count; i++) {
        rig_put(&text, ",{\"id\":\"%d\",\"topic\":\"t\",\"after\":[\"%d\"", i, i - 1);
        if (i > 1) rig_put(&text, ",\"%d\"", i - 2);
        rig_put(&text, "]}");
    }
    rig_put(&text, "]}");
}

/* --- queries --- */

static int answered; /* requests, in the order of submission */

static void on_answer(struct bel_request *request, const struct bel_reply *reply)
{
    const struct bel_request *first = request->user;
    CHECK(reply->err == 0);
    CHECK(request - first == answered);
    answered++;
}

/* Submits a query many times and a SCHEDULE, as if each came from another client. Returns the most
 * rows that a turn reads; sets `*out_turns`. */
static uint64_t ask_at_once(struct rig *rig, struct bel_command query, int *out_turns)
{
    static struct bel_request requests[QUERIES + 1];
    const struct bel_store *store = rig->engine->store;
    struct bel_command last = {.verb = BEL_VERB_SCHEDULE, .schedule = {.topic = view("u")}};
    uint64_t most = 0;
    answered = 0;
    for (int i = 0; i <= QUERIES; i++) {
        requests[i] = (struct bel_request){
            .command = i < QUERIES ? query : last, .done = on_answer, .user = requests};
        bel_backend_submit(bel_engine_backend(rig->engine), &requests[i]);
    }
    for (*out_turns = 0; answered <= QUERIES; ++*out_turns) {
        uint64_t before = bel__store_reads(store);
        int answered_before = answered;
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        uint64_t reads = bel__store_reads(store) - before;
        if (reads > most) most = reads;
        CHECK(answered > answered_before);
        if (answered <= QUERIES) CHECK(rig->next.due.ns <= rig->now.boot.ns); /* goes on at once */
    }
    return most;
}

static void many_queries_take_many_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    struct bel_command queries[] = {
        {.verb = BEL_VERB_JOB_GET, .job_get = {.id = view("j")}},
        {.verb = BEL_VERB_LIST, .list = {.topic = view("t"), .count = 1000}},
    };
    rig_open(&rig);
    make_ladder(TASKS);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    rig_settle(&rig);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        int turns;
        uint64_t before = bel__store_reads(rig.engine->store);
        CHECK(rig_ask(&rig, queries[i]) == 0);
        uint64_t one = bel__store_reads(rig.engine->store) - before;
        uint64_t most = ask_at_once(&rig, queries[i], &turns);
        CHECK_NOTE("one reads %llu, a turn %llu of %u, %d turns", (unsigned long long)one,
                   (unsigned long long)most, rig.engine->rows_max, turns);
        CHECK(one >= 1000 && turns > 2);
        CHECK(most <= rig.engine->rows_max + one + 100);
    }
    rig_finish(&rig);
}

/* The first request of a turn is always served, and the others keep their order. */
static void every_turn_serves_a_request(void)
{
    struct rig rig = {0};
    struct bel_command list = {.verb = BEL_VERB_LIST, .list = {.topic = view("t")}};
    int turns;
    rig_open(&rig);
    rig.engine->rows_max = 1; /* every turn has room for one request */
    make_ladder(3);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    (void)ask_at_once(&rig, list, &turns);
    CHECK(turns == QUERIES + 1);
    rig_finish(&rig);
}

/* --- commands of all kinds --- */

/* Requests that arrive at once. */
static struct {
    struct bel_request requests[CROWD];
    struct bel_view topic;
    char (*ids)[16], (*tokens)[BEL_TOKEN_BYTES_MAX + 1];
    struct bel_view views[CROWD]; /* of the above */
    char (*jobs)[128];
    int count, answered, tokens_count, failed;
    bool is_in_order; /* they are answered one after the other */
} crowd;

static void on_crowd(struct bel_request *request, const struct bel_reply *reply)
{
    if (crowd.is_in_order) CHECK(request - crowd.requests == crowd.answered);
    crowd.answered++;
    crowd.failed += reply->err != 0;
    if (request->command.verb != BEL_VERB_CLAIM || reply->err != 0) return;
    for (size_t i = 0; i < reply->deliveries.count && crowd.tokens_count < CROWD; i++) {
        char *token = crowd.tokens[crowd.tokens_count];
        rig_copy(reply->deliveries.items[i].token, token, BEL_TOKEN_BYTES_MAX + 1);
        crowd.views[crowd.tokens_count++] = view(token);
    }
}

static void join_crowd(struct rig *rig, struct bel_command command)
{
    struct bel_request *request = &crowd.requests[crowd.count++];
    *request = (struct bel_request){.command = command, .done = on_crowd};
    bel_backend_submit(bel_engine_backend(rig->engine), request);
}

/* Takes turns until the crowd is answered. No turn may touch more rows than `most`. */
static void serve_crowd(struct rig *rig, const char *what, uint64_t most)
{
    const struct bel_store *store = rig->engine->store;
    uint64_t seen = 0;
    int turns = 0;
    crowd.answered = crowd.failed = crowd.tokens_count = 0;
    for (; crowd.answered < crowd.count; turns++) {
        uint64_t before = bel__store_touched(store);
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        uint64_t rows = bel__store_touched(store) - before;
        if (rows > seen) seen = rows;
        CHECK(turns < RIG_TURNS_MAX);
    }
    CHECK_NOTE("%s: %d turns, of at most %llu rows, %d failed", what, turns,
               (unsigned long long)seen, crowd.failed);
    CHECK(turns > 1 && seen <= most && crowd.failed == 0);
    crowd.count = 0;
    rig_settle(rig);
}

static struct bel_command cancel_of(int first, size_t count)
{
    return (struct bel_command){.verb = BEL_VERB_CANCEL,
                                .cancel = {view("t"), &crowd.views[first], count}};
}

static struct bel_command claim_of(uint32_t count)
{
    return (struct bel_command){
        .verb = BEL_VERB_CLAIM,
        .claim = {.topics = &crowd.topic, .topics_count = 1, .count = count}};
}

static void make_crowd(void)
{
    memset(&crowd, 0, sizeof crowd);
    crowd.topic = view("t");
    crowd.ids = calloc(CROWD, sizeof *crowd.ids);
    crowd.tokens = calloc(CROWD, sizeof *crowd.tokens);
    crowd.jobs = calloc(CROWD, sizeof *crowd.jobs);
    CHECK(crowd.ids != NULL && crowd.tokens != NULL && crowd.jobs != NULL);
    crowd.is_in_order = true;
}

static void free_crowd(void)
{
    free(crowd.ids);
    free(crowd.tokens);
    free(crowd.jobs);
}

/* A turn does this much beside the requests: job work, numbers of topics, the last request. */
static uint64_t most_of(const struct rig *rig)
{
    return rig->engine->rows_max + 8000;
}

static void schedule_crowd(struct rig *rig)
{
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(crowd.ids[i], sizeof crowd.ids[i], "i%d", i);
        join_crowd(
            rig, (struct bel_command){.verb = BEL_VERB_SCHEDULE,
                                      .schedule = {.topic = view("t"), .id = view(crowd.ids[i])}});
    }
    serve_crowd(rig, "SCHEDULE", most_of(rig));
}

static void many_commands_take_many_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    rig_open(&rig);
    make_crowd();
    schedule_crowd(&rig);
    for (int i = 0; i < CROWD; i++) {
        join_crowd(&rig, claim_of(1));
    }
    serve_crowd(&rig, "CLAIM", most_of(&rig));
    CHECK(crowd.tokens_count == CROWD);
    for (int i = 0; i < CROWD; i++) {
        join_crowd(&rig,
                   (struct bel_command){.verb = BEL_VERB_ACK,
                                        .ack = {.tokens = &crowd.views[i], .tokens_count = 1}});
    }
    serve_crowd(&rig, "ACK", most_of(&rig));
    free_crowd();
    rig_finish(&rig);
}

/* A command with many ids goes on in the next turn, before the command after it. */
static void one_command_of_many_ids_takes_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    rig_open(&rig);
    make_crowd();
    schedule_crowd(&rig);
    for (int i = 0; i < CROWD; i++) {
        crowd.views[i] = view(crowd.ids[i]);
    }
    join_crowd(&rig, cancel_of(0, CROWD));
    join_crowd(&rig, cancel_of(0, 1));
    serve_crowd(&rig, "CANCEL", most_of(&rig));
    CHECK(crowd.requests[0].own.reply.count == CROWD && crowd.requests[1].own.reply.count == 0);
    free_crowd();
    rig_finish(&rig);
}

static void many_purges_take_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE}, purge = {.verb = BEL_VERB_PURGE};
    char name[PURGES][16];
    rig_open(&rig);
    make_crowd();
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(name[i % PURGES], sizeof name[0], "p%d", i % PURGES);
        schedule.schedule.topic = view(name[i % PURGES]);
        join_crowd(&rig, schedule);
    }
    serve_crowd(&rig, "SCHEDULE", most_of(&rig));
    crowd.is_in_order = false; /* they take turns */
    for (int i = 0; i < PURGES; i++) {
        purge.purge =
            (struct bel_purge){.topic = view(name[i]), .has_state = true, .state = BEL_READY};
        join_crowd(&rig, purge);
    }
    serve_crowd(&rig, "PURGE", most_of(&rig));
    free_crowd();
    rig_finish(&rig);
}

static uint64_t agenda_total;
static bool has_agenda;

static void on_agenda(struct bel_request *request, const struct bel_reply *reply)
{
    CHECK(reply->err == 0 && request->command.verb == BEL_VERB_AGENDA);
    agenda_total = 0;
    for (size_t i = 0; i < reply->steps.count; i++) {
        agenda_total += reply->steps.items[i].count;
    }
    has_agenda = true;
}

/* Asks for the agenda of a topic for a day. Returns the turns that it takes, or stops before it is
 * answered. */
static int ask_agenda(struct rig *rig, const char *topic, uint64_t step_ms, int turns_max)
{
    static struct bel_request request;
    const struct bel_store *store = rig->engine->store;
    int turns = 0;
    request = (struct bel_request){
        .command = {.verb = BEL_VERB_AGENDA, .agenda = {.topic = view(topic), .step_ms = step_ms}},
        .done = on_agenda};
    has_agenda = false;
    bel_backend_submit(bel_engine_backend(rig->engine), &request);
    for (; !has_agenda && turns < turns_max; turns++) {
        uint64_t before = bel__store_touched(store);
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        CHECK(bel__store_touched(store) - before <= rig->engine->rows_max + 100);
    }
    return turns;
}

/* Many timers, many plans, and one plan of many times. */
static void an_agenda_takes_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE};
    struct bel_recurrence hourly = {.kind = BEL_PLAN_EVERY, .rule = view("1h")};
    struct bel_recurrence often = {.kind = BEL_PLAN_CRON, .rule = view("* * * * * *")};
    rig_open(&rig);
    make_crowd();
    schedule.schedule =
        (struct bel_schedule_spec){.topic = view("t"), .when = BEL_WHEN_IN, .delay_ms = 1000};
    for (int i = 0; i < CROWD; i++) {
        schedule.schedule.topic = view(i % 2 == 0 ? "t" : "p");
        schedule.schedule.plan = i % 2 == 0 ? (struct bel_recurrence){0} : hourly;
        join_crowd(&rig, schedule);
    }
    serve_crowd(&rig, "SCHEDULE", most_of(&rig));
    schedule.schedule.topic = view("o");
    schedule.schedule.plan = often;
    CHECK(rig_ask(&rig, schedule) == 0);
    uint64_t timers = CROWD / 2, plans = (uint64_t)CROWD / 2 * 24, times = 24 * 3600 - 1;
    int turns = ask_agenda(&rig, "t", 60000, RIG_TURNS_MAX);
    CHECK_NOTE("%d turns, %llu timers", turns, (unsigned long long)agenda_total);
    CHECK(turns == 1 && agenda_total == timers);
    turns = ask_agenda(&rig, "p", 3600000, RIG_TURNS_MAX);
    CHECK_NOTE("%d turns, %llu times of plans", turns, (unsigned long long)agenda_total);
    CHECK(turns > 3 && agenda_total == plans);
    turns = ask_agenda(&rig, "o", 60000, RIG_TURNS_MAX);
    CHECK_NOTE("%d turns, %llu times of a plan", turns, (unsigned long long)agenda_total);
    CHECK(turns > 5 && agenda_total == times);
    turns = ask_agenda(&rig, "", 60000, RIG_TURNS_MAX);
    CHECK_NOTE("%d turns, %llu of all", turns, (unsigned long long)agenda_total);
    CHECK(turns > 10 && agenda_total == timers + plans + times);
    CHECK(ask_agenda(&rig, "", 60000, 3) == 3 && !has_agenda); /* the engine closes meanwhile */
    free_crowd();
    rig_finish(&rig);
}

static void many_jobs_take_many_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    struct bel_command command = {.verb = BEL_VERB_JOB_SUBMIT};
    rig_open(&rig);
    make_crowd();
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(crowd.jobs[i], sizeof crowd.jobs[i],
                       "{\"id\":\"j%d\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
                       "{\"id\":\"b\",\"topic\":\"t\",\"after\":[\"a\"]}]}",
                       i);
        command.job_submit.text = view(crowd.jobs[i]);
        join_crowd(&rig, command);
    }
    crowd.is_in_order = false;
    serve_crowd(&rig, "JOB SUBMIT", most_of(&rig));
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(crowd.ids[i], sizeof crowd.ids[i], "j%d", i);
        command = (struct bel_command){.verb = BEL_VERB_JOB_CANCEL};
        command.job_target.id = view(crowd.ids[i]);
        join_crowd(&rig, command);
    }
    serve_crowd(&rig, "JOB CANCEL", most_of(&rig));
    free_crowd();
    rig_finish(&rig);
}

/* A job that is submitted and done leaves no trace in the rows of work, which every further task
 * would have to pass. */
static void a_job_costs_no_more_after_many_others(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    uint64_t first = 0, last = 0;
    rig_open(&rig);
    for (int i = 0; i < 200; i++) {
        uint64_t before = bel__store_touched(rig.engine->store);
        char job[128];
        (void)snprintf(job, sizeof job,
                       "{\"id\":\"j%d\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}]}", i);
        CHECK(rig_submit(&rig, job) == 0);
        (void)rig_claim(&rig, "t");
        (void)snprintf(job, sizeof job, "j%d/a", i);
        CHECK(rig_ack(&rig, job) == 1);
        last = bel__store_touched(rig.engine->store) - before;
        if (i == 0) first = last;
    }
    CHECK_NOTE("the first touches %llu rows, the last %llu", (unsigned long long)first,
               (unsigned long long)last);
    CHECK(last <= first + 10);
    rig_finish(&rig);
}

/* Claims with large payloads, also those that waited for them, share the bytes of a turn. */
static void large_payloads_take_turns(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    char *payload = malloc(LARGE);
    struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE}, claim;
    rig_open(&rig);
    make_crowd();
    CHECK(payload != NULL);
    memset(payload, 'x', LARGE);
    schedule.schedule.topic = view("t");
    schedule.schedule.payload = (struct bel_view){payload, LARGE};
    claim = claim_of(1);
    claim.claim.wait_ms = 1000;
    for (int i = 0; i < LARGE_COUNT; i++) {
        join_crowd(&rig, claim);
    }
    rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
    for (int i = 0; i < LARGE_COUNT; i++) {
        join_crowd(&rig, schedule);
    }
    crowd.is_in_order = false;
    serve_crowd(&rig, "CLAIM WAIT", most_of(&rig));
    CHECK(crowd.tokens_count == LARGE_COUNT);
    free(payload);
    free_crowd();
    rig_finish(&rig);
}

/* --- payloads --- */

/* Makes a job of tasks with long payloads. */
static char *make_large(size_t *out_bytes)
{
    size_t used, room = (size_t)PAYLOADS * (PAYLOAD + 100) + 100;
    char *job = malloc(room);
    CHECK(job != NULL);
    used = (size_t)snprintf(job, room, "{\"id\":\"large\",\"tasks\":[");
    for (int i = 0; i < PAYLOADS; i++) {
        used += (size_t)snprintf(job + used, room - used,
                                 "%s{\"id\":\"%d\",\"topic\":\"t\",\"payload\":\"",
                                 i > 0 ? "," : "", i);
        memset(job + used, 'x', PAYLOAD);
        used += PAYLOAD;
        used += (size_t)snprintf(job + used, room - used, "\"}");
    }
    used += (size_t)snprintf(job + used, room - used, "]}");
    *out_bytes = used;
    return job;
}

/* Submits a job. Returns the most bytes of rows that a turn writes, about. */
static size_t write_large(struct rig *rig, struct bel_view job, bool is_replacement)
{
    struct bel_request request = {
        .command = {.verb = BEL_VERB_JOB_SUBMIT,
                    .job_submit = {.text = job, .is_replacement = is_replacement}},
        .done = rig_see,
        .user = &rig->seen};
    const struct bel_store *store = rig->engine->store;
    size_t most = 0;
    memset(&rig->seen, 0, sizeof rig->seen);
    bel_backend_submit(bel_engine_backend(rig->engine), &request);
    while (!rig->seen.is_done) {
        size_t before = bel__delta_row_bytes(store->active);
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        size_t after = bel__delta_row_bytes(store->active);
        size_t bytes = after > before ? (after - before) / 2 : 0; /* less: a checkpoint began */
        if (bytes > most) most = bytes;
    }
    CHECK(rig->seen.err == 0);
    return most;
}

static void a_turn_writes_few_bytes_of_a_large_job(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    size_t bytes;
    char *job = make_large(&bytes);
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        size_t most = write_large(&rig, (struct bel_view){job, bytes}, i > 0);
        CHECK_NOTE("a turn writes %zu bytes of %zu", most, bytes);
        CHECK(most > PAYLOAD && most < (size_t)2 << 20);
    }
    free(job);
    rig_finish(&rig);
}

/* --- topics --- */

/* To reserve memory for the wakes of a topic visits all memory of the wheels. So it is done for
 * some topics at once: a turn may make hundreds of topics. */
static void new_topics_reserve_memory_rarely(void)
{
    struct rig rig = {.segment_bytes = SEGMENT_BYTES};
    const struct bel_wakes *wakes;
    uint32_t before, reservations = 0;
    rig_open(&rig);
    wakes = &rig.engine->wakes;
    before = wakes->reserved;
    for (int i = 0; i < TOPICS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "new-%d", i);
        struct bel_command schedule = {.verb = BEL_VERB_SCHEDULE,
                                       .schedule = {.topic = view(name)}};
        CHECK(rig_ask(&rig, schedule) == 0);
        reservations += wakes->reserved != before;
        before = wakes->reserved;
        CHECK(wakes->reserved >= rig.engine->topics.count);
    }
    CHECK_NOTE("%u reservations of %u topics", reservations, wakes->reserved);
    CHECK(reservations < 20 && wakes->reserved < 2 * TOPICS);
    rig_finish(&rig);
}

int main(void)
{
    RUN(many_queries_take_many_turns);
    RUN(every_turn_serves_a_request);
    RUN(many_commands_take_many_turns);
    RUN(one_command_of_many_ids_takes_turns);
    RUN(many_purges_take_turns);
    RUN(an_agenda_takes_turns);
    RUN(many_jobs_take_many_turns);
    RUN(a_job_costs_no_more_after_many_others);
    RUN(large_payloads_take_turns);
    RUN(a_turn_writes_few_bytes_of_a_large_job);
    RUN(new_topics_reserve_memory_rarely);
    return 0;
}
