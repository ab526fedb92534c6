/* SPDX-License-Identifier: MIT */

/*
 * The verbs that create, move and remove timers. SCHEDULE checks its arguments, then whether the id
 * is taken, then whether there is room. Only after that it changes anything.
 */
#include "inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PRIORITY_DEFAULT = 128,
    MADE_ID_BYTES = 26,
    MADE_ID_BITS = 5, /* bits per character */
    MADE_ID_DUE_CHARACTERS = 10,
};

static bool is_resource(struct bel_view name)
{
    const char *text = name.data;
    for (size_t i = 0; i < name.bytes; i++) {
        struct bel_view one = {text + i, 1};
        if (!bel_topic_is_valid(one)) return false;
    }
    return name.bytes <= BEL_GROUP_BYTES_MAX;
}

static bool headers_fit(const struct bel_schedule_spec *spec)
{
    size_t bytes = 0;
    if (spec->headers_count > BEL_HEADERS_MAX) return false;
    for (size_t i = 0; i < spec->headers_count; i++) {
        bytes += spec->headers[i].name.bytes + spec->headers[i].value.bytes;
    }
    return bytes <= BEL_HEADERS_BYTES_MAX;
}

/* Sets the due time of a timer that is not a plan. Returns false if it is out of range, or if
 * `when` is unknown. */
bool model_find_due(const struct model *model, enum bel_when when, uint64_t delay_ms,
                    struct bel_wall at, struct instant *out)
{
    switch (when) {
    case BEL_WHEN_NOW:
        *out = (struct instant){ENGINE, model->engine_ms};
        return true;
    case BEL_WHEN_IN:
        if (!model_reaches(model, delay_ms)) return false;
        *out = (struct instant){ENGINE, model->engine_ms + (int64_t)delay_ms};
        return true;
    case BEL_WHEN_AT:
        *out = (struct instant){WALL, at.ms};
        return at.ms <= TIME_END_MS;
    }
    return false;
}

/* Returns what is wrong with a schedule, except for its id, retry policy and plan; NULL if nothing
 * is. */
static bool has_reserved(const struct bel_schedule_spec *spec)
{
    for (size_t i = 0; i < spec->headers_count && !spec->is_imported; i++) {
        struct bel_view name = spec->headers[i].name;
        if (name.bytes >= 7 && strncasecmp(name.data, "belfry-", 7) == 0) return true;
    }
    return false;
}

static const char *find_fault(const struct model *model, const struct bel_schedule_spec *spec)
{
    struct instant due;
    if (!bel_topic_is_valid(spec->topic)) return "topic";
    if (spec->payload.bytes > BEL_PAYLOAD_BYTES_DEFAULT) return "payload";
    if (spec->group.bytes > BEL_GROUP_BYTES_MAX) return "group";
    if (!is_resource(spec->resource)) return "resource";
    if (spec->correlation.bytes > BEL_TEXT_BYTES_MAX) return "correlation";
    if (!headers_fit(spec)) return "headers";
    if (has_reserved(spec)) return "a reserved header";
    if (!model_reaches(model, spec->lease_ms)) return "lease";
    if (!model_reaches(model, spec->expires_ms)) return "expires";
    if (!model_reaches(model, spec->plan.spread_ms)) return "spread";
    if (!model_find_due(model, spec->when, spec->delay_ms, spec->at, &due)) return "when";
    if ((unsigned)spec->conflict > BEL_CONFLICT_LATEST) return "conflict";
    if ((unsigned)spec->plan.overlap > BEL_OVERLAP_ALLOW) return "overlap";
    if ((unsigned)spec->plan.misfire > BEL_MISFIRE_ALL) return "misfire";
    return NULL;
}

/* Makes an id that sorts by due time: the due time in the first characters, then a number. */
static struct bytes make_id(const struct model *model, const struct timer *timer)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    struct bytes id = {model_alloc(MADE_ID_BYTES), MADE_ID_BYTES};
    int64_t due_ms = model_due_ms(model, timer);
    uint64_t high = due_ms > 0 ? (uint64_t)due_ms : 0, low = timer->sequence;
    for (size_t i = MADE_ID_BYTES; i-- > 0;) {
        uint64_t *part = i < MADE_ID_DUE_CHARACTERS ? &high : &low;
        id.data[i] = digits[*part % (1U << MADE_ID_BITS)];
        *part >>= MADE_ID_BITS;
    }
    return id;
}

static void copy_headers(struct timer *timer, const struct bel_schedule_spec *spec)
{
    timer->headers_count = spec->headers_count;
    timer->headers = model_alloc(spec->headers_count * sizeof *timer->headers);
    for (size_t i = 0; i < spec->headers_count; i++) {
        timer->headers[i].name = model_copy(spec->headers[i].name);
        timer->headers[i].value = model_copy(spec->headers[i].value);
    }
}

/* Creates the requested timer without adding it to the model. Returns NULL if the plan or the retry
 * policy is invalid. */
static struct timer *make_timer(struct model *model, const struct bel_schedule_spec *spec)
{
    struct timer *timer = model_alloc(sizeof *timer);
    bool has_retry = spec->retry.bytes > 0;
    if (has_retry &&
        bel_backoff_parse(spec->retry.data, spec->retry.bytes, &timer->retry, NULL) != 0) {
        free(timer);
        return NULL;
    }
    bool is_plan = spec->plan.rule.bytes > 0;
    if (is_plan && model_rule_make(model, spec, spec->id, &timer->rule) != 0) {
        free(timer);
        return NULL;
    }
    timer->id = model_copy(spec->id);
    timer->payload = model_copy(spec->payload);
    timer->group = model_copy(spec->group);
    timer->resource = model_copy(spec->resource);
    timer->correlation = model_copy(spec->correlation);
    timer->retry_text = model_copy(spec->retry);
    copy_headers(timer, spec);
    timer->state = BEL_SCHEDULED;
    timer->priority = spec->has_priority ? spec->priority : PRIORITY_DEFAULT;
    timer->sequence = ++model->sequence;
    timer->created.ms = model->wall_ms;
    timer->expires_ms = spec->expires_ms;
    timer->lease_ms = spec->lease_ms;
    (void)model_find_due(model, spec->when, spec->delay_ms, spec->at, &timer->due);
    model_expires_from(timer, timer->due);
    if (timer->id.count == 0) timer->id = make_id(model, timer);
    return timer;
}

size_t model_count_unfinished(struct model *model, const struct topic *topic)
{
    size_t count = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (timer->topic != topic || model_is_plan(timer)) continue;
        if (model_is_unfinished(timer)) count++;
    }
    return count;
}

/* Returns whether the conflict policy keeps the old timer with the same id. */
static bool old_stays(const struct model *model, const struct timer *old, const struct timer *timer,
                      enum bel_conflict conflict)
{
    if (conflict == BEL_CONFLICT_REPLACE) return false;
    if (conflict == BEL_CONFLICT_KEEP || conflict == BEL_CONFLICT_REJECT) return true;
    if (!model_has_due(old)) return false;
    int64_t old_ms = model_due_ms(model, old), new_ms = model_due_ms(model, timer);
    return conflict == BEL_CONFLICT_EARLIEST ? old_ms <= new_ms : old_ms >= new_ms;
}

void model_timer_remove(struct model *model, struct timer *timer)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        if (model->timers.items[i] != timer) continue;
        model_list_remove(&model->timers, i);
        model_timer_free(timer);
        return;
    }
    abort();
}

/* Returns whether a timer that takes the place of `old` makes one more that a depth counts. */
static bool adds_to_depth(const struct timer *old, const struct timer *timer)
{
    bool replaces = old != NULL && model_is_unfinished(old) && !model_is_plan(old);
    return !model_is_plan(timer) && !replaces;
}

static bool is_full(struct model *model, const struct topic *topic)
{
    if (topic == NULL || topic->settings.depth == 0) return false;
    return model_count_unfinished(model, topic) >= topic->settings.depth;
}

/* Adds a new timer to its topic, or frees it. */
static int place(struct model *model, struct timer *timer, const struct bel_schedule_spec *spec,
                 struct bel_reply *reply)
{
    struct topic *topic = model_topic_find(model, spec->topic);
    struct timer *old = model_timer_find(model, topic, model_view(timer->id));
    bool stays = old != NULL && old_stays(model, old, timer, spec->conflict);
    if (stays && spec->conflict == BEL_CONFLICT_REJECT) {
        model_timer_free(timer);
        return model_refuse(reply, BEL_ECONFLICT, "the id is taken");
    }
    reply->id = model_kept(model, timer->id);
    if (stays) {
        model_timer_free(timer);
        return 0;
    }
    const struct topic *added = adds_to_depth(old, timer) ? topic : NULL;
    if (is_full(model, added) || model_is_pressed(model, added)) {
        model_timer_free(timer);
        return model_refuse(reply, BEL_EFULL, "the topic is full");
    }
    if (old != NULL) model_timer_remove(model, old);
    timer->topic = model_topic_make(model, spec->topic);
    model_list_add(&model->timers, timer);
    return 0;
}

int model_schedule(struct model *model, const struct bel_schedule_spec *spec,
                   struct bel_reply *reply)
{
    const char *fault = find_fault(model, spec);
    if (fault != NULL) return model_refuse(reply, BEL_EINVAL, fault);
    struct topic *topic = model_topic_find(model, spec->topic);
    struct timer *old = topic != NULL ? model_timer_find(model, topic, spec->id) : NULL;
    if (old != NULL) model_look(model, old);
    if (old != NULL && old->job != NULL) {
        return model_refuse(reply, BEL_ECONFLICT, "the id is a task's");
    }
    if (old != NULL && old->plan_id.count > 0) {
        return model_refuse(reply, BEL_ECONFLICT, "the id is an occurrence's");
    }
    if (spec->id.bytes > 0 && !bel_id_is_valid(spec->id)) {
        return model_refuse(reply, BEL_EINVAL, "id");
    }
    struct timer *timer = make_timer(model, spec);
    if (timer == NULL) return model_refuse(reply, BEL_EINVAL, "plan or retry");
    return place(model, timer, spec, reply);
}

static void cancel_occurrences(struct model *model, const struct timer *plan, bool blocked_ones)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (!model_is_occurrence_of(timer, plan->topic, model_view(plan->id))) continue;
        model_look(model, timer);
        if (!model_is_unfinished(timer)) continue;
        if (blocked_ones && timer->state != BEL_BLOCKED) continue;
        model_finish(model, timer, BEL_CANCELLED, (struct bel_view){NULL, 0});
    }
}

/* Cancelling a plan cancels its unfinished occurrences: first the blocked ones, so that none of
 * them is unblocked by the end of another. */
static void cancel(struct model *model, struct timer *timer)
{
    model_finish(model, timer, BEL_CANCELLED, (struct bel_view){NULL, 0});
    if (!model_is_plan(timer)) return;
    cancel_occurrences(model, timer, true);
    cancel_occurrences(model, timer, false);
}

int model_cancel(struct model *model, const struct bel_cancel *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic == NULL) return 0;
    for (size_t i = 0; i < command->ids_count; i++) {
        struct timer *timer = model_timer_find(model, topic, command->ids[i]);
        if (timer == NULL) continue;
        model_look(model, timer);
        if (!model_is_unfinished(timer)) continue;
        cancel(model, timer);
        reply->count++;
    }
    return 0;
}

int model_reschedule(struct model *model, const struct bel_reschedule *command,
                     struct bel_reply *reply)
{
    struct instant due;
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    if (command->when == BEL_WHEN_NOW) return model_refuse(reply, BEL_EINVAL, "when");
    if (!model_find_due(model, command->when, command->delay_ms, command->at, &due)) {
        return model_refuse(reply, BEL_EINVAL, "when");
    }
    struct topic *topic = model_topic_find(model, command->topic);
    struct timer *timer = topic != NULL ? model_timer_find(model, topic, command->id) : NULL;
    if (timer == NULL) return 0;
    model_look(model, timer);
    if (timer->state != BEL_SCHEDULED && timer->state != BEL_READY) return 0;
    if (model_is_plan(timer)) {
        model_rule_reschedule(model, timer, model_in_wall_ms(model, due));
    } else {
        model_due_again(model, timer, due);
        model_expires_from(timer, due);
    }
    reply->count = 1;
    return 0;
}

static bool is_dead(const struct timer *timer, const void *context)
{
    const struct bel_target *command = context;
    if (timer->state != BEL_DEAD || timer->job != NULL) return false;
    return command->id.bytes == 0 || model_same(command->id, model_view(timer->id));
}

int model_revive(struct model *model, const struct bel_target *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic == NULL) return 0;
    struct timer **dead;
    reply->count = model_in_order(model, topic, is_dead, command, &dead);
    for (size_t i = 0; i < reply->count; i++) {
        struct instant now = {ENGINE, model->engine_ms};
        dead[i]->attempts = 0;
        dead[i]->crashes = 0;
        dead[i]->finished.ms = 0;
        model_free(&dead[i]->reason);
        model_due_again(model, dead[i], now);
        model_expires_from(dead[i], now);
    }
    return 0;
}

static bool is_purged(const struct timer *timer, const void *context)
{
    const struct bel_purge *command = context;
    if (timer->job != NULL) return false;
    return command->has_state ? timer->state == command->state : !model_is_unfinished(timer);
}

/* Frees a timer. An unfinished occurrence is reported as ended. */
static void purge(struct model *model, struct timer *timer)
{
    struct topic *topic = timer->topic;
    struct bytes plan_id = timer->plan_id;
    bool has_ended = model_is_unfinished(timer) && plan_id.count > 0;
    timer->plan_id = (struct bytes){NULL, 0};
    model_timer_remove(model, timer);
    if (has_ended) model_occurrence_ended(model, topic, model_view(plan_id));
    model_free(&plan_id);
}

int model_purge(struct model *model, const struct bel_purge *command, struct bel_reply *reply)
{
    if (!bel_topic_is_valid(command->topic)) return model_refuse(reply, BEL_EINVAL, "topic");
    if (command->has_state && (command->state >= BEL_STATES || command->state == BEL_LEASED ||
                               command->state == BEL_BLOCKED)) {
        return model_refuse(reply, BEL_EINVAL, "state");
    }
    struct topic *topic = model_topic_find(model, command->topic);
    if (topic == NULL) return 0;
    struct timer **gone;
    reply->count = model_in_order(model, topic, is_purged, command, &gone);
    for (size_t i = 0; i < reply->count; i++) {
        purge(model, gone[i]);
    }
    return 0;
}
