/* SPDX-License-Identifier: MIT */

/* A second model with the same timers, for tests that return to a point in time. */
#include "inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void copy_bytes(struct bytes *bytes)
{
    *bytes = model_copy(model_view(*bytes));
}

static struct topic *clone_topic(const struct topic *topic)
{
    struct topic *clone = model_alloc(sizeof *clone);
    *clone = *topic;
    clone->name = model_alloc(strlen(topic->name) + 1);
    memcpy(clone->name, topic->name, strlen(topic->name));
    clone->turns = (struct list){NULL, 0};
    for (size_t i = 0; i < topic->turns.count; i++) {
        const struct turn *from = topic->turns.items[i];
        struct turn *turn = model_alloc(sizeof *turn);
        *turn = *from;
        turn->group = model_copy(model_view(from->group));
        model_list_add(&clone->turns, turn);
    }
    return clone;
}

static struct resource *clone_resource(const struct resource *resource)
{
    struct resource *clone = model_alloc(sizeof *clone);
    *clone = *resource;
    clone->name = model_copy(model_view(resource->name));
    for (size_t i = 0; i < resource->reports_count; i++) {
        clone->reports[i].who = model_copy(model_view(resource->reports[i].who));
    }
    return clone;
}

static struct topic *find_topic(const struct model *from, const struct model *to,
                                const struct topic *topic)
{
    for (size_t i = 0; i < from->topics.count; i++) {
        if (from->topics.items[i] == topic) return to->topics.items[i];
    }
    abort();
}

static struct timer *clone_timer(const struct timer *timer)
{
    struct bytes *texts[MODEL_TEXTS];
    struct timer *clone = model_alloc(sizeof *clone);
    *clone = *timer;
    model_timer_texts(clone, texts);
    for (size_t i = 0; i < MODEL_TEXTS; i++) {
        copy_bytes(texts[i]);
    }
    clone->headers = model_alloc((timer->headers_count + 1) * sizeof *clone->headers);
    for (size_t i = 0; i < timer->headers_count; i++) {
        clone->headers[i] = timer->headers[i];
        copy_bytes(&clone->headers[i].name);
        copy_bytes(&clone->headers[i].value);
    }
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        copy_bytes(&clone->outcomes[i].reason);
    }
    model_rule_clone(&clone->rule);
    return clone;
}

/* The tasks of the copy are those of the copied model, at the same places. */
static struct job *clone_job(const struct model *from, const struct model *to,
                             const struct job *job)
{
    struct job *clone = model_alloc(sizeof *clone);
    *clone = *job;
    model_job_clone(clone);
    for (size_t i = 0; i < from->timers.count; i++) {
        const struct timer *timer = from->timers.items[i];
        struct timer *copy = to->timers.items[i];
        if (timer->job != job) continue;
        copy->job = clone;
        clone->tasks[timer->task] = copy;
    }
    return clone;
}

struct model *model_clone(const struct model *model)
{
    struct model *clone = model_alloc(sizeof *clone);
    assert(model->requests.count == 0 && model->waiting.count == 0 && model->answers.count == 0);
    *clone = *model;
    clone->topics = clone->timers = clone->requests = (struct list){NULL, 0};
    clone->resources = clone->jobs = (struct list){NULL, 0};
    clone->waiting = clone->answers = clone->pieces = (struct list){NULL, 0};
    for (size_t i = 0; i < model->topics.count; i++) {
        model_list_add(&clone->topics, clone_topic(model->topics.items[i]));
    }
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model->timers.items[i];
        struct timer *copy = clone_timer(timer);
        copy->topic = find_topic(model, clone, timer->topic);
        model_list_add(&clone->timers, copy);
    }
    for (size_t i = 0; i < model->resources.count; i++) {
        model_list_add(&clone->resources, clone_resource(model->resources.items[i]));
    }
    for (size_t i = 0; i < model->jobs.count; i++) {
        model_list_add(&clone->jobs, clone_job(model, clone, model->jobs.items[i]));
    }
    return clone;
}
