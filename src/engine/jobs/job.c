/* SPDX-License-Identifier: MIT */

/*
 * The life of a job, as phases of its row:
 *
 *     submitting --last slice--> live --all tasks ended--> ended --retention--> removing --> gone
 *         |                       |                          ^
 *         |                       '---> ending, in slices ---'
 *         '--crash, or refused--> removed in slices
 *
 * With REPLACE: submitting --> replacing, while the old job is removing --> live.
 *
 * A recurring job is in the phase plan until its plan has no more times and its jobs have ended.
 * Then its row is that of an ended job.
 *
 * A job that is live is hidden and held until BEL_WORK_START is finished: the first claim that sees
 * one of its tasks sees all those that are ready.
 *
 * The row of a job moves when the job ends, to a key with that time. So ended jobs lie in the order
 * in which they are removed, and opening an engine reads only the others.
 */
#include "engine/jobs/job.h"

#include "core/view.h"
#include "engine/jobs/job_topics.h"
#include "engine/jobs/state.h"
#include "engine/state/state.h"

#include <assert.h>
#include <string.h>

/* --- finding --- */

int bel__job_load_key(struct bel_engine *engine, const struct bel_key *key,
                      struct bel_job_found *out)
{
    struct bel_view row;
    assert(bel__place_of(key).table == BEL_TABLE_JOBS);
    int err = bel__store_get(engine->store, key, &row);
    if (err) return err;
    err = bel__job_row_read(row, &out->row);
    if (err) return err;
    out->key = *key;
    return out->row.number == bel__place_of(key).sequence ? 0 : BEL_ECORRUPT;
}

int bel__job_load(struct bel_engine *engine, uint64_t number, struct bel_job_found *out)
{
    struct bel_key key = bel__job_key(number);
    return bel__job_load_key(engine, &key, out);
}

int bel__job_find_any(struct bel_engine *engine, struct bel_view id, struct bel_job_found *out)
{
    struct bel_key key;
    struct bel_view row;
    if (id.bytes == 0 || id.bytes > BEL_ID_BYTES) return BEL_ENOTFOUND;
    struct bel_key id_key = bel__job_id_key(engine->alias_keys, id);
    int err = bel__store_get(engine->store, &id_key, &row);
    if (err) return err;
    if (row.bytes <= BEL_WORK_ROW_BYTES_MAX) return BEL_ENOTFOUND; /* reserved */
    if (row.bytes != sizeof key.words) return BEL_ECORRUPT;
    memcpy(key.words, row.data, sizeof key.words);
    if (bel__place_of(&key).table != BEL_TABLE_JOBS) return BEL_ECORRUPT;
    err = bel__job_load_key(engine, &key, out);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return bel__view_equal(out->row.id, id) ? 0 : BEL_ENOTFOUND;
}

int bel__job_find(struct bel_engine *engine, struct bel_view id, const struct bel_job_scope *scope,
                  struct bel_job_found *out)
{
    bool is_in_scope;
    int err = bel__job_find_any(engine, id, out);
    if (err) return err;
    if (bel__job_is_hidden(&engine->job_marks, out->row.number)) return BEL_ENOTFOUND;
    err = bel__job_is_in_scope(engine, out, scope, &is_in_scope);
    if (err) return err;
    return is_in_scope ? 0 : BEL_ENOTFOUND;
}

int bel__job_refuse_unknown(struct bel_reply *reply, struct bel_view id)
{
    return bel__refuse(reply, BEL_ENOTFOUND, "job '%.*s' does not exist", (int)id.bytes,
                       (const char *)id.data);
}

bool bel__job_is_complete(const struct bel_job_found *job)
{
    switch (job->row.phase) {
    case BEL_JOB_PHASE_SUBMITTING:
    case BEL_JOB_PHASE_REPLACING:
    case BEL_JOB_PHASE_REMOVING:
        return false;
    default:
        return true;
    }
}

enum bel_job_state bel__job_state(const struct bel_job_found *job)
{
    if (job->row.phase == BEL_JOB_PHASE_ENDED) return (enum bel_job_state)job->row.state;
    if (job->row.is_paused) return BEL_JOB_PAUSED;
    return job->row.phase == BEL_JOB_PHASE_PLAN ? BEL_JOB_SCHEDULED : BEL_JOB_RUNNING;
}

uint64_t bel__job_unfinished(const struct bel_job_found *job)
{
    return job->row.counts[BEL_SCHEDULED] + job->row.counts[BEL_BLOCKED];
}

/* --- changing --- */

void bel__job_put(struct bel_engine *engine, const struct bel_job_found *job)
{
    uint8_t bytes[BEL_JOB_ROW_BYTES_MAX];
    struct bel_view value = {.data = bytes, .bytes = bel__job_row_write(&job->row, bytes)};
    bel__rows_put(&engine->rows, &job->key, value, BEL_ROW_ANY);
}

void bel__job_put_id(struct bel_engine *engine, const struct bel_job_found *job)
{
    struct bel_key key = bel__job_id_key(engine->alias_keys, job->row.id);
    struct bel_view value = {.data = job->key.words, .bytes = sizeof job->key.words};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
}

void bel__job_add_work(struct bel_engine *engine, struct bel_job_found *job,
                       enum bel_work_kind kind, uint32_t task, uint64_t position)
{
    uint8_t bytes[BEL_WORK_ROW_BYTES_MAX];
    struct bel_key key = bel__work_key(job->row.number, kind, task);
    struct bel_view value = {.data = bytes, .bytes = bel__position_write(position, bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    job->row.works++;
    engine->jobs->has_work = true;
}

static void delete_deadline(struct bel_engine *engine, const struct bel_job_found *job)
{
    if (job->row.deadline == 0) return;
    struct bel_key key = bel__job_time_key(BEL_LANE_ENGINE, job->row.deadline,
                                           BEL_JOB_TIME_DEADLINE, job->row.number);
    bel__rows_delete(&engine->rows, &key);
}

static void delete_pace(struct bel_engine *engine, const struct bel_job_found *job)
{
    if (job->row.paced_until == 0) return;
    struct bel_key key = bel__job_time_key(BEL_LANE_ENGINE, job->row.paced_until, BEL_JOB_TIME_PACE,
                                           job->row.number);
    bel__rows_delete(&engine->rows, &key);
}

void bel__job_pace(struct bel_engine *engine, struct bel_job_found *job, uint64_t until)
{
    if (until <= job->row.paced_until || until <= engine->now.engine) return;
    delete_pace(engine, job);
    job->row.paced_until = until;
    struct bel_key key =
        bel__job_time_key(BEL_LANE_ENGINE, until, BEL_JOB_TIME_PACE, job->row.number);
    bel__rows_put(&engine->rows, &key, (struct bel_view){0}, BEL_ROW_NEW);
    if (until < engine->jobs->next_time) engine->jobs->next_time = until;
    int err = bel__job_hold(&engine->job_marks, job->row.number, BEL_HOLD_PACING);
    assert(err == 0); /* it has a mark */
    (void)err;
}

void bel__job_release(struct bel_engine *engine, const struct bel_job_found *job,
                      enum bel_job_hold why)
{
    struct bel_standing standing = {.share = job->row.id, .is_job = true};
    uint32_t number;
    bel__job_unhold(&engine->job_marks, job->row.number, why);
    if (bel__job_holds(&engine->job_marks, job->row.number) != 0) return;
    while (bel__job_take_topic(&engine->job_marks, job->row.number, &number)) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, number);
        int err = bel__picker_hold(&topic->picker, &standing, false);
        assert(err == 0); /* releasing cannot fail */
        (void)err;
        bel__wait_mark(engine, topic);
    }
}

static void put_follow(struct bel_engine *engine, const struct bel_job_found *job, uint64_t time)
{
    struct bel_key key =
        bel__job_time_key(BEL_LANE_ENGINE, time, BEL_JOB_TIME_FOLLOW, job->row.number);
    struct bel_view value = {.data = job->key.words, .bytes = sizeof job->key.words};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    if (time < engine->jobs->next_time) engine->jobs->next_time = time;
}

/* Finds the row in JOB_TIMES of an ended job whose followers have not begun: during the cooldown at
 * its end; before that, at its start. */
static int find_follow(struct bel_engine *engine, const struct bel_job_row *row,
                       struct bel_key *out)
{
    struct bel_view value;
    *out = bel__job_time_key(BEL_LANE_ENGINE, row->follow_at, BEL_JOB_TIME_FOLLOW, row->number);
    int err = bel__store_get(engine->store, out, &value);
    if (err != BEL_ENOTFOUND) return err;
    *out = bel__job_time_key(BEL_LANE_ENGINE, row->follow_at - row->cooldown_ms,
                             BEL_JOB_TIME_FOLLOW, row->number);
    return 0;
}

void bel__job_cool_down(struct bel_engine *engine, const struct bel_job_found *job,
                        const struct bel_key *time_key)
{
    bel__rows_delete(&engine->rows, time_key);
    put_follow(engine, job, job->row.follow_at);
}

/* Lets the jobs of `then` begin after the cooldown. The key of the job is that of an ended one. The
 * row is for now: it frees the ids of those that will not begin, and then waits for the others. */
static void plan_followers(struct bel_engine *engine, struct bel_job_found *job)
{
    if (job->row.thens == 0 || job->row.state == BEL_JOB_CANCELLED) return;
    job->row.follow_at = engine->now.engine_up + job->row.cooldown_ms;
    put_follow(engine, job, engine->now.engine_up);
}

static void end(struct bel_engine *engine, struct bel_job_found *job)
{
    struct bel_jobs *jobs = engine->jobs;
    uint64_t now = (uint64_t)engine->now.wall;
    assert(job->row.works == 0 && bel__place_of(&job->key).lane == BEL_JOB_LANE_LIVE);
    if (job->row.phase == BEL_JOB_PHASE_LIVE) {
        job->row.state = job->row.unhandled > 0 ? BEL_JOB_FAILED : BEL_JOB_DONE;
    }
    delete_deadline(engine, job);
    delete_pace(engine, job);
    bel__rows_delete(&engine->rows, &job->key);
    job->row.paced_until = 0;
    job->row.phase = BEL_JOB_PHASE_ENDED;
    job->key = bel__job_ended_key(now, job->row.number);
    plan_followers(engine, job);
    bel__job_put(engine, job);
    bel__job_put_id(engine, job);
    bel__job_release(engine, job, BEL_HOLD_PAUSED);
    bel__job_release(engine, job, BEL_HOLD_ENDING);
    bel__job_release(engine, job, BEL_HOLD_PACING);
    bel__job_drop_mark(&engine->job_marks, job->row.number);
    if (now + jobs->retention_ms < jobs->next_sweep) jobs->next_sweep = now + jobs->retention_ms;
}

void bel__job_settle(struct bel_engine *engine, struct bel_job_found *job)
{
    bool is_plan_over = job->row.phase == BEL_JOB_PHASE_PLAN && job->row.state == BEL_JOB_DONE;
    bool is_open = job->row.phase == BEL_JOB_PHASE_LIVE || job->row.phase == BEL_JOB_PHASE_ENDING ||
                   is_plan_over;
    bool is_over = is_open && job->row.works == 0 && bel__job_unfinished(job) == 0;
    if (is_over && job->row.plan != 0 && !job->row.is_reported) {
        bel__job_add_work(engine, job, BEL_WORK_REPORT, 0, 0); /* then it ends */
        bel__job_put(engine, job);
    } else if (is_over) {
        end(engine, job);
    } else {
        bel__job_put(engine, job);
    }
}

/* Begins to end a job. `which` is the task of its work: a number that the work knows. */
static int begin_end(struct bel_engine *engine, struct bel_job_found *job, enum bel_job_state state,
                     struct bel_view reason, uint32_t which)
{
    bool is_plan = job->row.phase == BEL_JOB_PHASE_PLAN;
    assert(job->row.phase == BEL_JOB_PHASE_LIVE || is_plan);
    int err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err == 0) err = bel__job_hold(&engine->job_marks, job->row.number, BEL_HOLD_ENDING);
    if (err) return err;
    job->row.phase = BEL_JOB_PHASE_ENDING;
    job->row.state = state;
    job->row.reason = reason;
    bel__job_add_work(engine, job, is_plan ? BEL_WORK_END_MADE : BEL_WORK_END, is_plan ? which : 0,
                      0);
    bel__job_put(engine, job);
    return 0;
}

int bel__job_begin_end(struct bel_engine *engine, struct bel_job_found *job,
                       enum bel_job_state state, struct bel_view reason)
{
    return begin_end(engine, job, state, reason, BEL_END_MADE_ALL);
}

int bel__job_begin_cancel(struct bel_engine *engine, struct bel_job_found *job,
                          const struct bel_job_scope *scope)
{
    return begin_end(engine, job, BEL_JOB_CANCELLED, (struct bel_view){0},
                     scope->has != NULL ? BEL_END_MADE_OWN : BEL_END_MADE_ALL);
}

int bel__job_begin_removal(struct bel_engine *engine, struct bel_job_found *job)
{
    struct bel_job_marks *marks = &engine->job_marks;
    bool is_ended = job->row.phase == BEL_JOB_PHASE_ENDED, follows = job->row.follow_at > 0;
    struct bel_key follow_key = {0};
    int err = bel__rows_reserve(&engine->rows, (size_t)2 * BEL_JOB_ROWS, (size_t)2 * BEL_JOB_BYTES,
                                BEL_STORE_END);
    if (err == 0 && follows) err = find_follow(engine, &job->row, &follow_key);
    if (err == 0 && !is_ended) err = bel__job_hold(marks, job->row.number, BEL_HOLD_ENDING);
    if (err == 0) err = bel__job_hide(marks, job->row.number);
    if (err) return err;
    if (!is_ended) {
        delete_deadline(engine, job);
        delete_pace(engine, job);
        job->row.deadline = job->row.paced_until = 0;
    }
    if (follows) {
        bel__rows_delete(&engine->rows, &follow_key);
        job->row.follow_at = 0;
    }
    job->row.phase = BEL_JOB_PHASE_REMOVING;
    bel__job_add_work(engine, job, BEL_WORK_REMOVE, 0, bel__place_of(&job->key).time);
    bel__job_put(engine, job);
    return 0;
}

static void put_deadline(struct bel_engine *engine, const struct bel_job_row *row)
{
    if (row->deadline == 0) return;
    struct bel_key key =
        bel__job_time_key(BEL_LANE_ENGINE, row->deadline, BEL_JOB_TIME_DEADLINE, row->number);
    bel__rows_put(&engine->rows, &key, (struct bel_view){0}, BEL_ROW_NEW);
    struct bel_jobs *jobs = engine->jobs;
    if (row->deadline < jobs->next_time) jobs->next_time = row->deadline;
}

void bel__job_begin(struct bel_engine *engine, struct bel_job_found *job)
{
    assert(job->row.works == 0 && bel__place_of(&job->key).lane == BEL_JOB_LANE_LIVE);
    job->row.phase = BEL_JOB_PHASE_LIVE;
    job->row.replaces = 0;
    job->row.counts[BEL_BLOCKED] = job->row.tasks;
    put_deadline(engine, &job->row);
    if (job->row.tasks > 0) {
        int err = bel__job_hold(&engine->job_marks, job->row.number, BEL_HOLD_STARTING);
        assert(err == 0); /* it is hidden, so it has a mark */
        (void)err;
        bel__job_add_work(engine, job, BEL_WORK_START, 0, 0);
    }
    bel__job_settle(engine, job); /* a job without tasks ends at once */
    if (job->row.tasks == 0) bel__job_show(&engine->job_marks, job->row.number);
}

void bel__job_started(struct bel_engine *engine, const struct bel_job_found *job)
{
    if (job->row.phase == BEL_JOB_PHASE_REMOVING) return;
    bel__job_release(engine, job, BEL_HOLD_STARTING);
    bel__job_show(&engine->job_marks, job->row.number);
}

int bel__job_is_replacing(struct bel_engine *engine, struct bel_view id, bool *out)
{
    struct bel_job_found job;
    *out = false;
    int err = bel__job_find_any(engine, id, &job);
    if (err) return err == BEL_ENOTFOUND ? 0 : err;
    *out = job.row.phase == BEL_JOB_PHASE_REPLACING;
    return 0;
}
