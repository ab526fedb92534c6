/* SPDX-License-Identifier: MIT */

/*
 * JOB GET, LIST, CANCEL, PAUSE and RESUME. LIST has unfinished jobs in the order of submission,
 * then ended ones in the order in which they ended. A cursor is the number of what was passed.
 */
#include "inside.h"

#include "jobs/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_COUNT_DEFAULT = 100,
    CURSOR_BYTES = 24,
};

static struct bel_view print_number(struct model *model, uint64_t number)
{
    char *text = model_piece(model, CURSOR_BYTES);
    (void)snprintf(text, CURSOR_BYTES, "%" PRIu64, number);
    return model_text(text);
}

static bool read_number(struct bel_view text, uint64_t max, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        char digit = ((const char *)text.data)[i];
        if (digit < '0' || digit > '9' || *out > max) return false;
        *out = *out * 10 + (uint64_t)(digit - '0');
    }
    return *out <= max;
}

static struct bel_view keep(struct model *model, struct bel_view view)
{
    if (view.bytes == 0) return (struct bel_view){0};
    void *piece = model_piece(model, view.bytes);
    memcpy(piece, view.data, view.bytes);
    return (struct bel_view){piece, view.bytes};
}

static enum bel_job_state state_of(const struct job *job)
{
    if (job->state != BEL_JOB_RUNNING) return job->state;
    if (job->is_paused) return BEL_JOB_PAUSED;
    return job->plan != NULL ? BEL_JOB_SCHEDULED : BEL_JOB_RUNNING;
}

static struct bel_job show(struct model *model, const struct job *job)
{
    struct bel_job out = {.id = model_kept(model, job->id),
                          .state = state_of(job),
                          .reason = model_kept(model, job->reason),
                          .priority = job->graph->priority,
                          .created = {job->created_ms},
                          .has_finished = job->state != BEL_JOB_RUNNING,
                          .finished = {job->finished_ms},
                          .has_deadline = job->deadline_ms > 0,
                          .parent = model_kept(model, job->parent),
                          .clash = model_kept(model, job->clash),
                          .tasks_total = job->tasks_count,
                          .edges_total = job->graph->edges_count};
    for (size_t i = 0; i < job->tasks_count; i++) {
        out.counts[job->tasks[i]->state]++;
    }
    struct instant deadline = {ENGINE, job->deadline_ms};
    if (out.has_deadline) out.deadline.ms = model_in_wall_ms(model, deadline);
    model_recurring_show(model, job, &out);
    return out;
}

static struct bel_job_task show_task(struct model *model, const struct timer *timer)
{
    const struct bel_job_node *node = &timer->job->graph->tasks[timer->task];
    const struct bel_job_edge *edges = bel__job_after(timer->job->graph, (uint32_t)timer->task);
    struct bel_job_after *after = model_piece(model, node->after_count * sizeof *after);
    struct bel_job_task out = {.id = keep(model, node->id),
                               .topic = keep(model, node->topic),
                               .state = timer->state,
                               .has_due = model_has_due(timer),
                               .has_finished = !model_is_unfinished(timer),
                               .attempts = timer->attempts,
                               .crashes = timer->crashes,
                               .depth = node->depth,
                               .finished = timer->finished,
                               .reason = model_kept(model, timer->reason),
                               .after = after,
                               .after_count = node->after_count};
    if (out.has_due) out.due.ms = model_due_ms(model, timer);
    for (uint32_t i = 0; i < node->after_count; i++) {
        after[i].task = keep(model, timer->job->graph->tasks[edges[i].task].id);
        after[i].on = edges[i].on;
    }
    return out;
}

int model_job_get(struct model *model, const struct bel_job_get *command, struct bel_reply *reply)
{
    uint64_t first;
    size_t count = command->count > 0 ? command->count : BEL_JOB_GET_COUNT_MAX;
    if (count > BEL_JOB_GET_COUNT_MAX) return model_refuse(reply, BEL_EINVAL, "count");
    const struct job *job = model_job_find(model, command->id, &command->scope);
    if (job == NULL) return model_refuse(reply, BEL_ENOTFOUND, "no such job");
    if (!read_number(command->cursor, job->tasks_count, &first)) {
        return model_refuse(reply, BEL_EINVAL, "cursor");
    }
    struct bel_job *out = model_piece(model, sizeof *out);
    *out = show(model, job);
    size_t left = job->tasks_count - first;
    out->tasks_count = left < count ? left : count;
    struct bel_job_task *tasks = model_piece(model, out->tasks_count * sizeof *tasks);
    for (size_t i = 0; i < out->tasks_count; i++) {
        tasks[i] = show_task(model, job->tasks[first + i]);
    }
    out->tasks = tasks;
    if (out->tasks_count < left) out->cursor = print_number(model, first + out->tasks_count);
    reply->job = out;
    return 0;
}

static bool comes_before(const struct job *a, const struct job *b)
{
    bool has_ended = a->state != BEL_JOB_RUNNING, has_other = b->state != BEL_JOB_RUNNING;
    if (has_ended != has_other) return has_other;
    if (has_ended && a->finished_ms != b->finished_ms) return a->finished_ms < b->finished_ms;
    return a->number < b->number;
}

/* Sets `*out` to all jobs in the order of LIST. */
static void sort(struct model *model, struct job ***out)
{
    struct job **sorted = model_piece(model, model->jobs.count * sizeof(struct job *));
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *job = model_job_at(model, i);
        size_t at = i;
        for (; at > 0 && comes_before(job, sorted[at - 1]); at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = job;
    }
    *out = sorted;
}

int model_job_list(struct model *model, const struct bel_job_list *command, struct bel_reply *reply)
{
    struct job **sorted;
    uint64_t first;
    size_t most = command->count > 0 ? command->count : LIST_COUNT_DEFAULT;
    if (command->count > BEL_LIST_COUNT_MAX) return model_refuse(reply, BEL_EINVAL, "count");
    if (command->has_state && command->state >= BEL_JOB_STATES) {
        return model_refuse(reply, BEL_EINVAL, "state");
    }
    if (!read_number(command->cursor, model->jobs.count, &first)) {
        return model_refuse(reply, BEL_EINVAL, "cursor");
    }
    sort(model, &sorted);
    struct bel_job *items = model_piece(model, most * sizeof *items);
    reply->jobs.items = items;
    for (size_t i = first; i < model->jobs.count; i++) {
        bool is_seen = model_job_find(model, model_view(sorted[i]->id), &command->scope) != NULL;
        if (reply->jobs.count == most) {
            reply->jobs.cursor = print_number(model, i);
            break;
        }
        if (!is_seen || (command->has_state && state_of(sorted[i]) != command->state)) continue;
        items[reply->jobs.count++] = show(model, sorted[i]);
    }
    return 0;
}

/* Finds the job of a command. On an error, sets the text of the reply. */
static int find(struct model *model, const struct bel_job_target *command, struct bel_reply *reply,
                struct job **out)
{
    *out = model_job_find(model, command->id, &command->scope);
    return *out != NULL ? 0 : model_refuse(reply, BEL_ENOTFOUND, "no such job");
}

int model_job_cancel(struct model *model, const struct bel_job_target *command,
                     struct bel_reply *reply)
{
    struct job *job;
    int err = find(model, command, reply, &job);
    if (err != 0 || job->state != BEL_JOB_RUNNING) return err;
    model_job_end(job, BEL_JOB_CANCELLED);
    reply->count = 1;
    return 0;
}

int model_job_pause(struct model *model, const struct bel_job_target *command,
                    struct bel_reply *reply)
{
    struct job *job;
    int err = find(model, command, reply, &job);
    if (err != 0 || job->state != BEL_JOB_RUNNING || job->is_paused) return err;
    job->is_paused = true;
    reply->count = 1;
    return 0;
}

int model_job_resume(struct model *model, const struct bel_job_target *command,
                     struct bel_reply *reply)
{
    struct job *job;
    int err = find(model, command, reply, &job);
    if (err != 0 || job->state != BEL_JOB_RUNNING || !job->is_paused) return err;
    job->is_paused = false;
    reply->count = 1;
    return 0;
}
