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
                   (unsigned long long)most, rig.engine->reads_max, turns);
        CHECK(one >= 1000 && turns > 2);
        CHECK(most <= rig.engine->reads_max + one + 100);
    }
    rig_finish(&rig);
}

/* Commands that change something never wait for a query that comes after them. */
static void a_query_waits_and_a_change_before_it_does_not(void)
{
    struct rig rig = {0};
    struct bel_command list = {.verb = BEL_VERB_LIST, .list = {.topic = view("t")}};
    int turns;
    rig_open(&rig);
    rig.engine->reads_max = 1; /* every turn has room for one query */
    make_ladder(3);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    (void)ask_at_once(&rig, list, &turns);
    CHECK(turns == QUERIES);
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
    RUN(a_query_waits_and_a_change_before_it_does_not);
    RUN(a_turn_writes_few_bytes_of_a_large_job);
    RUN(new_topics_reserve_memory_rarely);
    return 0;
}
