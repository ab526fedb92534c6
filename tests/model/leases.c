/* SPDX-License-Identifier: MIT */

/*
 * The verbs that take a token, and the timeouts of leases.
 */
#include "inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LIMITED_MS = 60000, /* default delay of a FAIL of kind `limited` */
    REASON_BYTES = 64,
};

static struct timer *first_ended(struct model *model)
{
    struct timer *first = NULL;
    for (size_t i = 0; i < model->timers.count; i++) {
        struct timer *timer = model_timer_at(model, i);
        if (timer->state != BEL_LEASED || timer->lease_end_ms > model->open_ms) continue;
        if (first != NULL && timer->lease_end_ms > first->lease_end_ms) continue;
        bool is_tie = first != NULL && timer->lease_end_ms == first->lease_end_ms;
        if (is_tie && timer->sequence > first->sequence) continue;
        first = timer;
    }
    return first;
}

/* Returns whether the end of a lease counts as a crash. A lease that ends within its own length
 * after the model was opened does not: its worker could not extend it while the model was closed.
 * An old lease with its full length left ends exactly then, and does not count either. */
static bool counts_as_crash(const struct model *model, const struct timer *timer)
{
    int64_t since_open = timer->lease_end_ms - model->open_opened_ms;
    if (since_open < 0) return false;
    if (timer->lease_is_old) return (uint64_t)since_open > timer->lease_length_ms;
    return (uint64_t)since_open >= timer->lease_length_ms;
}

static void take_back(struct model *model, struct timer *timer)
{
    char reason[REASON_BYTES];
    bool counts = counts_as_crash(model, timer);
    model_resource_end(model, timer, ENDING_LOST);
    if (counts) {
        timer->crashes++;
        model_note(model, timer, BEL_OUTCOME_CRASHED, BEL_VIEW("lease lost"));
    }
    if (!counts || timer->crashes < timer->topic->settings.crashes) {
        model_give_back(timer);
        return;
    }
    (void)snprintf(reason, sizeof reason, "lease lost %" PRIu64 " time%s", timer->crashes,
                   timer->crashes == 1 ? "" : "s");
    model_finish(model, timer, BEL_DEAD, model_text(reason));
}

void model_take_back_leases(struct model *model)
{
    for (struct timer *timer; (timer = first_ended(model)) != NULL;) {
        take_back(model, timer);
    }
    model_forget(model);
}

int model_ack(struct model *model, const struct bel_ack *command, struct bel_reply *reply)
{
    if (command->has_result && command->tokens_count != 1) {
        return model_refuse(reply, BEL_EINVAL, "a result needs exactly one token");
    }
    if (command->has_result && command->result.bytes > BEL_RESULT_BYTES_MAX) {
        return model_refuse(reply, BEL_EINVAL, "result");
    }
    for (size_t i = 0; i < command->tokens_count; i++) {
        struct timer *timer = model_timer_of_token(model, command->tokens[i]);
        if (timer == NULL) continue;
        model_resource_end(model, timer, ENDING_ACK);
        timer->has_result = command->has_result;
        if (command->has_result) timer->result = model_copy(command->result);
        model_finish(model, timer, BEL_DONE, (struct bel_view){NULL, 0});
        reply->count++;
    }
    return 0;
}

static struct instant engine_in(const struct model *model, uint64_t delay_ms)
{
    return (struct instant){ENGINE, model->engine_ms + (int64_t)delay_ms};
}

static void release_in(struct model *model, struct timer *timer, uint64_t delay_ms)
{
    model_free(&timer->worker);
    model_due_again(model, timer, engine_in(model, delay_ms));
}

static int stale(struct bel_reply *reply)
{
    return model_refuse(reply, BEL_ESTALE, "no live lease has this token");
}

int model_release(struct model *model, const struct bel_release *command, struct bel_reply *reply)
{
    struct timer *timer = model_timer_of_token(model, command->token);
    if (timer == NULL) return stale(reply);
    if (command->has_delay && !model_reaches(model, command->delay_ms)) {
        return model_refuse(reply, BEL_EINVAL, "delay");
    }
    if (command->has_delay) {
        release_in(model, timer, command->delay_ms);
    } else {
        model_give_back(timer);
    }
    reply->count = 1;
    return 0;
}

int model_extend(struct model *model, const struct bel_extend *command, struct bel_reply *reply)
{
    struct timer *timer = model_timer_of_token(model, command->token);
    if (timer == NULL) return stale(reply);
    uint64_t lease_ms = command->lease_ms > 0 ? command->lease_ms : timer->lease_length_ms;
    if (!model_reaches(model, lease_ms)) return model_refuse(reply, BEL_EINVAL, "lease");
    timer->lease_end_ms = model->open_ms + (int64_t)lease_ms;
    reply->count = lease_ms;
    return 0;
}

/* Sets the delay until the next attempt. Returns false if there is none. */
static bool next_attempt(struct model *model, const struct timer *timer,
                         const struct bel_fail *command, uint64_t *out_ms)
{
    bool has_own = timer->retry_text.count > 0;
    const struct bel_backoff *policy = has_own ? &timer->retry : &timer->topic->settings.retry;
    uint64_t word = 0;
    if (command->dead) return false;
    bool needs_word = policy->jitter > 0 && !command->has_delay;
    if (needs_word && model->options.random != NULL) {
        word = model->options.random(model->options.context);
    }
    if (!bel_backoff_delay(policy, timer->attempts + 1, word, out_ms)) return false;
    if (command->has_delay) *out_ms = command->delay_ms;
    return true;
}

static bool expires_before(const struct model *model, const struct timer *timer, struct instant due)
{
    if (timer->expires_ms == 0) return false;
    return model_in_wall_ms(model, due) >= model_in_wall_ms(model, timer->expires);
}

static void say_scheduled(const struct model *model, const struct timer *timer,
                          struct bel_reply *reply)
{
    reply->verdict.state = BEL_SCHEDULED;
    reply->verdict.due.ms = model_in_wall_ms(model, timer->due);
}

static int fail_limited(struct model *model, struct timer *timer, const struct bel_fail *command,
                        struct bel_reply *reply)
{
    uint64_t delay_ms = command->has_delay ? command->delay_ms : LIMITED_MS;
    if (!model_reaches(model, delay_ms)) return model_refuse(reply, BEL_EINVAL, "delay");
    if (timer->resource.count > 0) {
        int64_t until_ms = model_resource_limit(model, model_view(timer->resource), delay_ms,
                                                model_view(timer->worker));
        model_give_back(timer);
        reply->verdict.state = BEL_READY;
        reply->verdict.due.ms = until_ms + model->difference_ms;
        return 0;
    }
    release_in(model, timer, delay_ms);
    say_scheduled(model, timer, reply);
    return 0;
}

int model_fail(struct model *model, const struct bel_fail *command, struct bel_reply *reply)
{
    uint64_t delay_ms = 0;
    struct timer *timer = model_timer_of_token(model, command->token);
    if (timer == NULL) return stale(reply);
    if (command->kind == BEL_FAIL_LIMITED && !command->dead) {
        return fail_limited(model, timer, command, reply);
    }
    bool goes_on = next_attempt(model, timer, command, &delay_ms);
    if (!model_reaches(model, delay_ms)) return model_refuse(reply, BEL_EINVAL, "delay");

    if (command->kind == BEL_FAIL_RESOURCE) model_resource_end(model, timer, ENDING_FAIL);
    struct bel_view reason = model_cut(command->reason);
    timer->attempts++;
    model_note(model, timer, BEL_OUTCOME_FAILED, reason);
    if (!goes_on) {
        reply->verdict.state = BEL_DEAD;
        model_finish(model, timer, BEL_DEAD, reason);
    } else if (expires_before(model, timer, engine_in(model, delay_ms))) {
        reply->verdict.state = BEL_EXPIRED;
        model_finish(model, timer, BEL_EXPIRED, BEL_VIEW("expired"));
    } else {
        release_in(model, timer, delay_ms);
        say_scheduled(model, timer, reply);
    }
    return 0;
}
