/* SPDX-License-Identifier: MIT */

/*
 * A plan has four kinds of rows:
 *
 *     PLANS        what was asked for: rule, payload; written once
 *     PLAN_STATES  the next nominal time, and counts of the times so far
 *     TIMERS       its tick: its position among the timers of its topic, or, without a next
 *                  time, in BEL_LANE_NONE
 *     OCCURRENCES  one for each unfinished occurrence (occurrence.c)
 *
 * When the tick is due the plan rings (plan_ring.c).
 */
#include "engine/state/plan.h"

#include "engine/state/plan_rule.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"

#include <assert.h>

static void put_state(struct bel_engine *engine, const struct bel_found *found)
{
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
    assert(bel__place_of(&found->key).table == BEL_TABLE_PLANS);
    struct bel_key key = bel__key_in(&found->key, BEL_TABLE_PLAN_STATES);
    struct bel_view value = {.data = bytes, .bytes = bel__plan_state_write(&found->plan, bytes)};
    bel__rows_put(&engine->rows, &key, value, BEL_ROW_ANY);
}

static void put_tick(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_plan_state *state = &found->plan;
    struct bel_record tick = {.kind = BEL_RECORD_TICK, .plan = found->record.plan};
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
    uint8_t lane = state->has_next ? BEL_LANE_WALL : BEL_LANE_NONE;
    uint64_t time = state->sequence; /* without a next time, sorted by sequence */
    if (state->has_next) time = state->next + bel__plan_place(&found->record);
    struct bel_place place = {.table = BEL_TABLE_TIMERS,
                              .topic = found->topic->number,
                              .lane = lane,
                              .priority = found->record.priority,
                              .time = time,
                              .sequence = state->sequence};
    state->tick = bel__key_of(&place);
    struct bel_view value = {.data = bytes, .bytes = bel__record_write(&tick, bytes)};
    bel__rows_put(&engine->rows, &state->tick, value, BEL_ROW_ANY);
    if (state->has_next) bel__ready_tick(engine, found->topic, &state->tick);
}

void bel__plan_set_next(struct bel_engine *engine, struct bel_found *found, bool has_next,
                        uint64_t next)
{
    assert(found->record.kind == BEL_RECORD_PLAN && found->state == BEL_SCHEDULED);
    assert(!has_next || bel__time_is_valid(next));
    bel__rows_delete(&engine->rows, &found->plan.tick);
    found->plan.has_next = has_next;
    found->plan.next = has_next ? next : 0;
    put_tick(engine, found);
    put_state(engine, found);
}

void bel__plan_skip_made(struct bel_engine *engine, struct bel_found *found)
{
    assert(found->record.kind == BEL_RECORD_PLAN && found->state == BEL_SCHEDULED);
    assert(found->plan.made > 0);
    found->plan.made--;
    found->plan.skipped++;
    put_state(engine, found);
}

void bel__plan_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   struct bel_record *record, const struct bel_plan_state *state)
{
    struct bel_found found = {.topic = topic, .plan = *state};
    uint64_t number = state->sequence;
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
    assert(record->kind == BEL_RECORD_PLAN && number > 0);
    record->plan = number;
    found.record = *record;
    found.key = bel__key_of(
        &(struct bel_place){.table = BEL_TABLE_PLANS, .topic = topic->number, .sequence = number});
    struct bel_view value = {.data = bytes, .bytes = bel__record_write(record, bytes)};
    bel__rows_put(&engine->rows, &found.key, value, BEL_ROW_NEW);
    bel__alias_put(engine, &found.key, record, BEL_ROW_NEW);
    put_tick(engine, &found);
    put_state(engine, &found);
    bel__topic_count(engine, topic, BEL_NUMBER_PLANS, +1);
}

int bel__plan_reschedule(struct bel_engine *engine, struct bel_found *found, uint64_t nominal)
{
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    if (found->record.rule.kind == BEL_PLAN_EVERY) {
        found->record.has_start = true; /* the interval counts from here */
        found->record.start = (int64_t)nominal;
        bel__timer_rewrite(engine, found);
    }
    found->plan.is_catching_up = false;
    found->plan.sequence = bel__rows_sequence(&engine->rows);
    bel__plan_set_next(engine, found, true, nominal);
    return 0;
}
