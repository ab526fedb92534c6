/* SPDX-License-Identifier: MIT */

/*
 * Plans: when they ring, what they make, and what happens to missed times.
 *
 *     nominal   |       |       |       |          ring of a plan that is late:
 *     times     x       x       x       x   now     x x  misfires: MISFIRE chooses
 *                       '- now - misfire_after          x x  late by less: made
 *
 * A plan rings one nominal time after the other, or all its misfires at once. Plans ring in the
 * order of these times. The occurrences of a plan are the timers that have its id as plan_id.
 */
#include "inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_rule_free(struct rule *rule)
{
    bel_plan_destroy(rule->plan);
    model_free(&rule->text);
    model_free(&rule->zone);
}

static int find_zone(struct model *model, struct bel_view name, const struct bel_zone **out)
{
    *out = bel_zone_utc();
    if (name.bytes == 0 || model_same(name, BEL_VIEW("UTC"))) return 0;
    if (model->options.zones == NULL) return BEL_EINVAL;
    return bel_zones_find(model->options.zones, name.data, name.bytes, out);
}

/* Returns the start that was requested. An interval of mode delay cannot start in the past. */
static int64_t start_of(const struct model *model, const struct bel_schedule_spec *spec)
{
    int64_t start = spec->at.ms;
    if (spec->when == BEL_WHEN_IN) start = model->wall_ms + (int64_t)spec->delay_ms;
    bool is_past = start < model->wall_ms;
    return is_past && spec->plan.mode == BEL_PLAN_DELAY ? model->wall_ms : start;
}

/* Creates the plan from its options again, for example after a change of an interval's start. */
static int make_plan(struct rule *rule)
{
    struct bel_plan *plan;
    int err = bel_plan_create(rule->text.data, rule->text.count, &rule->options, &plan, NULL);
    if (err) return err;
    bel_plan_destroy(rule->plan);
    rule->plan = plan;
    return bel_plan_kind(plan) == rule->said.kind ? 0 : BEL_EINVAL;
}

void model_rule_clone(struct rule *rule)
{
    if (rule->plan == NULL) return;
    rule->plan = NULL;
    rule->text = model_copy(model_view(rule->text));
    rule->zone = model_copy(model_view(rule->zone));
    if (make_plan(rule) != 0) abort();
}

int model_rule_make(struct model *model, const struct bel_schedule_spec *spec, struct bel_view id,
                    struct rule *out)
{
    const struct bel_recurrence *said = &spec->plan;
    struct rule rule = {.said = *said};
    rule.options = (struct bel_plan_options){
        .gap = said->gap,
        .fold = said->fold,
        .mode = said->mode,
        .has_start = spec->when != BEL_WHEN_NOW,
        .has_until = said->has_until,
        .now = {model->wall_ms},
        .start = {start_of(model, spec)},
        .until = said->until,
        .count = said->count,
        .seed = bel_spread_offset(id.data, id.bytes, UINT64_MAX),
    };
    int err = find_zone(model, said->zone, &rule.options.zone);
    if (err) return err;

    rule.text = model_copy(said->rule);
    rule.zone = model_copy(said->zone);
    err = make_plan(&rule);
    if (err == 0) {
        rule.has_next = model_rule_next(&rule, model->wall_ms - 1, &rule.next_ms);
        err = rule.has_next ? 0 : BEL_EINVAL;
    }
    if (err) {
        model_rule_free(&rule);
        return err;
    }
    *out = rule;
    return 0;
}

uint64_t model_rule_used(const struct rule *rule)
{
    return rule->made + rule->skipped + rule->missed;
}

bool model_rule_next(const struct rule *rule, int64_t after_ms, int64_t *out_ms)
{
    struct bel_wall next;
    int err = bel_plan_next(rule->plan, (struct bel_wall){after_ms}, model_rule_used(rule), &next);
    assert(err == 0 || err == BEL_ERANGE);
    if (err || next.ms > TIME_END_MS) return false;
    *out_ms = next.ms;
    return true;
}

void model_rule_reschedule(struct model *model, struct timer *plan, int64_t next_ms)
{
    struct rule *rule = &plan->rule;
    rule->next_ms = next_ms > model->wall_ms ? next_ms : model->wall_ms;
    rule->has_next = true;
    plan->sequence = ++model->sequence;
    if (rule->said.kind != BEL_PLAN_EVERY) return;
    rule->options.has_start = true;
    rule->options.start.ms = rule->next_ms;
    if (make_plan(rule) != 0) abort();
}

static uint64_t spread_of(const struct timer *plan)
{
    return bel_spread_offset(plan->id.data, plan->id.count, plan->rule.said.spread_ms);
}

int64_t model_rings_ms(const struct timer *plan)
{
    return plan->rule.next_ms + (int64_t)spread_of(plan);
}

static struct timer *find_plan(struct model *model, struct topic *topic, struct bel_view id)
{
    struct timer *plan = model_timer_find(model, topic, id);
    if (plan == NULL || !model_is_plan(plan) || !model_is_unfinished(plan)) return NULL;
    return plan;
}

/* Returns how many occurrences of a plan are unfinished, and sets `*out_blocked` to how many of
 * them are blocked. */
static size_t count_unfinished(struct model *model, const struct topic *topic,
                               struct bel_view plan_id, size_t *out_blocked)
{
    size_t count = 0, blocked = 0;
    for (size_t i = 0; i < model->timers.count; i++) {
        const struct timer *timer = model_timer_at(model, i);
        if (!model_is_occurrence_of(timer, topic, plan_id) || !model_is_unfinished(timer)) continue;
        count++;
        if (timer->state == BEL_BLOCKED) blocked++;
    }
    *out_blocked = blocked;
    return count;
}

static struct timer *first_blocked(struct model *model, const struct topic *topic,
                                   struct bel_view plan_id)
{
    struct timer *first = NULL;
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_BLOCKED) continue;
        if (!model_is_occurrence_of(timer, topic, plan_id)) continue;
        if (first == NULL || timer->nominal_ms < first->nominal_ms) first = timer;
    }
    return first;
}

static void end_plan(struct model *model, struct timer *plan)
{
    model_finish(model, plan, BEL_DONE, (struct bel_view){NULL, 0});
}

/* Sets the next time to the first one after `after_ms`, or ends the plan if there is none. */
static void set_next(struct model *model, struct timer *plan, int64_t after_ms)
{
    plan->rule.has_next = model_rule_next(&plan->rule, after_ms, &plan->rule.next_ms);
    if (!plan->rule.has_next) end_plan(model, plan);
}

void model_occurrence_ended(struct model *model, struct topic *topic, struct bel_view plan_id)
{
    size_t blocked, unfinished = count_unfinished(model, topic, plan_id, &blocked);
    struct timer *next = first_blocked(model, topic, plan_id);
    if (next != NULL && blocked == unfinished) model_due_again(model, next, next->due);
    struct timer *plan = find_plan(model, topic, plan_id);
    if (plan == NULL || plan->rule.has_next || unfinished > 0) return;
    assert(plan->rule.said.mode == BEL_PLAN_DELAY);
    set_next(model, plan, model->wall_ms);
}

static void copy_headers(struct timer *to, const struct timer *from)
{
    to->headers_count = from->headers_count;
    to->headers = model_alloc(from->headers_count * sizeof *to->headers);
    for (size_t i = 0; i < from->headers_count; i++) {
        to->headers[i].name = model_copy(model_view(from->headers[i].name));
        to->headers[i].value = model_copy(model_view(from->headers[i].value));
    }
}

static struct timer *make_occurrence(struct model *model, const struct timer *plan,
                                     int64_t nominal_ms, struct bel_view id)
{
    struct timer *timer = model_alloc(sizeof *timer);
    timer->topic = plan->topic;
    timer->id = model_copy(id);
    timer->payload = model_copy(model_view(plan->payload));
    timer->group = model_copy(model_view(plan->group));
    timer->resource = model_copy(model_view(plan->resource));
    timer->correlation = model_copy(model_view(plan->correlation));
    timer->retry_text = model_copy(model_view(plan->retry_text));
    timer->retry = plan->retry;
    copy_headers(timer, plan);
    timer->priority = plan->priority;
    timer->lease_ms = plan->lease_ms;
    timer->expires_ms = plan->expires_ms;
    timer->created.ms = model->wall_ms;
    timer->plan_id = model_copy(model_view(plan->id));
    timer->nominal_ms = nominal_ms;
    model_expires_from(timer, (struct instant){WALL, nominal_ms});
    int64_t due_ms = nominal_ms + (int64_t)spread_of(plan);
    model_due_again(model, timer, (struct instant){WALL, due_ms});
    model_list_add(&model->timers, timer);
    return timer;
}

/* Makes the occurrence of a nominal time. Returns false if it was left out. */
static bool make(struct model *model, struct timer *plan, int64_t nominal_ms)
{
    char id[BEL_ID_BYTES + 1];
    size_t blocked;
    int bytes =
        snprintf(id, sizeof id, "%.*s@%" PRId64, (int)plan->id.count, plan->id.data, nominal_ms);
    struct bel_view view = {id, (size_t)bytes};
    size_t unfinished = count_unfinished(model, plan->topic, model_view(plan->id), &blocked);
    enum bel_overlap overlap = plan->rule.said.overlap;
    bool is_left_out = model_timer_find(model, plan->topic, view) != NULL ||
                       (overlap == BEL_OVERLAP_SKIP && unfinished > 0) ||
                       (overlap == BEL_OVERLAP_QUEUE && blocked >= BEL_OVERLAP_QUEUE_MAX);
    if (is_left_out) {
        plan->rule.skipped++;
        return false;
    }
    struct timer *timer = make_occurrence(model, plan, nominal_ms, view);
    if (overlap == BEL_OVERLAP_QUEUE && unfinished > 0) timer->state = BEL_BLOCKED;
    plan->rule.made++;
    return true;
}

/* Sets `*out` to the plan's first time after `after`: its next time, which a command may have set,
 * then the times of the rule. */
static bool next_of_plan(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct rule *rule = context;
    if (after.ms < rule->next_ms) {
        out->ms = rule->next_ms;
        return true;
    }
    return model_rule_next(rule, after.ms, &out->ms);
}

/* Makes up for missed times, from the first of `times` on. */
static void make_up(struct model *model, struct timer *plan, const struct bel_wall *times,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        model_expire(model, plan->topic); /* an occurrence may have expired when it is made */
        (void)make(model, plan, times[i].ms);
    }
}

struct bel_wall *model_rule_misfires(struct rule *rule, int64_t until_ms, size_t *out_count)
{
    uint64_t left = UINT64_MAX;
    struct bel_wall next = {rule->next_ms};
    size_t count = 0, room = 16, made = 0;
    struct bel_wall *times = model_alloc(room * sizeof *times);
    if (rule->said.count > 0) left = rule->said.count - model_rule_used(rule);
    do {
        if (count == room) {
            room *= 2;
            times = realloc(times, room * sizeof *times);
            if (times == NULL) abort();
        }
        times[count++] = next;
    } while (count < left && model_rule_next(rule, next.ms, &next.ms) && next.ms <= until_ms);
    if (rule->said.misfire == BEL_MISFIRE_LAST) made = 1;
    if (rule->said.misfire == BEL_MISFIRE_ALL) {
        made = count < BEL_MISFIRE_MAX ? count : BEL_MISFIRE_MAX;
    }
    rule->missed += count - made;
    memmove(times, times + (count - made), made * sizeof *times);
    *out_count = made;
    return times;
}

/* Rings a plan with COUNT that has missed its times up to and including `until_ms`. */
static void ring_counted(struct model *model, struct timer *plan, int64_t until_ms)
{
    size_t made;
    struct bel_wall *times = model_rule_misfires(&plan->rule, until_ms, &made);
    make_up(model, plan, times, made);
    free(times);
    set_next(model, plan, until_ms);
}

/* Rings a plan that has missed its times up to and including `until_ms`. */
static void ring_missed(struct model *model, struct timer *plan, int64_t until_ms)
{
    static struct bel_wall times[BEL_MISFIRE_MAX];
    struct rule *rule = &plan->rule;
    struct bel_misfire_plan asked = {next_of_plan, rule};
    struct bel_misfire_range range = {{rule->next_ms - 1}, {until_ms}};
    struct bel_misfire_result result =
        bel_misfire_choose(rule->said.misfire, BEL_MISFIRE_MAX, &asked, range, times);
    rule->missed += result.skipped_count;
    make_up(model, plan, times, result.made_count);
    set_next(model, plan, until_ms);
}

/* Rings a plan of mode delay: it has one time, and no next time until its occurrence ends. */
static void ring_delay(struct model *model, struct timer *plan, bool is_misfire)
{
    struct rule *rule = &plan->rule;
    int64_t nominal_ms = rule->next_ms;
    bool is_missed = is_misfire && rule->said.misfire == BEL_MISFIRE_SKIP;
    if (is_missed) rule->missed++;
    rule->has_next = false;
    if (is_missed || !make(model, plan, nominal_ms)) {
        set_next(model, plan, model->wall_ms);
    } else if (rule->said.count > 0 && model_rule_used(rule) >= rule->said.count) {
        end_plan(model, plan);
    }
}

static void ring(struct model *model, struct timer *plan)
{
    uint64_t after_ms = plan->topic->settings.misfire_after_ms;
    if (after_ms > (uint64_t)TIME_END_MS) after_ms = (uint64_t)TIME_END_MS;
    int64_t until_ms = model->wall_ms - (int64_t)spread_of(plan) - (int64_t)after_ms - 1;
    int64_t nominal_ms = plan->rule.next_ms;
    if (plan->rule.said.mode == BEL_PLAN_DELAY) {
        ring_delay(model, plan, nominal_ms <= until_ms);
    } else if (nominal_ms <= until_ms && plan->rule.said.count > 0) {
        ring_counted(model, plan, until_ms);
    } else if (nominal_ms <= until_ms) {
        ring_missed(model, plan, until_ms);
    } else {
        (void)make(model, plan, nominal_ms);
        set_next(model, plan, nominal_ms);
    }
}

static bool rings_before(const struct timer *a, const struct timer *b)
{
    int64_t a_ms = model_rings_ms(a), b_ms = model_rings_ms(b);
    if (a_ms != b_ms) return a_ms < b_ms;
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->sequence < b->sequence;
}

bool model_ring_first(struct model *model)
{
    struct timer *first = NULL;
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (!model_is_plan(timer) || !timer->rule.has_next) continue;
        if (model_rings_ms(timer) > model->wall_ms) continue;
        if (first == NULL || rings_before(timer, first)) first = timer;
    }
    if (first == NULL) return false;
    ring(model, first);
    return true;
}
