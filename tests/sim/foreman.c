/* SPDX-License-Identifier: MIT */

/*
 * What clients can know about jobs without a model. The text of a job is certain if its submission
 * was answered and no other one is under way. Then, whatever breaks:
 *
 *     a task is delivered after an ACK of each task that it needs to be done,
 *     and never after one of a task that it needs to fail;
 *     no task is delivered after CANCEL was answered, nor between PAUSE and RESUME;
 *     a result that was acknowledged is part of the deliveries that need the task.
 *
 * An ACK counts until the task is delivered again.
 */
#include "world.h"

#include "draw.h"
#include "jobs/parser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_BYTES = 8,
};

/* What is known of a task, since it was delivered last. */
struct seen_task {
    bool is_acked; /* an ACK was asked for */
    bool is_done;  /* and answered */
    bool has_result;
};

struct seen_job {
    char id[ID_BYTES];
    struct bel_job_graph *graph; /* NULL: nothing is certain */
    char *text;
    unsigned pending; /* submissions without an answer */
    uint64_t asked;   /* number of the first order that was asked after the answer */
    bool is_cancelled, is_paused;
    struct seen_task tasks[DRAW_TASKS_MAX + 1];
};

struct foreman {
    struct world *world;
    struct seen_job jobs[DRAW_JOBS];
};

struct foreman *foreman_create(struct world *world)
{
    struct foreman *foreman = calloc(1, sizeof *foreman);
    if (foreman == NULL) abort();
    foreman->world = world;
    for (int i = 0; i < DRAW_JOBS; i++) {
        (void)snprintf(foreman->jobs[i].id, ID_BYTES, "x%d", i);
    }
    return foreman;
}

static void forget(struct seen_job *job)
{
    bel__job_graph_destroy(job->graph);
    free(job->text);
    job->graph = NULL;
    job->text = NULL;
    job->is_cancelled = job->is_paused = false;
    memset(job->tasks, 0, sizeof job->tasks);
}

void foreman_destroy(struct foreman *foreman)
{
    for (int i = 0; i < DRAW_JOBS; i++) {
        forget(&foreman->jobs[i]);
    }
    free(foreman);
}

void foreman_cut(struct foreman *foreman)
{
    for (int i = 0; i < DRAW_JOBS; i++) {
        forget(&foreman->jobs[i]);
    }
}

/* The job with an id, or that a text begins with; NULL if there is none. */
static struct seen_job *find(struct foreman *foreman, struct bel_view id)
{
    for (int i = 0; i < DRAW_JOBS; i++) {
        if (heard_same(id, view_of(foreman->jobs[i].id))) return &foreman->jobs[i];
    }
    return NULL;
}

static struct seen_job *job_of_text(struct foreman *foreman, const struct order *order)
{
    const char *text = order->requests[ENGINE_SIDE].command.job_submit.text.data;
    return find(foreman, (struct bel_view){text + strlen("{\"id\":\""), 2});
}

/* The job of the timer "x0/3" of a topic, and the index of its task; NULL if it is not certain. */
static struct seen_job *job_of_timer(struct foreman *foreman, struct bel_view topic,
                                     struct bel_view id, uint32_t *out)
{
    const char *slash = id.bytes > 0 ? memchr(id.data, '/', id.bytes) : NULL;
    if (slash == NULL) return NULL;
    struct bel_view head = {id.data, (size_t)(slash - (const char *)id.data)};
    struct bel_view task = {slash + 1, id.bytes - head.bytes - 1};
    struct seen_job *job = find(foreman, head);
    for (uint32_t i = 0; job != NULL && job->graph != NULL && i < job->graph->tasks_count; i++) {
        if (!heard_same(job->graph->tasks[i].id, task)) continue;
        if (!heard_same(job->graph->tasks[i].topic, topic)) continue; /* or a timer's id */
        *out = i;
        return job;
    }
    return NULL;
}

static void learn(struct seen_job *job, struct bel_view text)
{
    struct bel_job_parser *parser;
    int err;
    forget(job);
    job->text = malloc(text.bytes);
    if (job->text == NULL) abort();
    memcpy(job->text, text.data, text.bytes);
    struct bel_job_parser_options options = {.text = {job->text, text.bytes}};
    if (bel__job_parser_create(&options, &parser) != 0) abort();
    do {
        err = bel__job_parser_step(parser, BEL_JOB_PARSER_WORK);
    } while (err == BEL_JOB_PARSER_MORE);
    if (err == 0) job->graph = bel__job_parser_take(parser);
    bel__job_parser_destroy(parser);
}

/* --- what is asked and answered --- */

static void note_acks(struct foreman *foreman, const struct order *order, bool is_done)
{
    const struct bel_ack *ack = &order->requests[ENGINE_SIDE].command.ack;
    for (size_t i = 0; i < ack->tokens_count; i++) {
        uint32_t task;
        if (order->handed[i] == SIZE_MAX) continue;
        const struct handed *handed = foreman->world->handed[order->handed[i]];
        struct seen_job *job =
            job_of_timer(foreman, view_of(handed->topic), view_of(handed->id), &task);
        if (job == NULL) continue;
        job->tasks[task].is_acked = true;
        if (is_done) job->tasks[task].is_done = true;
        if (is_done && ack->has_result) job->tasks[task].has_result = true;
    }
}

void foreman_submitted(struct foreman *foreman, const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    struct seen_job *job;
    switch (command->verb) {
    case BEL_VERB_JOB_SUBMIT:
        job = job_of_text(foreman, order);
        if (job == NULL) return;
        forget(job);
        job->pending++;
        return;
    case BEL_VERB_JOB_RESUME:
        job = find(foreman, command->job_target.id);
        if (job != NULL) job->is_paused = false;
        return;
    case BEL_VERB_ACK:
        note_acks(foreman, order, false);
        return;
    default:
        return;
    }
}

void foreman_lost(struct foreman *foreman, const struct order *order)
{
    if (order->requests[ENGINE_SIDE].command.verb != BEL_VERB_JOB_SUBMIT) return;
    struct seen_job *job = job_of_text(foreman, order);
    if (job != NULL) job->pending--;
}

/* CANCEL or PAUSE, which is good until somebody submits or resumes the job. */
static void told_hold(struct foreman *foreman, const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    struct seen_job *job = find(foreman, command->job_target.id);
    if (job == NULL || job->graph == NULL) return;
    if (order->number < job->asked) return; /* it may have been for the job before */
    for (size_t i = 0; i < foreman->world->asked.count; i++) {
        const struct order *other = foreman->world->asked.items[i];
        if (other->requests[ENGINE_SIDE].command.verb == BEL_VERB_JOB_RESUME) return;
    }
    for (size_t i = 0; i < foreman->world->told.count; i++) {
        const struct order *other = foreman->world->told.items[i];
        if (other->requests[ENGINE_SIDE].command.verb == BEL_VERB_JOB_RESUME) return;
    }
    if (command->verb == BEL_VERB_JOB_CANCEL) job->is_cancelled = true;
    if (command->verb == BEL_VERB_JOB_PAUSE) job->is_paused = true;
}

void foreman_told(struct foreman *foreman, const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    const struct bel_reply *reply = &order->heard[ENGINE_SIDE]->reply;
    struct seen_job *job;
    switch (command->verb) {
    case BEL_VERB_JOB_SUBMIT:
        job = job_of_text(foreman, order);
        if (job == NULL) return;
        job->pending--;
        if (reply->err == 0 && job->pending == 0) learn(job, command->job_submit.text);
        job->asked = foreman->world->orders.count;
        return;
    case BEL_VERB_ACK:
        if (reply->err == 0 && reply->count == command->ack.tokens_count) {
            note_acks(foreman, order, true);
        }
        return;
    case BEL_VERB_JOB_CANCEL:
    case BEL_VERB_JOB_PAUSE:
        if (reply->err == 0 && reply->count == 1) told_hold(foreman, order);
        return;
    default:
        return;
    }
}

/* --- deliveries --- */

static void check_edges(struct foreman *foreman, const struct seen_job *job, uint32_t task)
{
    const struct bel_job_edge *after = bel__job_after(job->graph, task);
    for (uint32_t i = 0; i < job->graph->tasks[task].after_count; i++) {
        const struct seen_task *before = &job->tasks[after[i].task];
        bool is_early = after[i].on == BEL_EDGE_SUCCESS && !before->is_acked;
        bool is_wrong = after[i].on == BEL_EDGE_FAILURE && before->is_done;
        if (!is_early && !is_wrong) continue;
        world_fail(foreman->world, "dependency",
                   "%s/%" PRIu32 " is delivered, and %s/%" PRIu32 " %s", job->id, task, job->id,
                   after[i].task, is_early ? "was never acknowledged" : "is done");
    }
}

/* Sessions do not read results: then there are none. */
static void check_results(struct foreman *foreman, const struct seen_job *job, uint32_t task,
                          const struct bel_delivery *delivery)
{
    const struct bel_job_edge *after = bel__job_after(job->graph, task);
    uint32_t count = job->graph->tasks[task].after_count;
    for (uint32_t i = 0; delivery->results_count == count && i < count; i++) {
        if (!job->tasks[after[i].task].has_result || delivery->results[i].has_result) continue;
        world_fail(foreman->world, "result",
                   "%s/%" PRIu32 " is delivered without the result of %" PRIu32, job->id, task,
                   after[i].task);
    }
}

bool foreman_is_task(const struct bel_delivery *delivery)
{
    for (size_t i = 0; i < delivery->headers_count; i++) {
        if (heard_same(delivery->headers[i].name, BEL_VIEW("belfry-job"))) return true;
    }
    return false;
}

void foreman_delivered(struct foreman *foreman, const struct bel_delivery *delivery)
{
    uint32_t task;
    struct seen_job *job = job_of_timer(foreman, delivery->topic, delivery->id, &task);
    if (job == NULL || !foreman_is_task(delivery)) return;
    if (job->is_cancelled || job->is_paused) {
        world_fail(foreman->world, "held", "%s/%" PRIu32 " is delivered, and its job is %s",
                   job->id, task, job->is_cancelled ? "cancelled" : "paused");
    }
    check_edges(foreman, job, task);
    check_results(foreman, job, task, delivery);
    job->tasks[task] = (struct seen_task){0};
}
