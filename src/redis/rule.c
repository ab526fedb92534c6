/* SPDX-License-Identifier: MIT */

/*
 * The first 69 bytes are PLAN_STATE of scripts/prelude.lua:
 *
 *     has next 1 | next 7 | made 7 | skipped 7 | missed 7 | has start 1 | start 7 | mode 1 |
 *     overlap 1 | count 7 | has until 1 | until 7 | period 7 | place 7 | is catching up 1 |
 *     kind 1 | gap 1 | fold 1 | misfire 1 | spread 7 | zone bytes 1 | zone | rule
 *
 * `period` is that of an interval, for scripts; it is 0 for other rules.
 */
#include "redis/rule.h"

#include "plan/plan.h"
#include "plan/zone_meant.h"
#include "redis/cursor.h"
#include "redis/node.h"

#include "belfry/duration.h"

#include <assert.h>
#include <string.h>

enum {
    FIXED_BYTES = 69 + 12,
};

uint64_t bel__rule_place(const struct bel_rule *rule)
{
    return bel_spread_offset(rule->id.data, rule->id.bytes, rule->said.spread_ms);
}

static int find_zone(struct bel_zones *zones, struct bel_view name, const struct bel_zone **out,
                     struct bel_text_error *why)
{
    *out = bel_zone_utc();
    if (name.bytes == 0) return 0;
    int err = zones == NULL ? BEL_EINVAL : bel_zones_find(zones, name.data, name.bytes, out);
    if (err == 0 || err == BEL_ENOMEM) return err;
    bel__zone_refuse(zones, name, why);
    return BEL_EINVAL;
}

int bel__rule_zone(const struct bel_rule *rule, struct bel_zones *zones,
                   const struct bel_zone **out)
{
    struct bel_text_error why;
    return find_zone(zones, rule->said.zone, out, &why);
}

int bel__rule_plan(const struct bel_rule *rule, struct bel_zones *zones, struct bel_plan **out,
                   struct bel_text_error *why)
{
    const struct bel_recurrence *said = &rule->said;
    struct bel_plan_options options = {
        .gap = said->gap,
        .fold = said->fold,
        .mode = said->mode,
        .has_start = rule->has_start,
        .has_until = said->has_until,
        .now = rule->created,
        .start = rule->start,
        .until = said->until,
        .seed = bel_spread_offset(rule->id.data, rule->id.bytes, UINT64_MAX),
    };
    struct bel_plan *plan = NULL;
    int err = find_zone(zones, said->zone, &options.zone, why);
    if (err) return err;
    err = bel_plan_create(said->rule.data, said->rule.bytes, &options, &plan, why);
    if (err) return err;
    if (bel_plan_kind(plan) != said->kind) {
        bel_plan_destroy(plan);
        bel__plan_refuse_kind(said->kind, why);
        return BEL_EINVAL;
    }
    *out = plan;
    return 0;
}

static int find_start(struct bel_rule *rule, const struct bel_schedule_spec *spec)
{
    struct bel_wall start = spec->at;
    rule->has_start = spec->when != BEL_WHEN_NOW;
    if (spec->when == BEL_WHEN_IN) {
        int err = bel_wall_add(rule->created, spec->delay_ms, &start);
        if (err) return err;
    }
    if (rule->has_start) rule->start.ms = start.ms < 0 ? 0 : start.ms;
    bool is_past = rule->start.ms < rule->created.ms;
    if (rule->said.mode == BEL_PLAN_DELAY && is_past) rule->start = rule->created;
    return 0;
}

int bel__rule_begin(struct bel_rule *rule, const struct bel_schedule_spec *spec,
                    struct bel_zones *zones, struct bel_text_error *why)
{
    struct bel_plan *plan = NULL;
    int err = find_start(rule, spec);
    if (err == 0) err = bel__rule_plan(rule, zones, &plan, why);
    if (err) return err;
    err = bel_plan_next(plan, (struct bel_wall){rule->created.ms - 1}, 0, &rule->next);
    bel_plan_destroy(plan);
    rule->has_next = err == 0;
    return err;
}

/* Returns the period of an interval, which is valid; 0 for another rule. */
static uint64_t period_of(const struct bel_rule *rule)
{
    struct bel_plan *plan = NULL;
    struct bel_wall next = {0};
    struct bel_plan_options options = {.mode = BEL_PLAN_DELAY, .now = rule->created};
    const struct bel_view *text = &rule->said.rule;
    if (rule->said.kind != BEL_PLAN_EVERY) return 0;
    if (bel_plan_create(text->data, text->bytes, &options, &plan, NULL) != 0) return 0;
    int err = bel_plan_next(plan, rule->created, 1, &next);
    bel_plan_destroy(plan);
    return err ? 0 : (uint64_t)(next.ms - rule->created.ms);
}

size_t bel__rule_bytes(const struct bel_rule *rule)
{
    return FIXED_BYTES + rule->said.zone.bytes + rule->said.rule.bytes;
}

void bel__rule_write(const struct bel_rule *rule, uint8_t *out)
{
    const struct bel_recurrence *said = &rule->said;
    uint8_t *at = bel__put_number(out, rule->has_next, 1);
    at = bel__put_number(at, (uint64_t)rule->next.ms, 7);
    at = bel__put_number(at, rule->made, 7);
    at = bel__put_number(at, rule->skipped, 7);
    at = bel__put_number(at, rule->missed, 7);
    at = bel__put_number(at, rule->has_start, 1);
    at = bel__put_number(at, (uint64_t)rule->start.ms, 7);
    at = bel__put_number(at, said->mode, 1);
    at = bel__put_number(at, said->overlap, 1);
    at = bel__put_number(at, said->count, 7);
    at = bel__put_number(at, said->has_until, 1);
    at = bel__put_number(at, said->has_until ? (uint64_t)said->until.ms : 0, 7);
    at = bel__put_number(at, period_of(rule), 7);
    at = bel__put_number(at, bel__rule_place(rule), 7);
    at = bel__put_number(at, rule->is_catching_up, 1);
    at = bel__put_number(at, said->kind, 1);
    at = bel__put_number(at, said->gap, 1);
    at = bel__put_number(at, said->fold, 1);
    at = bel__put_number(at, said->misfire, 1);
    at = bel__put_number(at, said->spread_ms, 7);
    at = bel__put_number(at, said->zone.bytes, 1);
    assert(at - out == FIXED_BYTES);
    at = bel__put_view(at, said->zone);
    (void)bel__put_view(at, said->rule);
}

static bool is_time(struct bel_wall time)
{
    return time.ms >= -BEL_REDIS_TIME_END_MS && time.ms <= BEL_REDIS_TIME_END_MS;
}

/* Returns whether the bytes are those of a rule: others can write to the server, too. */
static bool is_sound(const struct bel_rule *rule)
{
    const struct bel_recurrence *said = &rule->said;
    return said->mode <= BEL_PLAN_DELAY && said->overlap <= BEL_OVERLAP_ALLOW &&
           said->kind <= BEL_PLAN_RRULE && said->gap <= BEL_GAP_SKIP &&
           said->fold <= BEL_FOLD_BOTH && said->misfire <= BEL_MISFIRE_ALL &&
           said->spread_ms <= (uint64_t)BEL_REDIS_TIME_END_MS && said->rule.bytes > 0 &&
           is_time(rule->next) && is_time(rule->start) && is_time(said->until);
}

int bel__rule_read(struct bel_view bytes, struct bel_rule *out)
{
    struct bel_cursor cursor = bel__cursor_of(bytes);
    struct bel_recurrence *said = &out->said;
    out->has_next = bel__take_number(&cursor, 1) != 0;
    out->next.ms = bel__take_time(&cursor);
    out->made = bel__take_number(&cursor, 7);
    out->skipped = bel__take_number(&cursor, 7);
    out->missed = bel__take_number(&cursor, 7);
    out->has_start = bel__take_number(&cursor, 1) != 0;
    out->start.ms = bel__take_time(&cursor);
    said->mode = (enum bel_plan_mode)bel__take_number(&cursor, 1);
    said->overlap = (enum bel_overlap)bel__take_number(&cursor, 1);
    said->count = bel__take_number(&cursor, 7);
    said->has_until = bel__take_number(&cursor, 1) != 0;
    said->until.ms = bel__take_time(&cursor);
    (void)bel__take_number(&cursor, 7);
    (void)bel__take_number(&cursor, 7);
    out->is_catching_up = bel__take_number(&cursor, 1) != 0;
    said->kind = (enum bel_plan_kind)bel__take_number(&cursor, 1);
    said->gap = (enum bel_gap)bel__take_number(&cursor, 1);
    said->fold = (enum bel_fold)bel__take_number(&cursor, 1);
    said->misfire = (enum bel_misfire)bel__take_number(&cursor, 1);
    said->spread_ms = bel__take_number(&cursor, 7);
    size_t zone_bytes = (size_t)bel__take_number(&cursor, 1);
    said->zone = bel__take(&cursor, zone_bytes);
    said->rule = bel__take(&cursor, cursor.left);
    return cursor.is_bad || !is_sound(out) ? BEL_ECORRUPT : 0;
}
