/* SPDX-License-Identifier: MIT */

/*
 * Jobs on an engine: what a graph of tasks does, command by command.
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

/* --- order --- */

static void test_chain(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"id\":\"c\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"},"
                           "{\"id\":\"2\",\"topic\":\"t\",\"after\":[\"1\"]},"
                           "{\"id\":\"3\",\"topic\":\"t\",\"after\":[\"2\"]}]}") == 0);
    SAME(rig.seen.id, "c");
    CHECK(rig.seen.count == 3);
    for (int i = 1; i <= 3; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "c/%d", i);
        SAME(rig_claim(&rig, "t"), id);
        SAME(rig_claim(&rig, "t"), "");
        rig_check(&rig);
        CHECK(rig_state(&rig, "c") == BEL_JOB_RUNNING);
        CHECK(rig.seen.job.counts[BEL_LEASED] == 1);
        CHECK(rig.seen.job.counts[BEL_BLOCKED] == (uint64_t)(3 - i));
        CHECK(rig_ack(&rig, id) == 1);
    }
    CHECK(rig_state(&rig, "c") == BEL_JOB_DONE);
    CHECK(rig.seen.job.counts[BEL_DONE] == 3 && rig.seen.job.has_finished);
    rig_finish(&rig);
}

static void test_diamond(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_ack(&rig, "d/1");
    SAME(rig_claim(&rig, "t"), "d/2");
    SAME(rig_claim(&rig, "t"), "d/3");
    rig_ack(&rig, "d/2");
    SAME(rig_claim(&rig, "t"), "");
    rig_ack(&rig, "d/3");
    SAME(rig_claim(&rig, "t"), "d/4");
    rig_finish(&rig);
}

/* Task 2 fails: 3 still runs, 4 is skipped because of 2, 5 because of 4. */
static void test_failure_skips(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_ack(&rig, "d/1");
    SAME(rig_claim(&rig, "t"), "d/2");
    CHECK(rig_fail(&rig, "d/2", true) == BEL_DEAD);
    CHECK(rig_task(&rig, "d", "4")->state == BEL_SKIPPED);
    SAME(rig_task(&rig, "d", "4")->reason, "task 2 is dead");
    SAME(rig_task(&rig, "d", "5")->reason, "task 4 is skipped");
    CHECK(rig_state(&rig, "d") == BEL_JOB_RUNNING);
    rig_check(&rig);
    SAME(rig_claim(&rig, "t"), "d/3");
    rig_ack(&rig, "d/3");
    CHECK(rig_state(&rig, "d") == BEL_JOB_FAILED);
    SAME(rig_claim(&rig, "t"), "");
    rig_finish(&rig);
}

static void test_policies(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(
              &rig,
              "{\"id\":\"p\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
              "{\"id\":\"yes\",\"topic\":\"t\",\"after\":[\"a\"]},"
              "{\"id\":\"no\",\"topic\":\"t\",\"after\":[{\"task\":\"a\",\"on\":\"failure\"}]},"
              "{\"id\":\"any\",\"topic\":\"t\",\"after\":[{\"task\":\"a\",\"on\":\"always\"}]},"
              "{\"id\":\"end\",\"topic\":\"t\",\"after\":"
              "[{\"task\":\"yes\",\"on\":\"always\"}]}]}") == 0);
    SAME(rig_claim(&rig, "t"), "p/a");
    CHECK(rig_fail(&rig, "p/a", true) == BEL_DEAD);
    CHECK(rig_task(&rig, "p", "yes")->state == BEL_SKIPPED);
    SAME(rig_claim(&rig, "t"), "p/no");
    SAME(rig_claim(&rig, "t"), "p/any");
    SAME(rig_claim(&rig, "t"), "p/end"); /* a skipped task satisfies `always` */
    rig_ack(&rig, "p/any");
    rig_ack(&rig, "p/end");
    CHECK(rig_state(&rig, "p") == BEL_JOB_RUNNING);
    rig_ack(&rig, "p/no");
    CHECK(rig_state(&rig, "p") == BEL_JOB_DONE); /* the failure was handled */
    rig_finish(&rig);
}

static void test_skipped_is_no_failure(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(
              &rig, "{\"id\":\"s\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
                    "{\"id\":\"b\",\"topic\":\"t\",\"after\":[\"a\"]},"
                    "{\"id\":\"c\",\"topic\":\"t\",\"after\":[{\"task\":\"b\",\"on\":\"failure\"}]}"
                    "]}") == 0);
    SAME(rig_claim(&rig, "t"), "s/a");
    rig_fail(&rig, "s/a", true);
    CHECK(rig_task(&rig, "s", "c")->state == BEL_SKIPPED);
    CHECK(rig_state(&rig, "s") == BEL_JOB_FAILED);
    rig_finish(&rig);
}

static void test_cancelled_task(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    CHECK(rig_cancel(&rig, "t", "d/3") == 1); /* blocked */
    CHECK(rig_task(&rig, "d", "4")->state == BEL_SKIPPED);
    SAME(rig_task(&rig, "d", "4")->reason, "task 3 is cancelled");
    CHECK(rig_cancel(&rig, "t", "d/3") == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    CHECK(rig_cancel(&rig, "t", "d/1") == 1); /* leased */
    CHECK(rig_ack(&rig, "d/1") == 0);
    CHECK(rig_state(&rig, "d") == BEL_JOB_FAILED);
    rig_finish(&rig);
}

static void test_empty(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"id\":\"e\",\"tasks\":[]}") == 0);
    CHECK(rig_state(&rig, "e") == BEL_JOB_DONE);
    rig_finish(&rig);
}

/* --- ids and limits --- */

static void test_conflicts(void)
{
    struct rig rig = {0};
    struct bel_schedule_spec spec = {.topic = view("t"), .id = view("d/4"), .delay_ms = 1000};
    spec.when = BEL_WHEN_IN;
    rig_open(&rig);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}) == 0);
    CHECK(rig_submit(&rig, diamond) == BEL_ECONFLICT);
    CHECK(strstr(rig.seen.why, "d/4") != NULL);
    CHECK(rig_state(&rig, "d") == BEL_JOB_STATES);
    CHECK(rig_cancel(&rig, "t", "d/4") == 1);
    CHECK(rig_submit(&rig, diamond) == 0);
    CHECK(rig_submit(&rig, diamond) == BEL_ECONFLICT);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_SCHEDULE, .schedule = spec}) ==
          BEL_ECONFLICT);
    rig_check(&rig);
    SAME(rig_claim(&rig, "t"), "d/1");
    CHECK(rig_cancel(&rig, "t", "d/1") == 1);
    CHECK(rig_state(&rig, "d") == BEL_JOB_FAILED);
    CHECK(rig_submit(&rig, diamond) == BEL_ECONFLICT); /* known until its retention is over */
    rig_move(&rig, UINT64_C(24) * 3600 * 1000);
    CHECK(rig_state(&rig, "d") == BEL_JOB_STATES);
    CHECK(rig_submit(&rig, diamond) == 0);
    rig_finish(&rig);
}

static void test_depth(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_configure(&rig, "t", "depth", "4") == 0);
    CHECK(rig_submit(&rig, diamond) == BEL_EFULL);
    CHECK(rig_state(&rig, "d") == BEL_JOB_STATES);
    CHECK(rig_target(&rig, BEL_VERB_TOPIC, "t", "") == 0);
    CHECK(rig.seen.counts[BEL_BLOCKED] == 0);
    CHECK(rig_configure(&rig, "t", "depth", "5") == 0);
    CHECK(rig_submit(&rig, diamond) == 0);
    rig_finish(&rig);
}

static void test_made_id(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}]}") == 0);
    char id[BEL_ID_BYTES], task[BEL_ID_BYTES + 8];
    memcpy(id, rig.seen.id, sizeof id);
    CHECK(strlen(id) == 26);
    (void)snprintf(task, sizeof task, "%s/a", id);
    SAME(rig_claim(&rig, "t"), task);
    CHECK(rig_state(&rig, id) == BEL_JOB_RUNNING);
    rig_finish(&rig);
}

/* --- results --- */

static void test_results(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"id\":\"r\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"},"
                           "{\"id\":\"b\",\"topic\":\"t\"},{\"id\":\"n\",\"topic\":\"t\"},"
                           "{\"id\":\"c\",\"topic\":\"t\",\"after\":[\"b\",\"n\",\"a\"]}]}") == 0);
    SAME(rig_claim(&rig, "t"), "r/a");
    SAME(rig.seen.results, "");
    SAME(rig.seen.headers, "belfry-job=r belfry-task=a ");
    SAME(rig_claim(&rig, "t"), "r/b");
    SAME(rig_claim(&rig, "t"), "r/n");
    rig_ack_result(&rig, "r/a", "one");
    rig_ack_result(&rig, "r/b", "two");
    rig_ack(&rig, "r/n");
    SAME(rig_claim(&rig, "t"), "r/c");
    SAME(rig.seen.results, "b=two n=nil a=one ");
    CHECK(rig_target(&rig, BEL_VERB_GET, "t", "r/a") == 0);
    CHECK(rig.seen.count == 1 && rig.seen.counts[0] == BEL_DONE);
    SAME(rig.seen.text, "one");
    rig_finish(&rig);
}

/* --- verbs --- */

static void test_cancel(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "d") == BEL_ENOTFOUND);
    CHECK(rig_submit(&rig, diamond) == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "d") == 0 && rig.seen.count == 1);
    CHECK(rig_state(&rig, "d") == BEL_JOB_CANCELLED);
    CHECK(rig.seen.job.counts[BEL_CANCELLED] == 5);
    CHECK(rig_ack(&rig, "d/1") == 0);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "d") == 0 && rig.seen.count == 0);
    rig_finish(&rig);
}

static void test_pause(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "d") == 0 && rig.seen.count == 1);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "d") == 0 && rig.seen.count == 0);
    CHECK(rig_state(&rig, "d") == BEL_JOB_PAUSED);
    CHECK(rig_ack(&rig, "d/1") == 1); /* what runs may finish */
    SAME(rig_claim(&rig, "t"), "");
    rig_check(&rig);
    rig_reopen(&rig);
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_state(&rig, "d") == BEL_JOB_PAUSED);
    CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "d") == 0 && rig.seen.count == 1);
    SAME(rig_claim(&rig, "t"), "d/2");
    CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "d") == 0 && rig.seen.count == 0);
    rig_finish(&rig);
}

/* A lease that ends while the job is paused, before or after a restart, is not delivered again. */
static void test_pause_and_lost_lease(void)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct rig rig = {0};
        rig_open(&rig);
        CHECK(rig_submit(&rig, diamond) == 0);
        SAME(rig_claim(&rig, "t"), "d/1");
        CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "d") == 0);
        if (restarts) rig_reopen(&rig);
        rig_move(&rig, UINT64_C(24) * 3600 * 1000);
        CHECK(rig_task(&rig, "d", "1")->state == BEL_READY);
        SAME(rig_claim(&rig, "t"), "");
        rig_check(&rig);
        CHECK(rig_job(&rig, BEL_VERB_JOB_RESUME, "d") == 0);
        SAME(rig_claim(&rig, "t"), "d/1");
        rig_finish(&rig);
    }
}

/* After a task is done, and no other runs, none starts for a while; also across a restart. */
static void test_pace(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"id\":\"p\",\"pace\":\"2s\",\"tasks\":["
                           "{\"id\":\"a\",\"topic\":\"t\"},{\"id\":\"b\",\"topic\":\"t\"},"
                           "{\"id\":\"c\",\"topic\":\"t\"},{\"id\":\"d\",\"topic\":\"t\"}]}") == 0);
    SAME(rig_claim(&rig, "t"), "p/a");
    SAME(rig_claim(&rig, "t"), "p/b");
    rig_ack(&rig, "p/a"); /* p/b is leased: no pause */
    SAME(rig_claim(&rig, "t"), "p/c");
    rig_ack(&rig, "p/b");
    rig_ack(&rig, "p/c");
    SAME(rig_claim(&rig, "t"), "");
    CHECK(rig_target(&rig, BEL_VERB_EXPLAIN, "t", "p/d") == 0);
    rig_check(&rig);
    rig_reopen(&rig);
    rig_move(&rig, 1999);
    SAME(rig_claim(&rig, "t"), "");
    rig_move(&rig, 2);
    SAME(rig_claim(&rig, "t"), "p/d");
    rig_ack(&rig, "p/d");
    CHECK(rig_state(&rig, "p") == BEL_JOB_DONE);
    rig_finish(&rig);
}

static void test_explain(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    CHECK(rig_target(&rig, BEL_VERB_EXPLAIN, "t", "d/4") == 0);
    CHECK(strstr(rig.seen.text, "It is blocked: 2 of the 2 tasks") != NULL);
    CHECK(strstr(rig.seen.text, "2, which is blocked") != NULL);
    CHECK(rig_job(&rig, BEL_VERB_JOB_PAUSE, "d") == 0);
    CHECK(rig_target(&rig, BEL_VERB_EXPLAIN, "t", "d/1") == 0);
    CHECK(strstr(rig.seen.text, "The job d is paused") != NULL);
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "d") == 0);
    CHECK(rig_target(&rig, BEL_VERB_EXPLAIN, "t", "d/1") == 0);
    CHECK(strstr(rig.seen.text, "kept as long as its job d") != NULL);
    rig_finish(&rig);
}

static void test_timeout(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, "{\"id\":\"o\",\"timeout\":\"10s\",\"tasks\":["
                           "{\"id\":\"a\",\"topic\":\"t\"},"
                           "{\"id\":\"b\",\"topic\":\"t\",\"after\":[\"a\"]}]}") == 0);
    SAME(rig_claim(&rig, "t"), "o/a");
    rig_move(&rig, 9999);
    CHECK(rig_state(&rig, "o") == BEL_JOB_RUNNING && rig.seen.job.has_deadline);
    rig_reopen(&rig);
    rig_move(&rig, 2);
    CHECK(rig_state(&rig, "o") == BEL_JOB_FAILED);
    SAME(rig.seen.reason, "timeout");
    CHECK(rig_ack(&rig, "o/a") == 0);
    rig_finish(&rig);
}

static void test_list(void)
{
    struct rig rig = {0};
    struct bel_job_list query = {.count = 2};
    rig_open(&rig);
    for (int i = 0; i < 5; i++) {
        char json[128];
        (void)snprintf(json, sizeof json,
                       "{\"id\":\"j%d\",\"tasks\":[{\"id\":\"a\",\"topic\":\"t\"}]}", i);
        CHECK(rig_submit(&rig, json) == 0);
    }
    CHECK(rig_job(&rig, BEL_VERB_JOB_CANCEL, "j2") == 0);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_LIST, .job_list = query}) == 0);
    CHECK(rig.seen.count == 2);
    SAME(rig.seen.id, "j0");
    for (int pages = 1; rig.seen.cursor[0] != 0; pages++) {
        char cursor[64];
        memcpy(cursor, rig.seen.cursor, sizeof cursor);
        query.cursor = view(cursor);
        CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_LIST, .job_list = query}) ==
              0);
        CHECK(rig.seen.count == (pages < 2 ? 2U : 1U));
    }
    SAME(rig.seen.id, "j2"); /* ended jobs come last */
    query = (struct bel_job_list){.has_state = true, .state = BEL_JOB_CANCELLED};
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_LIST, .job_list = query}) == 0);
    CHECK(rig.seen.count == 1);
    rig_finish(&rig);
}

/* REVIVE, PURGE and retention pass tasks over. */
static void test_tasks_stay(void)
{
    struct rig rig = {0};
    struct bel_purge purge = {.topic = view("t")};
    rig_open(&rig);
    CHECK(rig_submit(&rig, diamond) == 0);
    SAME(rig_claim(&rig, "t"), "d/1");
    rig_ack(&rig, "d/1");
    SAME(rig_claim(&rig, "t"), "d/2");
    rig_fail(&rig, "d/2", true);
    CHECK(rig_target(&rig, BEL_VERB_REVIVE, "t", "d/2") == 0 && rig.seen.count == 0);
    CHECK(rig_target(&rig, BEL_VERB_REVIVE, "t", "") == 0 && rig.seen.count == 0);
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_PURGE, .purge = purge}) == 0);
    CHECK(rig.seen.count == 0);
    purge.has_state = true;
    purge.state = BEL_READY;
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_PURGE, .purge = purge}) == 0);
    CHECK(rig.seen.count == 0);
    CHECK(rig_ask(&rig,
                  (struct bel_command){.verb = BEL_VERB_LIST, .list = {.topic = view("t")}}) == 0);
    CHECK(rig.seen.count == 5);
    rig_finish(&rig);
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
    CHECK(rig_submit(&rig, one_c) == BEL_ECONFLICT); /* reserved */
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
    rig_move(&rig, 10000);
    CHECK(rig_state(&rig, "y") == BEL_JOB_STATES);
    rig_move(&rig, UINT64_C(25) * 3600 * 1000);
    CHECK(rig_submit(&rig, one_c) == 0); /* not reserved any more */
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

/* --- slices --- */

/* A job that is being submitted is not seen, and is removed after a crash at any slice. */
static void test_crash_while_submitting(void)
{
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
        CHECK(rig_state(&rig, "big") == (is_done ? BEL_JOB_RUNNING : BEL_JOB_STATES));
        CHECK(rig_target(&rig, BEL_VERB_GET, "t", "big/0") == 0);
        CHECK(rig.seen.count == is_done);
        rig_settle(&rig);
        rig_check(&rig);
        if (!is_done) {
            CHECK(rig_submit(&rig, text.bytes) == 0);
            rig_settle(&rig);
        }
        SAME(rig_claim(&rig, "t"), "big/0");
        rig_finish(&rig);
        if (is_done) break;
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
    test_chain();
    test_diamond();
    test_failure_skips();
    test_policies();
    test_skipped_is_no_failure();
    test_cancelled_task();
    test_empty();
    test_conflicts();
    test_depth();
    test_made_id();
    test_results();
    test_cancel();
    test_pause();
    test_pause_and_lost_lease();
    test_pace();
    test_explain();
    test_timeout();
    test_list();
    test_tasks_stay();
    test_replace();
    test_replace_conflict();
    test_crash_while_replacing();
    test_then();
    test_then_of_failure();
    test_then_of_cancelled();
    test_then_clash();
    test_crash_while_following();
    test_crash_while_submitting();
    test_crash_while_cancelling();
    test_fan();
    return 0;
}
