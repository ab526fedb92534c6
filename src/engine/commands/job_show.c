/* SPDX-License-Identifier: MIT */

/*
 * JOB GET and JOB LIST. A cursor of GET is the index of the next task, a cursor of LIST the key of
 * the next job: 26 digits, like a made id.
 *
 * The row of a job counts scheduled, ready and leased tasks together. Both commands tell them apart
 * by a walk over the rows of its tasks, which have the keys of their timers. A page of LIST ends
 * before the job whose walk would exceed TASKS_MAX.
 */
#include "core/parse.h"
#include "engine/commands/commands.h"
#include "engine/jobs/job_topics.h"
#include "engine/jobs/recurring_rows.h"
#include "engine/jobs/task.h"
#include "engine/state/state.h"

#include <assert.h>

enum {
    LIST_COUNT_DEFAULT = 100,
    ROWS_MAX = 2000,   /* jobs that LIST looks at in one call */
    TASKS_MAX = 10000, /* tasks that LIST looks at in one call, unless its first job has more */
    EDGES_MAX = 2000,  /* edges in a reply of GET; then it has no more tasks */
};

/* Replaces a view by a copy in the memory of the answer. */
static int keep(struct bel_engine *engine, struct bel_view *view)
{
    if (view->bytes == 0) {
        *view = (struct bel_view){0};
        return 0;
    }
    *view = bel__answer_copy(engine, *view);
    return view->data == NULL ? BEL_ENOMEM : 0;
}

/* --- a job --- */

/* Sets how long the job will take if its other tasks take as long as those that have ended. Without
 * a leased task nobody knows when the next one starts, and pauses of a pace are no work: then there
 * is no estimate. */
static void estimate(const struct bel_engine *engine, const struct bel_job_found *job,
                     struct bel_job *out)
{
    uint64_t left = bel__job_unfinished(job), ended = job->row.tasks - left;
    uint64_t now = (uint64_t)engine->now.wall;
    bool is_worked_on = bel__job_leases(&engine->job_marks, job->row.number) > 0;
    if (job->row.phase != BEL_JOB_PHASE_LIVE || ended == 0 || now < job->row.created) return;
    if (!is_worked_on || job->row.pace_ms > 0) return;
    out->estimate_ms = (uint64_t)((double)(now - job->row.created) / (double)ended * (double)left);
    out->has_estimate = out->estimate_ms > 0; /* else: too early to tell */
}

/* Fills in what workers did with the tasks of a job. */
static void describe_work(const struct bel_engine *engine, const struct bel_job_row *row,
                          struct bel_job *out)
{
    struct bel_rate rate = {row->minute, (uint32_t)row->dones, (uint32_t)row->dones_before};
    out->failures = row->failures;
    out->crashes = row->crashes;
    out->completions_per_minute = bel__rate_of(&rate, engine->now.engine);
    out->waited_ms_p50 = bel__spans_quantile(&row->waited, 500);
    out->waited_ms_p99 = bel__spans_quantile(&row->waited, 990);
    out->ran_ms_p50 = bel__spans_quantile(&row->ran, 500);
    out->ran_ms_p99 = bel__spans_quantile(&row->ran, 990);
    out->waited = row->waited;
    out->ran = row->ran;
}

/* Fills in the rule of a recurring job, and how far it is. */
static int describe_plan(struct bel_engine *engine, const struct bel_job_found *job,
                         struct bel_job *out)
{
    struct bel_found plan;
    int err = bel__recurring_plan(engine, job, &plan);
    if (err == BEL_ENOTFOUND) return 0; /* does not recur */
    if (err) return err;
    out->plan = plan.record.rule;
    out->has_next = plan.plan.has_next;
    if (out->has_next) out->next.ms = (int64_t)plan.plan.next;
    out->made = plan.plan.made;
    out->skipped = plan.plan.skipped;
    out->missed = plan.plan.missed;
    return 0;
}

static int describe(struct bel_engine *engine, const struct bel_job_found *job, struct bel_job *out)
{
    const struct bel_job_row *row = &job->row;
    *out = (struct bel_job){.id = row->id,
                            .state = bel__job_state(job),
                            .reason = row->reason,
                            .priority = (uint8_t)row->priority,
                            .created = {(int64_t)row->created},
                            .has_finished = row->phase == BEL_JOB_PHASE_ENDED,
                            .has_deadline = row->deadline > 0,
                            .parent = row->parent_id,
                            .clash = row->clash,
                            .tasks_total = row->tasks,
                            .edges_total = row->edges};
    for (int i = 0; i < BEL_STATES; i++) {
        out->counts[i] = row->counts[i];
    }
    if (out->has_finished) out->finished.ms = (int64_t)bel__place_of(&job->key).time;
    if (out->has_deadline) {
        out->deadline.ms = (int64_t)bel__lane_wall(&engine->now, BEL_LANE_ENGINE, row->deadline);
    }
    estimate(engine, job, out);
    describe_work(engine, row, out);
    out->plan_id = row->plan_id;
    if (row->plan != 0) out->nominal.ms = (int64_t)row->nominal;
    int err = describe_plan(engine, job, out);
    if (err) return err;
    struct bel_view *views[] = {&out->id,      &out->reason,    &out->parent,   &out->clash,
                                &out->plan_id, &out->plan.rule, &out->plan.zone};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        err = keep(engine, views[i]);
        if (err) return err;
    }
    return 0;
}

/* --- its tasks --- */

/* Returns the state of an unfinished task that is not blocked. */
static enum bel_state state_of(const struct bel_engine *engine, const struct bel_key *key)
{
    struct bel_place place = bel__place_of(key);
    if (bel__lease_find(engine, key) != NULL) return BEL_LEASED;
    return place.time <= bel__lane_now(&engine->now, place.lane) ? BEL_READY : BEL_SCHEDULED;
}

/* Tells scheduled, ready and leased tasks apart. */
static int count_states(struct bel_engine *engine, const struct bel_job_found *job,
                        struct bel_job *out)
{
    struct bel_key from = bel__task_key(job->row.number, 0);
    uint64_t left = out->counts[BEL_SCHEDULED];
    struct bel_store_cursor cursor;
    if (left == 0) return 0;
    out->counts[BEL_SCHEDULED] = 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0 && left > 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_task_row row;
        if (place.table != BEL_TABLE_TASKS || place.time != job->row.number) break;
        err = bel__task_row_read(cursor.value, &row);
        if (err) return err;
        if (bel__task_row_state(&row) != BEL_SCHEDULED) continue;
        out->counts[state_of(engine, &row.key)]++;
        left--;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    return left == 0 ? 0 : BEL_ECORRUPT;
}

/* Returns the id of a task in memory of the answer. */
static int task_id(struct bel_engine *engine, uint64_t job, uint32_t task, struct bel_view *out)
{
    struct bel_task_row row;
    struct bel_found found;
    int err = bel__task_load(engine, job, task, &row);
    if (err == 0) err = bel__timer_load(engine, &row.key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    *out = bel__task_id(&found.record);
    return keep(engine, out);
}

static int describe_after(struct bel_engine *engine, const struct bel_edge_list *list,
                          struct bel_job_task *out)
{
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    if (list->count == 0) return 0;
    struct bel_job_after *after = bel__answer_take(engine, list->count * sizeof *after);
    if (after == NULL) return BEL_ENOMEM;
    for (uint64_t at = 0; at < list->count;) {
        size_t count;
        int err = bel__edges_get(engine, list, at, edges, &count);
        if (err) return err;
        for (size_t i = 0; i < count; i++, at++) {
            after[at].on = edges[i].on;
            err = task_id(engine, list->job, edges[i].task, &after[at].task);
            if (err) return err;
        }
    }
    out->after = after;
    out->after_count = list->count;
    return 0;
}

static int describe_task(struct bel_engine *engine, uint64_t job, uint32_t task,
                         const struct bel_task_row *row, struct bel_job_task *out)
{
    struct bel_edge_list after = {job, BEL_EDGES_AFTER, task, row->after_count};
    struct bel_found found;
    int err = bel__timer_load(engine, &row->key, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    *out = (struct bel_job_task){.id = bel__task_id(&found.record),
                                 .topic = bel__topic_name(found.topic),
                                 .state = found.state,
                                 .attempts = found.record.attempts,
                                 .crashes = found.record.crashes,
                                 .depth = row->depth,
                                 .due = {bel__timer_due(engine, &found)},
                                 .has_finished = found.state >= BEL_DONE,
                                 .reason = found.record.reason};
    out->has_due = out->due.ms > 0 && found.state != BEL_BLOCKED;
    if (!out->has_due) out->due.ms = 0;
    if (out->has_finished) out->finished.ms = (int64_t)bel__place_of(&found.key).time;
    err = keep(engine, &out->id);
    if (err == 0) err = keep(engine, &out->reason);
    return err ? err : describe_after(engine, &after, out);
}

static int write_number(struct bel_engine *engine, uint64_t number, struct bel_view *out)
{
    char digits[BEL_PRINT_BYTES_MAX];
    *out = (struct bel_view){digits, bel__print_u64(digits, number)};
    return keep(engine, out);
}

/* Describes tasks from `first` on, up to `count` of them. */
static int describe_tasks(struct bel_engine *engine, const struct bel_job_found *job,
                          uint64_t first, uint64_t count, struct bel_job *out)
{
    uint64_t left = job->row.tasks - first, edges = 0, at = 0;
    if (count > left) count = left;
    if (count == 0) return 0;
    struct bel_job_task *tasks = bel__answer_take(engine, count * sizeof *tasks);
    if (tasks == NULL) return BEL_ENOMEM;
    for (; at < count && (at == 0 || edges < EDGES_MAX); at++) {
        struct bel_task_row row;
        uint32_t task = (uint32_t)(first + at);
        int err = bel__task_load(engine, job->row.number, task, &row);
        if (err == 0) err = describe_task(engine, job->row.number, task, &row, &tasks[at]);
        if (err) return err;
        edges += row.after_count;
    }
    out->tasks = tasks;
    out->tasks_count = at;
    return at == left ? 0 : write_number(engine, first + at, &out->cursor);
}

/* --- the commands --- */

int bel__do_job_get(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_job_get *query = &request->command.job_get;
    struct bel_reply *reply = &request->own.reply;
    struct bel_job_found job;
    uint64_t first = 0, count = query->count == 0 ? BEL_JOB_GET_COUNT_MAX : query->count;
    if (count > BEL_JOB_GET_COUNT_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "the count is at most %d", BEL_JOB_GET_COUNT_MAX);
    }
    int err = bel__job_find(engine, query->id, &query->scope, &job);
    if (err == BEL_ENOTFOUND) return bel__job_refuse_unknown(reply, query->id);
    if (err) return err;
    if (query->cursor.bytes > 0 &&
        bel__parse_u64(query->cursor.data, query->cursor.bytes, 0, job.row.tasks, &first) != 0) {
        return bel__refuse(reply, BEL_EINVAL, "invalid cursor");
    }
    struct bel_job *out = bel__answer_take(engine, sizeof *out);
    if (out == NULL) return BEL_ENOMEM;
    err = describe(engine, &job, out);
    if (err == 0) err = count_states(engine, &job, out);
    if (err == 0) err = describe_tasks(engine, &job, first, count, out);
    if (err) return err;
    reply->job = out;
    return 0;
}

static int write_place(struct bel_engine *engine, const struct bel_key *key, struct bel_view *out)
{
    struct bel_place place = bel__place_of(key);
    char *text = bel__answer_take(engine, BEL_MADE_ID_BYTES);
    if (text == NULL) return BEL_ENOMEM;
    bel__made_id(&place, text);
    *out = (struct bel_view){text, BEL_MADE_ID_BYTES};
    return 0;
}

static int is_wanted(struct bel_engine *engine, const struct bel_job_list *query,
                     const struct bel_job_found *job, bool *out)
{
    *out = false;
    if (bel__job_is_hidden(&engine->job_marks, job->row.number)) return 0;
    if (query->has_state && bel__job_state(job) != query->state) return 0;
    return bel__job_is_in_scope(engine, job, &query->scope, out);
}

/* Lists jobs from `from` on: unfinished ones in the order of submission, then ended ones in the
 * order in which they ended. */
static int list(struct bel_engine *engine, const struct bel_job_list *query, struct bel_key from,
                struct bel_reply *reply)
{
    size_t count = 0, max = query->count == 0 ? LIST_COUNT_DEFAULT : query->count;
    uint64_t tasks = 0;
    struct bel_store_cursor cursor;
    struct bel_job *jobs = bel__answer_take(engine, max * sizeof *jobs);
    if (jobs == NULL) return BEL_ENOMEM;
    reply->jobs.items = jobs;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (int rows = 0; err == 0; err = bel__store_next(engine->store, &cursor), rows++) {
        struct bel_job_found job = {.key = cursor.key};
        bool wanted = false;
        if (bel__place_of(&cursor.key).table != BEL_TABLE_JOBS) break;
        if (count == max || rows == ROWS_MAX) {
            reply->jobs.count = count;
            return write_place(engine, &cursor.key, &reply->jobs.cursor);
        }
        err = bel__job_row_read(cursor.value, &job.row);
        if (err == 0) err = is_wanted(engine, query, &job, &wanted);
        if (err) return err;
        if (!wanted) continue;
        if (job.row.counts[BEL_SCHEDULED] > 0) tasks += job.row.tasks;
        if (count > 0 && tasks > TASKS_MAX) {
            reply->jobs.count = count;
            return write_place(engine, &cursor.key, &reply->jobs.cursor);
        }
        err = describe(engine, &job, &jobs[count]);
        if (err == 0) err = count_states(engine, &job, &jobs[count]);
        if (err) return err;
        count++;
    }
    reply->jobs.count = count;
    return err == BEL_ENOTFOUND ? 0 : err;
}

int bel__do_job_list(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_job_list *query = &request->command.job_list;
    struct bel_reply *reply = &request->own.reply;
    struct bel_place place = {0};
    if (query->count > BEL_LIST_COUNT_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "the count is at most %d", BEL_LIST_COUNT_MAX);
    }
    if (query->has_state && query->state >= BEL_JOB_STATES) {
        return bel__refuse(reply, BEL_EINVAL, "unknown state");
    }
    if (query->cursor.bytes > 0 && !bel__made_id_place(query->cursor, 0, &place)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid cursor");
    }
    place.table = BEL_TABLE_JOBS;
    return list(engine, query, bel__key_of(&place), reply);
}
