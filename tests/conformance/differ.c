/* SPDX-License-Identifier: MIT */

/*
 * Compares field by field, in the order of the headers, and reports the first difference.
 */
#include "differ.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool numbers(struct differ *differ, const char *what, int64_t one, int64_t other)
{
    if (one == other) return false;
    (void)snprintf(differ->text, sizeof differ->text, "%s: %" PRId64 " and %" PRId64, what, one,
                   other);
    return true;
}

static bool counts(struct differ *differ, const char *what, uint64_t one, uint64_t other)
{
    return numbers(differ, what, (int64_t)one, (int64_t)other);
}

static bool views(struct differ *differ, const char *what, struct bel_view one,
                  struct bel_view other)
{
    if (heard_same(one, other)) return false;
    (void)snprintf(differ->text, sizeof differ->text, "%s: '%.*s' and '%.*s'", what, (int)one.bytes,
                   one.bytes > 0 ? (const char *)one.data : "", (int)other.bytes,
                   other.bytes > 0 ? (const char *)other.data : "");
    return true;
}

static bool is_text(struct bel_view view, const char *text)
{
    return heard_same(view, (struct bel_view){text, strlen(text)});
}

/* Splits an id into the plan's id and, for an occurrence, its nominal time. */
static struct bel_view cut(struct bel_view *id)
{
    const char *text = id->data;
    const char *at = id->bytes > 0 ? memchr(text, '@', id->bytes) : NULL;
    struct bel_view rest = {NULL, 0};
    if (at == NULL) return rest;
    rest = (struct bel_view){at, id->bytes - (size_t)(at - text)};
    id->bytes -= rest.bytes;
    return rest;
}

static bool ids(struct differ *differ, struct bel_view one, struct bel_view other)
{
    struct bel_view a = one, b = other, a_rest = cut(&a), b_rest = cut(&b);
    for (size_t i = 0; i < differ->made_count; i++) {
        if (!is_text(a, differ->made[i].one) || !is_text(b, differ->made[i].other)) continue;
        return views(differ, "id", a_rest, b_rest);
    }
    return views(differ, "id", one, other);
}

static bool headers(struct differ *differ, const struct bel_header *one, size_t one_count,
                    const struct bel_header *other, size_t other_count)
{
    if (counts(differ, "headers", one_count, other_count)) return true;
    for (size_t i = 0; i < one_count; i++) {
        if (views(differ, "header", one[i].name, other[i].name)) return true;
        if (views(differ, "header's value", one[i].value, other[i].value)) return true;
    }
    return false;
}

/* The results of the tasks before a task. */
static bool results(struct differ *differ, const struct bel_delivery *one,
                    const struct bel_delivery *other)
{
    for (size_t i = 0; i < one->results_count && i < other->results_count; i++) {
        const struct bel_task_result *a = &one->results[i], *b = &other->results[i];
        if (views(differ, "task of a result", a->task, b->task) ||
            numbers(differ, "has a result", a->has_result, b->has_result) ||
            views(differ, "result", a->result, b->result)) {
            return true;
        }
    }
    return counts(differ, "results", one->results_count, other->results_count);
}

static bool deliveries(struct differ *differ, const struct bel_delivery *one,
                       const struct bel_delivery *other)
{
    return results(differ, one, other) || views(differ, "topic", one->topic, other->topic) ||
           ids(differ, one->id, other->id) ||
           views(differ, "payload", one->payload, other->payload) ||
           views(differ, "correlation", one->correlation, other->correlation) ||
           numbers(differ, "due", one->due.ms, other->due.ms) ||
           counts(differ, "attempt", one->attempt, other->attempt) ||
           counts(differ, "lease", one->lease_ms, other->lease_ms) ||
           headers(differ, one->headers, one->headers_count, other->headers, other->headers_count);
}

static bool outcomes(struct differ *differ, const struct bel_timer *one,
                     const struct bel_timer *other)
{
    if (counts(differ, "outcomes", one->outcomes_count, other->outcomes_count)) return true;
    for (size_t i = 0; i < one->outcomes_count; i++) {
        const struct bel_outcome *a = &one->outcomes[i], *b = &other->outcomes[i];
        if (numbers(differ, "outcome", a->kind, b->kind)) return true;
        if (numbers(differ, "outcome's time", a->at.ms, b->at.ms)) return true;
        if (views(differ, "outcome's reason", a->reason, b->reason)) return true;
    }
    return false;
}

static bool recurrences(struct differ *differ, const struct bel_recurrence *one,
                        const struct bel_recurrence *other)
{
    if (views(differ, "rule", one->rule, other->rule)) return true;
    if (one->rule.bytes == 0) return false;
    return views(differ, "zone", one->zone, other->zone) ||
           numbers(differ, "kind", one->kind, other->kind) ||
           numbers(differ, "mode", one->mode, other->mode) ||
           numbers(differ, "gap", one->gap, other->gap) ||
           numbers(differ, "fold", one->fold, other->fold) ||
           numbers(differ, "misfire", one->misfire, other->misfire) ||
           numbers(differ, "overlap", one->overlap, other->overlap) ||
           numbers(differ, "has_until", one->has_until, other->has_until) ||
           (one->has_until && numbers(differ, "until", one->until.ms, other->until.ms)) ||
           counts(differ, "count", one->count, other->count) ||
           counts(differ, "spread", one->spread_ms, other->spread_ms);
}

static bool plans(struct differ *differ, const struct bel_timer *one, const struct bel_timer *other)
{
    return recurrences(differ, &one->plan, &other->plan) ||
           numbers(differ, "has_next", one->has_next, other->has_next) ||
           counts(differ, "made", one->made, other->made) ||
           counts(differ, "skipped", one->skipped, other->skipped) ||
           counts(differ, "missed", one->missed, other->missed) ||
           counts(differ, "used", one->used, other->used) ||
           ids(differ, one->plan_id, other->plan_id) ||
           numbers(differ, "nominal", one->nominal.ms, other->nominal.ms);
}

static bool texts(struct differ *differ, const struct bel_timer *one, const struct bel_timer *other)
{
    return views(differ, "topic", one->topic, other->topic) ||
           views(differ, "payload", one->payload, other->payload) ||
           views(differ, "group", one->group, other->group) ||
           views(differ, "resource", one->resource, other->resource) ||
           views(differ, "correlation", one->correlation, other->correlation) ||
           views(differ, "retry", one->retry, other->retry) ||
           views(differ, "worker", one->worker, other->worker) ||
           views(differ, "reason", one->reason, other->reason) ||
           views(differ, "result", one->result, other->result);
}

static bool times(struct differ *differ, const struct bel_timer *one, const struct bel_timer *other)
{
    bool has_due = one->state <= BEL_LEASED && (one->plan.rule.bytes == 0 || one->has_next);
    return (has_due && numbers(differ, "due", one->due.ms, other->due.ms)) ||
           numbers(differ, "created", one->created.ms, other->created.ms) ||
           numbers(differ, "finished", one->finished.ms, other->finished.ms) ||
           numbers(differ, "expires", one->expires.ms, other->expires.ms) ||
           counts(differ, "expires_ms", one->expires_ms, other->expires_ms) ||
           counts(differ, "lease_ms", one->lease_ms, other->lease_ms) ||
           counts(differ, "lease left", one->lease_left_ms, other->lease_left_ms);
}

/* Returns the number of headers without those that name the plan of an occurrence or the job of a
 * task, which only deliveries must have. */
static size_t own_headers(const struct bel_timer *timer)
{
    size_t count = timer->headers_count;
    bool is_task = timer->id.bytes > 0 && memchr(timer->id.data, '/', timer->id.bytes) != NULL;
    if (timer->plan_id.bytes == 0 && !is_task) return count;
    while (count > 0 && timer->headers[count - 1].name.bytes > 6 &&
           memcmp(timer->headers[count - 1].name.data, "belfry-", 7) == 0) {
        count--;
    }
    return count;
}

static bool differ_in_timer(struct differ *differ, const struct bel_timer *one,
                            const struct bel_timer *other)
{
    char text[sizeof differ->text];
    bool do_differ =
        ids(differ, one->id, other->id) || numbers(differ, "state", one->state, other->state) ||
        texts(differ, one, other) || times(differ, one, other) ||
        counts(differ, "attempts", one->attempts, other->attempts) ||
        counts(differ, "crashes", one->crashes, other->crashes) ||
        numbers(differ, "priority", one->priority, other->priority) ||
        headers(differ, one->headers, own_headers(one), other->headers, own_headers(other)) ||
        outcomes(differ, one, other) || plans(differ, one, other);
    if (!do_differ) return false;
    (void)snprintf(text, sizeof text, "%s", differ->text);
    (void)snprintf(differ->text, sizeof differ->text, "of %.*s, %.300s", (int)one->id.bytes,
                   (const char *)one->id.data, text);
    return true;
}

bool differ_in_timers(struct differ *differ, const struct bel_timer *one, size_t one_count,
                      const struct bel_timer *other, size_t other_count)
{
    for (size_t i = 0; i < one_count && i < other_count; i++) {
        if (differ_in_timer(differ, &one[i], &other[i])) return true;
    }
    return counts(differ, "timers", one_count, other_count);
}

static bool lists_of_deliveries(struct differ *differ, const struct bel_reply *one,
                                const struct bel_reply *other)
{
    size_t count = one->deliveries.count;
    for (size_t i = 0; i < count && i < other->deliveries.count; i++) {
        if (deliveries(differ, &one->deliveries.items[i], &other->deliveries.items[i])) return true;
    }
    return counts(differ, "deliveries", count, other->deliveries.count);
}

static bool lists_of_timers(struct differ *differ, const struct bel_reply *one,
                            const struct bel_reply *other)
{
    bool has_more = one->timers.cursor.bytes > 0, has_other_more = other->timers.cursor.bytes > 0;
    return differ_in_timers(differ, one->timers.items, one->timers.count, other->timers.items,
                            other->timers.count) ||
           numbers(differ, "cursor", has_more, has_other_more);
}

static bool names(struct differ *differ, const struct bel_reply *one, const struct bel_reply *other)
{
    size_t count = one->names.count;
    for (size_t i = 0; i < count && i < other->names.count; i++) {
        if (views(differ, "name", one->names.items[i], other->names.items[i])) return true;
    }
    return counts(differ, "names", count, other->names.count);
}

static bool settings(struct differ *differ, const struct bel_topic *one,
                     const struct bel_topic *other)
{
    if (counts(differ, "settings", one->settings_count, other->settings_count)) return true;
    for (size_t i = 0; i < one->settings_count; i++) {
        if (views(differ, "setting", one->settings[i].name, other->settings[i].name)) return true;
        if (views(differ, "value", one->settings[i].value, other->settings[i].value)) return true;
    }
    return false;
}

static bool topics(struct differ *differ, const struct bel_topic *one,
                   const struct bel_topic *other)
{
    for (unsigned i = 0; i < BEL_STATES; i++) {
        if (counts(differ, bel_state_name(i), one->counts[i], other->counts[i])) return true;
    }
    return views(differ, "name", one->name, other->name) ||
           counts(differ, "plans", one->plans, other->plans) ||
           counts(differ, "age", one->oldest_age_ms, other->oldest_age_ms) ||
           numbers(differ, "paused", one->paused, other->paused) || settings(differ, one, other);
}

static bool steps(struct differ *differ, const struct bel_reply *one, const struct bel_reply *other)
{
    size_t count = one->steps.count;
    for (size_t i = 0; i < count && i < other->steps.count; i++) {
        const struct bel_agenda_step *a = &one->steps.items[i], *b = &other->steps.items[i];
        if (numbers(differ, "start", a->start.ms, b->start.ms)) return true;
        if (counts(differ, "count of a step", a->count, b->count)) return true;
    }
    return counts(differ, "steps", count, other->steps.count);
}

/* Parked timers are not compared: they are counted when a claim meets them. */
static bool limit_states(struct differ *differ, const struct bel_limit_state *a,
                         const struct bel_limit_state *b)
{
    if (views(differ, "name", a->name, b->name) ||
        counts(differ, "rate", a->rate_count, b->rate_count) ||
        counts(differ, "duration of the rate", a->rate_ms, b->rate_ms) ||
        views(differ, "rate as text", a->rate, b->rate) ||
        counts(differ, "burst", a->burst, b->burst) ||
        counts(differ, "concurrency", a->concurrency, b->concurrency) ||
        counts(differ, "running", a->running, b->running) ||
        numbers(differ, "limited until", a->limited_until.ms, b->limited_until.ms) ||
        numbers(differ, "breaker", a->breaker, b->breaker) ||
        counts(differ, "failures", a->failures, b->failures) ||
        counts(differ, "failures that open", a->breaker_failures, b->breaker_failures) ||
        counts(differ, "open", a->breaker_open_ms, b->breaker_open_ms) ||
        counts(differ, "open at most", a->breaker_max_ms, b->breaker_max_ms) ||
        numbers(differ, "breaker until", a->breaker_until.ms, b->breaker_until.ms) ||
        counts(differ, "reports", a->reports_count, b->reports_count)) {
        return true;
    }
    for (size_t i = 0; i < a->reports_count; i++) {
        const struct bel_limit_report *one = &a->reports[i], *other = &b->reports[i];
        if (views(differ, "who", one->who, other->who) ||
            numbers(differ, "report", one->at.ms, other->at.ms) ||
            counts(differ, "limited for", one->for_ms, other->for_ms)) {
            return true;
        }
    }
    return false;
}

static bool limits(struct differ *differ, const struct bel_reply *one,
                   const struct bel_reply *other)
{
    for (size_t i = 0; i < one->limits.count && i < other->limits.count; i++) {
        if (limit_states(differ, &one->limits.items[i], &other->limits.items[i])) return true;
    }
    return counts(differ, "resources", one->limits.count, other->limits.count) ||
           counts(differ, "changed", one->limits.changed, other->limits.changed) ||
           views(differ, "cursor", one->limits.cursor, other->limits.cursor);
}

static bool tasks(struct differ *differ, const struct bel_job_task *a, const struct bel_job_task *b)
{
    if (views(differ, "task", a->id, b->id) ||
        views(differ, "topic of a task", a->topic, b->topic) ||
        numbers(differ, "state of a task", a->state, b->state) ||
        counts(differ, "attempts of a task", a->attempts, b->attempts) ||
        counts(differ, "crashes of a task", a->crashes, b->crashes) ||
        counts(differ, "depth of a task", a->depth, b->depth) ||
        views(differ, "reason of a task", a->reason, b->reason) ||
        numbers(differ, "task has ended", a->has_finished, b->has_finished) ||
        numbers(differ, "end of a task", a->finished.ms, b->finished.ms) ||
        counts(differ, "dependencies", a->after_count, b->after_count)) {
        return true;
    }
    if (!a->has_finished && (numbers(differ, "task has a due time", a->has_due, b->has_due) ||
                             numbers(differ, "due time of a task", a->due.ms, b->due.ms))) {
        return true;
    }
    for (size_t i = 0; i < a->after_count; i++) {
        if (views(differ, "dependency", a->after[i].task, b->after[i].task) ||
            numbers(differ, "policy", a->after[i].on, b->after[i].on)) {
            return true;
        }
    }
    return false;
}

/* The numbers of tasks by state. A list need not tell scheduled, ready and leased ones apart. */
static bool task_counts(struct differ *differ, const struct bel_job *a, const struct bel_job *b,
                        bool is_list)
{
    uint64_t one = 0, other = 0;
    for (unsigned i = 0; i < BEL_STATES; i++) {
        one += a->counts[i];
        other += b->counts[i];
        if (is_list && i < BEL_LEASED) continue;
        if (counts(differ, bel_state_name((enum bel_state)i), one, other)) return true;
        one = other = 0;
    }
    return false;
}

/* Compares what a recurring job is, and what it has made. */
static bool recurring(struct differ *differ, const struct bel_job *a, const struct bel_job *b)
{
    return views(differ, "rule of a job", a->plan.rule, b->plan.rule) ||
           views(differ, "recurring job", a->plan_id, b->plan_id) ||
           numbers(differ, "nominal time of a job", a->nominal.ms, b->nominal.ms) ||
           numbers(differ, "a job has a next time", a->has_next, b->has_next) ||
           numbers(differ, "next time of a job", a->next.ms, b->next.ms) ||
           counts(differ, "times made", a->made, b->made) ||
           counts(differ, "times skipped", a->skipped, b->skipped) ||
           counts(differ, "times missed", a->missed, b->missed);
}

static bool jobs(struct differ *differ, const struct bel_job *a, const struct bel_job *b,
                 bool is_list)
{
    if (views(differ, "job", a->id, b->id) ||
        numbers(differ, "state of a job", a->state, b->state) ||
        views(differ, "reason of a job", a->reason, b->reason) ||
        numbers(differ, "priority of a job", a->priority, b->priority) ||
        numbers(differ, "created", a->created.ms, b->created.ms) ||
        numbers(differ, "job has ended", a->has_finished, b->has_finished) ||
        numbers(differ, "end of a job", a->finished.ms, b->finished.ms) ||
        views(differ, "parent", a->parent, b->parent) ||
        views(differ, "clash", a->clash, b->clash) ||
        counts(differ, "tasks of a job", a->tasks_total, b->tasks_total) ||
        counts(differ, "edges of a job", a->edges_total, b->edges_total) ||
        counts(differ, "tasks that are shown", a->tasks_count, b->tasks_count) ||
        recurring(differ, a, b) || task_counts(differ, a, b, is_list)) {
        return true;
    }
    bool is_late = !a->has_finished && a->deadline.ms != b->deadline.ms;
    if (is_late) return numbers(differ, "deadline", a->deadline.ms, b->deadline.ms);
    for (size_t i = 0; i < a->tasks_count; i++) {
        if (tasks(differ, &a->tasks[i], &b->tasks[i])) return true;
    }
    return false;
}

static bool lists_of_jobs(struct differ *differ, const struct bel_reply *one,
                          const struct bel_reply *other)
{
    for (size_t i = 0; i < one->jobs.count && i < other->jobs.count; i++) {
        if (jobs(differ, &one->jobs.items[i], &other->jobs.items[i], true)) return true;
    }
    return counts(differ, "jobs", one->jobs.count, other->jobs.count) ||
           numbers(differ, "cursor", one->jobs.cursor.bytes > 0, other->jobs.cursor.bytes > 0);
}

static bool submitted(struct differ *differ, const struct bel_job_submitted *a,
                      const struct bel_job_submitted *b)
{
    return views(differ, "job", a->id, b->id) || counts(differ, "tasks", a->tasks, b->tasks) ||
           counts(differ, "edges", a->edges, b->edges);
}

bool differ_in(struct differ *differ, const struct heard *one, const struct heard *other)
{
    const struct bel_reply *a = &one->reply, *b = &other->reply;
    if (numbers(differ, "err", a->err, b->err)) return true;
    if (a->err) return false;
    switch (one->verb) {
    case BEL_VERB_SCHEDULE:
        return ids(differ, a->id, b->id);
    case BEL_VERB_FAIL:
        if (numbers(differ, "verdict", a->verdict.state, b->verdict.state)) return true;
        if (a->verdict.state != BEL_SCHEDULED) return false;
        return numbers(differ, "due", a->verdict.due.ms, b->verdict.due.ms);
    case BEL_VERB_GET:
    case BEL_VERB_LIST:
        return lists_of_timers(differ, a, b);
    case BEL_VERB_CLAIM:
        return lists_of_deliveries(differ, a, b);
    case BEL_VERB_TOPICS:
        return names(differ, a, b);
    case BEL_VERB_TOPIC:
        return topics(differ, a->topic, b->topic);
    case BEL_VERB_AGENDA:
        return steps(differ, a, b);
    case BEL_VERB_LIMIT:
        return limits(differ, a, b);
    case BEL_VERB_JOB_SUBMIT:
        return submitted(differ, &a->submitted, &b->submitted);
    case BEL_VERB_JOB_GET:
        return jobs(differ, a->job, b->job, false);
    case BEL_VERB_JOB_LIST:
        return lists_of_jobs(differ, a, b);
    case BEL_VERB_CONFIGURE:
    case BEL_VERB_PAUSE:
    case BEL_VERB_RESUME:
    case BEL_VERB_EXPLAIN:
        return false;
    default:
        return counts(differ, "count", a->count, b->count);
    }
}
