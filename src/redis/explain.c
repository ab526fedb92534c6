/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: one call looks at the timer and at what it depends on; the node tells it in the words of
 * every backend. Of the reasons, those exist here that do not need groups, limits or jobs: ended,
 * blocked, time, topic paused, no worker.
 *
 * A node knows only of the workers that wait at it.
 */
#include "redis/cursor.h"
#include "redis/operation.h"
#include "redis/reading.h"
#include "redis/record.h"
#include "redis/rule.h"
#include "telling/timer.h"

#include <assert.h>

enum {
    RESULTS = 8, /* timer, paused, crashes, retention, runs, blocked, leased, rank */
};

/* What the script has found besides the timer. */
struct facts {
    bool is_paused;
    uint64_t crashes, retention_ms, runs, blocked, leased, ahead, lease_ms;
};

static int prepare(struct bel_operation *operation)
{
    return bel__operation_name(operation, operation->command.target.topic);
}

static struct bel_view copy(void *memory, struct bel_view text)
{
    return bel__arena_copy(memory, text);
}

static int read_facts(const struct bel_value *items, struct facts *out)
{
    for (size_t i = 1; i < RESULTS; i++) {
        if (items[i].type != BEL_VALUE_NUMBER) return BEL_ECORRUPT;
    }
    out->is_paused = items[1].number == 1;
    out->crashes = (uint64_t)items[2].number;
    out->retention_ms = items[3].number < 0 ? UINT64_MAX : (uint64_t)items[3].number;
    out->runs = (uint64_t)items[4].number;
    out->blocked = (uint64_t)items[5].number;
    out->leased = (uint64_t)items[6].number;
    out->ahead = (uint64_t)items[7].number;
    return bel__reading_lease(&items[0], &out->lease_ms);
}

/* --- Telling --- */

static void tell_ready(struct bel_telling *telling, const struct bel_operation *operation,
                       const struct facts *facts)
{
    if (facts->is_paused) bel__tell_paused(telling);
    bel__tell_workers(telling, operation->topic->parked > 0, facts->leased);
    bel__tell_ahead(telling, facts->ahead);
    bel__tell_expiry(telling);
}

static void tell_plan(struct bel_telling *telling, const struct bel_operation *operation,
                      const struct bel_rule *rule, const struct facts *facts)
{
    struct bel_plan *plan = NULL;
    struct bel_text_error why;
    int64_t place_ms = (int64_t)bel__rule_place(rule);
    bool has_ended = telling->timer->state >= BEL_DONE;
    int err = bel__rule_plan(rule, operation->node->options.zones, &plan, &why);
    if (err == BEL_ENOMEM) telling->err = err;
    if (!has_ended) bel__tell_next(telling, place_ms);
    bel__tell_rule(telling, plan, place_ms);
    bel_plan_destroy(plan);
    if (has_ended) {
        bel__tell_numbers(telling);
        return;
    }
    bel__tell_spread(telling, place_ms);
    if (facts->runs + facts->blocked > 0) bel__tell_unfinished(telling, facts->blocked);
    bel__tell_policies(telling);
    if (facts->is_paused) bel__tell_paused(telling);
}

static void tell_timer(struct bel_telling *telling, const struct bel_operation *operation,
                       const struct facts *facts)
{
    switch (telling->timer->state) {
    case BEL_LEASED:
        bel__tell_leased(telling, facts->lease_ms, facts->crashes);
        break;
    case BEL_BLOCKED:
        bel__tell_blocked(telling);
        bel__tell_unfinished(telling, facts->blocked);
        break;
    case BEL_READY:
        tell_ready(telling, operation, facts);
        break;
    default:
        bel__tell_scheduled(telling);
        if (facts->is_paused) bel__tell_paused(telling);
        bel__tell_expiry(telling);
    }
}

static int tell(struct bel_operation *operation, const struct bel_value *item,
                const struct bel_timer *timer, const struct facts *facts)
{
    struct bel_arena *arena = &operation->arena;
    struct bel_rule rule = {0};
    struct bel_telling telling = {
        .timer = timer, .now = {bel__operation_now(operation)}, .copy = copy, .memory = arena};
    struct bel_reason *reason = bel__arena_take(arena, sizeof *reason);
    telling.lines = bel__arena_take(arena, BEL_TELLING_LINES * sizeof telling.lines[0]);
    if (reason == NULL || telling.lines == NULL) return BEL_ENOMEM;
    bool is_plan = timer->plan.rule.bytes > 0;
    if (is_plan) telling.subject = BEL_TELLING_PLAN;
    int err = is_plan ? bel__reading_rule(item, timer, &rule) : 0;
    if (err) return err;
    if (timer->state >= BEL_DONE) {
        bel__tell_ended(&telling);
        bel__tell_retention(&telling, facts->retention_ms);
    } else if (!is_plan) {
        tell_timer(&telling, operation, facts);
    }
    if (is_plan) tell_plan(&telling, operation, &rule, facts);
    bool is_over = is_plan && timer->state < BEL_DONE;
    if (!is_over) bel__tell_occurrence(&telling);
    if (!is_over) bel__tell_outcomes(&telling);
    *reason = telling.reason;
    operation->reply.names.reason = reason;
    operation->reply.names.items = telling.lines;
    operation->reply.names.count = telling.count;
    return telling.err;
}

/* --- The command --- */

static void explained(struct bel_item *item, const struct bel_results *results)
{
    struct bel_operation *operation = BEL_CONTAINER_OF(item, struct bel_operation, item);
    struct facts facts;
    if (bel__operation_is_refused(operation, results)) return;
    if (results->count > 0 && results->items[0].type == BEL_VALUE_NIL) {
        bel__operation_answer_missing(operation);
        return;
    }
    struct bel_timer timer;
    int err = results->count == RESULTS ? 0 : BEL_ECORRUPT;
    if (err == 0) err = bel__reading_timer(operation, &results->items[0], &timer);
    if (err == 0) err = read_facts(results->items, &facts);
    if (err == 0) err = tell(operation, &results->items[0], &timer, &facts);
    if (err) {
        bel__operation_fail(operation, err, NULL);
        return;
    }
    bel__operation_answer(operation);
}

static void begin(struct bel_operation *operation)
{
    struct bel_batch *batch = bel__batch_alone(
        operation->node, bel__operation_place(operation, operation->command.target.id),
        BEL_SCRIPT_EXPLAIN);
    if (batch == NULL) {
        bel__operation_fail(operation, BEL_ENOMEM, NULL);
        return;
    }
    operation->item.answered = explained;
    bel__batch_item(batch, &operation->item, 0);
    bel__batch_text(batch, operation->command.target.id);
}

const struct bel_redis_verb bel__redis_explain = {prepare, begin};
