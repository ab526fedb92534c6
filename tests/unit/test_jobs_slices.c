/* SPDX-License-Identifier: MIT */

/*
 * Jobs that take many turns or make other jobs: REPLACE, `then`, recurring jobs; and engines that
 * are opened again after any turn of a submit, a cancel, a replacement.
 */
#include "../jobs_rig.h"

#include <stdio.h>

#define SAME(a, b) CHECK(strcmp((a), (b)) == 0)

static const char diamond[] = "{\"id\":\"d\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"},"
                              "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]},"
                              "{\"id\":\"3\",\"topic\":\"t\",\"after\":[\"1\"]},"
                              "{\"id\":\"4\",\"topic\":\"t\",\"after\":[\"2\",\"3\"]},"
                              "{\"id\":\"5\",\"topic\":\"t\",\"after\":[\"4\"]}]}";

/* --- graphs --- */

static struct rig_text text;

/* Makes a job of `count` tasks, each after the two before it. */
static void make_ladder(const char *id, int count)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"%s\",\"tasks\":[", id);
    for (int i = 0; i < count; i++) {
        rig_put(&text, "%s{\"id\":\"%d\",\"topic\":\"t\"", i > 0 ? "," : "", i);
        if (i == 1) rig_put(&text, ",\"after\":[\"0\"]");
        if (i > 1) rig_put(&text, ",\"after\":[\"%d\",\"%d\"]", i - 1, i - 2);
        rig_put(&text, "}");
    }
    rig_put(&text, "]}");
}

/* Makes a job of `count` tasks without dependencies. */
static void make_row(const char *id, int count)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"%s\",\"tasks\":[", id);
    for (int i = 0; i < count; i++) {
        rig_put(&text, "%s{\"id\":\"%d\",\"topic\":\"t\"}", i > 0 ? "," : "", i);
    }
    rig_put(&text, "]}");
}

/* Makes a job of one task, `count` tasks after it, and one after these. */
static void make_fan(const char *id, int count)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"%s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}", id);
    for (int i = 0; i < count; i++) {
        rig_put(&text, ",{\"id\":\"%d\",\"topic\":\"t\",\"after\":[\"a\"]}", i);
    }
    rig_put(&text, ",{\"id\":\"z\",\"topic\":\"z\",\"after\":[");
    for (int i = 0; i < count; i++) {
        rig_put(&text, "%s\"%d\"", i > 0 ? "," : "", i);
    }
    rig_put(&text, "]}]}");
}

/* --- REPLACE --- */

static int replace(struct rig *rig, const char *json)
{
    return rig_ask(
        rig, (struct bel_command){.verb = BEL_VERB_JOB_SUBMIT,
                                  .job_submit = {.text = view(json), .is_replacement = true}});
}

static void test_replace(void)
{
    static const char other[] = "{\"id\":\"d\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"},"
                                "{\"id\":\"9\",\"topic\":\"u\",\"after\":[\"1\"]}]}";
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_configure(&rig, "t", "depth", "5") == 0);
    CHECK(replace(&rig, diamond) == 0); /* there is none: as without REPLACE */
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_ack_result(&rig, "d/1", "old");
    SAME(rig_claim(&rig, "t"), "d/2");
    CHECK(replace(&rig, other) == 0);
    CHECK(rig_ack(&rig, "d/2") == 0); /* stale */
    CHECK(rig_state(&rig, "d") == BEL_JOB_RUNNING && rig.seen.tasks_count == 2);
    CHECK(rig_target(&rig, BEL_VERB_GET, "t", "d/2") == 0 && rig.seen.count == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    SAME(rig_claim(&rig, "t"), "");
    CHECK(replace(&rig, diamond) == 0); /* depth: the tasks of the old job do not count */
    rig_check(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "d") == 0);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(replace(&rig, other) == 0); /* the new one is not paused */
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_ack(&rig, "d/1");
    rig_finish(&rig);
}

static void test_replace_conflict(void)
{
    struct rig rig = {0};
    struct bel_schedule_spec spec = {.topic = view("u"), .id = view("d/9")};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}) == 0);
    CHECK(replace(&rig, "{\"id\":\"d\",\"tasks\":[{\"id\":\"9\",\"topic\":\"u\"}]}") ==
          BEL_ECONFLICT);
    CHECK(rig_state(&rig, "d") == BEL_JOB_RUNNING && rig.seen.tasks_count == 5);
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_finish(&rig);
}

/* A crash leaves the old job or the new one, whole. */
static void test_crash_while_replacing(void)
{
    bool has_old = false, has_new = false;
    for (int turns = 0;; turns++) {
        struct rig rig = {.work_max = 300};
        rig_open(&rig);
        make_row("w", 100);
        CHECK(rig_submit(&rig, text.bytes) == 0);
        make_ladder("w", 120);
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT,
                        .job_submit = {.text = view(text.bytes), .is_replacement = true}},
            .done = rig_see,
            .user = &rig.seen};
        memset(&rig.seen, 0, sizeof rig.seen);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        bool is_done = rig.seen.is_done;
        rig_check(&rig);
        rig_reopen(&rig);
        rig_settle(&rig);
        CHECK(rig_state(&rig, "w") == BEL_JOB_RUNNING);
        bool is_new = rig.seen.job.tasks_total == 120;
        CHECK(is_new || (rig.seen.job.tasks_total == 100 && !is_done));
        CHECK_EQ(rig.seen.job.counts[BEL_READY], is_new ? 1U : 100U);
        has_old |= !is_new;
        has_new |= is_new && !is_done;
        SAME(rig_claim(&rig, "t"), "w/0");
        rig_finish(&rig);
        if (is_done) break;
    }
    CHECK(has_old && has_new);
}

/* The old job is removed, after its retention, while the new one is being written. A crash leaves
 * the new job or none, and the id can be used. */
static void test_replace_of_removed(void)
{
    bool has_none = false, has_new = false;
    for (int turns = 3;; turns++) {
        struct rig rig = {.work_max = 300, .job_retention_ms = 1000};
        rig_open(&rig);
        make_row("w", 1);
        CHECK(rig_submit(&rig, text.bytes) == 0);
        SAME(rig_claim(&rig, "t"), "w/0");
        rig_ack(&rig, "w/0");
        rig_settle(&rig);
        make_ladder("w", 120);
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT,
                        .job_submit = {.text = view(text.bytes), .is_replacement = true}},
            .done = rig_see,
            .user = &rig.seen};
        memset(&rig.seen, 0, sizeof rig.seen);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
            if (i != 2) continue;
            rig.now.boot.ns += UINT64_C(1001) * 1000000;
            rig.now.wall.ms += 1001;
        }
        bool is_done = rig.seen.is_done;
        rig_reopen(&rig);
        rig_settle(&rig);
        bool is_new = rig_state(&rig, "w") == BEL_JOB_RUNNING;
        CHECK(is_new || (rig_state(&rig, "w") == BEL_JOB_STATES && !is_done));
        has_none |= !is_new;
        has_new |= is_new;
        make_row("w", 1);
        CHECK(replace(&rig, text.bytes) == 0);
        SAME(rig_claim(&rig, "t"), "w/0");
        rig_finish(&rig);
        if (is_done) break;
    }
    CHECK(has_none && has_new);
}

/* The slices of a replacement fill the log several times: the next one waits for a checkpoint. */
static void test_replace_many(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    make_row("w", 10000);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    make_row("w", 3001);
    CHECK(replace(&rig, text.bytes) == 0);
    CHECK(rig_state(&rig, "w") == BEL_JOB_RUNNING && rig.seen.job.tasks_total == 3001);
    CHECK_EQ(rig.seen.job.counts[BEL_READY], 3001U);
    rig_finish(&rig);
}

/* --- then --- */

static const char chained[] =
    "{\"id\":\"a\",\"cooldown\":\"3s\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}],\"then\":["
    "{\"job\":{\"id\":\"b\",\"cooldown\":\"0s\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}],"
    "\"then\":[{\"job\":{\"id\":\"c\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}}]}},"
    "{\"on\":\"failure\",\"job\":{\"id\":\"f\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}},"
    "{\"on\":\"always\",\"job\":{\"id\":\"y\",\"tasks\":[{\"id\":\"1\",\"topic\":\"u\"}]}}]}";

static const char one_c[] = "{\"id\":\"c\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}";

static void test_then(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, chained) == 0);
    CHECK(rig_submit(&rig, one_c) == BEL_ECONFLICT);
    SAME(rig.seen.why, "the id c is reserved by `then` of job a");
    CHECK(rig_state(&rig, "c") == BEL_JOB_STATES);
    SAME(rig_claim(&rig, "t"), "a/1");
    rig_ack(&rig, "a/1");
    CHECK(rig_state(&rig, "a") == BEL_JOB_DONE);
    rig_check(&rig);
    rig_reopen(&rig);
    rig_move(&rig, 2990);
    CHECK(rig_state(&rig, "b") == BEL_JOB_STATES);
    rig_move(&rig, 20);
    CHECK(rig_state(&rig, "b") == BEL_JOB_RUNNING);
    SAME(rig.seen.parent, "a");
    CHECK(rig_state(&rig, "y") == BEL_JOB_RUNNING);
    CHECK(rig_state(&rig, "f") == BEL_JOB_STATES);
    CHECK(rig_state(&rig, "c") == BEL_JOB_STATES);
    SAME(rig_claim(&rig, "t"), "b/1");
    rig_ack(&rig, "b/1");
    rig_move(&rig, 1);
    SAME(rig_claim(&rig, "t"), "c/1");
    CHECK(rig_job(&rig, BEL_VERB_JOB_GET, "a") == 0);
    SAME(rig.seen.clash, "");
    rig_check(&rig);
    rig_move(&rig, UINT64_C(25) * 3600 * 1000);
    CHECK(rig_state(&rig, "a") == BEL_JOB_STATES);
    rig_finish(&rig);
}

static void test_then_of_failure(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, chained) == 0);
    SAME(rig_claim(&rig, "t"), "a/1");
    rig_fail(&rig, "a/1", true);
    rig_move(&rig, 3001);
    CHECK(rig_state(&rig, "f") == BEL_JOB_RUNNING);
    CHECK(rig_state(&rig, "y") == BEL_JOB_RUNNING);
    CHECK(rig_state(&rig, "b") == BEL_JOB_STATES);
    CHECK(rig_submit(&rig, one_c) == 0); /* inside b: not reserved any more */
    CHECK(rig_submit(&rig, "{\"id\":\"b\",\"tasks\":[]}") == 0);
    CHECK(rig_submit(&rig, "{\"id\":\"f\",\"tasks\":[]}") == BEL_ECONFLICT);
    rig_finish(&rig);
}

/* Nothing follows a job that was cancelled or replaced. */
static void test_then_of_cancelled(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, chained) == 0);
    CHECK(replace(&rig, chained) == 0);
    rig_check(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "a") == 0);
    CHECK(rig_submit(&rig, one_c) == 0); /* not reserved any more */
    rig_check(&rig);
    rig_move(&rig, 10000);
    CHECK(rig_state(&rig, "y") == BEL_JOB_STATES);
    rig_move(&rig, UINT64_C(25) * 3600 * 1000);
    CHECK(rig_state(&rig, "c") == BEL_JOB_RUNNING); /* its id belongs to it alone */
    rig_finish(&rig);
}

/* A timer has an id of the follower's task: the parent names the follower, others follow. */
static void test_then_clash(void)
{
    struct rig rig = {0};
    struct bel_schedule_spec spec = {.topic = view("t"), .id = view("b/1"), .delay_ms = 60000};
    spec.when = BEL_WHEN_IN;
    rig_open(&rig);
    CHECK(rig_submit(&rig, chained) == 0);
    SAME(rig_claim(&rig, "t"), "a/1");
    rig_ack(&rig, "a/1");
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}) == 0);
    rig_move(&rig, 3001);
    CHECK(rig_state(&rig, "b") == BEL_JOB_STATES);
    CHECK(rig_state(&rig, "y") == BEL_JOB_RUNNING);
    CHECK(rig_job(&rig, BEL_VERB_JOB_GET, "a") == 0);
    SAME(rig.seen.clash, "b");
    rig_finish(&rig);
}

/* Whatever the turn after which an engine is opened again, each follower is made once. */
static void test_crash_while_following(void)
{
    for (int turns = 0; turns < 25; turns++) {
        struct rig rig = {.work_max = 20};
        rig_open(&rig);
        CHECK(rig_submit(&rig, chained) == 0);
        SAME(rig_claim(&rig, "t"), "a/1");
        rig_ack(&rig, "a/1");
        rig.now.boot.ns += UINT64_C(3001) * 1000000;
        rig.now.wall.ms += 3001;
        for (int i = 0; i < turns; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig_check(&rig);
        rig_reopen(&rig);
        rig_settle(&rig);
        CHECK(rig_state(&rig, "b") == BEL_JOB_RUNNING);
        CHECK(rig_state(&rig, "y") == BEL_JOB_RUNNING);
        CHECK(rig_job(&rig, BEL_VERB_JOB_GET, "a") == 0);
        SAME(rig.seen.clash, "");
        SAME(rig_claim(&rig, "t"), "b/1");
        SAME(rig_claim(&rig, "t"), "");
        rig_finish(&rig);
    }
}

/* The ids of followers that will not begin are free during the cooldown, whatever the turn after
 * which an engine is opened again, or the parent is replaced. */
static void test_replace_in_cooldown(void)
{
    for (int turns = 0; turns < 12; turns++) {
        struct rig rig = {.work_max = 20};
        rig_open(&rig);
        CHECK(rig_submit(&rig, chained) == 0);
        SAME(rig_claim(&rig, "t"), "a/1");
        rig_fail(&rig, "a/1", true);
        for (int i = 0; i < turns / 2; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig_check(&rig);
        rig_reopen(&rig);
        if (turns % 2 == 1) {
            rig_move(&rig, 1);
            CHECK(rig_submit(&rig, "{\"id\":\"b\",\"tasks\":[]}") == 0);
            CHECK(rig_submit(&rig, one_c) == 0);
            CHECK(rig_submit(&rig, "{\"id\":\"f\",\"tasks\":[]}") == BEL_ECONFLICT);
        }
        CHECK(replace(&rig, "{\"id\":\"a\",\"tasks\":[]}") == 0);
        rig_check(&rig);
        rig_move(&rig, 5000);
        rig_check(&rig);
        CHECK(rig_state(&rig, "y") == BEL_JOB_STATES);
        CHECK(rig_submit(&rig, "{\"id\":\"f\",\"tasks\":[]}") == 0);
        rig_finish(&rig);
    }
}

/* A parent that is replaced while its follower is being submitted, in whichever slice, takes the
 * follower with it, and does not stand in the way of the followers of other jobs. */
static void test_replace_while_following(void)
{
    static const char other[] =
        "{\"id\":\"p\",\"cooldown\":\"0s\",\"tasks\":[{\"id\":\"1\",\"topic\":\"v\"}],"
        "\"then\":[{\"job\":{\"id\":\"q\",\"tasks\":[{\"id\":\"1\",\"topic\":\"v\"}]}}]}";
    static const char alone[] = "{\"id\":\"a\",\"tasks\":[{\"id\":\"2\",\"topic\":\"t\"}]}";
    int replaced = 0;
    for (int turns = 0; turns < 60; turns += 10) {
        struct rig rig = {.work_max = 20};
        rig_open(&rig);
        text.used = 0;
        rig_put(&text,
                "{\"id\":\"a\",\"cooldown\":\"3s\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}],"
                "\"then\":[{\"job\":{\"id\":\"b\",\"tasks\":[");
        for (int i = 0; i < 60; i++) {
            rig_put(&text, "%s{\"id\":\"%d\",\"topic\":\"u\"}", i > 0 ? "," : "", i);
        }
        rig_put(&text, "]}}]}");
        CHECK(rig_submit(&rig, text.bytes) == 0);
        SAME(rig_claim(&rig, "t"), "a/1");
        rig_ack(&rig, "a/1");
        rig.now.boot.ns += UINT64_C(3001) * 1000000;
        rig.now.wall.ms += 3001;
        for (int i = 0; i < turns; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig.engine->jobs->retry = rig.engine->now.engine + 500; /* as if memory had run out */
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT,
                        .job_submit = {.text = view(alone), .is_replacement = true}},
            .done = rig_see,
            .user = &rig.seen};
        memset(&rig.seen, 0, sizeof rig.seen);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < 10; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig_move(&rig, 500);
        CHECK(rig.seen.is_done && rig.seen.err == 0);
        CHECK(rig.engine->jobs->follower == NULL);
        replaced += rig_state(&rig, "b") == BEL_JOB_STATES;
        CHECK(rig_submit(&rig, other) == 0);
        SAME(rig_claim(&rig, "v"), "p/1");
        rig_ack(&rig, "p/1");
        rig_move(&rig, 1);
        CHECK(rig_state(&rig, "q") == BEL_JOB_RUNNING);
        rig_finish(&rig);
    }
    CHECK(replaced > 0);
}

/* --- recurring jobs --- */

enum {
    HOUR = 3600 * 1000,
};

/* Submits a job of every hour. */
static void submit_hourly(struct rig *rig, int count, const char *overlap)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"h\",\"every\":\"1h\",\"count\":%d,\"overlap\":\"%s\",\"tasks\":[",
            count, overlap);
    rig_put(&text, "{\"id\":\"1\",\"topic\":\"t\",\"payload\":\"at {{nominal}}\"},"
                   "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]}]}");
    CHECK(rig_submit(rig, text.bytes) == 0);
}

static const char *made_id(int hours, const char *task)
{
    static char id[BEL_ID_BYTES];
    (void)snprintf(id, sizeof id, "h@%lld%s", (long long)(RIG_START + (int64_t)hours * HOUR), task);
    return id;
}

static void test_recurring(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    submit_hourly(&rig, 3, "skip");
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    CHECK(rig.seen.job.has_next && rig.seen.job.next.ms == RIG_START + HOUR);
    SAME(rig_claim(&rig, "t"), "");
    rig_check(&rig);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_RUNNING);
    SAME(rig.seen.plan_id, "h");
    SAME(rig_claim(&rig, "t"), made_id(1, "/1"));
    SAME(rig.seen.text, "at 2026-01-01T01:00:00Z");
    rig_ack(&rig, made_id(1, "/1"));
    rig_check(&rig);
    rig_reopen(&rig);
    rig_move(&rig, HOUR); /* the first is unfinished: skipped */
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_STATES);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    CHECK(rig.seen.job.made == 1 && rig.seen.job.skipped == 1);
    SAME(rig_claim(&rig, "t"), made_id(1, "/2"));
    rig_ack(&rig, made_id(1, "/2"));
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_DONE);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(3, "")) == BEL_JOB_RUNNING);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_TOPICS}) == 0);
    rig_finish(&rig);
}

static void test_recurring_queue(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    submit_hourly(&rig, 10, "queue");
    rig_move(&rig, HOUR);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_RUNNING);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_STATES);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, made_id(1, "")) == 0);
    rig_settle(&rig);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_RUNNING);
    rig_finish(&rig);
}

static void test_recurring_cancel(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    submit_hourly(&rig, 10, "allow");
    rig_move(&rig, HOUR);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_RUNNING);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "h") == 0 && rig.seen.count == 1);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_CANCELLED);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_CANCELLED);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_CANCELLED);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(3, "")) == BEL_JOB_STATES);
    rig_check(&rig);
    rig_move(&rig, UINT64_C(25) * HOUR);
    CHECK(rig_state(&rig, "h") == BEL_JOB_STATES);
    rig_finish(&rig);
}

/* An id that is in use counts as skipped; the plan goes on. */
static void test_recurring_clash(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    submit_hourly(&rig, 10, "skip");
    CHECK(rig_submit(&rig, text.bytes) == BEL_ECONFLICT);
    rig_move(&rig, HOUR);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, made_id(1, "")) == 0);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_RUNNING);
    rig_finish(&rig);
}

/* Whatever the turn after which an engine is opened again, each time makes one job. */
static void test_crash_while_recurring(void)
{
    for (int turns = 0; turns < 14; turns++) {
        struct rig rig = {.work_max = 20};
        rig_open(&rig);
        submit_hourly(&rig, 10, "skip");
        rig.now.boot.ns += UINT64_C(1000000) * HOUR;
        rig.now.wall.ms += HOUR;
        for (int i = 0; i < turns; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig_check(&rig);
        rig_reopen(&rig);
        rig_settle(&rig);
        CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_RUNNING);
        SAME(rig_claim(&rig, "t"), made_id(1, "/1"));
        SAME(rig_claim(&rig, "t"), "");
        rig_finish(&rig);
    }
}

/* --- slices --- */

/* A job that is being submitted is not seen, and is removed after a crash at any slice before the
 * last. After a crash between that one and the reply, it is there. */
static void test_crash_while_submitting(void)
{
    bool is_late = false;
    make_ladder("big", 300);
    for (int turns = 0;; turns++) {
        struct rig rig = {0};
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT, .job_submit = {.text = view(text.bytes)}},
            .done = rig_see,
            .user = &rig.seen};
        rig_open(&rig);
        rig.engine->jobs->work_max = 200;
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        bool is_done = rig.seen.is_done;
        if (!is_done && turns > 0) {
            rig_check(&rig);
            CHECK(bel__map_count(&rig.engine->topics.by_name) <= 1);
        }
        rig_reopen(&rig);
        bool is_there = rig_state(&rig, "big") == BEL_JOB_RUNNING;
        CHECK(is_there || !is_done);
        is_late |= is_there && !is_done;
        CHECK(rig_target(&rig, BEL_VERB_GET, "t", "big/0") == 0);
        CHECK(rig.seen.count == is_there);
        rig_settle(&rig);
        rig_check(&rig);
        if (!is_there) {
            CHECK(rig_submit(&rig, text.bytes) == 0);
            rig_settle(&rig);
        }
        SAME(rig_claim(&rig, "t"), "big/0");
        rig_finish(&rig);
        if (is_done) break;
    }
    CHECK(is_late);
}

/* Makes a job of `count` tasks without dependencies, and one more in `topic`, which is first in the
 * order of the job. */
static void make_best(const char *id, int count, const char *topic)
{
    text.used = 0;
    rig_put(&text, "{\"id\":\"%s\",\"tasks\":[", id);
    for (int i = 0; i < count; i++) {
        rig_put(&text, "{\"id\":\"%d\",\"topic\":\"t\",\"cost\":10},", i);
    }
    rig_put(&text, "{\"id\":\"best\",\"topic\":\"%s\",\"cost\":0}]}", topic);
}

/* A claim after the reply finds every task that is ready, in the order of the job. */
static void test_claim_after_reply(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    make_best("o", 999, "t");
    CHECK(rig_submit(&rig, text.bytes) == 0);
    SAME(rig_claim(&rig, "t"), "o/best");
    SAME(rig_claim(&rig, "t"), "o/0");
    make_best("p", 9999, "z");
    CHECK(rig_submit(&rig, text.bytes) == 0);
    CHECK(rig_state(&rig, "p") == BEL_JOB_RUNNING);
    CHECK_EQ(rig.seen.job.counts[BEL_READY], 10000U);
    SAME(rig_claim(&rig, "z"), "p/best");
    rig_finish(&rig);
}

static void test_claim_after_replace(void)
{
    struct rig rig = {.work_max = 2000};
    rig_open(&rig);
    make_row("o", 1000);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    make_best("o", 999, "z");
    CHECK(replace(&rig, text.bytes) == 0);
    SAME(rig_claim(&rig, "z"), "o/best");
    SAME(rig_claim(&rig, "t"), "o/0");
    rig_finish(&rig);
}

/* Until all tasks without dependencies are unblocked, nobody sees the job, also after a crash. */
static void test_crash_while_starting(void)
{
    bool is_late = false;
    make_best("o", 300, "t");
    for (int turns = 1;; turns++) {
        struct rig rig = {.work_max = 400};
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT, .job_submit = {.text = view(text.bytes)}},
            .done = rig_see,
            .user = &rig.seen};
        rig_open(&rig);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        bool is_done = rig.seen.is_done;
        rig_reopen(&rig);
        CHECK(rig_target(&rig, BEL_VERB_GET, "t", "o/0") == 0);
        bool is_seen = rig.seen.count > 0;
        CHECK(is_seen || !is_done);
        const char *first = rig_claim(&rig, "t");
        CHECK(strcmp(first, "o/best") == 0 || (first[0] == 0 && !is_seen));
        rig_settle(&rig);
        bool is_there = rig_state(&rig, "o") == BEL_JOB_RUNNING;
        is_late |= is_there && !is_seen;
        if (is_there && first[0] == 0) SAME(rig_claim(&rig, "t"), "o/best");
        rig_finish(&rig);
        if (is_done) break;
        CHECK(turns < 100);
    }
    CHECK(is_late);
}

/* The same of a job that the engine makes. */
static void test_crash_while_follower_starts(void)
{
    static char follower[1 << 16];
    make_best("b", 300, "t");
    CHECK(text.used < sizeof follower);
    memcpy(follower, text.bytes, text.used + 1);
    text.used = 0;
    rig_put(&text,
            "{\"id\":\"a\",\"cooldown\":\"0s\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}],"
            "\"then\":[{\"job\":%s}]}",
            follower);
    for (int turns = 10; turns < 40; turns++) {
        struct rig rig = {.work_max = 400};
        const char *first = "";
        rig_open(&rig);
        CHECK(rig_submit(&rig, text.bytes) == 0);
        SAME(rig_claim(&rig, "t"), "a/1");
        rig_ack(&rig, "a/1");
        rig.now.boot.ns += 1000000;
        rig.now.wall.ms += 1;
        for (int i = 0; i < turns + 200 && first[0] == 0; i++) {
            first = rig_claim(&rig, "t");
            if (i == turns) rig_reopen(&rig);
        }
        SAME(first, "b/best");
        CHECK(rig_job(&rig, BEL_VERB_JOB_GET, "a") == 0);
        SAME(rig.seen.clash, "");
        rig_finish(&rig);
    }
}

/* From the first slice of a cancel no task is delivered, also after a crash. */
static void test_crash_while_cancelling(void)
{
    enum {
        TASKS = 300
    };
    for (int turns = 1;; turns++) {
        struct rig rig = {0};
        make_row("w", TASKS);
        rig_open(&rig);
        CHECK(rig_submit(&rig, text.bytes) == 0);
        rig_settle(&rig);
        rig.engine->jobs->work_max = 500;
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_CANCEL, .job_target = {.id = view("w")}},
            .done = rig_see,
            .user = &rig.seen};
        memset(&rig.seen, 0, sizeof rig.seen);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        bool is_done = rig.seen.is_done;
        rig_reopen(&rig);
        rig.engine->jobs->work_max = 200;
        SAME(rig_claim(&rig, "t"), "");
        rig_settle(&rig);
        CHECK(rig_state(&rig, "w") == BEL_JOB_CANCELLED);
        CHECK(rig.seen.job.counts[BEL_CANCELLED] == TASKS);
        rig_finish(&rig);
        if (is_done) break;
        CHECK(turns < 100);
    }
}

/* One task before and one after hundreds: told in slices, and as often as there are edges. */
static void test_fan(void)
{
    enum {
        TASKS = 1200
    };
    struct rig rig = {0};
    make_fan("f", TASKS);
    rig_open(&rig);
    CHECK(rig_submit(&rig, text.bytes) == 0);
    rig.engine->jobs->work_max = 300;
    SAME(rig_claim(&rig, "t"), "f/a");
    rig_ack(&rig, "f/a");
    rig_settle(&rig);
    rig_check(&rig);
    for (int i = 0; i < TASKS; i++) {
        SAME(rig_claim(&rig, "z"), "");
        const char *id = rig_claim(&rig, "t");
        CHECK(id[0] != 0);
        rig_ack(&rig, id);
        if (i % 200 == 0) rig_reopen(&rig);
    }
    rig_settle(&rig);
    SAME(rig_claim(&rig, "z"), "f/z");
    rig_ack(&rig, "f/z");
    CHECK(rig_state(&rig, "f") == BEL_JOB_DONE);
    CHECK(rig.seen.tasks_count == BEL_JOB_GET_COUNT_MAX && rig.seen.cursor[0] != 0);
    rig_finish(&rig);
}

int main(void)
{
    test_replace();
    test_replace_conflict();
    test_crash_while_replacing();
    test_replace_of_removed();
    test_replace_many();
    test_then();
    test_then_of_failure();
    test_then_of_cancelled();
    test_then_clash();
    test_crash_while_following();
    test_replace_in_cooldown();
    test_replace_while_following();
    test_recurring();
    test_recurring_queue();
    test_recurring_cancel();
    test_recurring_clash();
    test_crash_while_recurring();
    test_crash_while_submitting();
    test_claim_after_reply();
    test_claim_after_replace();
    test_crash_while_starting();
    test_crash_while_follower_starts();
    test_crash_while_cancelling();
    test_fan();
    return 0;
}
