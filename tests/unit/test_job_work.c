/* SPDX-License-Identifier: MIT */

/*
 * What JOB GET says about the work of a job: how long its tasks waited and ran, how often they
 * failed. The numbers are kept in the row of the job, so they outlast a restart.
 */
#include "../jobs_rig.h"

static const char row[] = "{\"id\":\"j\",\"tasks\":[{\"id\":\"1\",\"topic\":\"t\"},"
                          "{\"id\":\"2\",\"topic\":\"t\"},{\"id\":\"3\",\"topic\":\"t\","
                          "\"retry\":\"1s,1s\"}]}";

static uint64_t count_of(const struct bel_spans *spans)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < BEL_SPAN_BUCKETS; i++) {
        count += spans->counts[i];
    }
    return count;
}

/* Looks at the job, whose times must be those of `count` tasks. */
static const struct bel_job *look(struct rig *rig, uint64_t count)
{
    CHECK(rig_job(rig, BEL_VERB_JOB_GET, "j") == 0);
    const struct bel_job *job = &rig->seen.job;
    CHECK_EQ(count_of(&job->waited), count);
    CHECK_EQ(count_of(&job->ran), count);
    return job;
}

static void tasks_wait_and_run(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, row) == 0);
    const struct bel_job *job = look(&rig, 0);
    CHECK(job->waited_ms_p50 == 0 && job->ran_ms_p99 == 0 && job->completions_per_minute == 0);
    rig_move(&rig, 3);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/1") == 0);
    rig_move(&rig, 100);
    CHECK(rig_ack(&rig, "j/1") == 1);
    job = look(&rig, 1);
    CHECK_EQ(job->waited.sum_ms, 3);
    CHECK_EQ(job->ran.sum_ms, 100);
    CHECK_EQ(job->waited_ms_p50, 4);
    CHECK_EQ(job->ran_ms_p99, 128);
    CHECK_EQ(job->completions_per_minute, 1);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/2") == 0); /* has waited for 103 ms */
    CHECK(rig_ack(&rig, "j/2") == 1);
    job = look(&rig, 2);
    CHECK_EQ(job->waited.sum_ms, 106);
    CHECK_EQ(job->ran_ms_p50, 1);
    CHECK_EQ(job->ran_ms_p99, 128);
    CHECK_EQ(job->completions_per_minute, 2);
    rig_reopen(&rig);
    job = look(&rig, 2);
    CHECK_EQ(job->waited.sum_ms, 106);
    CHECK_EQ(job->ran_ms_p99, 128);
    rig_move(&rig, 180000);
    CHECK_EQ(look(&rig, 2)->completions_per_minute, 0);
    rig_finish(&rig);
}

/* Failures count when the task has ended; a lease from before a restart has no times. */
static void failures_count_at_the_end(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, row) == 0);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/1") == 0);
    rig_reopen(&rig);
    CHECK(rig_ack(&rig, "j/1") == 1);
    CHECK_EQ(look(&rig, 0)->counts[BEL_DONE], 1);
    CHECK_EQ(look(&rig, 0)->completions_per_minute, 1);
    CHECK(rig_cancel(&rig, "t", "j/2") == 1);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/3") == 0);
    CHECK(rig_fail(&rig, "j/3", false) == BEL_SCHEDULED);
    CHECK_EQ(look(&rig, 0)->failures, 0);
    rig_move(&rig, 2000);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/3") == 0);
    rig_move(&rig, 10);
    CHECK(rig_ack(&rig, "j/3") == 1);
    const struct bel_job *job = look(&rig, 1);
    CHECK_EQ(job->failures, 1);
    CHECK_EQ(job->crashes, 0);
    CHECK_EQ(job->ran.sum_ms, 10);
    CHECK(rig_submit(&rig, row) == BEL_ECONFLICT);
    struct bel_job_submit again = {.text = view(row), .is_replacement = true};
    CHECK(rig_ask(&rig, (struct bel_command){.verb = BEL_VERB_JOB_SUBMIT, .job_submit = again}) ==
          0);
    CHECK_EQ(look(&rig, 0)->failures, 0); /* another job */
    rig_finish(&rig);
}

/* Ids of jobs are many, and would take the places of real groups. */
static void jobs_are_no_groups(void)
{
    struct rig rig = {0};
    rig_open(&rig);
    CHECK(rig_submit(&rig, row) == 0);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/1") == 0);
    CHECK(rig_ack(&rig, "j/1") == 1);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/2") == 0);
    rig_reopen(&rig); /* the lease of j/2 is loaded */
    CHECK(rig_ack(&rig, "j/2") == 1);
    CHECK(strcmp(rig_claim(&rig, "t"), "j/3") == 0);
    const struct bel_topic_state *topic = bel__topic_find(&rig.engine->topics, view("t"));
    CHECK(topic != NULL && topic->work != NULL);
    CHECK_EQ(topic->work->all.running, 1);
    CHECK_EQ(topic->work->all.done, 1);
    CHECK(topic->work->groups.first == NULL);
    CHECK_EQ(rig.engine->work_groups, 0);
    rig_finish(&rig);
}

int main(void)
{
    RUN(tasks_wait_and_run);
    RUN(failures_count_at_the_end);
    RUN(jobs_are_no_groups);
    return 0;
}
