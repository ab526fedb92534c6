/* SPDX-License-Identifier: MIT */

/*
 * A row of JOB_WORK is a loop over edges or tasks, and its value says how far the loop has come:
 *
 *     DEPENDENTS   task 3 has ended      edge 0  1  2 ... 499 | 500 ... 9,999
 *                                        told                 ^ position
 *
 * The position changes in the same batch as the tasks that it passes. So a slice can end anywhere,
 * and after a crash the loop goes on where the last durable slice ended. Each slice is a number of
 * units, and jobs take turns: a job with many edges does not delay the others.
 *
 * Each step reserves more rows than it uses: enough to write the position and the job's row, even
 * if the next step finds no room.
 */
#include "engine/jobs/work.h"

#include "core/view.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/state.h"
#include "engine/jobs/task.h"
#include "engine/jobs/then.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    RETRY_MS = 100, /* delay of a retry after a failure for lack of room or memory */
    STOPPED = 1,    /* the turn has no units left */
    WAITING = 2,    /* for other work */
    STEP_ROWS = BEL_JOB_ROWS + 4,
    STEP_BYTES = BEL_JOB_BYTES + 4 * BEL_TASK_ROW_BYTES_MAX,
};

static_assert(STEP_ROWS + 16 < BEL_TIMER_ROWS, "the end of a task leaves rows for its job");

/* A row of JOB_WORK and its job. */
struct work {
    struct bel_engine *engine;
    uint64_t job;
    enum bel_work_kind kind;
    uint32_t task;
    uint64_t position;
    struct bel_job_row row;    /* when the slice began; its counts change meanwhile */
    struct bel_task_row ended; /* of DEPENDENTS and HANDLED: the task that has ended */
};

/* Takes units of the turn. Returns whether it had some left. */
static bool spend(const struct bel_engine *engine, uint32_t units)
{
    struct bel_jobs *jobs = engine->jobs;
    if (jobs->left == 0) return false;
    jobs->left -= jobs->left < units ? jobs->left : units;
    return true;
}

static int reserve_step(struct bel_engine *engine)
{
    return bel__rows_reserve(&engine->rows, STEP_ROWS, STEP_BYTES, BEL_STORE_END);
}

/* --- DEPENDENTS --- */

/* Skips a task because of another one, which has ended. */
static int skip(struct work *work, const struct bel_task_row *row)
{
    struct bel_found ended;
    char reason[BEL_TEXT_BYTES_MAX];
    int err = bel__timer_load(work->engine, &work->ended.key, &ended);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    struct bel_view id = bel__task_id(&ended.record);
    int bytes = snprintf(reason, sizeof reason, "task %.*s is %s", (int)id.bytes,
                         (const char *)id.data, bel_state_name(ended.state));
    assert(bytes > 0 && (size_t)bytes < sizeof reason);
    struct bel_view view = {reason, (size_t)bytes};
    return bel__task_finish(work->engine, row, BEL_SKIPPED, view);
}

/* Tells a task how one of its dependencies has ended. */
static int tell(struct work *work, const struct bel_edge *edge)
{
    struct bel_engine *engine = work->engine;
    struct bel_task_row row;
    int err = bel__task_load(engine, work->job, edge->task, &row);
    if (err) return err;
    if (bel__task_row_state(&row) != BEL_BLOCKED) return reserve_step(engine); /* has ended */
    if (row.open == 0) return BEL_ECORRUPT;
    if (!bel__edge_holds(edge->on, bel__task_row_state(&work->ended))) {
        (void)spend(engine, BEL_UNITS_TIMER);
        return skip(work, &row);
    }
    err = reserve_step(engine);
    if (err) return err;
    row.open--;
    if (row.open > 0) {
        bel__task_put(engine, work->job, edge->task, &row);
        return 0;
    }
    (void)spend(engine, BEL_UNITS_TIMER);
    bel__task_put(engine, work->job, edge->task, &row);
    err = bel__task_unblock(engine, &row);
    if (err == 0) return 0;
    row.open++; /* again in the next slice */
    bel__task_put(engine, work->job, edge->task, &row);
    return err;
}

/* --- HANDLED --- */

/* A task that handles failures of its dependencies is done: marks the dependency, if it failed. */
static int handle(struct work *work, const struct bel_edge *edge)
{
    struct bel_engine *engine = work->engine;
    struct bel_job_found job;
    struct bel_task_row row;
    int err = bel__task_load(engine, work->job, edge->task, &row);
    if (err == 0) err = reserve_step(engine);
    if (err) return err;
    bool is_failure = bel__task_has_failed(bel__task_row_state(&row));
    if (edge->on == BEL_EDGE_SUCCESS || !is_failure || row.is_handled) return 0;
    err = bel__job_load(engine, work->job, &job);
    if (err) return err;
    if (job.row.unhandled == 0) return BEL_ECORRUPT;
    row.is_handled = true;
    job.row.unhandled--;
    bel__task_put(engine, work->job, edge->task, &row);
    bel__job_put(engine, &job);
    return 0;
}

/* Goes on in the list of edges of the task that has ended. */
static int walk_edges(struct work *work)
{
    bool is_tell = work->kind == BEL_WORK_DEPENDENTS;
    struct bel_edge_list list = {.job = work->job,
                                 .kind = is_tell ? BEL_EDGES_DEPENDENTS : BEL_EDGES_AFTER,
                                 .task = work->task};
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    int err = bel__task_load(work->engine, work->job, work->task, &work->ended);
    if (err) return err;
    list.count = is_tell ? work->ended.dependents_count : work->ended.after_count;
    while (work->position < list.count) {
        size_t count;
        err = bel__edges_get(work->engine, &list, work->position, edges, &count);
        if (err) return err;
        for (size_t i = 0; i < count; i++) {
            if (!spend(work->engine, BEL_UNITS_EDGE)) return STOPPED;
            err = is_tell ? tell(work, &edges[i]) : handle(work, &edges[i]);
            if (err) return err;
            work->position++;
        }
    }
    return 0;
}

/* --- START and END --- */

static int start(struct work *work, const struct bel_task_row *row)
{
    if (row->open > 0 || bel__task_row_state(row) != BEL_BLOCKED) {
        return reserve_step(work->engine);
    }
    (void)spend(work->engine, BEL_UNITS_TIMER);
    return bel__task_unblock(work->engine, row);
}

static int end(struct work *work, const struct bel_task_row *row)
{
    bool is_timeout = work->row.state == BEL_JOB_FAILED;
    if (bel__task_row_state(row) >= BEL_DONE) return reserve_step(work->engine);
    (void)spend(work->engine, BEL_UNITS_TIMER);
    struct bel_view reason =
        is_timeout ? BEL_VIEW("the job has timed out") : BEL_VIEW("the job was cancelled");
    return bel__task_finish(work->engine, row, BEL_CANCELLED, reason);
}

/* --- REMOVE --- */

static void delete_edges(struct bel_engine *engine, const struct bel_edge_list *list)
{
    for (uint32_t chunk = 0; chunk < bel__edges_rows(list->count); chunk++) {
        struct bel_key key = bel__edges_key(list->job, list->kind, list->task, chunk);
        bel__rows_delete(&engine->rows, &key);
    }
}

static size_t edges_rows(const struct bel_task_row *row)
{
    return (size_t)bel__edges_rows(row->after_count) + bel__edges_rows(row->dependents_count);
}

/* Deletes the rows of a timer, a task, and its edges. */
static int remove_task(struct work *work, uint32_t task, const struct bel_task_row *row)
{
    struct bel_engine *engine = work->engine;
    struct bel_key key = bel__task_key(work->job, task);
    struct bel_found found;
    int err = bel__timer_load(engine, &row->key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    const struct bel_record *record = &found.record;
    size_t chunks = bel__blob_rows(record->body.bytes) + bel__blob_rows(record->result.bytes);
    struct bel_place place = bel__place_of(&found.key);
    if (place.table == BEL_TABLE_TIMERS) {
        err = bel__timer_hold(engine, found.topic, &place, bel__record_share(record));
        if (err) return err;
        found.task = bel__answer_take(engine, sizeof *found.task);
        if (found.task == NULL) return BEL_ENOMEM;
        *found.task = (struct bel_task_end){.job = {.row = work->row}};
    }
    err = bel__rows_reserve(&engine->rows, BEL_TIMER_ROWS + chunks + edges_rows(row),
                            BEL_TIMER_BYTES, BEL_STORE_END);
    if (err) return err;
    (void)spend(engine, BEL_UNITS_TIMER + (uint32_t)(chunks + edges_rows(row)));
    if (work->row.phase == BEL_JOB_PHASE_SUBMITTING) {
        if (work->row.replaces == 0) bel__alias_delete(engine, &found.key, &found.record);
        bel__timer_unstage(engine, &found);
    } else {
        bel__timer_remove(engine, &found);
    }
    delete_edges(engine,
                 &(struct bel_edge_list){work->job, BEL_EDGES_AFTER, task, row->after_count});
    delete_edges(engine, &(struct bel_edge_list){work->job, BEL_EDGES_DEPENDENTS, task,
                                                 row->dependents_count});
    bel__rows_delete(&engine->rows, &key);
    return 0;
}

/* Returns whether the id of a job may be gone: it named the job that this one was to replace, or
 * that has replaced it, which was removed first. */
static bool may_be_unnamed(const struct bel_job_row *row)
{
    if (row->phase == BEL_JOB_PHASE_SUBMITTING) return row->replaces != 0;
    return row->phase == BEL_JOB_PHASE_REMOVING;
}

/* Deletes the last rows of a job. */
static int remove_job(struct work *work, const struct bel_job_found *job)
{
    struct bel_engine *engine = work->engine;
    struct bel_key work_key = bel__work_key(work->job, work->kind, work->task);
    struct bel_key id_key = bel__job_id_key(engine->alias_keys, job->row.id);
    struct bel_view named;
    int err = bel__store_get(engine->store, &id_key, &named);
    if (err == BEL_ENOTFOUND && may_be_unnamed(&job->row)) {
        named = (struct bel_view){0};
        err = 0;
    }
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    bool is_named = named.bytes == sizeof job->key.words &&
                    memcmp(named.data, job->key.words, named.bytes) == 0;
    size_t rows = BEL_JOB_ROWS + bel__edges_rows(job->row.topics);
    bool may_recur = is_named && job->row.tasks == 0 && job->row.plan == 0;
    if (may_recur) rows += (size_t)2 * BEL_TIMER_ROWS;
    err = bel__rows_reserve(&engine->rows, rows, may_recur ? (size_t)2 * BEL_TIMER_BYTES : 0,
                            BEL_STORE_END);
    if (err == 0 && may_recur) err = bel__recurring_forget(engine, job->row.id);
    if (err) return err;
    delete_edges(engine, &(struct bel_edge_list){work->job, BEL_EDGES_TOPICS, 0, job->row.topics});
    bel__rows_delete(&engine->rows, &work_key);
    if (is_named) bel__rows_delete(&engine->rows, &id_key); /* else: of the job that replaces it */
    bel__rows_delete(&engine->rows, &job->key);
    bel__job_release(engine, job, BEL_HOLD_ENDING);
    bel__job_release(engine, job, BEL_HOLD_PAUSED);
    bel__job_release(engine, job, BEL_HOLD_PACING);
    bel__job_release(engine, job, BEL_HOLD_STARTING);
    bel__job_drop_mark(&engine->job_marks, work->job);
    bel__job_show(&engine->job_marks, work->job);
    return 0;
}

/* Deletes a job. Its rows say how far this is: there is no position. */
static int remove_all(struct work *work)
{
    struct bel_engine *engine = work->engine;
    struct bel_key from = bel__task_key(work->job, 0);
    struct bel_key key = work->position > 0 ? bel__job_ended_key(work->position, work->job)
                                            : bel__job_key(work->job);
    struct bel_job_found job;
    struct bel_store_cursor cursor;
    int err = bel__job_load_key(engine, &key, &job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    work->row = job.row;
    err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_task_row row;
        if (place.table != BEL_TABLE_TASKS || place.time != work->job) break;
        if (!spend(engine, BEL_UNITS_ROW)) return STOPPED;
        err = bel__task_row_read(cursor.value, &row);
        if (err == 0) err = remove_task(work, (uint32_t)place.sequence, &row);
        if (err) return err;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    while ((err = bel__then_remove_one(engine, &job)) == 0) {
        if (!spend(engine, BEL_UNITS_TIMER)) return STOPPED;
    }
    if (err != BEL_ENOTFOUND) return err;
    bool recurs = job.row.tasks == 0 && job.row.plan == 0;
    err = job.row.works > 1 ? WAITING : 0;
    if (err == 0 && recurs) err = bel__recurring_drop(engine, job.row.id);
    return err ? err : remove_job(work, &job);
}

/* --- ADOPT --- */

/* Gives a task the id that a task of the job before it may have had, and counts it. */
static int adopt(struct work *work, const struct bel_task_row *row)
{
    struct bel_engine *engine = work->engine;
    struct bel_place place = bel__place_of(&row->key);
    struct bel_found found;
    int err = bel__timer_load(engine, &row->key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    struct bel_share_name share = bel__record_share(&found.record);
    err = bel__timer_hold(engine, found.topic, &place, share);
    if (err == 0) err = reserve_step(engine);
    if (err) return err;
    (void)spend(engine, BEL_UNITS_TIMER);
    bel__alias_put(engine, &row->key, &found.record, BEL_ROW_ANY);
    bel__timer_count_staged(engine, found.topic, share, 1);
    return 0;
}

static int step(struct work *work, const struct bel_task_row *row)
{
    if (work->kind == BEL_WORK_ADOPT) return adopt(work, row);
    return work->kind == BEL_WORK_START ? start(work, row) : end(work, row);
}

static int walk_tasks(struct work *work)
{
    while (work->position < work->row.tasks) {
        struct bel_task_row row;
        if (!spend(work->engine, BEL_UNITS_ROW)) return STOPPED;
        int err = bel__task_load(work->engine, work->job, (uint32_t)work->position, &row);
        if (err) return err;
        err = step(work, &row);
        if (err) return err;
        work->position++;
    }
    return 0;
}

/* Ends the tasks of a job, then the reservations of ids for jobs that would have followed it. */
static int end_all(struct work *work)
{
    const struct bel_job_found job = {.key = bel__job_key(work->job), .row = work->row};
    int err = walk_tasks(work);
    if (err != 0 || work->row.state != BEL_JOB_CANCELLED) return err;
    for (uint32_t i = 0; i < work->row.thens; i++) {
        (void)spend(work->engine, BEL_UNITS_TIMER + (uint32_t)work->row.reserved);
        err = bel__then_release(work->engine, &job, i);
        if (err) return err;
    }
    return reserve_step(work->engine);
}

/* Begins a job that replaces another one, when that one is removed. */
static int adopt_all(struct work *work)
{
    struct bel_engine *engine = work->engine;
    struct bel_key before = bel__work_key(work->row.replaces, BEL_WORK_REMOVE, 0);
    struct bel_view value;
    int err = bel__store_get(engine->store, &before, &value);
    if (err == 0) return WAITING;
    return err == BEL_ENOTFOUND ? walk_tasks(work) : err;
}

/* --- REPORT and END_MADE --- */

/* Ends a recurring job that has no more times, if its jobs have ended. Otherwise the last of them
 * reports again. */
static int report_plan(struct work *work)
{
    struct bel_job_found job;
    bool is_over = false;
    int err = bel__job_load(work->engine, work->job, &job);
    if (err == 0) err = bel__recurring_is_over(work->engine, &job, &is_over);
    if (err == 0) err = reserve_step(work->engine);
    if (err != 0 || !is_over) return err;
    job.row.state = BEL_JOB_DONE; /* it ends when this work is finished */
    job.row.unhandled = 0;
    bel__job_put(work->engine, &job);
    work->position++;
    return 0;
}

/* Tells the plan of a job that the job has ended. */
static int report(struct work *work)
{
    struct bel_job_found job;
    if (work->row.phase == BEL_JOB_PHASE_PLAN) return report_plan(work);
    int err = bel__recurring_report(work->engine, &work->row);
    if (err == 0) err = bel__recurring_settle(work->engine, work->row.plan_id);
    if (err == 0) err = reserve_step(work->engine);
    if (err) return err;
    err = bel__job_load(work->engine, work->job, &job);
    if (err) return err;
    job.row.is_reported = true;
    bel__job_put(work->engine, &job);
    work->position++;
    return 0;
}

/* Returns whether a job is one of those that END_MADE ends. */
static bool is_of_plan(const struct work *work, const struct bel_job_row *made)
{
    if (made->plan == 0 || made->phase != BEL_JOB_PHASE_LIVE) return false;
    if (work->task == BEL_END_MADE_OWN) return made->plan == work->job;
    return bel__view_equal(made->plan_id, work->row.id);
}

/* Ends the jobs of a recurring job, then its plan: also the jobs that the one before it with the
 * same id has made, unless a key with a scope ends it. The position is the number of the last job
 * that was looked at. */
static int end_made(struct work *work)
{
    struct bel_engine *engine = work->engine;
    struct bel_key from = bel__job_key(work->position + 1);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_job_found made = {.key = cursor.key};
        if (place.table != BEL_TABLE_JOBS || place.lane != BEL_JOB_LANE_LIVE) break;
        if (!spend(engine, BEL_UNITS_TIMER)) return STOPPED;
        err = bel__job_row_read(cursor.value, &made.row);
        if (err == 0) err = reserve_step(engine);
        if (err) return err;
        if (is_of_plan(work, &made.row)) {
            err = bel__job_begin_end(engine, &made, BEL_JOB_CANCELLED, work->row.reason);
        }
        if (err) return err;
        work->position = place.sequence;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    struct bel_job_found plan = {.key = bel__job_key(work->job), .row = work->row};
    err = bel__recurring_end(engine, &plan);
    return err ? err : reserve_step(engine);
}

/* --- rows of JOB_WORK --- */

/* Writes how far a work is: deletes its row if it is finished. The rows are reserved: by the last
 * step, or here if there was none. */
static int save(struct work *work, bool is_finished)
{
    struct bel_engine *engine = work->engine;
    struct bel_key key = bel__work_key(work->job, work->kind, work->task);
    struct bel_job_found job;
    if (!is_finished) {
        uint8_t bytes[BEL_WORK_ROW_BYTES_MAX];
        struct bel_view value = {.data = bytes,
                                 .bytes = bel__position_write(work->position, bytes)};
        bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
        return 0;
    }
    int err = bel__job_load(engine, work->job, &job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    if (job.row.works == 0) return BEL_ECORRUPT;
    bel__rows_delete(&engine->rows, &key);
    job.row.works--;
    if (work->kind == BEL_WORK_ADOPT) {
        bel__job_begin(engine, &job);
    } else {
        bel__job_settle(engine, &job);
        if (work->kind == BEL_WORK_START) bel__job_started(engine, &job);
    }
    return 0;
}

/* Returns whether a work has lost its sense: the job is being cancelled or removed. */
static bool is_done_with(const struct work *work)
{
    if (work->kind == BEL_WORK_ADOPT || work->kind == BEL_WORK_END_MADE) return false;
    if (work->kind == BEL_WORK_REPORT) return work->row.phase == BEL_JOB_PHASE_REMOVING;
    if (work->kind == BEL_WORK_END) return work->row.phase != BEL_JOB_PHASE_ENDING;
    return work->row.phase != BEL_JOB_PHASE_LIVE;
}

static int walk_on(struct work *work)
{
    switch (work->kind) {
    case BEL_WORK_START:
        return walk_tasks(work);
    case BEL_WORK_END:
        return end_all(work);
    case BEL_WORK_ADOPT:
        return adopt_all(work);
    case BEL_WORK_REPORT:
        return report(work);
    case BEL_WORK_END_MADE:
        return end_made(work);
    default:
        return walk_edges(work);
    }
}

/* Does a part of a work. Returns 0 if the work is finished, STOPPED, WAITING, or an error. */
static int work_on(struct work *work)
{
    struct bel_job_found job;
    if (work->kind == BEL_WORK_REMOVE) return remove_all(work);
    int err = bel__job_load(work->engine, work->job, &job);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    work->row = job.row;
    uint64_t before = work->position;
    if (!is_done_with(work)) err = walk_on(work);
    if (err == 0 && work->position == before) err = reserve_step(work->engine); /* no step was */
    if (err == 0) return save(work, true);
    if (work->position == before) return err;
    int failure = save(work, false);
    return failure ? failure : err;
}

static int read_work(struct bel_engine *engine, const struct bel_store_cursor *cursor,
                     struct work *out)
{
    struct bel_place place = bel__place_of(&cursor->key);
    *out = (struct work){.engine = engine,
                         .job = place.time,
                         .kind = (enum bel_work_kind)place.priority,
                         .task = (uint32_t)place.sequence};
    if (place.priority >= BEL_WORK_KINDS) return BEL_ECORRUPT;
    return bel__position_read(cursor->value, &out->position);
}

/* Works from jobs->from to the end of the table. Sets `*out_any` if there was work. */
static int walk(struct bel_engine *engine, bool *out_any)
{
    struct bel_jobs *jobs = engine->jobs;
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &jobs->from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct work work;
        if (bel__place_of(&cursor.key).table != BEL_TABLE_JOB_WORK) return 0;
        err = read_work(engine, &cursor, &work);
        if (err) return err;
        jobs->from = bel__key_after(&cursor.key);
        if (bel__job_is_submitted(&engine->job_marks, work.job)) continue; /* for a crash */
        err = work_on(&work);
        *out_any |= err != WAITING;
        if (err == WAITING) continue;
        if (err == STOPPED) jobs->from = bel__work_key(work.job + 1, (enum bel_work_kind)0, 0);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

/* Not inline, so that a turn without work does not prepare for any. */
__attribute__((noinline)) static int work_some(struct bel_engine *engine)
{
    struct bel_jobs *jobs = engine->jobs;
    int err = 0;
    while (err == 0 && jobs->left > 0) {
        bool has_any = false;
        bool is_from_start = bel__place_of(&jobs->from).time == 0;
        err = walk(engine, &has_any);
        if (err != 0) break;
        jobs->from = bel__work_key(0, (enum bel_work_kind)0, 0);
        if (is_from_start && !has_any) {
            jobs->has_work = false;
            return 0;
        }
    }
    if (err == BEL_ENOMEM || err == BEL_EFULL) {
        jobs->retry = engine->now.engine + RETRY_MS;
        jobs->left = 0;
        return 0;
    }
    if (err == 0 || err == STOPPED || err == BEL_EBUSY) {
        jobs->left = 0;
        if (!bel__is_held(engine)) engine->is_behind = true; /* else: bel__jobs_next() */
        return 0;
    }
    return err;
}

int bel__work_turn(struct bel_engine *engine)
{
    const struct bel_jobs *jobs = engine->jobs;
    if (!jobs->has_work || jobs->retry > engine->now.engine) return 0;
    return work_some(engine);
}
