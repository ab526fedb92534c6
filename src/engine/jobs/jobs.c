/* SPDX-License-Identifier: MIT */

/*
 * What is due for jobs is in the order of time in the store: deadlines and pauses in JOB_TIMES,
 * ended jobs in JOBS. Only the time of the first is in memory, whatever the number of jobs.
 */
#include "engine/jobs/jobs.h"

#include "core/units.h"
#include "core/view.h"
#include "engine/jobs/follow.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/state.h"
#include "engine/jobs/submission.h"
#include "engine/jobs/task.h"
#include "engine/jobs/work.h"
#include "engine/state/reactions.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORK_MAX = 8000,   /* units in a turn: about 3 ms */
    WORK_SOME = 100,   /* while the store is behind */
    TIMES_MAX = 100,   /* rows of JOB_TIMES in a turn */
    REMOVED_MAX = 100, /* ended jobs whose removal begins in one turn */
    PLANS_MAX = 1000,  /* jobs that are looked at in one turn, for recurring ones that are over */
    RETRY_MS = 100,
};

/* --- events --- */

static int look(struct bel_engine *engine, struct bel_found *found, size_t *rows)
{
    int err = bel__reactions.look(engine, found, rows);
    if (err != 0 || found->record.job.number == 0) return err;
    return bel__task_look(engine, found);
}

static void moved(struct bel_engine *engine, struct bel_found *found, const struct bel_key *from)
{
    bel__reactions.moved(engine, found, from);
    if (found->record.job.number != 0) bel__task_moved(engine, found, from);
}

static void ended(struct bel_engine *engine, struct bel_found *found)
{
    bel__reactions.ended(engine, found);
    if (found->record.job.number != 0) bel__task_ended(engine, found);
}

static int rings(struct bel_engine *engine, const struct bel_found *plan, bool *out_makes)
{
    return bel__recurring_rings(engine, plan, out_makes);
}

static void rang(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped)
{
    bel__recurring_rang(engine, plan, is_skipped);
}

/* --- opening --- */

/* Hides the jobs that are being removed, replace another one, or are being started. Tasks of the
 * last are not delivered. */
static int find_work(struct bel_engine *engine)
{
    struct bel_key from = bel__work_key(0, (enum bel_work_kind)0, 0);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != BEL_TABLE_JOB_WORK) return 0;
        engine->jobs->has_work = true;
        bool is_start = place.priority == BEL_WORK_START;
        if (place.priority != BEL_WORK_REMOVE && place.priority != BEL_WORK_ADOPT && !is_start) {
            continue;
        }
        err = bel__job_hide(&engine->job_marks, place.time);
        if (err == 0 && is_start) {
            err = bel__job_hold(&engine->job_marks, place.time, BEL_HOLD_STARTING);
        }
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

static int hold(struct bel_engine *engine, const struct bel_job_row *row)
{
    struct bel_job_marks *marks = &engine->job_marks;
    int err = 0;
    if (row->phase == BEL_JOB_PHASE_PLAN) {
        engine->jobs->plans_from = 0; /* its plan may have ended */
        return 0;
    }
    if (row->is_paused) err = bel__job_hold(marks, row->number, BEL_HOLD_PAUSED);
    if (err == 0 && row->phase == BEL_JOB_PHASE_ENDING) {
        err = bel__job_hold(marks, row->number, BEL_HOLD_ENDING);
    }
    if (err == 0 && row->paced_until > 0) {
        err = bel__job_keep_mark(marks, row->number);
        if (err == 0) err = bel__job_hold(marks, row->number, BEL_HOLD_PACING);
    }
    return err;
}

/* Holds the jobs whose tasks must not be delivered, before the first delivery. */
static int find_held(struct bel_engine *engine)
{
    struct bel_key from = bel__job_key(0);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_job_row row;
        if (place.table != BEL_TABLE_JOBS || place.lane != BEL_JOB_LANE_LIVE) return 0;
        err = bel__job_row_read(cursor.value, &row);
        if (err == 0) err = hold(engine, &row);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Looks for recurring jobs whose plans have ended unseen: by an engine that did not end the jobs,
 * or while a lookup failed. A slice in each turn. */
static int find_ended_plans(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_store_cursor cursor;
    if (jobs->plans_from == BEL_NEVER) return 0;
    struct bel_key from = bel__job_key(jobs->plans_from);
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (int left = PLANS_MAX; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_job_row row;
        if (place.table != BEL_TABLE_JOBS || place.lane != BEL_JOB_LANE_LIVE) break;
        jobs->plans_from = place.sequence;
        if (left-- == 0) {
            engine->is_behind = true;
            return 0;
        }
        err = bel__job_row_read(cursor.value, &row);
        if (err) return err;
        if (row.phase == BEL_JOB_PHASE_PLAN) err = bel__recurring_settle(engine, row.id);
        if (err) return err;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    jobs->plans_from = BEL_NEVER;
    return 0;
}

int bel__jobs_open(struct bel_engine *engine, uint64_t retention_ms)
{
    struct bel_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) return BEL_ENOMEM;
    jobs->events = bel__reactions;
    jobs->events.look = look;
    jobs->events.moved = moved;
    jobs->events.ended = ended;
    jobs->events.rings = rings;
    jobs->events.rang = rang;
    jobs->work_max = WORK_MAX;
    jobs->from = bel__work_key(0, (enum bel_work_kind)0, 0);
    jobs->retention_ms = retention_ms > 0 ? retention_ms : (uint64_t)24 * MS_PER_HOUR;
    jobs->plans_from = BEL_NEVER;
    engine->jobs = jobs;
    engine->events = &jobs->events;
    int err = find_work(engine);
    return err ? err : find_held(engine);
}

void bel__jobs_close(struct bel_engine *engine)
{
    if (engine->jobs == NULL) return;
    bel__submissions_destroy(engine);
    bel__job_marks_finish(&engine->job_marks);
    free(engine->jobs);
    engine->jobs = NULL;
}

/* --- what is due --- */

/* Ends a job whose time is over. */
static int time_out(struct bel_engine *engine, const struct bel_key *key)
{
    struct bel_job_found job;
    int err = bel__job_load(engine, bel__place_of(key).sequence, &job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    job.row.deadline = 0;
    if (job.row.phase == BEL_JOB_PHASE_LIVE) {
        err = bel__job_begin_end(engine, &job, BEL_JOB_FAILED, BEL_VIEW("timeout"));
        if (err) return err;
    } else { /* is being cancelled */
        err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
        if (err) return err;
        bel__job_put(engine, &job);
    }
    bel__rows_delete(&engine->rows, key);
    return 0;
}

/* Lets the tasks of a job start again. */
static int end_pace(struct bel_engine *engine, const struct bel_key *key)
{
    struct bel_job_found job;
    int err = bel__job_load(engine, bel__place_of(key).sequence, &job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    err = bel__rows_reserve(&engine->rows, BEL_JOB_ROWS, BEL_JOB_BYTES, BEL_STORE_END);
    if (err) return err;
    job.row.paced_until = 0;
    bel__rows_delete(&engine->rows, key);
    bel__job_put(engine, &job);
    bel__job_release(engine, &job, BEL_HOLD_PACING);
    return 0;
}

static int see_time(struct bel_engine *engine, const struct bel_store_cursor *cursor)
{
    switch (bel__place_of(&cursor->key).priority) {
    case BEL_JOB_TIME_DEADLINE:
        return time_out(engine, &cursor->key);
    case BEL_JOB_TIME_PACE:
        return end_pace(engine, &cursor->key);
    case BEL_JOB_TIME_FOLLOW:
        return bel__follow(engine, &cursor->key, cursor->value);
    default:
        return BEL_ECORRUPT;
    }
}

/* Handles the rows of JOB_TIMES that are due. The row of a job with followers stays until all of
 * them are made, and is looked at in every turn. */
static int see_times(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_key from = bel__job_time_key(BEL_LANE_ENGINE, 0, BEL_JOB_TIME_DEADLINE, 0);
    struct bel_store_cursor cursor;
    if (jobs->next_time > engine->now.engine || jobs->retry > engine->now.engine) return 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (int left = TIMES_MAX; err == 0 && left > 0; left--) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != BEL_TABLE_JOB_TIMES || place.time > engine->now.engine) break;
        err = see_time(engine, &cursor);
        if (err) return err;
        err = bel__store_next(engine->store, &cursor);
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    err = bel__store_seek(engine->store, &from, &cursor); /* the first that is left */
    bool is_left = err == 0 && bel__place_of(&cursor.key).table == BEL_TABLE_JOB_TIMES;
    jobs->next_time = is_left ? bel__place_of(&cursor.key).time : BEL_NEVER;
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Begins to remove jobs whose retention is over. Waits until those before are removed. */
static int sweep(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    uint64_t now = (uint64_t)engine->now.wall;
    struct bel_key from = bel__job_ended_key(0, 0);
    uint64_t next = BEL_NEVER;
    struct bel_store_cursor cursor;
    if (jobs->next_sweep > now || jobs->has_work) return 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (int left = REMOVED_MAX; err == 0; err = bel__store_next(engine->store, &cursor), left--) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_job_found job = {.key = cursor.key};
        if (place.table != BEL_TABLE_JOBS) break;
        uint64_t time = place.time + jobs->retention_ms;
        if (time > now || left == 0) {
            jobs->next_sweep = time < next ? time : next;
            return 0;
        }
        err = bel__job_row_read(cursor.value, &job.row);
        if (err) return err;
        if (job.row.phase != BEL_JOB_PHASE_ENDED) return BEL_ECORRUPT; /* no work is left */
        if (job.row.follow_at > 0) {
            next = now + RETRY_MS; /* its followers come first */
            continue;
        }
        err = bel__job_begin_removal(engine, &job);
        if (err) return err;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    jobs->next_sweep = next;
    return 0;
}

/* Returns whether a turn has something to do: work, a follower, or a row whose time has come. */
static bool is_busy(const struct bel_engine *engine)
{
    const struct bel_jobs *jobs = engine->jobs;
    return jobs->has_work || jobs->follower != NULL || jobs->next_time <= engine->now.engine ||
           jobs->next_sweep <= (uint64_t)engine->now.wall;
}

int bel__jobs_turn(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    jobs->left = bel__is_held(engine) ? WORK_SOME : jobs->work_max;
    if (!is_busy(engine)) return 0;
    int err = bel__follow_check(engine);
    if (err == 0) err = see_times(engine);
    if (err == 0) err = sweep(engine);
    if (err == 0) err = find_ended_plans(engine);
    if (err == BEL_EBUSY) { /* the batch is full */
        engine->is_behind = true;
        return 0;
    }
    if (err == BEL_ENOMEM || err == BEL_EFULL) {
        jobs->retry = engine->now.engine + RETRY_MS;
        return 0;
    }
    return err ? err : bel__work_turn(engine);
}

static uint64_t not_before(uint64_t time, uint64_t from)
{
    return time < from ? from : time;
}

uint64_t bel__jobs_next(const struct bel_engine *engine)
{
    const struct bel_jobs *jobs = engine->jobs;
    bool has_ready = jobs->topic != NULL && bel__picker_count(&jobs->topic->picker) > 0;
    bool is_now = jobs->has_work || has_ready;
    uint64_t next = is_now ? engine->now.engine : jobs->next_time;
    return not_before(next, jobs->retry);
}

uint64_t bel__jobs_next_wall(const struct bel_engine *engine)
{
    const struct bel_jobs *jobs = engine->jobs;
    return jobs->has_work ? BEL_NEVER : jobs->next_sweep; /* looked at again after the work */
}

uint64_t bel__jobs_leases(const struct bel_engine *engine)
{
    const struct bel_topic_state *topic = engine->jobs->topic;
    return topic == NULL ? 0 : topic->leased;
}

int bel__jobs_reserve(struct bel_engine *engine, struct bel_view id, bool *out)
{
    const char *slash = id.bytes > 0 ? memchr(id.data, '/', id.bytes) : NULL;
    *out = false;
    if (slash == NULL || engine->job_marks.hidden == 0) return 0;
    struct bel_view job = bel__view_head(id, (size_t)(slash - (const char *)id.data));
    *out = bel__submission_replaces(engine, job);
    return *out ? 0 : bel__job_is_replacing(engine, job, out);
}
