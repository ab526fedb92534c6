/* SPDX-License-Identifier: MIT */

/*
 * When the tick of a plan is due the plan rings: one nominal time becomes an occurrence or is left
 * out, and the tick moves to the next time.
 *
 *     decide ---> late? choose which of the missed times are made
 *       |    ---> overlap? made, blocked, or left out
 *       |    ---> what is the next time?
 *     reserve --> make the occurrence, move the tick
 *
 * A plan that must catch up rings again at once. Each ring is one small, complete change. A plan
 * with COUNT that has missed very many times passes over them in slices, one in each turn.
 */
#include "engine/state/plan_ring.h"

#include "engine/rows/blob.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "plan/missed.h"

#include <assert.h>

/* What one ring does. */
struct ring {
    bool makes;       /* an occurrence is made, at `nominal` */
    uint64_t nominal; /* the time that is made or left out */
    uint64_t missed;  /* number of times left out before `nominal` */
    bool skips;       /* `nominal` is left out, for the reason `why` */
    enum bel_engine_skip why;
    bool has_next;
    uint64_t next;
    bool is_over; /* the plan has no more times */
    bool is_cut;  /* there are more missed times than one ring visits: `next` is the first */
};

/* Returns whether it is too late for a nominal time by now: a misfire. */
static bool is_late(const struct bel_engine *engine, const struct bel_found *found,
                    uint64_t nominal)
{
    uint64_t time = nominal + bel__plan_place(&found->record);
    return (uint64_t)engine->now.wall > time + bel__topic_settings(found->topic)->misfire_after_ms;
}

/* Applies the misfire policy to a plan that is too late: finds the first missed time to make, if
 * any. */
static int choose(struct bel_engine *engine, const struct bel_found *found, struct ring *ring)
{
    struct bel_wall times[BEL_MISFIRE_MAX];
    const struct bel_recurrence *rule = &found->record.rule;
    struct bel_plan *plan;
    int err = bel__plan_again(engine, &found->record, &plan);
    if (err) return err;
    uint64_t late =
        bel__topic_settings(found->topic)->misfire_after_ms + bel__plan_place(&found->record);
    struct bel_missed_plan missed = {.plan = plan,
                                     .policy = rule->misfire,
                                     .next = {(int64_t)found->plan.next},
                                     .has_until = rule->has_until,
                                     .until = rule->until};
    if (rule->count > 0) missed.left = rule->count - bel__plan_used(&found->plan);
    struct bel_wall end = {engine->now.wall - (int64_t)late - 1};
    struct bel_missed result = bel__missed_choose(&missed, end, times);
    bel_plan_destroy(plan);
    assert(result.made_count <= BEL_MISFIRE_MAX);
    ring->missed = result.skipped_count;
    ring->makes = result.made_count > 0;
    if (ring->makes) ring->nominal = (uint64_t)times[0].ms;
    ring->is_cut = result.is_cut;
    ring->has_next = result.has_next && result.next.ms >= 0 &&
                     bel__time_is_valid((uint64_t)result.next.ms); /* as bel__plan_after() */
    if (ring->has_next) ring->next = (uint64_t)result.next.ms;
    ring->is_over = !ring->makes && !ring->has_next;
    return 0;
}

/* Finds out whether an occurrence of the plan is unfinished, or how many are blocked. */
static int look_at_others(struct bel_engine *engine, const struct bel_found *found,
                          struct bel_occurrences *out)
{
    return bel__occurrences_look(
        engine, found->topic, found->record.id,
        found->record.rule.overlap == BEL_OVERLAP_QUEUE ? BEL_LOOK_BLOCKED : BEL_LOOK_ANY, out);
}

static bool is_own(const struct bel_found *found)
{
    return bel__topic_is_own(bel__topic_name(found->topic));
}

/* Decides by the overlap policy whether `nominal` makes an occurrence, and whether it is
 * blocked. */
static int overlap(struct bel_engine *engine, const struct bel_found *found, struct ring *ring,
                   bool *out_is_blocked)
{
    struct bel_occurrences others;
    struct bel_found known;
    char id[BEL_ID_BYTES];
    *out_is_blocked = false;
    if (is_own(found)) {
        int err = engine->events->rings(engine, found, &ring->makes);
        ring->why = BEL_ENGINE_SKIP_PAUSED;
        if (err != 0 || !ring->makes) return err;
    }
    struct bel_view name = bel__occurrence_id(&found->record, ring->nominal, id);
    int err = bel__timer_find(engine, found->topic, name, &known);
    if (err == 0) ring->makes = false; /* it exists already */
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

/* Finds the nominal time after the one that was made or left out. */
static int look_ahead(struct bel_engine *engine, const struct bel_found *found, struct ring *ring)
{
    const struct bel_recurrence *rule = &found->record.rule;
    if (rule->count > 0 && bel__plan_used(&found->plan) + ring->makes >= rule->count) {
        ring->is_over = true;
        return 0;
    }
    if (rule->mode == BEL_PLAN_DELAY) {
        ring->has_next = false; /* set when the occurrence ends */
        if (ring->makes) return 0;
    }
    int64_t after = rule->mode == BEL_PLAN_DELAY ? engine->now.wall : (int64_t)ring->nominal;
    int err = bel__plan_after(engine, &found->record, after, &ring->next);
    ring->has_next = err == 0;
    ring->is_over = err == BEL_ERANGE;
    assert(!ring->has_next || ring->next > ring->nominal);
    return err == BEL_ERANGE ? 0 : err;
}

/* Decides what the ring does. */
static int decide(struct bel_engine *engine, struct bel_found *found, struct ring *ring,
                  bool *out_is_blocked)
{
    *ring = (struct ring){.makes = true, .nominal = found->plan.next};
    bool late = is_late(engine, found, found->plan.next);
    if (late && found->record.rule.mode == BEL_PLAN_DELAY) {
        ring->makes = found->record.rule.misfire != BEL_MISFIRE_SKIP; /* only one time was missed */
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

/* Returns the record of an occurrence, without its body. */
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
    assert(ring->makes && !ring->skips);
    struct bel_view name = bel__occurrence_id(&found->record, ring->nominal, id);
    struct bel_record record = occurrence_of(engine, &found->record, ring->nominal, name);
    record.body = bel__blob_put(&engine->rows, body, BEL_BODY_INLINE_MAX);
    place.sequence = bel__rows_sequence(&engine->rows);
    if (place.lane == BEL_LANE_NONE) place.time = place.sequence;
    bel__timer_add(engine, found->topic, &place, &record);
    found->plan.made++;
}

/* Ends a plan that has no more times. A plan of the engine itself stays, with its counts: who made
 * it removes it. */
static void end_plan(struct bel_engine *engine, struct bel_found *found, const struct ring *ring)
{
    struct bel_ending ending = {.state = BEL_DONE};
    if (is_own(found)) {
        bel__plan_set_next(engine, found, false, 0);
        return;
    }
    found->plan.has_next = false;
    found->plan.next = ring->nominal;
    bel__timer_end(engine, found, &ending);
}

/* Reserves rows for one ring: of the plan, and of an occurrence. */
static int reserve(struct bel_engine *engine, struct bel_found *found,
                   const struct bel_place *place)
{
    uint64_t body_bytes = found->record.body.bytes;
    int err = bel__timer_hold(engine, found->topic, place, bel__record_share(&found->record));
    if (err) return err;
    size_t rows = (size_t)2 * BEL_TIMER_ROWS + 2 * bel__blob_rows(body_bytes);
    size_t bytes = (size_t)2 * BEL_TIMER_BYTES + (size_t)body_bytes;
    if (is_own(found)) { /* all others need what SCHEDULE has checked, and no more */
        rows += BEL_RANG_ROWS;
        bytes += BEL_RANG_BYTES;
    }
    return bel__rows_reserve(&engine->rows, rows, bytes, BEL_STORE_ADD);
}

/* Rings once: one complete change. Returns BEL_EBUSY after the change if the plan is to ring on in
 * the next turn. */
static int ring_once(struct bel_engine *engine, struct bel_found *found)
{
    struct ring ring;
    struct bel_view body;
    bool is_blocked = false;
    int err = decide(engine, found, &ring, &is_blocked);
    if (err) return err;
    assert(ring.makes || !is_blocked || ring.skips);
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
    if (ring.is_over) {
        end_plan(engine, found, &ring);
    } else {
        bel__plan_set_next(engine, found, ring.has_next, ring.next);
    }
    if (is_own(found)) {
        bool is_overlap = ring.why == BEL_ENGINE_SKIP_OVERLAP || ring.why == BEL_ENGINE_SKIP_QUEUE;
        engine->events->rang(engine, found, ring.skips && is_overlap);
    }
    return ring.is_cut && !ring.is_over ? BEL_EBUSY : 0;
}

int bel__plan_ring(struct bel_engine *engine, struct bel_found *found)
{
    assert(found->record.kind == BEL_RECORD_PLAN && found->state == BEL_SCHEDULED);
    do {
        int err = bel__expiry_settle(engine, found->topic);
        if (err == 0) err = ring_once(engine, found);
        if (err) return err;
    } while (found->state == BEL_SCHEDULED && found->plan.is_catching_up);
    return 0;
}
