/* SPDX-License-Identifier: MIT */

/*
 * What EXPLAIN tells of a timer or plan whatever the backend is, from the timer as GET shows it.
 */
#include "telling/timer.h"

#include "belfry/error.h"

#include <inttypes.h>
#include <string.h>

enum {
    COMING_MAX = 3, /* times of a plan listed, at most */
};

/* --- what several states have in common --- */

void bel__tell_outcomes(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    if (timer->attempts > 0 || timer->crashes > 0) {
        bel__say(telling, "So far %s has failed %" PRIu64 " time%s and lost %" PRIu64 " lease%s.",
                 bel__subject(telling, false), timer->attempts, bel__plural(timer->attempts),
                 timer->crashes, bel__plural(timer->crashes));
    }
    for (size_t i = timer->outcomes_count; i-- > 0;) {
        const struct bel_outcome *outcome = &timer->outcomes[i];
        bel__say(telling, "  %s %s%s%s", bel__when(outcome->at.ms).text,
                 outcome->kind == BEL_OUTCOME_FAILED ? "failed" : "crashed",
                 outcome->reason.bytes > 0 ? ": " : "", bel__said(outcome->reason).text);
    }
}

void bel__tell_occurrence(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    if (timer->plan_id.bytes == 0) return;
    bel__say(telling, "The timer is an occurrence of the plan %s, for %s.",
             bel__said(timer->plan_id).text, bel__when(timer->nominal.ms).text);
}

void bel__tell_paused(struct bel_telling *telling)
{
    struct bel_view name = telling->timer->topic;
    struct bel_reason reason = {.word = "topic paused", .by = name};
    bel__hold(telling, &reason,
              "the topic %.*s is paused: no timer is delivered until RESUME %.*s.", (int)name.bytes,
              (const char *)name.data, (int)name.bytes, (const char *)name.data);
}

void bel__tell_expiry(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    if (timer->expires_ms == 0) return;
    bel__say(telling, "The timer expires at %s unless a worker claims it first.",
             bel__when(timer->expires.ms).text);
}

void bel__tell_workers(struct bel_telling *telling, bool has_waiting, uint64_t leased)
{
    struct bel_reason reason = {.word = "no worker", .by = telling->timer->topic};
    bool is_only = telling->reason.word == NULL;
    if (has_waiting) {
        reason.word = "ready";
        if (is_only) bel__give_reason(telling, &reason);
        bel__say(telling, "%s%s are waiting for timers of the topic.",
                 is_only ? bel__subject(telling, true) : "",
                 is_only ? " is ready: workers" : "Workers");
        return;
    }
    bel__hold(telling, &reason,
              "no worker is waiting%s. %" PRIu64 " timer%s of the topic %s leased.",
              is_only ? "; a worker that claims gets the timer" : ", either", leased,
              bel__plural(leased), leased == 1 ? "is" : "are");
}

void bel__tell_ahead(struct bel_telling *telling, uint64_t ahead)
{
    if (ahead == 0) {
        bel__say(telling, "The timer is the first of the topic.");
        return;
    }
    bel__say(telling, "%" PRIu64 " timer%s of the topic %s ahead.", ahead, bel__plural(ahead),
             ahead == 1 ? "is" : "are");
}

/* --- scheduled, leased, blocked --- */

void bel__tell_scheduled(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    uint64_t left = bel__distance((uint64_t)telling->now.ms, (uint64_t)timer->due.ms);
    struct bel_reason reason = {.word = "time", .has_until = true, .until = timer->due};
    bel__give_reason(telling, &reason);
    bel__say(telling, "%s is scheduled: due at %s, in %s.", bel__subject(telling, true),
             bel__when(timer->due.ms).text, bel__lasting(left).text);
    if (timer->attempts == 0) return;
    bel__say(telling, "Waiting for attempt %" PRIu64 ".", timer->attempts + 1);
}

void bel__tell_leased(struct bel_telling *telling, uint64_t length_ms, uint64_t crashes)
{
    const struct bel_timer *timer = telling->timer;
    struct bel_said worker = bel__said(timer->worker);
    struct bel_reason reason = {.word = "leased",
                                .by = {worker.text, strlen(worker.text)},
                                .has_until = true,
                                .until = {telling->now.ms + (int64_t)timer->lease_left_ms}};
    bel__give_reason(telling, &reason);
    bel__say(telling, "%s is leased: %s has it for another %s of %s.", bel__subject(telling, true),
             reason.by.bytes > 0 ? worker.text : "a worker without a name",
             bel__lasting(timer->lease_left_ms).text, bel__lasting(length_ms).text);
    bel__say(telling, "This is attempt %" PRIu64 ".", timer->attempts + 1);
    bel__say(telling,
             "If the lease ends first, the timer is ready again; that would be lost lease %" PRIu64
             " of the %" PRIu64 " that make the timer dead.",
             timer->crashes + 1, crashes);
}

void bel__tell_unfinished(struct bel_telling *telling, uint64_t blocked)
{
    bel__say(telling, "The plan has unfinished occurrences (blocked: %" PRIu64 ").", blocked);
}

void bel__tell_blocked(struct bel_telling *telling)
{
    struct bel_reason reason = {.word = "blocked", .by = telling->timer->plan_id};
    bel__give_reason(telling, &reason);
    bel__say(
        telling,
        "The timer is blocked: the occurrence waits until the previous ones have finished (OVERLAP "
        "queue).");
}

/* --- ended --- */

/* Returns whether the timer expired when it failed: its next attempt would have come too late. */
static bool has_failed_at_the_end(const struct bel_timer *timer)
{
    if (timer->outcomes_count == 0) return false;
    const struct bel_outcome *last = &timer->outcomes[timer->outcomes_count - 1];
    return last->kind == BEL_OUTCOME_FAILED && last->at.ms == timer->finished.ms;
}

static void tell_expired(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    struct bel_said_time due = bel__when(timer->due.ms);
    if (has_failed_at_the_end(timer)) {
        bel__say(telling,
                 "The last attempt failed, and the timer would have expired before the next one.");
    } else if (timer->due.ms > timer->finished.ms) {
        bel__say(telling, "The timer was due at %s and expired before that.", due.text);
    } else if (timer->attempts > 0) {
        bel__say(telling,
                 "An attempt failed, the retry was due at %s, and no worker claimed it in time.",
                 due.text);
    } else if (timer->crashes > 0) {
        bel__say(
            telling,
            "The timer was due at %s, its lease was lost, and no worker claimed it again in time.",
            due.text);
    } else {
        bel__say(telling, "The timer was due at %s, and no worker claimed it in time.", due.text);
    }
}

void bel__tell_ended(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    bool is_task = telling->subject == BEL_TELLING_TASK;
    const char *state = bel_state_name(timer->state);
    struct bel_reason why = {.word = "ended", .by = {state, strlen(state)}};
    bel__give_reason(telling, &why);
    bel__say(telling, "%s is %s, since %s%s%s.", bel__subject(telling, true), state,
             bel__when(timer->finished.ms).text, timer->reason.bytes > 0 ? ": " : "",
             bel__said(timer->reason).text);
    if (timer->state == BEL_DEAD && !is_task) {
        bel__say(telling, "REVIVE makes the timer due now with 0 attempts; PURGE deletes it.");
    }
    if (timer->state == BEL_EXPIRED) tell_expired(telling);
}

void bel__tell_retention(struct bel_telling *telling, uint64_t retention_ms)
{
    if (retention_ms == UINT64_MAX) {
        bel__say(telling, "The timer is kept until it is purged.");
        return;
    }
    int64_t end = telling->timer->finished.ms + (int64_t)retention_ms;
    bel__say(telling, "The timer is kept until %s.", bel__when(end).text);
}

/* --- plans --- */

static const char *const overlaps[] = {
    [BEL_OVERLAP_SKIP] =
        "An occurrence is skipped while the previous one is unfinished (OVERLAP skip).",
    [BEL_OVERLAP_QUEUE] =
        "An occurrence waits until the previous one has finished (OVERLAP queue).",
    [BEL_OVERLAP_ALLOW] = "Occurrences may run at the same time (OVERLAP allow).",
};

static const char *const misfires[] = {
    [BEL_MISFIRE_SKIP] = "Missed times are skipped (MISFIRE skip).",
    [BEL_MISFIRE_LAST] = "Of the missed times, the last one is run late (MISFIRE last).",
    [BEL_MISFIRE_ALL] = "All missed times are run late (MISFIRE all).",
};

/* Lists the times after the next one. */
static void tell_coming(struct bel_telling *telling, const struct bel_plan *plan, int64_t place_ms)
{
    const struct bel_timer *timer = telling->timer;
    struct bel_wall next = timer->due;
    uint64_t used = timer->used + 1;
    if (timer->plan.mode == BEL_PLAN_DELAY) {
        bel__say(telling, "The following time is one period after that occurrence has finished.");
        return;
    }
    for (int i = 1; i < COMING_MAX; i++, used++) {
        if (timer->plan.count > 0 && used >= timer->plan.count) break;
        int err = bel_plan_next(plan, next, 0, &next);
        if (err == BEL_ENOMEM) telling->err = err;
        if (err) break;
        bel__say(telling, "  then %s", bel__when(next.ms + place_ms).text);
    }
}

void bel__tell_rule(struct bel_telling *telling, const struct bel_plan *plan, int64_t place_ms)
{
    char sentence[BEL_TELLING_BYTES - BEL_SAID_BYTES];
    const struct bel_timer *timer = telling->timer;
    if (plan == NULL) {
        bel__say(telling, "The rule of the plan or its time zone %s is not valid any more.",
                 bel__said(timer->plan.zone).text);
        return;
    }
    (void)bel_plan_explain(plan, sentence, sizeof sentence);
    bel__say(telling, "Rule of the plan: %s", sentence);
    if (timer->state < BEL_DONE && timer->has_next) tell_coming(telling, plan, place_ms);
}

void bel__tell_numbers(struct bel_telling *telling)
{
    const struct bel_timer *timer = telling->timer;
    bel__say(telling, "%" PRIu64 " occurrence%s created.", timer->made,
             timer->made == 1 ? " was" : "s were");
    bel__say(telling, "%" PRIu64 " were skipped by OVERLAP, %" PRIu64 " were missed.",
             timer->skipped, timer->missed);
    if (timer->plan.count == 0) return;
    bel__say(telling, "%" PRIu64 " of %" PRIu64 " times have passed (COUNT).",
             timer->used < timer->plan.count ? timer->used : timer->plan.count, timer->plan.count);
}

void bel__tell_next(struct bel_telling *telling, int64_t place_ms)
{
    const struct bel_timer *timer = telling->timer;
    int64_t rings = timer->due.ms + place_ms;
    uint64_t left = bel__distance((uint64_t)telling->now.ms, (uint64_t)rings);
    struct bel_reason reason = {
        .word = "time", .has_until = timer->has_next, .until = {timer->has_next ? rings : 0}};
    bel__give_reason(telling, &reason);
    if (timer->has_next) {
        bel__say(telling, "The plan is scheduled: its next time is %s, in %s.",
                 bel__when(rings).text, bel__lasting(left).text);
    } else {
        bel__say(
            telling,
            "The plan is scheduled: its next time is one period after the current occurrence has "
            "finished.");
    }
}

void bel__tell_policies(struct bel_telling *telling)
{
    bel__say(telling, "%s", overlaps[telling->timer->plan.overlap]);
    bel__say(telling, "%s", misfires[telling->timer->plan.misfire]);
    bel__tell_numbers(telling);
}

void bel__tell_spread(struct bel_telling *telling, int64_t place_ms)
{
    uint64_t spread_ms = telling->timer->plan.spread_ms;
    if (spread_ms == 0) return;
    bel__say(telling, "Each time is shifted by %s within the %s window (SPREAD).",
             bel__lasting((uint64_t)place_ms).text, bel__lasting(spread_ms).text);
}
