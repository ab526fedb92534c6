/* SPDX-License-Identifier: MIT */

/*
 * The life of a timer: it becomes due, expires, ends and is deleted. All of this is evaluated for
 * all timers whenever it could have changed.
 */
#include "inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct timer *model_timer_find(struct model *model, struct topic *topic, struct bel_view id)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->topic == topic && model_same(id, model_view(timer->id))) return timer;
    }
    return NULL;
}

struct timer *model_timer_of_token(struct model *model, struct bel_view token)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_LEASED) continue;
        if (model_same(token, model_text(timer->token))) return timer;
    }
    return NULL;
}

void model_timer_texts(struct timer *timer, struct bytes *out[MODEL_TEXTS])
{
    struct bytes *const all[MODEL_TEXTS] = {
        &timer->id,         &timer->payload, &timer->group,  &timer->resource, &timer->correlation,
        &timer->retry_text, &timer->worker,  &timer->reason, &timer->result,   &timer->plan_id,
    };
    memcpy(out, all, sizeof all);
}

void model_timer_free(struct timer *timer)
{
    struct bytes *texts[MODEL_TEXTS];
    model_timer_texts(timer, texts);
    for (size_t i = 0; i < MODEL_TEXTS; i++) {
        model_free(texts[i]);
    }
    for (size_t i = 0; i < timer->headers_count; i++) {
        model_free(&timer->headers[i].name);
        model_free(&timer->headers[i].value);
    }
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        model_free(&timer->outcomes[i].reason);
    }
    free(timer->headers);
    model_rule_free(&timer->rule);
    free(timer);
}

bool model_is_occurrence_of(const struct timer *timer, const struct topic *topic,
                            struct bel_view plan_id)
{
    if (timer->topic != topic || timer->plan_id.count == 0) return false;
    return model_same(plan_id, model_view(timer->plan_id));
}

int64_t model_now(const struct model *model, enum timeline line)
{
    return line == WALL ? model->wall_ms : model->engine_ms;
}

int64_t model_in_wall_ms(const struct model *model, struct instant instant)
{
    return instant.line == WALL ? instant.ms : instant.ms + model->difference_ms;
}

bool model_has_due(const struct timer *timer)
{
    if (!model_is_unfinished(timer) || timer->state == BEL_BLOCKED) return false;
    return !model_is_plan(timer) || timer->rule.has_next;
}

int64_t model_due_ms(const struct model *model, const struct timer *timer)
{
    return model_is_plan(timer) ? timer->rule.next_ms : model_in_wall_ms(model, timer->due);
}

bool model_reaches(const struct model *model, uint64_t delay_ms)
{
    return model->wall_ms <= TIME_END_MS && delay_ms <= (uint64_t)(TIME_END_MS - model->wall_ms);
}

void model_expires_from(struct timer *timer, struct instant due)
{
    if (timer->expires_ms == 0) return;
    timer->expires = (struct instant){due.line, due.ms + (int64_t)timer->expires_ms};
}

void model_due_again(struct model *model, struct timer *timer, struct instant due)
{
    timer->state = BEL_SCHEDULED;
    timer->due = due;
    timer->sequence = ++model->sequence;
}

void model_note(struct model *model, struct timer *timer, enum bel_outcome_kind kind,
                struct bel_view reason)
{
    if (timer->outcomes_count == BEL_OUTCOMES_MAX) {
        model_free(&timer->outcomes[0].reason);
        for (size_t i = 1; i < BEL_OUTCOMES_MAX; i++) {
            timer->outcomes[i - 1] = timer->outcomes[i];
        }
        timer->outcomes_count--;
    }
    struct outcome *outcome = &timer->outcomes[timer->outcomes_count++];
    *outcome = (struct outcome){kind, {model->wall_ms}, model_copy(reason)};
}

void model_finish(struct model *model, struct timer *timer, enum bel_state state,
                  struct bel_view reason)
{
    assert(model_is_unfinished(timer) && state >= BEL_DONE);
    timer->state = state;
    timer->finished.ms = model->wall_ms;
    model_free(&timer->worker);
    model_free(&timer->reason);
    timer->reason = model_copy(reason);
    timer->rule.has_next = false;
    if (timer->job != NULL) model_task_ended(model, timer);
    if (timer->plan_id.count == 0) return;
    model_occurrence_ended(model, timer->topic, model_view(timer->plan_id));
}

void model_give_back(struct timer *timer)
{
    assert(timer->state == BEL_LEASED);
    model_free(&timer->worker);
    timer->state = BEL_SCHEDULED;
}

bool model_is_expired(const struct model *model, const struct timer *timer)
{
    if (timer->expires_ms == 0 || model_is_plan(timer)) return false;
    if (timer->state != BEL_SCHEDULED && timer->state != BEL_READY) return false;
    return model_now(model, timer->expires.line) >= timer->expires.ms;
}

void model_look(struct model *model, struct timer *timer)
{
    if (!model_is_expired(model, timer)) return;
    model_finish(model, timer, BEL_EXPIRED, BEL_VIEW("expired"));
}

static bool expires_before(const struct timer *a, const struct timer *b)
{
    if (a->expires.line != b->expires.line) return a->expires.line < b->expires.line;
    if (a->expires.ms != b->expires.ms) return a->expires.ms < b->expires.ms;
    return a->sequence < b->sequence;
}

/* Each end may unblock another timer that has expired, so the search restarts. */
void model_expire(struct model *model, const struct topic *topic)
{
    struct timer *first;
    do {
        first = NULL;
        for (size_t i = 0; i < model->timers.count; i++) {
            struct timer *timer = model_timer_at(model, i);
            if (timer->topic != topic || !model_is_expired(model, timer)) continue;
            if (first == NULL || expires_before(timer, first)) first = timer;
        }
        if (first != NULL) model_look(model, first);
    } while (first != NULL);
}

static bool has_expired(struct model *model)
{
    for (size_t i = 0; i < model->timers.count; i++) {
        if (model_is_expired(model, model_timer_at(model, i))) return true;
    }
    return false;
}

static void expire_all(struct model *model)
{
    if (!has_expired(model)) return;
    for (size_t i = 0; i < model->topics.count; i++) {
        model_expire(model, model->topics.items[i]);
    }
}

void model_settle(struct model *model)
{
    do {
        expire_all(model);
    } while (model_ring_first(model) || model_recurring_ring(model));
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_SCHEDULED && timer->state != BEL_READY) continue;
        bool is_due = model_now(model, timer->due.line) >= timer->due.ms;
        if (!model_is_plan(timer)) timer->state = is_due ? BEL_READY : BEL_SCHEDULED;
    }
    model_forget(model);
}

static uint64_t retention(const struct timer *timer)
{
    const struct settings *settings = &timer->topic->settings;
    bool is_well = timer->state == BEL_DONE || timer->state == BEL_CANCELLED;
    return is_well ? settings->retention_ms : settings->retention_dead_ms;
}

static bool is_forgotten(const struct model *model, const struct timer *timer)
{
    if (model_is_unfinished(timer) || timer->job != NULL) return false; /* jobs keep their tasks */
    if (retention(timer) == FOREVER) return false;
    if (retention(timer) == 0) return true;
    int64_t kept = model->wall_ms - timer->finished.ms;
    return kept >= 0 && (uint64_t)kept >= retention(timer);
}

void model_forget(struct model *model)
{
    for (size_t i = model->timers.count; i-- > 0;) {
        struct timer *timer = model_timer_at(model, i);
        if (!is_forgotten(model, timer)) continue;
        model_list_remove(&model->timers, i);
        model_timer_free(timer);
    }
}
