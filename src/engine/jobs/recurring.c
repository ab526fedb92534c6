/* SPDX-License-Identifier: MIT */

/*
 * A recurring job is a row in JOBS with its text, and a plan like that of a timer, in a topic of
 * its own. The plan rings as all plans do: misfires, overlap, count and until are not done again
 * here. Its occurrences are timers that no worker claims. The engine takes them instead:
 *
 *     occurrence ready ---> job <id>@<ms> submitted, occurrence leased for ever
 *                                |
 *                           the job ends ---> occurrence done: the next in the queue may begin
 *
 * So an occurrence is unfinished as long as its job is, which is what OVERLAP looks at. While the
 * recurring job is paused, an occurrence without a job is blocked as in the queue of OVERLAP.
 */
#include "engine/jobs/recurring.h"

#include "core/view.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/state.h"
#include "engine/jobs/submission.h"
#include "engine/jobs/then.h"
#include "engine/rows/blob.h"
#include "engine/state/occurrence.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"

#include <assert.h>
#include <string.h>

enum {
    RETRY_MS = 1000,
};

/* The lease of an occurrence: as good as without end. */
#define LEASE_MS (UINT64_C(1000) * 365 * 24 * 3600 * 1000)

static int lease(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_lease_terms terms = {.lease_ms = LEASE_MS, .due = {bel__timer_due(engine, found)}};
    struct bel_lease *made;
    int err = bel__rows_reserve(&engine->rows, 1, BEL_RECORD_BYTES_MAX, BEL_STORE_END);
    return err ? err : bel__lease_make(engine, found, &terms, &made);
}

/* Begins to submit the job of an occurrence. */
static int begin(struct bel_engine *engine, const struct bel_found *found,
                 const struct bel_job_found *plan)
{
    struct bel_follower job = {.plan = plan->row.number,
                               .plan_id = plan->row.id,
                               .has_nominal = true,
                               .nominal = {(int64_t)found->record.nominal},
                               .id = plan->row.id};
    struct bel_then_row text;
    int err = bel__then_load(engine, plan->row.number, 0, &text);
    if (err == 0) {
        err = bel__blob_get(engine->store, &text.text, bel__answer_arena(engine), &job.text);
    }
    if (err == 0) err = bel__submission_create_follower(engine, &job, &engine->jobs->occurrence);
    if (err == 0) engine->jobs->occurrence_key = found->key;
    return err;
}

/* Sets `*out` to whether an occurrence is one of a plan that an older version has replaced: it did
 * not end them at once. */
static int is_dropped(struct bel_engine *engine, const struct bel_found *found,
                      const struct bel_job_found *plan, bool *out)
{
    struct bel_found current;
    int err = bel__recurring_plan(engine, plan, &current);
    *out = found->record.plan < plan->row.number; /* if an older version has ended the plan */
    if (err == 0) *out = current.record.plan != found->record.plan;
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Looks at an occurrence without a job. `plan` is NULL if the recurring job is gone. */
static int look_at_new(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_job_found *plan, bool *out_begins)
{
    bool drops = plan == NULL;
    int err = drops ? 0 : is_dropped(engine, found, plan, &drops);
    if (err) return err;
    if (drops) return bel__occurrence_skip(engine, found);
    if (plan->row.is_paused) return bel__occurrence_block(engine, found); /* until RESUME */
    err = bel__recurring_resume(engine, plan); /* others may have waited with it */
    *out_begins = err == 0;
    return err;
}

/* Looks at an occurrence whose job is not being submitted. Sets `*out_begins` if it is to be. A job
 * that was made before a crash, or before the recurring job was paused, counts first. */
static int look(struct bel_engine *engine, struct bel_found *found,
                const struct bel_job_found *plan, bool *out_begins)
{
    struct bel_job_found job;
    bool is_its;
    *out_begins = false;
    int err = bel__occurrence_job(engine, found, &job, &is_its);
    if (err) return err;
    if (job.row.number == 0) return look_at_new(engine, found, plan, out_begins);
    if (!is_its) return bel__occurrence_skip(engine, found);
    bool is_ended = job.row.phase == BEL_JOB_PHASE_ENDED;
    return is_ended ? bel__occurrence_finish(engine, found) : lease(engine, found);
}

/* Goes on with an occurrence that is ready. Sets `*out_more` if the turn may look at the next. */
static int take(struct bel_engine *engine, struct bel_found *found, bool *out_more)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_job_found plan;
    struct bel_reply reply = {0};
    bool begins = true;
    *out_more = true;
    int err = bel__job_find_any(engine, bel__occurrence_plan(found->record.id), &plan);
    bool is_gone = err == BEL_ENOTFOUND || (err == 0 && plan.row.phase != BEL_JOB_PHASE_PLAN);
    if (err != 0 && !is_gone) return err;
    if (jobs->occurrence == NULL) {
        err = look(engine, found, is_gone ? NULL : &plan, &begins);
        if (err != 0 || !begins) return err;
        err = begin(engine, found, &plan);
        if (err) return err;
    }
    err = bel__submission_step(engine, jobs->occurrence, &reply);
    if (err == BEL_SUBMISSION_MORE || err == BEL_EBUSY) {
        *out_more = false;
        return 0;
    }
    bel__submission_destroy(engine, jobs->occurrence);
    jobs->occurrence = NULL;
    if (err == 0 || err == BEL_EIO || err == BEL_ECORRUPT || err == BEL_ENOMEM) return err;
    return err == BEL_EFULL ? err : bel__occurrence_skip(engine, found);
}

/* Returns the topic of occurrences; NULL if it does not exist. Topics are never removed. */
static struct bel_topic_state *find_topic(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    if (jobs->topic != NULL || jobs->topics_seen == engine->topics.count) return jobs->topic;
    jobs->topics_seen = engine->topics.count;
    jobs->topic = bel__topic_find(&engine->topics, BEL_RECURRING_TOPIC);
    return jobs->topic;
}

/* Goes on with the occurrences that are ready. Not inline, because most engines have none. */
__attribute__((noinline)) static int take_ready(struct bel_engine *engine,
                                                struct bel_topic_state *topic)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_pick pick;
    bool has_more = jobs->retry <= engine->now.engine;
    int err = 0;
    while (has_more && err == 0 && jobs->left > 0) {
        struct bel_found found;
        uint64_t shares = topic->numbers[BEL_NUMBER_SHARES];
        struct bel_key key = jobs->occurrence_key;
        if (jobs->occurrence == NULL) {
            if (!bel__picker_pick(&topic->picker, 0, shares, &pick)) break;
            key = bel__ready_key(topic, &pick.ready);
        }
        err = bel__timer_load_leased(engine, &key, NULL, &found);
        if (err == BEL_ENOTFOUND && jobs->occurrence != NULL) { /* was cancelled */
            bel__submission_destroy(engine, jobs->occurrence);
            jobs->occurrence = NULL;
            err = 0;
            continue;
        }
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        char id[BEL_ID_BYTES];
        struct bel_view plan = bel__occurrence_plan(found.record.id);
        assert(plan.bytes <= sizeof id);
        memcpy(id, plan.data, plan.bytes);
        err = take(engine, &found, &has_more);
        if (err == 0) err = bel__recurring_settle(engine, (struct bel_view){id, plan.bytes});
    }
    if (err == BEL_ENOMEM || err == BEL_EFULL) {
        jobs->retry = engine->now.engine + RETRY_MS;
        return 0;
    }
    return err == BEL_EBUSY ? 0 : err;
}

int bel__recurring_turn(struct bel_engine *engine)
{
    struct bel_topic_state *topic = find_topic(engine);
    return topic == NULL ? 0 : take_ready(engine, topic);
}
