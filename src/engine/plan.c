/* SPDX-License-Identifier: MIT */

/*
 * A plan is four kinds of rows:
 *
 *     PLANS        what was asked for: rule, payload; written once
 *     PLAN_STATES  the next nominal time, and what there was so far
 *     TIMERS       its tick: where it waits among the timers of its topic, or, without a next
 *                  time, in the lane that has none
 *     OCCURRENCES  one for each of its occurrences that is unfinished
 *
 * When the tick comes due the plan rings: one nominal time is made into an occurrence, or left
 * out, and the tick moves on. A plan that is behind rings again right there, so that each
 * ring is one small change, complete in itself.
 */
#include "engine/plan.h"

#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/rows/blob.h"
#include "engine/timer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- the rule --- */

static uint64_t seed_of(struct bel_view id)
{
    return bel_spread_offset(id.data, id.bytes, UINT64_MAX);
}

uint64_t bel__plan_place(const struct bel_record *record)
{
    return bel_spread_offset(record->id.data, record->id.bytes, record->rule.spread_ms);
}

int bel__plan_zone(struct bel_engine *engine, struct bel_view name, const struct bel_zone **out,
                   struct bel_text_error *why)
{
    *out = bel_zone_utc();
    if (name.bytes == 0) return 0;
    int err = BEL_EINVAL;
    if (engine->options.zones != NULL) {
        err = bel_zones_find(engine->options.zones, name.data, name.bytes, out);
    }
    if (err == 0 || err == BEL_ENOMEM) return err;
    if (why != NULL) {
        (void)snprintf(why->expected, sizeof why->expected, "the name of a time zone");
    }
    return BEL_EINVAL; /* a file that is damaged is no zone; it is not the engine that is */
}

/* The plan of a record that was good when it was made: BEL_EUNSUPPORTED if it is not any more,
 * because its zone has gone. */
static int plan_again(struct bel_engine *engine, const struct bel_record *record,
                      struct bel_plan **out)
{
    int err = bel__plan_of(engine, record, out, NULL);
    return err == BEL_EINVAL ? BEL_EUNSUPPORTED : err;
}

int bel__plan_of(struct bel_engine *engine, const struct bel_record *record, struct bel_plan **out,
                 struct bel_text_error *why)
{
    const struct bel_recurrence *rule = &record->rule;
    struct bel_plan_options options = {
        .gap = rule->gap,
        .fold = rule->fold,
        .mode = rule->mode,
        .has_start = record->has_start,
        .has_until = rule->has_until,
        .now = {record->created},
        .start = {record->start},
        .until = rule->until,
        .seed = seed_of(record->id),
    };
    struct bel_plan *plan;
    int err = bel__plan_zone(engine, rule->zone, &options.zone, why);
    if (err) return err;
    err = bel_plan_create(rule->rule.data, rule->rule.bytes, &options, &plan, why);
    if (err) return err;
    if (bel_plan_kind(plan) != rule->kind) {
        bel_plan_destroy(plan);
        if (why != NULL) {
            (void)snprintf(why->expected, sizeof why->expected, "a rule of the kind it is for");
        }
        return BEL_EINVAL;
    }
    *out = plan;
    return 0;
}

/* The first time of a plan after `after`, by the rule alone. BEL_ERANGE: there is none. */
static int next_after(struct bel_engine *engine, const struct bel_record *record, int64_t after,
                      uint64_t *out)
{
    struct bel_plan *plan;
    struct bel_wall next;
    int err = plan_again(engine, record, &plan);
    if (err) return err;
    err = bel_plan_next(plan, (struct bel_wall){after}, 0, &next);
    bel_plan_destroy(plan);
    if (err) return err;
    if (next.ms < 0 || !bel__time_is_valid((uint64_t)next.ms)) return BEL_ERANGE;
    *out = (uint64_t)next.ms;
    return 0;
}

int bel__plan_first(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                    struct bel_record *record, struct bel_text_error *why, uint64_t *out)
{
    struct bel_plan *plan;
    struct bel_wall start = spec->at, next;
    record->rule = spec->plan;
    record->has_start = spec->when != BEL_WHEN_NOW;
    if (spec->when == BEL_WHEN_IN) {
        int err = bel_wall_add((struct bel_wall){engine->now.wall}, spec->delay_ms, &start);
        if (err) return err;
    }
    if (record->has_start) record->start = start.ms < 0 ? 0 : start.ms;
    bool is_past = record->start < engine->now.wall;
    if (spec->plan.mode == BEL_PLAN_DELAY && is_past) record->start = engine->now.wall;
    int err = bel__plan_of(engine, record, &plan, why);
    if (err) return err;
    err = bel_plan_next(plan, (struct bel_wall){engine->now.wall - 1}, 0, &next);
    bel_plan_destroy(plan);
    if (err) return err;
    if (!bel__time_is_valid((uint64_t)next.ms + spec->plan.spread_ms)) return BEL_ERANGE;
    *out = (uint64_t)next.ms;
    return 0;
}

/* --- rows --- */

static void put_state(struct bel_engine *engine, const struct bel_found *found)
{
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
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
    uint64_t time = state->sequence; /* without a time, they are in the order of sequence */
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

/* Gives a plan its next time, or none, and writes its state. */
static void set_next(struct bel_engine *engine, struct bel_found *found, bool has_next,
                     uint64_t next)
{
    bel__rows_delete(&engine->rows, &found->plan.tick);
    found->plan.has_next = has_next;
    found->plan.next = has_next ? next : 0;
    put_tick(engine, found);
    put_state(engine, found);
}

void bel__plan_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   struct bel_record *record, uint64_t number, uint64_t first)
{
    struct bel_found found = {.topic = topic,
                              .plan = {.has_next = true, .next = first, .sequence = number}};
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
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
        found->record.has_start = true; /* what it counts from */
        found->record.start = (int64_t)nominal;
        bel__timer_rewrite(engine, found);
    }
    found->plan.is_catching_up = false;
    found->plan.sequence = bel__rows_sequence(&engine->rows);
    set_next(engine, found, true, nominal);
    return 0;
}

/* --- ringing --- */

/* What one ring does. */
struct ring {
    bool makes;       /* an occurrence, at `nominal` */
    uint64_t nominal; /* the time that is made or left out */
    uint64_t missed;  /* times that are left out before it */
    bool skips;       /* `nominal` is left out, because of: */
    enum bel_engine_skip why;
    bool has_next;
    uint64_t next;
    bool is_over; /* there is no next time, ever */
};

/* The times to come: the next, which need not be the rule's own, and then by the rule. */
struct rule_context {
    const struct bel_plan *plan;
    int64_t next;
};

static bool next_by_rule(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct rule_context *rule = context;
    if (after.ms < rule->next) {
        out->ms = rule->next;
        return true;
    }
    return bel_plan_next(rule->plan, after, 0, out) == 0;
}

/* Whether a nominal time is a misfire by now. */
static bool is_late(const struct bel_engine *engine, const struct bel_found *found,
                    uint64_t nominal)
{
    uint64_t time = nominal + bel__plan_place(&found->record);
    return (uint64_t)engine->now.wall > time + bel__topic_settings(found->topic)->misfire_after_ms;
}

static uint32_t all_max(const struct bel_found *found)
{
    uint64_t left = UINT64_MAX;
    if (found->record.rule.count > 0) left = found->record.rule.count - found->plan.made;
    return left < BEL_MISFIRE_MAX ? (uint32_t)left : BEL_MISFIRE_MAX;
}

/* The plan is late by too much: chooses the first of the missed times to be made, if any. */
static int choose(struct bel_engine *engine, const struct bel_found *found, struct ring *ring)
{
    struct bel_wall times[BEL_MISFIRE_MAX];
    struct bel_plan *plan;
    int err = plan_again(engine, &found->record, &plan);
    if (err) return err;
    struct rule_context rule = {plan, (int64_t)found->plan.next};
    uint64_t late =
        bel__topic_settings(found->topic)->misfire_after_ms + bel__plan_place(&found->record);
    struct bel_misfire_range range = {.after = {(int64_t)found->plan.next - 1},
                                      .until = {engine->now.wall - (int64_t)late - 1}};
    struct bel_misfire_result result =
        bel_misfire_choose(found->record.rule.misfire, all_max(found),
                           &(struct bel_misfire_plan){next_by_rule, &rule}, range, times);
    bel_plan_destroy(plan);
    ring->missed = result.skipped_count;
    ring->makes = result.made_count > 0;
    if (ring->makes) ring->nominal = (uint64_t)times[0].ms;
    ring->has_next = result.has_next;
    if (result.has_next) ring->next = (uint64_t)result.next.ms;
    ring->is_over = !ring->makes && !ring->has_next;
    return 0;
}

/* Whether an occurrence of a plan is unfinished; and how many are blocked. */
static int look_at_others(struct bel_engine *engine, const struct bel_found *found,
                          struct bel_occurrences *out)
{
    return bel__occurrences_look(
        engine, found->topic, found->record.id,
        found->record.rule.overlap == BEL_OVERLAP_QUEUE ? BEL_LOOK_BLOCKED : BEL_LOOK_ANY, out);
}

/* Whether the time makes an occurrence, and whether that is blocked. */
static int overlap(struct bel_engine *engine, const struct bel_found *found, struct ring *ring,
                   bool *out_is_blocked)
{
    struct bel_occurrences others;
    struct bel_found known;
    char id[BEL_ID_BYTES];
    *out_is_blocked = false;
    struct bel_view name = bel__occurrence_id(&found->record, ring->nominal, id);
    int err = bel__timer_find(engine, found->topic, name, &known);
    if (err == 0) ring->makes = false; /* it was made before */
    ring->why = BEL_ENGINE_SKIP_KNOWN;
    if (err != BEL_ENOTFOUND) return err;
    if (found->record.rule.overlap == BEL_OVERLAP_ALLOW) return 0;
    err = look_at_others(engine, found, &others);
    if (err || !others.has_any) return err;
    *out_is_blocked = found->record.rule.overlap == BEL_OVERLAP_QUEUE;
    ring->makes = *out_is_blocked && others.blocked < BEL_OVERLAP_QUEUE_MAX;
    ring->why = *out_is_blocked ? BEL_ENGINE_SKIP_QUEUE : BEL_ENGINE_SKIP_OVERLAP;
    return 0;
}

/* What comes after the time that was made or left out. */
static int look_ahead(struct bel_engine *engine, const struct bel_found *found, struct ring *ring)
{
    const struct bel_recurrence *rule = &found->record.rule;
    if (rule->count > 0 && found->plan.made + ring->makes >= rule->count) {
        ring->is_over = true;
        return 0;
    }
    if (rule->mode == BEL_PLAN_DELAY) {
        ring->has_next = false; /* the end of the occurrence says it */
        if (ring->makes) return 0;
    }
    int64_t after = rule->mode == BEL_PLAN_DELAY ? engine->now.wall : (int64_t)ring->nominal;
    int err = next_after(engine, &found->record, after, &ring->next);
    ring->has_next = err == 0;
    ring->is_over = err == BEL_ERANGE;
    return err == BEL_ERANGE ? 0 : err;
}

/* Decides what the ring does. */
static int decide(struct bel_engine *engine, struct bel_found *found, struct ring *ring,
                  bool *out_is_blocked)
{
    *ring = (struct ring){.makes = true, .nominal = found->plan.next};
    bool late = is_late(engine, found, found->plan.next);
    if (late && found->record.rule.mode == BEL_PLAN_DELAY) {
        ring->makes = found->record.rule.misfire != BEL_MISFIRE_SKIP; /* there is but one */
        ring->missed = !ring->makes;
        found->plan.missed += ring->missed;
        *out_is_blocked = false;
        if (!ring->makes) return look_ahead(engine, found, ring);
    } else if (late && !found->plan.is_catching_up) {
        int err = choose(engine, found, ring);
        if (err) return err;
        found->plan.missed += ring->missed;
        found->plan.is_catching_up = ring->makes;
        if (!ring->makes) return 0;
    }
    int err = overlap(engine, found, ring, out_is_blocked);
    if (err) return err;
    ring->skips = !ring->makes;
    if (ring->skips) found->plan.skipped++;
    return look_ahead(engine, found, ring);
}

/* The record of an occurrence, but for its body. */
static struct bel_record occurrence_of(const struct bel_engine *engine,
                                       const struct bel_record *plan, uint64_t nominal,
                                       struct bel_view id)
{
    struct bel_record record = {
        .kind = BEL_RECORD_TIMER,
        .id = id,
        .group = plan->group,
        .resource = plan->resource,
        .created = engine->now.wall,
        .lease_ms = plan->lease_ms,
        .expires_ms = plan->expires_ms,
        .plan = plan->plan,
        .nominal = nominal,
        .spread_ms = bel__plan_place(plan),
    };
    if (record.expires_ms > 0) {
        record.expires_at = nominal + record.expires_ms;
        record.expires_lane = BEL_LANE_WALL;
    }
    return record;
}

static void make(struct bel_engine *engine, struct bel_found *found, const struct ring *ring,
                 struct bel_place place, struct bel_view body)
{
    char id[BEL_ID_BYTES];
    struct bel_view name = bel__occurrence_id(&found->record, ring->nominal, id);
    struct bel_record record = occurrence_of(engine, &found->record, ring->nominal, name);
    record.body = bel__blob_put(&engine->rows, body, BEL_BODY_INLINE_MAX);
    place.sequence = bel__rows_sequence(&engine->rows);
    if (place.lane == BEL_LANE_NONE) place.time = place.sequence;
    bel__timer_add(engine, found->topic, &place, &record);
    bel__occurrence_put(engine, found->topic, &record);
    found->plan.made++;
}

/* Room for a ring: the plan's own rows, and those of an occurrence. */
static int reserve(struct bel_engine *engine, struct bel_found *found,
                   const struct bel_place *place)
{
    uint64_t body_bytes = found->record.body.bytes;
    int err = bel__timer_hold(engine, found->topic, place, found->record.group);
    if (err) return err;
    size_t rows = (size_t)2 * BEL_TIMER_ROWS + 2 * bel__blob_rows(body_bytes);
    size_t bytes = (size_t)2 * BEL_TIMER_BYTES + (size_t)body_bytes;
    return bel__rows_reserve(&engine->rows, rows, bytes, BEL_STORE_ADD);
}

/* Rings once, which is one change. */
static int ring_once(struct bel_engine *engine, struct bel_found *found)
{
    struct ring ring;
    struct bel_view body;
    bool is_blocked = false;
    int err = decide(engine, found, &ring, &is_blocked);
    if (err) return err;
    struct bel_place place = {.table = BEL_TABLE_TIMERS,
                              .topic = found->topic->number,
                              .lane = is_blocked ? BEL_LANE_NONE : BEL_LANE_WALL,
                              .priority = found->record.priority,
                              .time = ring.nominal + bel__plan_place(&found->record)};
    err = bel__blob_get(engine->store, &found->record.body, bel__answer_arena(engine), &body);
    if (err == 0) err = reserve(engine, found, &place);
    if (err) return err;

    engine->stats.skips[BEL_ENGINE_SKIP_MISFIRE] += ring.missed;
    if (ring.skips) engine->stats.skips[ring.why]++;
    found->plan.last = ring.nominal;
    if (ring.makes) make(engine, found, &ring, place, body);
    if (!ring.has_next || !is_late(engine, found, ring.next)) found->plan.is_catching_up = false;
    if (!ring.is_over) {
        set_next(engine, found, ring.has_next, ring.next);
        return 0;
    }
    struct bel_ending ending = {.state = BEL_DONE};
    found->plan.has_next = false;
    found->plan.next = ring.nominal;
    bel__timer_end(engine, found, &ending);
    return 0;
}

int bel__plan_ring(struct bel_engine *engine, struct bel_found *found)
{
    do {
        int err = ring_once(engine, found);
        if (err) return err;
    } while (found->state == BEL_SCHEDULED && found->plan.is_catching_up);
    return 0;
}

/* An occurrence has ended: a plan that counts from the end of it goes on. */
int bel__plan_go_on(struct bel_engine *engine, struct bel_found *found, uint64_t *out)
{
    return next_after(engine, &found->record, engine->now.wall, out);
}

void bel__plan_set_next(struct bel_engine *engine, struct bel_found *found, uint64_t next)
{
    set_next(engine, found, true, next);
}
