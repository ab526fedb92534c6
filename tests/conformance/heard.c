/* SPDX-License-Identifier: MIT */

/*
 * A deep copy. Every part is allocated separately, so that the sanitizer catches a test that reads
 * past its end.
 */
#include "heard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The array of pieces doubles when its length is a power of two. */
static void *piece(struct heard *heard, size_t bytes)
{
    size_t count = heard->pieces_count;
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if ((count & (count - 1)) == 0) {
        size_t room = count > 0 ? 2 * count : 1;
        heard->pieces = realloc(heard->pieces, room * sizeof *heard->pieces);
    }
    if (heard->pieces == NULL || memory == NULL) abort();
    heard->pieces[heard->pieces_count++] = memory;
    return memory;
}

static const void *copy(struct heard *heard, const void *data, size_t bytes)
{
    if (bytes == 0) return NULL;
    return memcpy(piece(heard, bytes), data, bytes);
}

static void keep(struct heard *heard, struct bel_view *view)
{
    view->data = copy(heard, view->data, view->bytes);
}

static void keep_headers(struct heard *heard, const struct bel_header **headers, size_t count)
{
    struct bel_header *copies = piece(heard, count * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] = (*headers)[i];
        keep(heard, &copies[i].name);
        keep(heard, &copies[i].value);
    }
    *headers = copies;
}

static void keep_results(struct heard *heard, struct bel_delivery *delivery)
{
    struct bel_task_result *copies = piece(heard, delivery->results_count * sizeof *copies);
    for (size_t i = 0; i < delivery->results_count; i++) {
        copies[i] = delivery->results[i];
        keep(heard, &copies[i].task);
        keep(heard, &copies[i].result);
    }
    delivery->results = copies;
}

static void keep_deliveries(struct heard *heard)
{
    size_t count = heard->reply.deliveries.count;
    struct bel_delivery *copies = piece(heard, count * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] = heard->reply.deliveries.items[i];
        keep(heard, &copies[i].token);
        keep(heard, &copies[i].topic);
        keep(heard, &copies[i].id);
        keep(heard, &copies[i].payload);
        keep(heard, &copies[i].correlation);
        keep_headers(heard, &copies[i].headers, copies[i].headers_count);
        keep_results(heard, &copies[i]);
    }
    heard->reply.deliveries.items = copies;
}

static void keep_timer(struct heard *heard, struct bel_timer *timer)
{
    struct bel_view *views[] = {
        &timer->topic,       &timer->id,        &timer->payload,   &timer->group,  &timer->resource,
        &timer->correlation, &timer->retry,     &timer->worker,    &timer->reason, &timer->result,
        &timer->plan_id,     &timer->plan.rule, &timer->plan.zone,
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        keep(heard, views[i]);
    }
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        keep(heard, &timer->outcomes[i].reason);
    }
    keep_headers(heard, &timer->headers, timer->headers_count);
}

/* Appends copies of the timers of a reply to those that are kept already. */
static void keep_timers(struct heard *heard, const struct bel_reply *page)
{
    size_t first = heard->timers_count, count = first + page->timers.count;
    if (heard->timers == NULL || count > heard->timers_room) {
        heard->timers_room = first > 0 ? 2 * count : count;
        struct bel_timer *timers = piece(heard, heard->timers_room * sizeof *timers);
        if (first > 0 && heard->timers != NULL) {
            memcpy(timers, heard->timers, first * sizeof *timers);
        }
        heard->timers = timers;
    }
    for (size_t i = first; i < count; i++) {
        heard->timers[i] = page->timers.items[i - first];
        keep_timer(heard, &heard->timers[i]);
    }
    heard->timers_count = count;
    heard->reply.timers = page->timers;
    heard->reply.timers.items = heard->timers;
    heard->reply.timers.count = count;
    keep(heard, &heard->reply.timers.cursor);
}

static void keep_names(struct heard *heard)
{
    size_t count = heard->reply.names.count;
    struct bel_view *copies = piece(heard, count * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] = heard->reply.names.items[i];
        keep(heard, &copies[i]);
    }
    heard->reply.names.items = copies;
    if (heard->reply.names.reason == NULL) return;
    struct bel_reason *reason = piece(heard, sizeof *reason);
    *reason = *heard->reply.names.reason;
    keep(heard, &reason->by);
    char *word = piece(heard, strlen(reason->word) + 1);
    memcpy(word, reason->word, strlen(reason->word) + 1);
    reason->word = word;
    heard->reply.names.reason = reason;
}

static void keep_topic(struct heard *heard)
{
    struct bel_topic *topic = piece(heard, sizeof *topic);
    *topic = *heard->reply.topic;
    struct bel_setting *settings = piece(heard, topic->settings_count * sizeof *settings);
    for (size_t i = 0; i < topic->settings_count; i++) {
        settings[i] = topic->settings[i];
        keep(heard, &settings[i].name);
        keep(heard, &settings[i].value);
    }
    keep(heard, &topic->name);
    topic->settings = settings;
    heard->reply.topic = topic;
}

static void keep_steps(struct heard *heard)
{
    size_t bytes = heard->reply.steps.count * sizeof *heard->reply.steps.items;
    heard->reply.steps.items = copy(heard, heard->reply.steps.items, bytes);
}

static void keep_limits(struct heard *heard)
{
    size_t count = heard->reply.limits.count;
    struct bel_limit_state *states = piece(heard, count * sizeof *states);
    for (size_t i = 0; i < count; i++) {
        states[i] = heard->reply.limits.items[i];
        size_t bytes = states[i].reports_count * sizeof *states[i].reports;
        struct bel_limit_report *reports = piece(heard, bytes);
        for (size_t j = 0; j < states[i].reports_count; j++) {
            reports[j] = states[i].reports[j];
            keep(heard, &reports[j].who);
        }
        keep(heard, &states[i].name);
        keep(heard, &states[i].rate);
        states[i].reports = reports;
    }
    heard->reply.limits.items = states;
    keep(heard, &heard->reply.limits.cursor);
}

static void keep_job(struct heard *heard, struct bel_job *job)
{
    struct bel_job_task *tasks = piece(heard, job->tasks_count * sizeof *tasks);
    struct bel_view *views[] = {&job->id,      &job->reason,    &job->parent,    &job->clash,
                                &job->plan_id, &job->plan.rule, &job->plan.zone, &job->cursor};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        keep(heard, views[i]);
    }
    for (size_t i = 0; i < job->tasks_count; i++) {
        tasks[i] = job->tasks[i];
        keep(heard, &tasks[i].id);
        keep(heard, &tasks[i].topic);
        keep(heard, &tasks[i].reason);
        struct bel_job_after *after = piece(heard, tasks[i].after_count * sizeof *after);
        for (size_t k = 0; k < tasks[i].after_count; k++) {
            after[k] = tasks[i].after[k];
            keep(heard, &after[k].task);
        }
        tasks[i].after = after;
    }
    job->tasks = tasks;
}

static void keep_jobs(struct heard *heard)
{
    size_t count = heard->reply.jobs.count;
    struct bel_job *jobs = piece(heard, count * sizeof *jobs);
    for (size_t i = 0; i < count; i++) {
        jobs[i] = heard->reply.jobs.items[i];
        keep_job(heard, &jobs[i]);
    }
    heard->reply.jobs.items = jobs;
    keep(heard, &heard->reply.jobs.cursor);
}

static void keep_one_job(struct heard *heard)
{
    struct bel_job *job = piece(heard, sizeof *job);
    *job = *heard->reply.job;
    keep_job(heard, job);
    heard->reply.job = job;
}

struct heard *heard_copy(enum bel_verb verb, const struct bel_reply *reply)
{
    struct heard *heard = calloc(1, sizeof *heard);
    if (heard == NULL) abort();
    heard->verb = verb;
    heard->reply = *reply;
    if (reply->err) return heard;
    switch (verb) {
    case BEL_VERB_SCHEDULE:
        keep(heard, &heard->reply.id);
        break;
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
        keep_timers(heard, reply);
        break;
    case BEL_VERB_CLAIM:
        keep_deliveries(heard);
        break;
    case BEL_VERB_TOPICS:
    case BEL_VERB_EXPLAIN:
        keep_names(heard);
        break;
    case BEL_VERB_TOPIC:
        keep_topic(heard);
        break;
    case BEL_VERB_AGENDA:
        keep_steps(heard);
        break;
    case BEL_VERB_LIMIT:
        keep_limits(heard);
        break;
    case BEL_VERB_JOB_SUBMIT:
        keep(heard, &heard->reply.submitted.id);
        break;
    case BEL_VERB_JOB_GET:
        keep_one_job(heard);
        break;
    case BEL_VERB_JOB_LIST:
        keep_jobs(heard);
        break;
    default:
        break;
    }
    return heard;
}

void heard_add_page(struct heard *heard, const struct bel_reply *page)
{
    assert(heard->verb == BEL_VERB_LIST && heard->reply.err == 0 && page->err == 0);
    keep_timers(heard, page);
}

void heard_free(struct heard *heard)
{
    if (heard == NULL) return;
    for (size_t i = 0; i < heard->pieces_count; i++) {
        free(heard->pieces[i]);
    }
    free(heard->pieces);
    free(heard);
}

bool heard_same(struct bel_view a, struct bel_view b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}
