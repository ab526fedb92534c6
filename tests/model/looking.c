/* SPDX-License-Identifier: MIT */

/*
 * The verbs that only look: GET, LIST, TOPICS, TOPIC, AGENDA, EXPLAIN; and PAUSE and RESUME, which
 * are as short. LIST and PURGE walk through timers in one order:
 *
 *     0  timers with a due     due in wall ms, priority, sequence
 *     1  timers without        sequence
 *     2  terminal states       state, finished, sequence
 *
 * A cursor is the position in that order after which to continue.
 */
#include "inside.h"

#include "core/units.h"
#include "jobs/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_COUNT_DEFAULT = 100,
    LIST_BYTES = 1 << 20, /* of payloads, results and headers; then a reply is full */
    CURSOR_BYTES = 80,
    STEPS_MAX = 10000,
    DAY_MS = 24 * MS_PER_HOUR,
    LINE_BYTES = 200,
};

struct place {
    uint64_t section; /* 0, 1, or a terminal state */
    int64_t ms;       /* due or finished */
    uint64_t priority, sequence;
};

static struct place place_of(const struct model *model, const struct timer *timer)
{
    if (model_has_due(timer)) {
        int64_t ms = model_is_plan(timer) ? model_rings_ms(timer) : model_due_ms(model, timer);
        return (struct place){0, ms, timer->priority, timer->sequence};
    }
    if (model_is_unfinished(timer)) return (struct place){1, 0, 0, timer->sequence};
    return (struct place){timer->state, timer->finished.ms, 0, timer->sequence};
}

static bool is_before(const struct place *a, const struct place *b)
{
    if (a->section != b->section) return a->section < b->section;
    if (a->ms != b->ms) return a->ms < b->ms;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

size_t model_in_order(struct model *model, const struct topic *topic,
                      bool (*wanted)(const struct timer *timer, const void *context),
                      const void *context, struct timer ***out)
{
    struct timer **sorted = model_piece(model, model->timers.count * sizeof(void *));
    size_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->topic != topic || !wanted(timer, context)) continue;
        struct place place = place_of(model, timer);
        size_t at = count++;
        for (; at > 0; at--) {
            struct place before = place_of(model, sorted[at - 1]);
            if (is_before(&before, &place)) break;
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = timer;
    }
    *out = sorted;
    return count;
}

static void show_outcomes(struct model *model, const struct timer *timer, struct bel_timer *out)
{
    out->outcomes_count = timer->outcomes_count;
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        out->outcomes[i].kind = timer->outcomes[i].kind;
        out->outcomes[i].at = timer->outcomes[i].at;
        out->outcomes[i].reason = model_kept(model, timer->outcomes[i].reason);
    }
}

static void show_plan(struct model *model, const struct timer *timer, struct bel_timer *out)
{
    if (!model_is_plan(timer)) return;
    out->plan = timer->rule.said;
    out->plan.rule = model_kept(model, timer->rule.text);
    out->plan.zone = model_kept(model, timer->rule.zone);
    out->has_next = timer->rule.has_next;
    out->made = timer->rule.made;
    out->skipped = timer->rule.skipped;
    out->missed = timer->rule.missed;
    out->used = timer->rule.said.count > 0 ? model_rule_used(&timer->rule) : 0;
}

static struct bel_timer show(struct model *model, const struct timer *timer)
{
    struct bytes topic = {timer->topic->name, strlen(timer->topic->name)};
    struct bel_timer out = {
        .topic = model_kept(model, topic),
        .id = model_kept(model, timer->id),
        .payload = model_kept(model, timer->payload),
        .group = model_kept(model, timer->group),
        .resource = model_kept(model, timer->resource),
        .correlation = model_kept(model, timer->correlation),
        .retry = model_kept(model, timer->retry_text),
        .state = timer->state,
        .created = timer->created,
        .finished = timer->finished,
        .expires_ms = timer->expires_ms,
        .lease_ms = timer->lease_ms,
        .attempts = timer->attempts,
        .crashes = timer->crashes,
        .worker = model_kept(model, timer->worker),
        .reason = model_kept(model, timer->reason),
        .result = model_kept(model, timer->result),
        .plan_id = model_kept(model, timer->plan_id),
        .nominal = {timer->nominal_ms},
        .priority = timer->priority,
    };
    if (model_has_due(timer)) out.due.ms = model_due_ms(model, timer);
    bool expires = timer->expires_ms > 0 && !model_is_plan(timer);
    if (expires) out.expires.ms = model_in_wall_ms(model, timer->expires);
    if (timer->state == BEL_LEASED) {
        out.lease_left_ms = (uint64_t)(timer->lease_end_ms - model->open_ms);
    }
    out.headers = model_headers(model, timer, &out.headers_count);
    show_outcomes(model, timer, &out);
    show_plan(model, timer, &out);
    return out;
}

/* Finds the timer that a command names, and ends it if it has expired. */
static struct timer *find(struct model *model, const struct bel_target *command)
{
    struct topic *topic = model_topic_find(model, command->topic);
    struct timer *timer = topic != NULL ? model_timer_find(model, topic, command->id) : NULL;
    if (timer == NULL) return NULL;
    model_look(model, timer);
    model_forget(model);
    return model_timer_find(model, topic, command->id);
}

int model_get(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct timer *timer = find(model, command);
    if (timer == NULL) return 0;
    struct bel_timer *item = model_piece(model, sizeof *item);
    *item = show(model, timer);
    reply->timers.items = item;
    reply->timers.count = 1;
    return 0;
}

static struct bel_view print_cursor(struct model *model, const struct place *place)
{
    char *text = model_piece(model, CURSOR_BYTES);
    (void)snprintf(text, CURSOR_BYTES, "%" PRIu64 "_%" PRId64 "_%" PRIu64 "_%" PRIu64,
                   place->section, place->ms, place->priority, place->sequence);
    return model_text(text);
}

static bool read_cursor(struct bel_view cursor, struct place *out)
{
    char text[CURSOR_BYTES + 1], end;
    if (cursor.bytes > CURSOR_BYTES) return false;
    memcpy(text, cursor.data, cursor.bytes);
    text[cursor.bytes] = 0;
    return sscanf(text, "%" SCNu64 "_%" SCNd64 "_%" SCNu64 "_%" SCNu64 "%c", &out->section,
                  &out->ms, &out->priority, &out->sequence, &end) == 4;
}

struct listing {
    const struct model *model;
    const struct bel_list_query *query;
    bool has_after;
    struct place after;
};

static bool is_listed(const struct timer *timer, const void *context)
{
    const struct listing *listing = context;
    const struct bel_list_query *query = listing->query;
    struct place place = place_of(listing->model, timer);
    if (query->has_state && timer->state != query->state) return false;
    if ((query->has_from || query->has_to) && !model_has_due(timer)) return false;
    if (query->has_from && place.ms < query->from.ms) return false;
    if (query->has_to && place.ms >= query->to.ms) return false;
    return !listing->has_after || is_before(&listing->after, &place);
}

static size_t bytes_of(const struct bel_timer *timer)
{
    size_t bytes = timer->payload.bytes + timer->result.bytes;
    for (size_t i = 0; i < timer->headers_count; i++) {
        bytes += timer->headers[i].name.bytes + timer->headers[i].value.bytes;
    }
    return bytes;
}

int model_list(struct model *model, const struct bel_list_query *command, struct bel_reply *reply)
{
    struct listing listing = {model, command, command->cursor.bytes > 0, {0}};
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    uint32_t count_max = model->options.list_count_max;
    if (count_max == 0) count_max = BEL_LIST_COUNT_MAX;
    if (command->count > count_max) return model_refuse(reply, BEL_EINVAL, "count");
    if (command->has_state && command->state >= BEL_STATES) {
        return model_refuse(reply, BEL_EINVAL, "state");
    }
    if (listing.has_after && !read_cursor(command->cursor, &listing.after)) {
        return model_refuse(reply, BEL_EINVAL, "cursor");
    }
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic == NULL) return 0;

    struct timer **sorted;
    size_t count = model_in_order(model, topic, is_listed, &listing, &sorted);
    size_t most = command->count > 0 ? command->count : LIST_COUNT_DEFAULT;
    size_t shown = 0, bytes = 0;
    size_t bytes_max = most > BEL_LIST_COUNT_MAX ? SIZE_MAX : LIST_BYTES; /* or all of them */
    struct bel_timer *items = model_piece(model, (count < most ? count : most) * sizeof *items);
    for (; shown < count && shown < most && bytes <= bytes_max; shown++) {
        items[shown] = show(model, sorted[shown]);
        bytes += bytes_of(&items[shown]);
    }
    reply->timers.items = items;
    reply->timers.count = shown;
    if (count == shown) return 0;
    struct place last = place_of(model, sorted[shown - 1]);
    reply->timers.cursor = print_cursor(model, &last);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct bel_view *left = a, *right = b;
    size_t bytes = left->bytes < right->bytes ? left->bytes : right->bytes;
    int order = memcmp(left->data, right->data, bytes);
    if (order != 0) return order;
    return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

int model_topics(struct model *model, struct bel_reply *reply)
{
    struct bel_view *names = model_piece(model, model->topics.count * sizeof *names);
    for (size_t i = 0; i < model->topics.count; i++) {
        const struct topic *topic = model->topics.items[i];
        names[i] = model_text(topic->name);
    }
    qsort(names, model->topics.count, sizeof *names, compare_names);
    reply->names.items = names;
    reply->names.count = model->topics.count;
    return 0;
}

static uint64_t age_ms(const struct model *model, const struct timer *timer)
{
    int64_t age = model->wall_ms - model_due_ms(model, timer);
    return age > 0 ? (uint64_t)age : 0;
}

int model_topic(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic == NULL) return model_refuse(reply, BEL_ENOTFOUND, "no such topic");
    struct bel_topic *out = model_piece(model, sizeof *out);
    out->name = model_text(topic->name);
    out->paused = topic->paused;
    out->settings = model_settings_print(model, topic, &out->settings_count);
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->topic != topic) continue;
        out->counts[timer->state]++;
        if (model_is_plan(timer) && model_is_unfinished(timer)) out->plans++;
        if (timer->state != BEL_READY) continue;
        uint64_t age = age_ms(model, timer);
        if (age > out->oldest_age_ms) out->oldest_age_ms = age;
    }
    reply->topic = out;
    return 0;
}

int model_pause(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    model_topic_make(model, command->topic)->paused = true;
    return 0;
}

int model_resume(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic != NULL) topic->paused = false;
    return 0;
}

int model_explain(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct timer *timer = find(model, command);
    if (timer == NULL) return model_refuse(reply, BEL_ENOTFOUND, "no such timer");
    struct bel_view *lines = model_piece(model, 2 * sizeof *lines);
    char *line = model_piece(model, LINE_BYTES);
    (void)snprintf(line, LINE_BYTES, "It is %s.", bel_state_name(timer->state));
    lines[reply->names.count++] = model_text(line);
    if (timer->topic->paused) {
        lines[reply->names.count++] = model_text("The topic is paused: nothing is delivered.");
    }
    reply->names.items = lines;
    return 0;
}

/* Returns the largest multiple of `step` that is not after `ms`. */
static int64_t round_down(int64_t ms, int64_t step)
{
    int64_t rest = ms % step;
    return ms - (rest < 0 ? rest + step : rest);
}

struct steps {
    struct bel_agenda_step *items;
    size_t count;
    int64_t from, step;
};

static void count_at(const struct steps *steps, int64_t ms)
{
    if (ms < steps->from) return;
    uint64_t index = (uint64_t)(ms - steps->from) / (uint64_t)steps->step;
    if (index < steps->count) steps->items[index].count++;
}

static void count_plan(const struct steps *steps, const struct timer *plan)
{
    const struct rule *rule = &plan->rule;
    int64_t end = steps->from + (int64_t)steps->count * steps->step;
    uint64_t left = rule->said.count > 0 ? rule->said.count - model_rule_used(rule) : UINT64_MAX;
    bool has_more = rule->has_next;
    int64_t place = model_rings_ms(plan) - rule->next_ms; /* in the spread window */
    for (int64_t at = rule->next_ms; has_more && left > 0 && at + place < end; left--) {
        count_at(steps, at + place);
        has_more = rule->said.mode != BEL_PLAN_DELAY && model_rule_next(rule, at, &at);
    }
}

/* Divides the period into steps. Refuses too many steps. */
static int divide(struct model *model, const struct bel_agenda *command, struct steps *out)
{
    int64_t from = command->has_from ? command->from.ms : model->wall_ms;
    int64_t to = command->has_to ? command->to.ms : from + DAY_MS;
    if (command->step_ms > (uint64_t)TIME_END_MS) return BEL_EINVAL;
    int64_t step = command->step_ms > 0 ? (int64_t)command->step_ms : MS_PER_HOUR;
    bool is_empty = to <= from;
    if (step % MS_PER_HOUR == 0) from = round_down(from, MS_PER_HOUR);
    int64_t count = is_empty ? 0 : (to - from + step - 1) / step;
    if (count > STEPS_MAX) return BEL_EINVAL;
    out->from = from;
    out->step = step;
    out->count = (size_t)count;
    out->items = model_piece(model, out->count * sizeof *out->items);
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].start.ms = from + (int64_t)i * step;
    }
    return 0;
}

/* Returns whether a job or one of its `then` has tasks in a topic. */
static bool has_tasks_in(const struct bel_job_graph *graph, struct bel_view topic)
{
    for (uint32_t i = 0; i < graph->topics_count; i++) {
        if (model_same(graph->topics[i].name, topic)) return true;
    }
    for (uint32_t i = 0; i < graph->then_count; i++) {
        if (has_tasks_in(graph->then[i].graph, topic)) return true;
    }
    return false;
}

int model_agenda(struct model *model, const struct bel_agenda *command, struct bel_reply *reply)
{
    struct steps steps;
    bool has_topic = command->topic.bytes > 0;
    if (has_topic && !bel_topic_is_valid(command->topic)) {
        return model_refuse(reply, BEL_EINVAL, "topic");
    }
    if (divide(model, command, &steps) != 0) return model_refuse(reply, BEL_EINVAL, "steps");
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (has_topic && !model_same(command->topic, model_text(timer->topic->name))) continue;
        if (!model_has_due(timer)) continue;
        if (model_is_plan(timer)) {
            count_plan(&steps, timer);
        } else {
            count_at(&steps, model_due_ms(model, timer));
        }
    }
    for (size_t i = 0; i < model->jobs.count; i++) {
        const struct job *job = model_job_at(model, i);
        bool counts = !has_topic || has_tasks_in(job->graph, command->topic);
        if (job->plan != NULL && counts) count_plan(&steps, job->plan);
    }
    reply->steps.items = steps.items;
    reply->steps.count = steps.count;
    return 0;
}
