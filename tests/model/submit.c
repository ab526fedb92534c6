/* SPDX-License-Identifier: MIT */

/*
 * How a job is made. JOB SUBMIT checks the text, which the parser of the engine reads; then the ids
 * of the job, of those in its `then`, and of its tasks; then whether there is room. Only after that
 * it changes anything. An id in the `then` of a job is taken until it is certain that no job will
 * have it.
 */
#include "inside.h"

#include "jobs/parser.h"

#include <stdlib.h>
#include <string.h>

/* What is to be made. */
struct making {
    struct bel_view text;
    struct bel_job_graph *graph;
    struct job *old;    /* to replace; or NULL */
    struct job *parent; /* of a follower; or NULL */
    struct job *by;     /* the recurring job that makes it; or NULL */
    bool has_nominal;
    int64_t nominal_ms;
};

/* Reads the text of a job. With a nominal time, the id may have it or not. */
static struct bel_job_graph *parse(const struct model *model, const struct making *making,
                                   struct bel_view id, struct bel_reply *reply, int *out_err)
{
    const char *sign = id.bytes > 0 ? memchr(id.data, '@', id.bytes) : NULL;
    struct bel_job_parser_options options = {.text = making->text,
                                             .id = id,
                                             .zones = model->options.zones,
                                             .now = {model->wall_ms},
                                             .has_nominal = making->has_nominal,
                                             .nominal = {making->nominal_ms}};
    if (making->has_nominal && sign != NULL) {
        options.id.bytes = (size_t)(sign - (const char *)id.data);
    }
    struct bel_job_parser *parser;
    struct bel_job_graph *graph = NULL;
    options.made_id = BEL_VIEW("a-job-needs-an-id");
    if (bel__job_parser_create(&options, &parser) != 0) abort();
    do {
        *out_err = bel__job_parser_step(parser, BEL_JOB_PARSER_WORK);
    } while (*out_err == BEL_JOB_PARSER_MORE);
    if (*out_err == 0) {
        graph = bel__job_parser_take(parser);
    } else {
        (void)model_refuse(reply, *out_err, bel__job_parser_why(parser));
    }
    bel__job_parser_destroy(parser);
    return graph;
}

/* --- finding --- */

static struct job *find(struct model *model, struct bel_view id)
{
    for (size_t i = 0; i < model->jobs.count; i++) {
        struct job *job = model_job_at(model, i);
        if (model_same(id, model_view(job->id))) return job;
    }
    return NULL;
}

static bool is_in_scope(const struct job *job, const struct bel_job_scope *scope)
{
    return bel__job_graph_in_scope(job->graph, scope);
}

struct job *model_job_find(struct model *model, struct bel_view id,
                           const struct bel_job_scope *scope)
{
    struct job *job = find(model, id);
    return job != NULL && is_in_scope(job, scope) ? job : NULL;
}

/* --- reserved ids --- */

static bool is_wanted(enum bel_edge_policy on, enum bel_job_state state)
{
    if (on == BEL_EDGE_ALWAYS) return true;
    return on == BEL_EDGE_SUCCESS ? state == BEL_JOB_DONE : state == BEL_JOB_FAILED;
}

static bool is_in_then(const struct bel_job_graph *graph, struct bel_view id)
{
    for (size_t i = 0; i < graph->then_count; i++) {
        if (model_same(graph->then[i].graph->id, id)) return true;
        if (is_in_then(graph->then[i].graph, id)) return true;
    }
    return false;
}

/* Returns whether a job that may follow this one has an id, or one inside its `then` does. */
static bool reserves(const struct job *job, struct bel_view id)
{
    bool is_known = job->state != BEL_JOB_RUNNING && job->releases_ms == 0;
    for (size_t i = job->followed; i < job->graph->then_count; i++) {
        const struct bel_job_then *then = &job->graph->then[i];
        if (is_known && !is_wanted(then->on, job->state)) continue;
        if (model_same(then->graph->id, id) || is_in_then(then->graph, id)) return true;
    }
    return false;
}

/* Returns the number of the chain that has reserved an id; 0: it is not reserved. */
static uint64_t reserved_by(struct model *model, struct bel_view id)
{
    for (size_t i = 0; i < model->jobs.count; i++) {
        const struct job *job = model_job_at(model, i);
        bool may_follow = job->state == BEL_JOB_RUNNING || job->follows_ms > 0;
        if (job->plan != NULL) continue; /* those of its jobs are */
        if (may_follow && reserves(job, id)) return job->chain;
    }
    return 0;
}

/* Returns whether an id in a `then` belongs to a job, or to another chain. */
static bool is_then_taken(struct model *model, const struct making *making,
                          const struct bel_job_graph *graph)
{
    for (uint32_t i = 0; i < graph->then_count; i++) {
        const struct bel_job_graph *then = graph->then[i].graph;
        uint64_t chain = reserved_by(model, then->id);
        bool is_ours = (making->parent != NULL && chain == making->parent->chain) ||
                       (making->old != NULL && chain == making->old->chain);
        if (find(model, then->id) != NULL || (chain != 0 && !is_ours)) return true;
        if (is_then_taken(model, making, then)) return true;
    }
    return false;
}

/* --- making --- */

static struct bytes task_id(const struct bel_job_graph *graph, size_t task)
{
    struct bel_view job = graph->id, id = graph->tasks[task].id;
    struct bytes both = {model_alloc(job.bytes + 1 + id.bytes), job.bytes + 1 + id.bytes};
    memcpy(both.data, job.data, job.bytes);
    both.data[job.bytes] = '/';
    memcpy(both.data + job.bytes + 1, id.data, id.bytes);
    return both;
}

static bool is_task_taken(struct model *model, const struct making *making, size_t task)
{
    struct topic *topic = model_topic_find(model, making->graph->tasks[task].topic);
    struct bytes id = task_id(making->graph, task);
    struct timer *timer = topic == NULL ? NULL : model_timer_find(model, topic, model_view(id));
    model_free(&id);
    return timer != NULL && (making->old == NULL || timer->job != making->old);
}

static size_t count_in(const struct job *job, const struct topic *topic)
{
    size_t count = 0;
    for (size_t i = 0; job != NULL && i < job->tasks_count; i++) {
        count += job->tasks[i]->topic == topic && model_is_unfinished(job->tasks[i]);
    }
    return count;
}

static bool is_full(struct model *model, const struct making *making)
{
    for (uint32_t i = 0; i < making->graph->topics_count; i++) {
        const struct bel_job_topic *used = &making->graph->topics[i];
        const struct topic *topic = model_topic_find(model, used->name);
        if (topic == NULL || topic->settings.depth == 0) continue;
        size_t count = model_count_unfinished(model, topic) + used->tasks_count;
        if (model_is_pressed(model, topic)) return true;
        if (count > topic->settings.depth + count_in(making->old, topic)) return true;
    }
    return false;
}

static int check(struct model *model, const struct making *making, struct bel_reply *reply)
{
    const struct bel_job_graph *graph = making->graph;
    uint64_t chain = reserved_by(model, graph->id);
    bool is_ours = making->parent != NULL && chain == making->parent->chain;
    if (find(model, graph->id) != making->old) {
        return model_refuse(reply, BEL_ECONFLICT, "the id is taken");
    }
    if (chain != 0 && !is_ours) return model_refuse(reply, BEL_ECONFLICT, "the id is reserved");
    if (is_then_taken(model, making, graph)) {
        return model_refuse(reply, BEL_ECONFLICT, "an id in `then` is taken");
    }
    if (graph->is_recurring) return 0;
    if (making->parent == NULL && making->by == NULL && is_full(model, making)) {
        return model_refuse(reply, BEL_EFULL, "a topic is full");
    }
    for (size_t i = 0; i < graph->tasks_count; i++) {
        if (is_task_taken(model, making, i)) {
            return model_refuse(reply, BEL_ECONFLICT, "the id of a task is taken");
        }
    }
    return 0;
}

static struct timer *make_task(struct model *model, struct job *job, size_t index)
{
    const struct bel_job_node *node = &job->graph->tasks[index];
    struct bel_view retry = node->retry.bytes > 0 ? node->retry : job->graph->retry;
    struct timer *timer = model_alloc(sizeof *timer);
    timer->job = job;
    timer->task = index;
    timer->topic = model_topic_make(model, node->topic);
    timer->id = task_id(job->graph, index);
    timer->payload = model_copy(node->payload);
    timer->resource = model_copy(node->resource);
    timer->correlation = model_copy(node->correlation);
    timer->retry_text = model_copy(retry);
    if (retry.bytes > 0 && bel_backoff_parse(retry.data, retry.bytes, &timer->retry, NULL) != 0) {
        abort(); /* the parser has checked it */
    }
    timer->headers_count = node->headers_count;
    timer->headers = model_alloc(node->headers_count * sizeof *timer->headers);
    for (size_t i = 0; i < node->headers_count; i++) {
        timer->headers[i].name = model_copy(node->headers[i].name);
        timer->headers[i].value = model_copy(node->headers[i].value);
    }
    timer->state = BEL_BLOCKED;
    timer->priority = node->priority;
    timer->sequence = ++model->sequence;
    timer->created.ms = model->wall_ms;
    timer->lease_ms = node->idle_ms;
    model_list_add(&model->timers, timer);
    return timer;
}

/* Makes the topics of a job and of its `then`, which a scope is compared with. */
static void make_topics(struct model *model, const struct bel_job_graph *graph)
{
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        (void)model_topic_make(model, graph->topics[i].name);
    }
    for (uint32_t i = 0; i < graph->then_count; i++) {
        make_topics(model, graph->then[i].graph);
    }
}

/* Makes a job, which has been checked. */
static struct job *make(struct model *model, const struct making *making)
{
    struct job *job = model_alloc(sizeof *job);
    struct bel_reply ignored = {0};
    int err;
    job->number = ++model->numbers;
    job->chain = making->parent != NULL ? making->parent->chain : job->number;
    job->id = model_copy(making->graph->id);
    job->text = model_copy(making->text);
    job->has_nominal = making->has_nominal;
    if (making->by != NULL) {
        job->plan_id = model_copy(model_view(making->by->id));
        job->nominal_ms = making->nominal_ms;
    }
    struct making again = *making;
    again.text = model_view(job->text);
    job->graph = parse(model, &again, model_view(job->id), &ignored, &err);
    if (job->graph == NULL) abort(); /* was parsed before */
    if (making->parent != NULL) job->parent = model_copy(model_view(making->parent->id));
    job->created_ms = model->wall_ms;
    uint64_t timeout_ms = job->graph->timeout_ms;
    if (timeout_ms > 0 && !job->graph->is_recurring) {
        job->deadline_ms = model->engine_ms + (int64_t)timeout_ms;
    }
    make_topics(model, job->graph);
    size_t count = job->graph->is_recurring ? 0 : job->graph->tasks_count;
    job->tasks_count = count;
    job->tasks = model_alloc(count * sizeof(struct timer *));
    job->is_new = model_alloc(count);
    for (size_t i = 0; i < count; i++) {
        job->tasks[i] = make_task(model, job, i);
    }
    job->is_new_job = true;
    model_list_add(&model->jobs, job);
    return job;
}

/* Returns the nominal time in the id of a job. */
static int64_t nominal_of(const struct job *job)
{
    int64_t ms = 0;
    if (!job->has_nominal) return 0;
    const char *at = memchr(job->id.data, '@', job->id.count);
    for (at++; at < job->id.data + job->id.count; at++) {
        ms = ms * 10 + (*at - '0');
    }
    return ms;
}

void model_job_clone(struct job *job)
{
    struct bytes *texts[] = {&job->text,  &job->id,     &job->parent,
                             &job->clash, &job->reason, &job->plan_id};
    struct model nobody = {0};
    struct bel_reply ignored = {0};
    size_t count = job->tasks_count;
    bool *is_new = job->is_new;
    int err;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = model_copy(model_view(*texts[i]));
    }
    struct making making = {.text = model_view(job->text), .has_nominal = job->has_nominal};
    making.nominal_ms = nominal_of(job);
    job->graph = parse(&nobody, &making, model_view(job->id), &ignored, &err);
    model_recurring_clone(job);
    if (job->graph == NULL) abort();
    job->tasks = model_alloc(count * sizeof(struct timer *));
    job->is_new = model_alloc(count);
    memcpy(job->is_new, is_new, count);
}

void model_job_remove(struct model *model, struct job *job)
{
    for (size_t i = 0; i < job->tasks_count; i++) {
        model_timer_remove(model, job->tasks[i]);
    }
    for (size_t i = 0; i < model->jobs.count; i++) {
        if (model_job_at(model, i) != job) continue;
        model_list_remove(&model->jobs, i);
        break;
    }
    model_job_free(job);
}

static int submit(struct model *model, struct making *making, const struct bel_job_submit *command,
                  struct bel_reply *reply)
{
    const struct bel_job_graph *graph = making->graph;
    if (!bel__job_graph_in_scope(graph, &command->scope)) {
        return model_refuse(reply, BEL_ENOTFOUND, "a topic is out of scope");
    }
    if (model_is_pressed(model, NULL)) return model_refuse(reply, BEL_EFULL, "pressure");
    if (command->is_replacement) making->old = find(model, graph->id);
    if (making->old != NULL && !is_in_scope(making->old, &command->scope)) {
        return model_refuse(reply, BEL_ENOTFOUND, "no such job");
    }
    struct timer *plan = NULL;
    struct job kept = {0};
    int err = check(model, making, reply);
    if (err == 0 && graph->is_recurring) err = model_recurring_plan(model, graph, &plan);
    if (err) return err;
    if (plan != NULL) model_recurring_keep(making->old, &plan, &kept);
    if (making->old != NULL) model_job_remove(model, making->old);
    struct job *job = make(model, making);
    job->plan = plan;
    job->owed = kept.owed;
    job->owed_count = kept.owed_count;
    reply->submitted = (struct bel_job_submitted){
        .id = model_kept(model, job->id), .tasks = graph->tasks_count, .edges = graph->edges_count};
    return 0;
}

int model_job_submit(struct model *model, const struct bel_job_submit *command,
                     struct bel_reply *reply)
{
    struct making making = {.text = command->text};
    int err;
    making.graph = parse(model, &making, command->id, reply, &err);
    if (making.graph == NULL) return err;
    err = submit(model, &making, command, reply);
    bel__job_graph_destroy(making.graph);
    return err;
}

void model_job_follow(struct model *model, struct job *parent)
{
    for (; parent->followed < parent->graph->then_count; parent->followed++) {
        const struct bel_job_then *then = &parent->graph->then[parent->followed];
        struct making making = {.text = then->text, .graph = then->graph, .parent = parent};
        making.has_nominal = parent->has_nominal;
        making.nominal_ms = nominal_of(parent);
        struct bel_reply reply = {0};
        if (!is_wanted(then->on, parent->state)) continue;
        if (check(model, &making, &reply) == 0) {
            (void)make(model, &making);
        } else if (parent->clash.count == 0) {
            parent->clash = model_copy(then->graph->id);
        }
    }
    parent->follows_ms = 0;
}

bool model_job_make_at(struct model *model, struct job *plan, int64_t nominal_ms)
{
    struct making making = {
        .text = model_view(plan->text), .by = plan, .has_nominal = true, .nominal_ms = nominal_ms};
    struct bel_reply reply = {0};
    int err;
    making.graph = parse(model, &making, model_view(plan->id), &reply, &err);
    if (making.graph == NULL) abort(); /* was parsed before */
    err = check(model, &making, &reply);
    if (err == 0) (void)make(model, &making);
    bel__job_graph_destroy(making.graph);
    return err == 0;
}
