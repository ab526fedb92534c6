/* SPDX-License-Identifier: MIT */

/*
 * The end of a task changes rows of its job in the same batch:
 *
 *     TASKS     the key of its timer, which has its state
 *     JOBS      the number of tasks by state, and of failures that nobody has handled
 *     JOB_WORK  that its dependents are to be told, if it has any
 *
 * Its dependents are told later in the same turn, or in the next turns if there are many: work.c.
 */
#include "engine/jobs/task.h"

#include "core/units.h"
#include "engine/state/state.h"
#include "jobs/graph.h"

#include <assert.h>

int bel__task_load(struct bel_engine *engine, uint64_t job, uint32_t task, struct bel_task_row *out)
{
    struct bel_key key = bel__task_key(job, task);
    struct bel_view bytes;
    int err = bel__store_get(engine->store, &key, &bytes);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return bel__task_row_read(bytes, out);
}

void bel__task_put(struct bel_engine *engine, uint64_t job, uint32_t task,
                   const struct bel_task_row *row)
{
    uint8_t bytes[BEL_TASK_ROW_BYTES_MAX];
    struct bel_key key = bel__task_key(job, task);
    struct bel_view value = {.data = bytes, .bytes = bel__task_row_write(row, bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
}

int bel__edges_get(struct bel_engine *engine, const struct bel_edge_list *list, uint64_t from,
                   struct bel_edge out[BEL_EDGES_OF_ROW], size_t *out_count)
{
    uint32_t chunk = (uint32_t)(from / BEL_EDGES_OF_ROW);
    size_t skipped = from % BEL_EDGES_OF_ROW;
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    struct bel_view bytes;
    assert(from < list->count);
    struct bel_key key = bel__edges_key(list->job, list->kind, list->task, chunk);
    size_t count = bel__edges_in_row(list->count, chunk);
    int err = bel__store_get(engine->store, &key, &bytes);
    if (err == 0) err = bel__edges_read(bytes, count, edges);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    for (size_t i = skipped; i < count; i++) {
        out[i - skipped] = edges[i];
    }
    *out_count = count - skipped;
    return 0;
}

void bel__edges_put(struct bel_engine *engine, const struct bel_edge_list *list,
                    const struct bel_job_edge *edges)
{
    for (uint32_t chunk = 0; chunk < bel__edges_rows(list->count); chunk++) {
        struct bel_edge items[BEL_EDGES_OF_ROW];
        uint8_t bytes[BEL_EDGES_ROW_BYTES_MAX];
        size_t count = bel__edges_in_row(list->count, chunk);
        for (size_t i = 0; i < count; i++) {
            const struct bel_job_edge *edge = &edges[(size_t)chunk * BEL_EDGES_OF_ROW + i];
            items[i] = (struct bel_edge){edge->task, edge->on};
        }
        struct bel_key key = bel__edges_key(list->job, list->kind, list->task, chunk);
        struct bel_view value = {bytes, bel__edges_write(items, count, bytes)};
        bel__rows_put(&engine->rows, &key, value, BEL_ROW_NEW);
    }
}

bool bel__task_has_failed(enum bel_state state)
{
    return state == BEL_DEAD || state == BEL_EXPIRED || state == BEL_CANCELLED;
}

bool bel__edge_holds(enum bel_edge_policy on, enum bel_state state)
{
    assert(state >= BEL_DONE);
    switch (on) {
    case BEL_EDGE_SUCCESS:
        return state == BEL_DONE;
    case BEL_EDGE_FAILURE:
        return bel__task_has_failed(state);
    case BEL_EDGE_ALWAYS:
    default:
        return true;
    }
}

/* --- changes of the timer --- */

/* Loads the timer of an unfinished task. */
static int load_timer(struct bel_engine *engine, const struct bel_task_row *row,
                      struct bel_found *out)
{
    int err = bel__timer_load(engine, &row->key, out);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return out->record.job.number != 0 && out->state < BEL_DONE ? 0 : BEL_ECORRUPT;
}

int bel__task_unblock(struct bel_engine *engine, const struct bel_task_row *row)
{
    struct bel_place place = {.topic = bel__place_of(&row->key).topic};
    struct bel_found found;
    int err = load_timer(engine, row, &found);
    if (err) return err;
    assert(found.state == BEL_BLOCKED && row->open == 0);
    struct bel_wall at = {(int64_t)row->time};
    err = bel__times_when(&engine->now, row->when, at, row->time, &place);
    if (err) return BEL_ECORRUPT; /* was checked */
    err = bel__timer_hold(engine, found.topic, &place, bel__record_share(&found.record));
    if (err == 0) err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
    if (err) return err;
    uint8_t priority = bel__place_of(&row->key).priority;
    place = bel__timer_place(engine, found.topic, place.lane, place.time, priority);
    bel__timer_move(engine, &found, &place);
    return 0;
}

int bel__task_finish(struct bel_engine *engine, const struct bel_task_row *row,
                     enum bel_state state, struct bel_view reason)
{
    struct bel_found found;
    int err = load_timer(engine, row, &found);
    if (err == 0) err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = state, .reason = reason};
    bel__timer_end(engine, &found, &ending);
    return 0;
}

/* --- what follows from it --- */

/* Notes how long a leased task waited to be claimed, and how long it has been running. A lease from
 * before the engine was opened does not know. */
static void note_times(const struct bel_engine *engine, const struct bel_lease *lease,
                       struct bel_task_end *out)
{
    uint64_t wall = (uint64_t)engine->now.wall, open = engine->now.open;
    out->has_run = lease != NULL && !lease->is_old;
    if (!out->has_run) return;
    out->ran_ms = open > lease->start ? open - lease->start : 0;
    out->waited_ms = wall > lease->due + out->ran_ms ? wall - lease->due - out->ran_ms : 0;
}

/* Counts what workers did with a task that has ended. */
static void count_work(const struct bel_engine *engine, const struct bel_found *found,
                       const struct bel_task_end *task, struct bel_job_row *row)
{
    row->failures += found->record.attempts;
    row->crashes += found->record.crashes;
    if (found->state != BEL_DONE) return;
    struct bel_rate rate = {row->minute, (uint32_t)row->dones, (uint32_t)row->dones_before};
    bel__rate_note(&rate, engine->now.engine / MS_PER_MINUTE);
    row->minute = rate.minute;
    row->dones = rate.current;
    row->dones_before = rate.before;
    if (!task->has_run) return;
    bel__spans_note(&row->waited, task->waited_ms);
    bel__spans_note(&row->ran, task->ran_ms);
}

int bel__task_look(struct bel_engine *engine, struct bel_found *found)
{
    const struct bel_task_of *job = &found->record.job;
    struct bel_task_end *task = bel__answer_take(engine, sizeof *task);
    if (task == NULL) return BEL_ENOMEM;
    int err = bel__job_load(engine, job->number, &task->job);
    if (err == 0) err = bel__task_load(engine, job->number, job->index, &task->row);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    if (bel__key_compare(&task->row.key, &found->key) != 0) return BEL_ECORRUPT;
    note_times(engine, found->lease, task);
    if (task->job.row.pace_ms > 0) {
        err = bel__job_keep_mark(&engine->job_marks, job->number);
        if (err) return err;
    }
    found->task = task;
    return 0;
}

void bel__task_moved(struct bel_engine *engine, struct bel_found *found, const struct bel_key *from)
{
    const struct bel_task_of *of = &found->record.job;
    struct bel_task_end *task = found->task;
    assert(task != NULL && bel__place_of(&found->key).lane < BEL_LANES_TIMED);
    found->task = NULL;
    task->row.key = found->key;
    bel__task_put(engine, of->number, of->index, &task->row);
    if (bel__place_of(from).lane < BEL_LANES_TIMED) return;
    assert(task->job.row.counts[BEL_BLOCKED] > 0);
    task->job.row.counts[BEL_BLOCKED]--;
    task->job.row.counts[BEL_SCHEDULED]++;
    bel__job_put(engine, &task->job);
}

/* Adds the work that follows from the end of a task. If the job is being cancelled, its other tasks
 * are cancelled whatever their edges demand. */
static void add_work(struct bel_engine *engine, struct bel_task_end *task, uint32_t index,
                     enum bel_state state)
{
    struct bel_job_found *job = &task->job;
    if (job->row.phase != BEL_JOB_PHASE_LIVE) return;
    if (task->row.dependents_count > 0) {
        bel__job_add_work(engine, job, BEL_WORK_DEPENDENTS, index, 0);
    }
    if (state == BEL_DONE && task->row.handles && job->row.unhandled > 0) {
        bel__job_add_work(engine, job, BEL_WORK_HANDLED, index, 0);
    }
}

void bel__task_ended(struct bel_engine *engine, struct bel_found *found)
{
    const struct bel_task_of *of = &found->record.job;
    struct bel_task_end *task = found->task;
    struct bel_job_row *row = &task->job.row;
    assert(task != NULL);
    found->task = NULL;
    if (row->phase == BEL_JOB_PHASE_REMOVING) return;
    assert(found->state >= BEL_DONE && row->phase != BEL_JOB_PHASE_SUBMITTING);
    enum bel_state before = bel__task_row_state(&task->row);
    assert(before < BEL_DONE && row->counts[before] > 0);
    row->counts[before]--;
    row->counts[found->state]++;
    row->unhandled += bel__task_has_failed(found->state);
    row->result_bytes += found->record.result.bytes;
    count_work(engine, found, task, row);
    task->row.key = found->key;
    bel__task_put(engine, of->number, of->index, &task->row);
    add_work(engine, task, of->index, found->state);
    bool is_last = bel__job_leases(&engine->job_marks, of->number) == 0;
    if (row->pace_ms > 0 && found->state == BEL_DONE && is_last) {
        bel__job_pace(engine, &task->job, engine->now.engine_up + row->pace_ms);
    }
    bel__job_settle(engine, &task->job);
}
