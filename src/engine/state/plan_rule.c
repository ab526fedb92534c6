/* SPDX-License-Identifier: MIT */

/*
 * A record has the rule of a plan as text, and the start, zone and seed that the plan was made
 * with. The plan is created again from these whenever one of its times is needed, so that no plan
 * is kept in memory.
 */
#include "engine/state/plan_rule.h"

#include "engine/state/state.h"
#include "plan/plan.h"
#include "plan/zone_meant.h"

#include <assert.h>

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
    if (engine->zones != NULL) {
        err = bel_zones_find(engine->zones, name.data, name.bytes, out);
    }
    if (err == 0 || err == BEL_ENOMEM) return err;
    bel__zone_refuse(engine->zones, name, why);
    return BEL_EINVAL; /* a damaged zone file does not make the engine corrupt */
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
        bel__plan_refuse_kind(rule->kind, why);
        return BEL_EINVAL;
    }
    *out = plan;
    return 0;
}

int bel__plan_again(struct bel_engine *engine, const struct bel_record *record,
                    struct bel_plan **out)
{
    int err = bel__plan_of(engine, record, out, NULL);
    return err == BEL_EINVAL ? BEL_EUNSUPPORTED : err;
}

int bel__plan_after(struct bel_engine *engine, const struct bel_record *record, int64_t after,
                    uint64_t *out)
{
    struct bel_plan *plan;
    struct bel_wall next;
    int err = bel__plan_again(engine, record, &plan);
    if (err) return err;
    err = bel_plan_next(plan, (struct bel_wall){after}, 0, &next);
    bel_plan_destroy(plan);
    if (err) return err;
    assert(next.ms > after);
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
    assert(next.ms >= engine->now.wall);
    if (!bel__time_is_valid((uint64_t)next.ms + spec->plan.spread_ms)) return BEL_ERANGE;
    *out = (uint64_t)next.ms;
    return 0;
}
