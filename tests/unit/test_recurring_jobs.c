/* SPDX-License-Identifier: MIT */

/*
 * Recurring jobs as a whole: how they end, are paused and replaced, and count the times at which no
 * job was made; with an engine that is opened again in between.
 */
#include "../jobs_rig.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/state/state.h"
#include "store/state.h"

#include <stdio.h>

#define SAME(a, b) CHECK(strcmp((a), (b)) == 0)

enum {
    HOUR = 3600 * 1000,
    TWO_HOURS = 2 * HOUR,
};

static const char plain[] = "{\"id\":\"h\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}";

static int submit(struct rig *rig, const char *json, bool is_replacement)
{
    return rig_ask(rig, (struct bel_command){
                            .verb = BEL_VERB_JOB_SUBMIT,
                            .job_submit = {.text = view(json), .is_replacement = is_replacement}});
}

/* Returns the text of a job of every hour with one task in `topic`. */
static const char *hourly(int count, const char *overlap, const char *topic)
{
    static char text[256];
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"h\",\"every\":\"1h\",\"count\":%d,\"overlap\":\"%s\",\"tasks\":["
                   "{\"id\":\"1\",\"topic\":\"%s\"}]}",
                   count, overlap, topic);
    return text;
}

static const char *made_id(int hours, const char *task)
{
    static char id[BEL_ID_BYTES];
    (void)snprintf(id, sizeof id, "h@%lld%s", (long long)(RIG_START + (int64_t)hours * HOUR), task);
    return id;
}

static void work(struct rig *rig, const char *topic, int hours)
{
    SAME(rig_claim(rig, topic), made_id(hours, "/1"));
    CHECK(rig_ack(rig, made_id(hours, "/1")) == 1);
}

/* The job is done when its last job has ended, is known for the retention, and its id is free
 * then. */
static void test_end(void)
{
    struct rig rig = {.job_retention_ms = UINT64_C(2) * HOUR};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(2, "skip", "t"), false) == 0);
    rig_move(&rig, HOUR);
    work(&rig, "t", 1);
    rig_reopen(&rig);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED); /* its last job runs */
    rig_reopen(&rig);
    work(&rig, "t", 2);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE && rig.seen.job.has_finished);
    rig_check(&rig);
    rig_reopen(&rig);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    CHECK(submit(&rig, hourly(2, "skip", "t"), false) == BEL_ECONFLICT);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, "h") == BEL_JOB_STATES);
    CHECK(submit(&rig, hourly(2, "skip", "t"), false) == 0);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    rig_finish(&rig);
}

/* The last times are missed, or skipped: no job is made whose end could be seen. */
static void test_end_without_a_job(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(2, "skip", "t"), false) == 0);
    rig.now.boot.ns += UINT64_C(1000000) * 5 * HOUR;
    rig.now.wall.ms += (int64_t)5 * HOUR;
    rig_reopen(&rig);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    CHECK(submit(&rig, hourly(2, "skip", "t"), true) == 0);
    rig_move(&rig, HOUR);
    rig_move(&rig, HOUR); /* the second time is skipped */
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    CHECK(rig_ack(&rig, rig_claim(&rig, "t")) == 1);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    rig_finish(&rig);
}

static void test_pause(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "allow", "t"), false) == 0);
    rig_move(&rig, HOUR);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0 && rig.seen.count == 1);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0 && rig.seen.count == 0);
    rig_reopen(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_PAUSED);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_STATES);
    work(&rig, "t", 1); /* what was made goes on */
    rig_reopen(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "h") == 0 && rig.seen.count == 1);
    rig_settle(&rig);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    CHECK_EQ(rig.seen.job.made, 1U);
    CHECK_EQ(rig.seen.job.skipped, 1U);
    rig_move(&rig, HOUR);
    work(&rig, "t", 3);
    rig_finish(&rig);
}

/* A job with the id of a time exists already: the time counts as skipped. */
static void test_clash(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(3, "skip", "t"), false) == 0);
    rig_move(&rig, HOUR);
    work(&rig, "t", 1);
    CHECK(submit(&rig,
                 "{\"id\":\"h\",\"every\":\"1h\",\"at\":\"2026-01-01T01:00:00Z\",\"count\":3,"
                 "\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}",
                 true) == 0);
    rig_settle(&rig);
    rig_reopen(&rig);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED);
    CHECK_EQ(rig.seen.job.made, 0U);
    CHECK_EQ(rig.seen.job.skipped, 1U);
    rig_move(&rig, HOUR);
    work(&rig, "t", 2);
    rig_finish(&rig);
}

/* The jobs that the old one has made go on; from then on the new text counts. */
static void test_replace(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "allow", "t"), false) == 0);
    rig_move(&rig, HOUR);
    CHECK(submit(&rig, hourly(10, "allow", "u"), true) == 0);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED && rig.seen.job.made == 1); /* same rule */
    rig_check(&rig);
    rig_reopen(&rig);
    work(&rig, "t", 1);
    rig_move(&rig, HOUR);
    SAME(rig_claim(&rig, "t"), "");
    work(&rig, "u", 2);
    CHECK(submit(&rig, plain, true) == 0); /* by a plain job */
    CHECK(rig_state(&rig, "h") == BEL_JOB_RUNNING && rig.seen.job.tasks_total == 1);
    rig_reopen(&rig);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(3, "")) == BEL_JOB_STATES);
    SAME(rig_claim(&rig, "t"), "h/1");
    CHECK(submit(&rig, hourly(10, "allow", "t"), true) == 0); /* and back */
    CHECK(rig_ack(&rig, "h/1") == 0);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED && rig.seen.job.tasks_total == 0);
    rig_reopen(&rig);
    rig_move(&rig, HOUR);
    work(&rig, "t", 4);
    CHECK(submit(&rig, plain, true) == 0);
    SAME(rig_claim(&rig, "t"), "h/1");
    rig_finish(&rig);
}

/* CANCEL ends the jobs of the old one with the same id, too. */
static void test_cancel_after_replace(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "allow", "t"), false) == 0);
    rig_move(&rig, HOUR);
    CHECK(submit(&rig, hourly(10, "allow", "u"), true) == 0);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "h") == 0 && rig.seen.count == 1);
    rig_settle(&rig);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_CANCELLED);
    CHECK(rig_state(&rig, "h") == BEL_JOB_CANCELLED);
    rig_finish(&rig);
}

/* Whatever the turn after which an engine is opened again, there is the old job or the new one. */
static void test_crash_while_replacing(void)
{
    bool has_old = false, has_new = false;
    for (int turns = 0; turns < 20; turns++) {
        struct rig rig = {.work_max = 20};
        rig_open(&rig);
        CHECK(submit(&rig, turns % 2 == 0 ? plain : hourly(10, "skip", "u"), false) == 0);
        struct bel_request request = {
            .command = {.verb = BEL_VERB_JOB_SUBMIT,
                        .job_submit = {.text = view(hourly(10, "skip", "t")),
                                       .is_replacement = true}},
            .done = rig_see,
            .user = &rig.seen};
        memset(&rig.seen, 0, sizeof rig.seen);
        bel_backend_submit(bel_engine_backend(rig.engine), &request);
        for (int i = 0; i < turns / 2 && !rig.seen.is_done; i++) {
            rig.next = bel_backend_turn(bel_engine_backend(rig.engine), rig.now);
        }
        rig_check(&rig);
        rig_reopen(&rig);
        rig_settle(&rig);
        rig_move(&rig, HOUR);
        const char *id = rig_claim(&rig, "t");
        bool is_new = strcmp(id, made_id(1, "/1")) == 0;
        has_new |= is_new;
        has_old |= !is_new;
        if (!is_new) {
            const char *old = turns % 2 == 0 ? id : rig_claim(&rig, "u");
            SAME(old, turns % 2 == 0 ? "h/1" : made_id(1, "/1"));
        }
        SAME(rig_claim(&rig, "t"), "");
        rig_finish(&rig);
    }
    CHECK(has_old && has_new);
}

/* Times that overlap skips are counted in a row, also over a restart, until a job is made. */
static void test_overlaps(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(20, "skip", "t"), false) == 0);
    for (int i = 0; i < 4; i++) {
        rig_move(&rig, HOUR);
    }
    const struct bel_engine_overlaps *overlaps = &bel_engine_stats(rig.engine)->overlaps;
    CHECK_EQ(overlaps->count, 3U);
    SAME(overlaps->last[2].job, "h");
    CHECK_EQ(overlaps->last[2].in_a_row, 3U);
    rig_reopen(&rig);
    rig_move(&rig, HOUR);
    overlaps = &bel_engine_stats(rig.engine)->overlaps;
    CHECK_EQ(overlaps->count, 1U);
    CHECK_EQ(overlaps->last[0].in_a_row, 4U);
    work(&rig, "t", 1);
    rig_move(&rig, HOUR); /* makes a job */
    rig_move(&rig, HOUR);
    CHECK_EQ(overlaps->last[1].in_a_row, 1U);
    rig_finish(&rig);
}

/* Takes the task of the job of the first time, or of one that follows it. `job` is its id without
 * the time. */
static void work_as(struct rig *rig, const char *job, const char *payload)
{
    char id[BEL_ID_BYTES];
    (void)snprintf(id, sizeof id, "%s@%lld/1", job, (long long)(RIG_START + HOUR));
    SAME(rig_claim(rig, "t"), id);
    SAME(rig->seen.text, payload);
    CHECK(rig_ack(rig, id) == 1);
    rig_settle(rig);
}

/* The `then` of a recurring job follows each job that it makes, with the nominal time in ids and
 * payloads, also inside `then`, and with ids of its own. */
static void test_then(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(
        submit(&rig,
               "{\"id\":\"h\",\"every\":\"1h\",\"cooldown\":0,\"tasks\":[{\"id\":\"1\","
               "\"topic\":\"t\"}],\"then\":[{\"job\":{\"cooldown\":0,\"tasks\":[{\"id\":\"1\","
               "\"topic\":\"t\",\"payload\":\"{{nominal}}\"}],\"then\":[{\"job\":{\"id\":\"last\","
               "\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"}]}}]}}]}",
               false) == 0);
    rig_move(&rig, HOUR);
    work_as(&rig, "h", "");
    rig_reopen(&rig);
    rig_settle(&rig);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_DONE);
    SAME(rig.seen.clash, "");
    work_as(&rig, "h.1", "2026-01-01T01:00:00Z");
    rig_reopen(&rig);
    rig_settle(&rig);
    work_as(&rig, "last", "");
    SAME(rig_claim(&rig, "t"), "");
    rig_move(&rig, HOUR); /* the next time has a `then` of its own */
    work(&rig, "t", 2);
    rig_settle(&rig);
    CHECK(strncmp(rig_claim(&rig, "t"), "h.1@", 4) == 0);
    rig_finish(&rig);
}

/* Times in the queue of a job that is replaced by one with another rule make no jobs, neither of
 * the old text nor of the new one. Those in the queue of a job whose count is used up do. */
static void test_replace_queue(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    CHECK(submit(&rig, hourly(3, "queue", "u"), true) == 0);
    CHECK_EQ(bel_engine_stats(rig.engine)->skips[BEL_ENGINE_SKIP_QUEUE], 2U);
    rig_reopen(&rig);
    work(&rig, "t", 1);
    rig_settle(&rig);
    SAME(rig_claim(&rig, "t"), "");
    SAME(rig_claim(&rig, "u"), "");
    CHECK(rig_state(&rig, made_id(2, "")) == BEL_JOB_STATES);
    CHECK(rig_state(&rig, "h") == BEL_JOB_SCHEDULED && rig.seen.job.made == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    for (int i = 4; i <= 6; i++) {
        work(&rig, "u", i);
        rig_settle(&rig);
    }
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    rig_finish(&rig);
}

/* Times that a REPLACE drops are in nobody's way, also if the clock was set back and they are to
 * come again: neither the queue of the new plan nor its end waits for them. */
static void test_replace_queue_to_come(void)
{
    static const char *const overlaps[] = {"queue", "skip"};
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++) {
        struct rig rig = {0};
        rig_open(&rig);
        CHECK(submit(&rig, hourly(10, "queue", "t"), false) == 0);
        for (int k = 0; k < 3; k++) {
            rig_move(&rig, HOUR);
        }
        rig.now.wall.ms -= 3 * HOUR + HOUR / 2;
        work(&rig, "t", 1);
        rig_settle(&rig);
        CHECK(submit(&rig, hourly(1, overlaps[i], "u"), true) == 0);
        rig_move(&rig, HOUR);
        char id[BEL_ID_BYTES];
        (void)snprintf(id, sizeof id, "h@%lld/1", (long long)(RIG_START + HOUR / 2));
        SAME(rig_claim(&rig, "u"), id);
        CHECK(rig_ack(&rig, id) == 1);
        rig_settle(&rig);
        CHECK(rig_state(&rig, "h") == BEL_JOB_DONE && rig.seen.job.made == 1);
        rig_finish(&rig);
    }
}

/* A job without times that replaces a recurring one drops them, too. */
static void test_replace_queue_by_plain(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    rig.now.wall.ms -= 3 * HOUR + HOUR / 2;
    CHECK(submit(&rig, plain, true) == 0);
    CHECK_EQ(bel_engine_stats(rig.engine)->skips[BEL_ENGINE_SKIP_QUEUE], 2U);
    CHECK(submit(&rig, hourly(1, "queue", "u"), true) == 0);
    work(&rig, "t", 1); /* it goes on */
    rig_move(&rig, HOUR);
    CHECK(strncmp(rig_claim(&rig, "u"), "h@", 2) == 0);
    rig_finish(&rig);
}

/* With the same rule, the queue goes on: its times make jobs of the new text. */
static void test_replace_text(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(4, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0);
    work(&rig, "t", 1);
    rig_settle(&rig);
    CHECK(submit(&rig, hourly(4, "queue", "u"), true) == 0); /* is not paused */
    rig_reopen(&rig);
    rig_settle(&rig);
    for (int i = 2; i <= 4; i++) {
        if (i == 4) rig_move(&rig, HOUR);
        work(&rig, "u", i);
        rig_settle(&rig);
    }
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    CHECK_EQ(rig.seen.job.made, 4U);
    rig_finish(&rig);
}

/* Times in the queue wait while the job is paused, and those that come meanwhile are skipped. */
static void test_pause_queue(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(4, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0);
    work(&rig, "t", 1);
    rig_settle(&rig);
    rig_move(&rig, HOUR); /* the last time */
    rig_reopen(&rig);
    rig_settle(&rig);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_state(&rig, "h") == BEL_JOB_PAUSED);
    CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "h") == 0 && rig.seen.count == 1);
    rig_reopen(&rig);
    rig_settle(&rig);
    for (int i = 2; i <= 3; i++) {
        work(&rig, "t", i);
        rig_settle(&rig);
    }
    CHECK(rig_state(&rig, "h") == BEL_JOB_DONE);
    CHECK_EQ(rig.seen.job.made, 3U);
    CHECK_EQ(rig.seen.job.skipped, 1U);
    rig_finish(&rig);
}

/* What was asked for and the numbers are shown until the job is removed; CANCEL counts times in the
 * queue as skipped. */
static void test_numbers_stay(void)
{
    struct rig rig = {.job_retention_ms = UINT64_C(2) * HOUR};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(9, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "h") == 0 && rig.seen.count == 1);
    rig_reopen(&rig);
    rig_settle(&rig);
    CHECK(rig_state(&rig, "h") == BEL_JOB_CANCELLED);
    CHECK_EQ(rig.seen.job.made, 1U);
    CHECK_EQ(rig.seen.job.skipped, 2U);
    CHECK(rig.seen.job.plan.count == 9 && !rig.seen.job.has_next);
    CHECK(rig.seen.job.plan.kind == BEL_PLAN_EVERY);
    rig_move(&rig, UINT64_C(3) * HOUR);
    CHECK(rig_state(&rig, "h") == BEL_JOB_STATES);
    CHECK(submit(&rig, plain, false) == 0);
    CHECK(rig_state(&rig, "h") == BEL_JOB_RUNNING && rig.seen.job.made == 0);
    rig_finish(&rig);
}

static void see_total(struct bel_request *request, const struct bel_reply *reply)
{
    uint64_t *total = request->user;
    CHECK(reply->err == 0);
    *total = 0;
    for (size_t i = 0; i < reply->steps.count; i++) {
        *total += reply->steps.items[i].count;
    }
}

/* Returns how many times AGENDA has in a day, from an hour ago. */
static uint64_t agenda(struct rig *rig, const char *topic)
{
    uint64_t total = UINT64_MAX;
    struct bel_agenda asked = {.topic = view(topic), .has_from = true};
    asked.from.ms = rig->now.wall.ms - HOUR;
    struct bel_request request = {
        .command = {.verb = BEL_VERB_AGENDA, .agenda = asked}, .done = see_total, .user = &total};
    bel_backend_submit(bel_engine_backend(rig->engine), &request);
    for (int i = 0; i < 100 && total == UINT64_MAX; i++) {
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
    }
    return total;
}

/* A coming time counts once in all topics together, and once in each topic of the text. Of a job
 * that was made, the tasks count. */
static void test_agenda(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig,
                 "{\"id\":\"h\",\"every\":\"1h\",\"count\":5,\"tasks\":["
                 "{\"id\":\"1\",\"topic\":\"t\"},{\"id\":\"2\",\"topic\":\"t\"},"
                 "{\"id\":\"3\",\"topic\":\"u\",\"after\":[\"1\"]}]}",
                 false) == 0);
    CHECK(rig_submit(&rig, "{\"id\":\"x\",\"tasks\":[{\"id\":\"1\",\"topic\":\"v\"}]}") == 0);
    CHECK_EQ(agenda(&rig, ""), 6U);
    CHECK_EQ(agenda(&rig, "t"), 5U);
    CHECK_EQ(agenda(&rig, "u"), 5U);
    CHECK_EQ(agenda(&rig, "v"), 1U);
    rig_move(&rig, HOUR); /* tasks 1 and 2 are due, and 3 is blocked */
    CHECK_EQ(agenda(&rig, ""), 4U + 2 + 1);
    CHECK_EQ(agenda(&rig, "t"), 4U + 2);
    CHECK_EQ(agenda(&rig, "u"), 4U);
    rig_finish(&rig);
}

/* Returns how many times wait without a job. */
static uint64_t queued(struct rig *rig)
{
    const struct bel_topic_state *topic =
        bel__topic_find(&rig->engine->topics, BEL_RECURRING_TOPIC);
    return topic->numbers[BEL_NUMBER_BLOCKED];
}

/* Every time that has passed is counted once, and as made if there is a job or will be one. */
static void audit(struct rig *rig, uint64_t passed)
{
    CHECK(rig_ask(rig, (struct bel_command){.verb = BEL_VERB_JOB_LIST}) == 0);
    uint64_t jobs = rig->seen.count - 1;
    CHECK(rig_job(rig, BEL_VERB_JOB_GET, "h") == 0);
    const struct bel_job *job = &rig->seen.job;
    CHECK_NOTE("made %d skipped %d missed %d jobs %d queued %d", (int)job->made, (int)job->skipped,
               (int)job->missed, (int)jobs, (int)queued(rig));
    CHECK_EQ(job->made, jobs + queued(rig));
    CHECK_EQ(job->made + job->skipped + job->missed, passed);
    rig_check(rig);
}

/* Takes turns at the current time. Opens the engine again after the turn number `cut`, and has it
 * do a command before anything else. */
static void turns_until(struct rig *rig, int *turns, int cut, enum bel_verb verb)
{
    do {
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
        if (++*turns != cut) continue;
        rig_reopen(rig);
        CHECK(rig_job(rig, verb, "h") == 0);
    } while (rig->next.due.ns <= rig->now.boot.ns);
}

/* Whatever the batch after which the engine stops, and what comes first then, a time is never
 * counted twice or not at all. Some times are missed, some jobs end, some are in the queue. */
static void test_crash_anywhere(void)
{
    static const char *const overlaps[] = {"skip", "queue", "allow"};
    static const enum bel_verb verbs[] = {BEL_VERB_JOB_PAUSE, BEL_VERB_JOB_RESUME,
                                          BEL_VERB_JOB_GET};
    for (int i = 0; i < 3 * 3 * 60; i++) {
        struct rig rig = {.work_max = i % 2 == 0 ? 0 : 20};
        int turns = 0, cut = i / 9;
        enum bel_verb verb = verbs[i / 3 % 3];
        rig_open(&rig);
        CHECK(submit(&rig, hourly(20, overlaps[i % 3], "t"), false) == 0);
        CHECK(verb != BEL_VERB_JOB_RESUME || rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0);
        for (int hour = 1; hour <= 6; hour++) {
            int passes = hour == 4 ? 3 : 1;
            rig.now.boot.ns += UINT64_C(1000000) * HOUR * (uint64_t)passes;
            rig.now.wall.ms += (int64_t)HOUR * passes;
            turns_until(&rig, &turns, cut, verb);
            const char *id = hour % 2 == 0 ? rig_claim(&rig, "t") : "";
            CHECK(id[0] == 0 || rig_ack(&rig, id) == 1);
            turns_until(&rig, &turns, cut, verb);
            audit(&rig, (uint64_t)hour + (hour < 4 ? 0 : 2));
        }
        CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "h") == 0);
        rig_settle(&rig);
        audit(&rig, 8);
        rig_finish(&rig);
    }
}

/* A job that replaces the recurring one of hourly(): with times of its own, or with tasks. Its text
 * is long, so that a batch with a queue has no room for it. */
static void write_replacement(char *out, size_t room, bool recurs)
{
    static char payload[90000];
    memset(payload, 'x', sizeof payload - 1);
    int bytes = snprintf(out, room,
                         "{\"id\":\"h\",%s\"tasks\":[{\"id\":\"1\",\"topic\":\"u\","
                         "\"payload\":\"%s\"}]}",
                         recurs ? "\"every\":\"2h\"," : "", payload);
    CHECK(bytes > 0 && (size_t)bytes < room);
}

static void fill_disk(struct rig *rig)
{
    disk_plan(rig->disk)->free_bytes = 0;
    rig->engine->store->unasked_bytes = UINT32_MAX; /* so that it asks the disk at once */
}

/* Begins to replace the job, and after `cut` turns opens the engine again, or lets the disk be full
 * until the answer. Returns whether the cut was before the answer. */
static bool replace_until(struct rig *rig, const char *json, int cut, bool is_full)
{
    struct bel_request request = {
        .command = {.verb = BEL_VERB_JOB_SUBMIT,
                    .job_submit = {.text = view(json), .is_replacement = true}},
        .done = rig_see,
        .user = &rig->seen};
    int turns = 0;
    rig->seen.is_done = false;
    bel_backend_submit(bel_engine_backend(rig->engine), &request);
    for (; turns < cut && !rig->seen.is_done; turns++) {
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
    }
    bool is_before = !rig->seen.is_done;
    if (is_full) fill_disk(rig);
    for (; is_full && !rig->seen.is_done; turns++) {
        CHECK(turns < RIG_TURNS_MAX);
        rig->next = bel_backend_turn(bel_engine_backend(rig->engine), rig->now);
    }
    CHECK(rig->seen.is_done ? rig->seen.err == 0 || rig->seen.err == BEL_EFULL : !is_full);
    disk_plan(rig->disk)->free_bytes = UINT64_C(1) << 40;
    rig_reopen(rig);
    return is_before;
}

/* Whatever the turn in which the disk is full, or after which the engine stops: a job is replaced
 * and its queue is dropped, or neither. */
static void test_replace_is_whole(void)
{
    static char json[92000];
    enum {
        QUEUE = 95
    };
    for (int i = 0; i < 8; i++) {
        bool is_full = i % 2 == 1, is_before = true;
        write_replacement(json, sizeof json, i / 2 % 2 == 0);
        for (int cut = 0; is_before; cut++) {
            struct rig rig = {.segment_bytes = (i < 4 ? UINT64_C(50) : UINT64_C(60)) * BEL_IO_BLOCK,
                              .work_max = i < 4 ? 0 : 20};
            rig_open(&rig);
            CHECK(submit(&rig, hourly(200, "queue", "t"), false) == 0);
            for (int hour = 0; hour <= QUEUE; hour++) {
                rig_move(&rig, HOUR);
            }
            CHECK_EQ(queued(&rig), (uint64_t)QUEUE);
            is_before = replace_until(&rig, json, cut, is_full);
            rig_settle(&rig);
            bool is_same = rig_state(&rig, "h") == BEL_JOB_SCHEDULED && rig.seen.job.made > 0;
            CHECK_NOTE("case %d, cut after %d turns: the job is %s", i, cut,
                       is_same ? "the same" : "replaced");
            CHECK_EQ(queued(&rig), is_same ? (uint64_t)QUEUE : 0U);
            CHECK(is_before || !is_same || is_full);
            rig_finish(&rig);
        }
    }
}

/* An unfinished job does not wake the engine before the next time of its plan. */
static void test_rest(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "queue", "t"), false) == 0);
    for (int i = 0; i < 2; i++) {
        rig_move(&rig, HOUR);
        CHECK(rig.next.due.ns - rig.now.boot.ns > UINT64_C(1000000) * HOUR / 20);
        rig_reopen(&rig);
        rig_settle(&rig);
        CHECK(rig.next.due.ns - rig.now.boot.ns > UINT64_C(1000000) * HOUR / 20);
    }
    SAME(rig_claim(&rig, "t"), made_id(1, "/1")); /* a lease that ends does */
    CHECK(rig.next.due.ns - rig.now.boot.ns <= UINT64_C(1000000) * 1000);
    rig_finish(&rig);
}

static int limit_all(struct rig *rig, struct bel_limit limit)
{
    limit.action = BEL_LIMIT_SET;
    limit.resource = BEL_VIEW("*");
    return rig_ask(rig, (struct bel_command){.verb = BEL_VERB_LIMIT, .limit = limit});
}

/* What the engine keeps for a job that it has made is no delivery: the limits of `*` do not hold
 * for it, nor does it use them up. */
static void test_limits_of_all(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(10, "allow", "t"), false) == 0);
    CHECK(limit_all(&rig, (struct bel_limit){.has_until = true,
                                             .until_ms = 3 * HOUR / 2,
                                             .has_rate = true,
                                             .rate_count = 1,
                                             .rate_ms = TWO_HOURS,
                                             .has_concurrency = true,
                                             .concurrency = 1}) == 0);
    rig_move(&rig, HOUR);
    CHECK(rig_state(&rig, made_id(1, "")) == BEL_JOB_RUNNING);
    SAME(rig_claim(&rig, "t"), "");
    rig_reopen(&rig);
    rig_settle(&rig);
    SAME(rig_claim(&rig, "t"), "");
    rig_move(&rig, HOUR);
    work(&rig, "t", 1);
    SAME(rig_claim(&rig, "t"), ""); /* that was all of the rate */
    rig_reopen(&rig);
    rig_move(&rig, TWO_HOURS);
    work(&rig, "t", 2);
    rig_check(&rig);
    rig_finish(&rig);
}

/* The end of a job wakes the engine for the next in the queue, and so does RESUME. */
static void test_queue_wakes(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(submit(&rig, hourly(3, "queue", "t"), false) == 0);
    for (int i = 0; i < 3; i++) {
        rig_move(&rig, HOUR);
    }
    work(&rig, "t", 1);
    CHECK(rig.next.due.ns <= rig.now.boot.ns);
    rig_settle(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "h") == 0);
    work(&rig, "t", 2);
    rig_settle(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "h") == 0);
    CHECK(rig.next.due.ns <= rig.now.boot.ns);
    rig_settle(&rig);
    work(&rig, "t", 3);
    rig_finish(&rig);
}

int main(void)
{
    test_limits_of_all();
    test_queue_wakes();
    test_agenda();
    test_crash_anywhere();
    test_numbers_stay();
    test_pause_queue();
    test_replace_text();
    test_rest();
    test_replace_queue();
    test_replace_queue_to_come();
    test_replace_queue_by_plain();
    test_replace_is_whole();
    test_then();
    test_end();
    test_end_without_a_job();
    test_pause();
    test_clash();
    test_replace();
    test_cancel_after_replace();
    test_crash_while_replacing();
    test_overlaps();
    return 0;
}
