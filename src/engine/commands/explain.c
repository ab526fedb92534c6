/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: lines that say what a timer is, why it is not running and when it will, for a person who
 * has to act on it. The first line is the state and the first reason for waiting. Then come the
 * other reasons and what can be done about them. History comes last. For programs, the first reason
 * is also given as a word.
 */
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/commands/telling.h"
#include "engine/jobs/task.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    COMING_MAX = 3, /* times of a plan listed, at most */
    NAMED_MAX = 5,  /* tasks listed that a task waits for */
};

/* --- what several states have in common --- */

static void tell_outcomes(struct bel_telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    if (record->attempts > 0 || record->crashes > 0) {
        bel__say(telling, "So far %s has failed %" PRIu64 " time%s and lost %" PRIu64 " lease%s.",
                 bel__subject(telling, false), record->attempts, bel__plural(record->attempts),
                 record->crashes, bel__plural(record->crashes));
    }
    for (size_t i = record->outcomes_count; i-- > 0;) {
        const struct bel_outcome *outcome = &record->outcomes[i];
        bel__say(telling, "  %s %s%s%s", bel__when(outcome->at.ms).text,
                 outcome->kind == BEL_OUTCOME_FAILED ? "failed" : "crashed",
                 outcome->reason.bytes > 0 ? ": " : "", bel__said(outcome->reason).text);
    }
}

static void tell_occurrence(struct bel_telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    if (record->kind != BEL_RECORD_TIMER || record->plan == 0) return;
    bel__say(telling, "The timer is an occurrence of the plan %s, for %s.",
             bel__said(bel__occurrence_plan(record->id)).text,
             bel__when((int64_t)record->nominal).text);
}

/* --- scheduled --- */

static void tell_scheduled(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_times *now = &telling->engine->now;
    struct bel_place place = bel__place_of(&found->key);
    uint64_t left = bel__distance(bel__lane_now(now, place.lane), place.time);
    struct bel_reason reason = {.word = "time", .has_until = true};
    reason.until.ms = bel__timer_due(telling->engine, found);
    bel__give_reason(telling, &reason);
    bel__say(telling, "%s is scheduled: due at %s, in %s.", bel__subject(telling, true),
             bel__when(reason.until.ms).text, bel__lasting(left).text);
    if (found->record.attempts > 0) {
        bel__say(telling, "Waiting for attempt %" PRIu64 ".", found->record.attempts + 1);
    }
    if (place.lane == BEL_LANE_ENGINE) {
        bel__say(telling, "The timer waits for a delay, which is measured by elapsed time.");
    } else {
        bel__say(telling,
                 "The timer waits for a wall-clock time: setting the clock changes the wait.");
    }
    bel__tell_held_job(telling);
    bel__tell_pause(telling);
    bel__tell_expiry(telling);
}

/* --- leased, blocked --- */

/* Returns the name of the worker that has the timer. */
static struct bel_said worker_of(struct bel_telling *telling)
{
    struct bel_key key = bel__key_in(&telling->found->key, BEL_TABLE_LEASES);
    struct bel_lease_row row = {0};
    struct bel_view value;
    int err = bel__store_get(telling->engine->store, &key, &value);
    if (err == 0) err = bel__lease_read(value, &row);
    if (err) telling->err = err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return bel__said(row.worker);
}

static void tell_leased(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_lease *lease = found->lease;
    uint64_t left = bel__distance(telling->engine->now.open_up, lease->end);
    uint32_t crashes = bel__topic_settings(found->topic)->crashes;
    struct bel_said worker = worker_of(telling);
    struct bel_reason reason = {.word = "leased",
                                .by = {worker.text, strlen(worker.text)},
                                .has_until = true,
                                .until = {telling->engine->now.wall + (int64_t)left}};
    bel__give_reason(telling, &reason);
    bel__say(telling, "%s is leased: %s has it for another %s of %s.", bel__subject(telling, true),
             reason.by.bytes > 0 ? worker.text : "a worker without a name", bel__lasting(left).text,
             bel__lasting(lease->lease_ms).text);
    bel__say(telling, "This is attempt %" PRIu64 ".", found->record.attempts + 1);
    bel__say(telling,
             "If the lease ends first, the timer is ready again; that would be lost lease %" PRIu64
             " of the %" PRIu32 " that make the timer dead.",
             found->record.crashes + 1, crashes);
}

/* Tells whether occurrences of a plan are unfinished, and how many are blocked. */
static void tell_unfinished(struct bel_telling *telling, struct bel_view plan)
{
    struct bel_occurrences found;
    int err = bel__occurrences_look(telling->engine, telling->found->topic, plan, BEL_LOOK_BLOCKED,
                                    &found);
    if (err) telling->err = err;
    if (err || !found.has_any) return;
    bel__say(telling, "The plan has unfinished occurrences (blocked: %" PRIu64 ").", found.blocked);
}

/* Returns the id of a task. */
static struct bel_said task_id(struct bel_telling *telling, uint64_t job, uint32_t task)
{
    struct bel_task_row row;
    struct bel_found found;
    int err = bel__task_load(telling->engine, job, task, &row);
    if (err == 0) err = bel__timer_load(telling->engine, &row.key, &found);
    if (err == 0) return bel__said(bel__task_id(&found.record));
    telling->err = err;
    return (struct bel_said){{0}};
}

/* Says that a task is blocked, and by how many. */
static void tell_open(struct bel_telling *telling, const struct bel_task_row *row)
{
    bel__say(telling,
             "The task is blocked: %" PRIu64 " of the %" PRIu64 " task%s before it %s not ended:",
             row->open, row->after_count, bel__plural(row->after_count),
             row->open == 1 ? "has" : "have");
}

/* Names the tasks that a blocked task waits for, of the first edges; the only one in the line that
 * says so. */
static void tell_dependencies(struct bel_telling *telling, const struct bel_edge_list *list,
                              const struct bel_task_row *blocked)
{
    static const char *const musts[] = {[BEL_EDGE_SUCCESS] = "must succeed",
                                        [BEL_EDGE_ALWAYS] = "must end",
                                        [BEL_EDGE_FAILURE] = "must fail"};
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    size_t count = 0, named = 0;
    int err = bel__edges_get(telling->engine, list, 0, edges, &count);
    for (size_t i = 0; i < count && err == 0 && named < NAMED_MAX; i++) {
        struct bel_task_row row;
        err = bel__task_load(telling->engine, list->job, edges[i].task, &row);
        if (err != 0 || bel__task_row_state(&row) >= BEL_DONE) continue;
        struct bel_said id = task_id(telling, list->job, edges[i].task);
        struct bel_reason reason = {.word = "blocked", .by = {id.text, strlen(id.text)}};
        const char *state = bel__task_row_state(&row) == BEL_BLOCKED ? "blocked" : "not finished";
        if (named == 0) bel__give_reason(telling, &reason);
        if (blocked->open == 1) {
            bel__say(telling, "The task is blocked: it waits for %s (%s; %s).", id.text, state,
                     musts[edges[i].on]);
        } else {
            if (named == 0) tell_open(telling, blocked);
            bel__say(telling, "  %s (%s; %s)", id.text, state, musts[edges[i].on]);
        }
        named++;
    }
    if (named == 0) tell_open(telling, blocked);
    if (err) telling->err = err;
}

static void tell_blocked_task(struct bel_telling *telling)
{
    const struct bel_task_of *of = &telling->found->record.job;
    struct bel_task_row row;
    int err = bel__task_load(telling->engine, of->number, of->index, &row);
    if (err) {
        telling->err = err;
        return;
    }
    struct bel_edge_list list = {of->number, BEL_EDGES_AFTER, of->index, row.after_count};
    if (list.count == 0) {
        tell_open(telling, &row);
    } else {
        tell_dependencies(telling, &list, &row);
    }
    struct bel_reason reason = {.word = "blocked", .by = telling->found->record.group};
    if (telling->reason.word == NULL) bel__give_reason(telling, &reason);
}

static void tell_blocked(struct bel_telling *telling)
{
    if (telling->found->record.job.number != 0) {
        tell_blocked_task(telling);
        if (telling->err == 0) bel__tell_held_job(telling);
        return;
    }
    struct bel_reason reason = {.word = "blocked",
                                .by = bel__occurrence_plan(telling->found->record.id)};
    bel__give_reason(telling, &reason);
    bel__say(
        telling,
        "The timer is blocked: the occurrence waits until the previous ones have finished (OVERLAP "
        "queue).");
    tell_unfinished(telling, bel__occurrence_plan(telling->found->record.id));
}

/* --- ended --- */

static void tell_retention(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_settings *settings = bel__topic_settings(found->topic);
    bool is_well = found->state == BEL_DONE || found->state == BEL_CANCELLED;
    uint64_t retention = is_well ? settings->retention_ms : settings->retention_dead_ms;
    if (retention == BEL_RETENTION_FOREVER) {
        bel__say(telling, "The timer is kept until it is purged.");
        return;
    }
    uint64_t end = bel__place_of(&found->key).time + retention;
    bel__say(telling, "The timer is kept until %s.", bel__when((int64_t)end).text);
}

/* Returns whether the timer expired when it failed: its next attempt would have come too late. */
static bool has_failed_at(const struct bel_record *record, uint64_t finished)
{
    if (record->outcomes_count == 0) return false;
    const struct bel_outcome *last = &record->outcomes[record->outcomes_count - 1];
    return last->kind == BEL_OUTCOME_FAILED && (uint64_t)last->at.ms == finished;
}

static void tell_expired(struct bel_telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    uint64_t finished = bel__place_of(&telling->found->key).time;
    struct bel_said_time due = bel__when((int64_t)record->due);
    if (has_failed_at(record, finished)) {
        bel__say(telling,
                 "The last attempt failed, and the timer would have expired before the next one.");
    } else if (record->due > finished) {
        bel__say(telling, "The timer was due at %s and expired before that.", due.text);
    } else if (record->attempts > 0) {
        bel__say(telling,
                 "An attempt failed, the retry was due at %s, and no worker claimed it in time.",
                 due.text);
    } else if (record->crashes > 0) {
        bel__say(
            telling,
            "The timer was due at %s, its lease was lost, and no worker claimed it again in time.",
            due.text);
    } else {
        bel__say(telling, "The timer was due at %s, and no worker claimed it in time.", due.text);
    }
}

static void tell_ended(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    struct bel_view reason = found->record.reason;
    bool is_task = found->record.job.number != 0;
    const char *state = bel_state_name(found->state);
    struct bel_reason why = {.word = "ended", .by = {state, strlen(state)}};
    bel__give_reason(telling, &why);
    bel__say(telling, "%s is %s, since %s%s%s.", bel__subject(telling, true), state,
             bel__when((int64_t)bel__place_of(&found->key).time).text, reason.bytes > 0 ? ": " : "",
             bel__said(reason).text);
    if (found->state == BEL_DEAD && !is_task) {
        bel__say(telling, "REVIVE makes the timer due now with 0 attempts; PURGE deletes it.");
    }
    if (found->state == BEL_EXPIRED) tell_expired(telling);
    if (is_task) {
        bel__say(telling, "The task is kept as long as its job %s.",
                 bel__said(found->record.group).text);
    } else {
        tell_retention(telling);
    }
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
static void tell_coming(struct bel_telling *telling, const struct bel_plan *plan)
{
    const struct bel_found *found = telling->found;
    const struct bel_recurrence *rule = &found->record.rule;
    struct bel_wall next = {(int64_t)found->plan.next};
    uint64_t used = bel__plan_used(&found->plan) + 1;
    if (rule->mode == BEL_PLAN_DELAY) {
        bel__say(telling, "The following time is one period after that occurrence has finished.");
        return;
    }
    for (int i = 1; i < COMING_MAX; i++, used++) {
        if (rule->count > 0 && used >= rule->count) break;
        int err = bel_plan_next(plan, next, 0, &next);
        if (err == BEL_ENOMEM) telling->err = err;
        if (err) break;
        bel__say(telling, "  then %s",
                 bel__when(next.ms + (int64_t)bel__plan_place(&found->record)).text);
    }
}

static void tell_rule(struct bel_telling *telling)
{
    char sentence[BEL_TELLING_BYTES - BEL_SAID_BYTES];
    struct bel_plan *plan;
    int err = bel__plan_of(telling->engine, &telling->found->record, &plan, NULL);
    if (err == BEL_EINVAL) {
        bel__say(telling, "The rule of the plan or its time zone %s is not valid any more.",
                 bel__said(telling->found->record.rule.zone).text);
        return;
    }
    if (err) {
        telling->err = err;
        return;
    }
    (void)bel_plan_explain(plan, sentence, sizeof sentence);
    bel__say(telling, "Rule of the plan: %s", sentence);
    if (telling->found->state < BEL_DONE && telling->found->plan.has_next) {
        tell_coming(telling, plan);
    }
    bel_plan_destroy(plan);
}

static void tell_numbers(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    bool has_ended = found->state >= BEL_DONE;
    uint64_t made = has_ended ? found->record.made : found->plan.made;
    uint64_t skipped = has_ended ? found->record.skipped : found->plan.skipped;
    uint64_t missed = has_ended ? found->record.missed : found->plan.missed;
    uint64_t count = found->record.rule.count;
    bel__say(telling, "%" PRIu64 " occurrence%s created.", made, made == 1 ? " was" : "s were");
    bel__say(telling, "%" PRIu64 " were skipped by OVERLAP, %" PRIu64 " were missed.", skipped,
             missed);
    if (count == 0) return;
    uint64_t used = has_ended ? made + skipped + missed : bel__plan_used(&found->plan);
    bel__say(telling, "%" PRIu64 " of %" PRIu64 " times have passed (COUNT).",
             used < count ? used : count, count);
}

static void tell_plan(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_recurrence *rule = &found->record.rule;
    uint64_t place = bel__plan_place(&found->record), rings = found->plan.next + place;
    uint64_t left = bel__distance((uint64_t)telling->engine->now.wall, rings);
    struct bel_reason reason = {
        .word = "time", .has_until = found->plan.has_next, .until = {(int64_t)rings}};
    bel__give_reason(telling, &reason);
    if (found->plan.has_next) {
        bel__say(telling, "The plan is scheduled: its next time is %s, in %s.",
                 bel__when((int64_t)rings).text, bel__lasting(left).text);
    } else {
        bel__say(
            telling,
            "The plan is scheduled: its next time is one period after the current occurrence has "
            "finished.");
    }
    tell_rule(telling);
    if (rule->spread_ms > 0) {
        bel__say(telling, "Each time is shifted by %s within the %s window (SPREAD).",
                 bel__lasting(place).text, bel__lasting(rule->spread_ms).text);
    }
    tell_unfinished(telling, found->record.id);
    bel__say(telling, "%s", overlaps[rule->overlap]);
    bel__say(telling, "%s", misfires[rule->misfire]);
    tell_numbers(telling);
    bel__tell_pause(telling);
}

/* --- the command --- */

static void tell(struct bel_telling *telling)
{
    const struct bel_found *found = telling->found;
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    if (found->state >= BEL_DONE) {
        tell_ended(telling);
        if (is_plan) tell_rule(telling);
        if (is_plan) tell_numbers(telling);
    } else if (is_plan) {
        tell_plan(telling);
        return;
    } else if (found->state == BEL_BLOCKED) {
        tell_blocked(telling);
    } else if (found->state == BEL_LEASED) {
        tell_leased(telling);
    } else if (found->state == BEL_READY) {
        bel__tell_ready(telling);
    } else {
        tell_scheduled(telling);
    }
    tell_occurrence(telling);
    tell_outcomes(telling);
}

int bel__do_explain(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_target *target = &request->command.target;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(target->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, target->topic);
    struct bel_found found;
    int err = bel__timer_find(engine, topic, target->id, &found);
    if (err == BEL_ENOTFOUND) {
        return bel__refuse(reply, err, "no timer '%s' in topic '%.*s'", bel__said(target->id).text,
                           (int)target->topic.bytes, (const char *)target->topic.data);
    }
    if (err) return err;
    struct bel_telling telling = {.engine = engine, .found = &found};
    telling.lines = bel__answer_take(engine, BEL_TELLING_LINES * sizeof telling.lines[0]);
    struct bel_reason *reason = bel__answer_take(engine, sizeof *reason);
    if (telling.lines == NULL || reason == NULL) return BEL_ENOMEM;
    tell(&telling);
    if (telling.err) return telling.err;
    *reason = telling.reason;
    reply->names.reason = reason;
    reply->names.items = telling.lines;
    reply->names.count = telling.count;
    return 0;
}
