/* SPDX-License-Identifier: MIT */

/*
 * The life of a job. When a task has ended, all tasks after it are told: a task whose edge does not
 * hold is skipped, a task that waits for nothing more is due. When all tasks have ended, the job
 * has. They are told after the command, or after all that is due.
 */
#include "inside.h"

#include "jobs/graph.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRIES_MAX = 10,   /* that lower a score */
    REASON_BYTES = 200, /* more than two ids and a state */
};

#define RETENTION_MS UINT64_C(86400000)

struct job *model_job_at(struct model *model, size_t index)
{
    return model->jobs.items[index];
}

void model_job_free(struct job *job)
{
    struct bytes *texts[] = {&job->text,  &job->id,     &job->parent,
                             &job->clash, &job->reason, &job->plan_id};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        model_free(texts[i]);
    }
    model_recurring_free(job);
    bel__job_graph_destroy(job->graph);
    free(job->tasks);
    free(job->is_new);
    free(job);
}

static const struct bel_job_node *node_of(const struct timer *timer)
{
    return &timer->job->graph->tasks[timer->task];
}

struct bel_view model_task_id(const struct timer *timer)
{
    return node_of(timer)->id;
}

double model_task_score(const struct timer *timer)
{
    const struct bel_job_node *node = node_of(timer);
    uint64_t retries = timer->attempts < RETRIES_MAX ? timer->attempts : RETRIES_MAX;
    return 10.0 * timer->job->graph->priority + node->depth - 5.0 * (double)retries +
           0.1 * node->cost;
}

bool model_job_is_held(const struct model *model, const struct job *job)
{
    return job->is_paused || job->is_ending || model->engine_ms < job->paced_until_ms;
}

static void hold_until(const struct model *model, struct job *job, int64_t until_ms)
{
    if (until_ms <= model->engine_ms || until_ms <= job->paced_until_ms) return;
    job->paced_until_ms = until_ms;
}

void model_job_pace(struct model *model, const struct timer *timer)
{
    static const int64_t paces[] = {0, 2000, 10000, 30000, 30000};
    int level = 0;
    for (size_t i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        if (model->pressure[i] > level) level = model->pressure[i];
    }
    hold_until(model, timer->job, model->engine_ms + paces[level]);
}

/* --- the ends of tasks --- */

static bool has_failed(const struct timer *timer)
{
    return timer->state == BEL_DEAD || timer->state == BEL_EXPIRED || timer->state == BEL_CANCELLED;
}

static bool holds(enum bel_edge_policy on, const struct timer *before)
{
    if (on == BEL_EDGE_ALWAYS) return true;
    return on == BEL_EDGE_SUCCESS ? before->state == BEL_DONE : has_failed(before);
}

/* Makes a blocked task due, or to be due. */
static void unblock(struct model *model, struct timer *timer)
{
    const struct bel_job_node *node = node_of(timer);
    struct bel_wall at = {node->at.ms < 0 ? 0 : node->at.ms};
    struct instant due;
    bool is_right = model_find_due(model, node->when, node->delay_ms, at, &due);
    assert(is_right);
    (void)is_right;
    model_due_again(model, timer, due);
}

/* Returns whether all that a task comes after has ended. */
static bool waits_for_nothing(const struct timer *timer)
{
    const struct bel_job_edge *after = bel__job_after(timer->job->graph, (uint32_t)timer->task);
    for (uint32_t i = 0; i < node_of(timer)->after_count; i++) {
        const struct timer *before = timer->job->tasks[after[i].task];
        if (model_is_unfinished(before) || timer->job->is_new[before->task]) return false;
    }
    return true;
}

/* Tells the tasks after one that has ended, in the order of the text. */
static void tell(struct model *model, const struct timer *ended)
{
    const struct job *job = ended->job;
    const struct bel_job_edge *edges = bel__job_dependents(job->graph, (uint32_t)ended->task);
    for (uint32_t i = 0; i < node_of(ended)->dependents_count; i++) {
        struct timer *timer = job->tasks[edges[i].task];
        struct bel_view id = model_task_id(ended);
        char reason[REASON_BYTES];
        if (timer->state != BEL_BLOCKED) continue;
        if (holds(edges[i].on, ended)) {
            if (waits_for_nothing(timer)) unblock(model, timer);
            continue;
        }
        (void)snprintf(reason, sizeof reason, "task %.*s is %s", (int)id.bytes,
                       (const char *)id.data, bel_state_name(ended->state));
        model_finish(model, timer, BEL_SKIPPED, model_text(reason));
    }
}

/* Returns whether a task after a failed one has handled the failure. */
static bool is_handled(const struct timer *failed)
{
    const struct job *job = failed->job;
    const struct bel_job_edge *edges = bel__job_dependents(job->graph, (uint32_t)failed->task);
    for (uint32_t i = 0; i < node_of(failed)->dependents_count; i++) {
        if (edges[i].on == BEL_EDGE_SUCCESS) continue;
        if (job->tasks[edges[i].task]->state == BEL_DONE) return true;
    }
    return false;
}

static bool is_over(const struct job *job)
{
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (model_is_unfinished(job->tasks[i]) || job->is_new[i]) return false;
    }
    return true;
}

static enum bel_job_state end_of(const struct job *job)
{
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (has_failed(job->tasks[i]) && !is_handled(job->tasks[i])) return BEL_JOB_FAILED;
    }
    return BEL_JOB_DONE;
}

static void finish(struct model *model, struct job *job, enum bel_job_state state)
{
    job->state = state;
    job->finished_ms = model->wall_ms;
    job->paced_until_ms = 0;
    if (job->graph->then_count == 0 || state == BEL_JOB_CANCELLED) return;
    job->releases_ms = model->engine_ms;
    job->follows_ms = model->engine_ms + (int64_t)job->graph->cooldown_ms;
}

/* Ends a job that has no unfinished task. */
static void settle(struct model *model, struct job *job)
{
    if (job->state != BEL_JOB_RUNNING || job->is_ending || !is_over(job)) return;
    finish(model, job, end_of(job));
}

static size_t count_leases(const struct job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < job->tasks_count; i++) {
        count += job->tasks[i]->state == BEL_LEASED;
    }
    return count;
}

void model_task_ended(struct model *model, struct timer *timer)
{
    struct job *job = timer->job;
    if (job->is_ending) return;
    if (timer->state == BEL_DONE && count_leases(job) == 0) {
        hold_until(model, job, model->engine_ms + (int64_t)job->graph->pace_ms);
    }
    job->is_new[timer->task] = node_of(timer)->dependents_count > 0;
    settle(model, job);
}

void model_job_end(struct job *job, enum bel_job_state state)
{
    job->is_ending = true;
    job->end = state;
    if (state == BEL_JOB_FAILED) job->reason = model_copy(model_text("timeout"));
}

/* --- what follows --- */

static void cancel_all(struct model *model, struct job *job)
{
    bool is_timeout = job->end == BEL_JOB_FAILED;
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (!model_is_unfinished(job->tasks[i])) continue;
        model_finish(model, job->tasks[i], BEL_CANCELLED,
                     model_text(is_timeout ? "the job has timed out" : "the job was cancelled"));
    }
    finish(model, job, job->end);
}

static void start(struct model *model, struct job *job)
{
    job->is_new_job = false;
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (job->graph->tasks[i].after_count == 0) unblock(model, job->tasks[i]);
    }
}

/* Goes once through a job. Returns whether there was anything to do. */
static bool work(struct model *model, struct job *job)
{
    bool has_any = job->is_new_job;
    if (job->state != BEL_JOB_RUNNING) return false;
    if (job->plan != NULL) return model_recurring_work(model, job);
    if (job->is_ending) {
        cancel_all(model, job);
        return true;
    }
    if (job->is_new_job) start(model, job);
    for (size_t i = 0; i < job->tasks_count; i++) {
        if (!job->is_new[i]) continue;
        has_any = true;
        job->is_new[i] = false;
        tell(model, job->tasks[i]);
    }
    settle(model, job); /* a job without tasks ends at once */
    return has_any;
}

/* Goes through all jobs, again and again. */
void model_jobs_work(struct model *model)
{
    bool has_any = true;
    while (has_any) {
        has_any = false;
        for (size_t i = 0; i < model->jobs.count; i++) {
            if (work(model, model_job_at(model, i))) has_any = true;
        }
    }
}

/* --- results --- */

void model_task_results(struct model *model, const struct timer *timer, struct bel_delivery *out)
{
    const struct bel_job_edge *after = bel__job_after(timer->job->graph, (uint32_t)timer->task);
    size_t left = BEL_JOB_RESULTS_BYTES_MAX;
    out->results_count = node_of(timer)->after_count;
    struct bel_task_result *results =
        model_piece(model, out->results_count * sizeof(struct bel_task_result));
    out->results = results;
    for (size_t i = 0; i < out->results_count; i++) {
        const struct timer *before = timer->job->tasks[after[i].task];
        struct bytes id = model_copy(model_task_id(before));
        results[i].task = model_kept(model, id);
        model_free(&id);
        if (!before->has_result || before->result.count > left) continue;
        left -= before->result.count;
        results[i].has_result = true;
        results[i].result = model_kept(model, before->result);
    }
}

/* --- times --- */

static uint64_t retention_of(const struct model *model)
{
    uint64_t given = model->options.job_retention_ms;
    return given > 0 ? given : RETENTION_MS;
}

/* Returns when a job wants a turn by itself, in engine ms; 0: never. A deadline goes first. */
static int64_t time_of(const struct job *job)
{
    if (job->releases_ms > 0) return job->releases_ms;
    if (job->state != BEL_JOB_RUNNING) return job->follows_ms;
    return job->is_ending ? 0 : job->deadline_ms;
}

/* Returns the first job whose time is over, or NULL. */
static struct job *first_due(struct model *model)
{
    struct job *first = NULL;
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *job = model_job_at(model, i);
        if (time_of(job) == 0 || time_of(job) > model->engine_ms) continue;
        if (first == NULL || time_of(job) < time_of(first)) first = job;
    }
    return first;
}

static bool is_forgotten(const struct model *model, const struct job *job)
{
    if (job->state == BEL_JOB_RUNNING || job->follows_ms > 0) return false;
    int64_t kept = model->wall_ms - job->finished_ms;
    return kept >= 0 && (uint64_t)kept >= retention_of(model);
}

void model_jobs_turn(struct model *model)
{
    for (struct job *job; (job = first_due(model)) != NULL;) {
        if (job->state == BEL_JOB_RUNNING) {
            model_job_end(job, BEL_JOB_FAILED);
        } else if (job->releases_ms > 0) {
            job->releases_ms = 0;
        } else {
            model_job_follow(model, job);
        }
    }
    for (size_t i = model->jobs.count; i-- > 0;) {
        if (is_forgotten(model, model_job_at(model, i))) {
            model_job_remove(model, model_job_at(model, i));
        }
    }
    model_jobs_work(model);
}

int64_t model_jobs_next_in(struct model *model)
{
    int64_t first = -1;
    for (size_t i = 0; i < model->jobs.count; i++) {
        const struct job *job = model_job_at(model, i);
        int64_t times[] = {time_of(job), job->paced_until_ms};
        int64_t rings_in = model_recurring_next_in(model, job);
        if (rings_in >= 0 && (first < 0 || rings_in < first)) first = rings_in;
        for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
            if (times[k] <= model->engine_ms) continue;
            if (first < 0 || times[k] - model->engine_ms < first) {
                first = times[k] - model->engine_ms;
            }
        }
    }
    return first;
}
