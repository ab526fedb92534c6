/* SPDX-License-Identifier: MIT */

/*
 * A zone consists of the changes that its file lists, and of those that its rule makes after the
 * last of these. The rule is expanded from two years before the last listed change on, so that its
 * state at that instant is known:
 *
 *     last listed change --.
 *                          v
 *     year - 2    year - 1    year    year + 1    year + 2   ...   year + 401   year + 402   ...
 *                                                |<-------- cycle ---------->|
 *
 * The last listed offset should agree with the rule. It does not if a zone only switched to another
 * rule later: old compilers omit this, because no clock was changed (America/Ojinaga, November
 * 2022). So the list applies until the next change of the rule. If the rule never makes a change
 * and has another offset, the file is damaged.
 *
 * The expanded years are not the real ones but those 0, 400, 800 ... years away, because an instant
 * of a file may be in a year that does not fit into an int32_t.
 *
 * DST starts and ends once a year, but the rule determines which comes first, and both may fall
 * into another year. Therefore both are sorted by time over all years. If the end of one year
 * equals the start of the next, the start wins, and DST lasts all year: "EST5EDT,0/0,J365/25" is
 * written for this purpose. If start and end of a year are equal, there is no DST in it.
 */
#include "plan/civil.h"
#include "plan/posix_tz.h"
#include "plan/tzif.h"
#include "plan/zone.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    YEARS_BEFORE = 2,
    YEARS_AFTER = 405, /* two more than needed, because changes may be days early or late */
    RULE_CHANGES = 2 * (YEARS_BEFORE + YEARS_AFTER),
    ORIGIN_YEAR = 2000, /* of the cycle in which the rule is expanded */
};

struct change {
    int64_t time;
    int32_t offset; /* from then on */
};

/* A zone under construction. */
struct draft {
    int64_t *times;   /* room for `time_count` of the file and RULE_CHANGES */
    int32_t *offsets; /* one more than times */
    uint32_t count;
    bool repeats;
    int64_t cycle_begin, cycle_first;
    struct change rule[RULE_CHANGES]; /* sorted by time */
};

/* Adds a change, not before the last one. A change at the same instant replaces it; a change to the
 * same offset is ignored. */
static void add_change(struct draft *draft, struct change change)
{
    if (draft->count > 0 && draft->times[draft->count - 1] == change.time) draft->count--;
    assert(draft->count == 0 || draft->times[draft->count - 1] < change.time);
    if (draft->offsets[draft->count] == change.offset) return;
    draft->times[draft->count++] = change.time;
    draft->offsets[draft->count] = change.offset;
}

static void add_listed(struct draft *draft, const struct tzif *tzif)
{
    draft->offsets[0] = bel__tzif_offset_first(tzif);
    for (uint32_t i = 0; i < tzif->time_count; i++) {
        add_change(draft, (struct change){bel__tzif_time(tzif, i), bel__tzif_offset(tzif, i)});
    }
}

/* Inserts a change after those that are not later. */
static void insert_sorted(struct change *changes, size_t count, struct change change)
{
    size_t at = count;
    while (at > 0 && changes[at - 1].time > change.time) {
        changes[at] = changes[at - 1];
        at--;
    }
    changes[at] = change;
}

/* Expands the rule around a year from 2000 to 2399, and moves it by `shift`. */
static void expand_rule(struct draft *draft, const struct tz_rule *rule, int32_t year,
                        int64_t shift)
{
    size_t count = 0;
    for (int32_t y = year - YEARS_BEFORE; y < year + YEARS_AFTER; y++) {
        int64_t start = bel__tz_rule_start(rule, y) + shift;
        int64_t end = bel__tz_rule_end(rule, y) + shift;
        insert_sorted(draft->rule, count++, (struct change){start, rule->dst_offset});
        insert_sorted(draft->rule, count++, (struct change){end, rule->offset});
    }
    assert(count == RULE_CHANGES);
}

/* Adds the changes of a rule with DST. */
static void add_dst(struct draft *draft, const struct tzif *tzif, const struct tz_rule *rule)
{
    const int64_t origin = civil_to_days(ORIGIN_YEAR, 1, 1) * SECONDS_PER_DAY;
    bool listed = tzif->time_count > 0;
    int64_t last = listed ? bel__tzif_time(tzif, tzif->time_count - 1) : origin;
    int64_t last_in_cycle = origin + floor_mod(last - origin, BEL_ZONE_CYCLE);
    int64_t shift = last - last_in_cycle;
    int32_t year = civil_from_days(floor_div(last_in_cycle, SECONDS_PER_DAY)).year;
    expand_rule(draft, rule, year, shift);

    size_t next = 0;
    while (draft->rule[next].time <= last) {
        next++;
    }
    assert(next > 0);
    if (!listed) draft->offsets[0] = draft->rule[next - 1].offset;
    draft->cycle_begin = civil_to_days(year + 2, 1, 1) * SECONDS_PER_DAY + shift;
    draft->cycle_first = listed ? INT64_MIN : draft->cycle_begin;
    int64_t cycle_end = draft->cycle_begin + BEL_ZONE_CYCLE;
    for (; draft->rule[next].time < cycle_end + INT64_C(366) * SECONDS_PER_DAY; next++) {
        add_change(draft, draft->rule[next]);
    }
    assert(next < RULE_CHANGES);
    /* Unless DST is all year, or never, there is a change in every cycle. */
    draft->repeats = draft->count > 0 && draft->times[draft->count - 1] >= draft->cycle_begin;
}

static int add_footer(struct draft *draft, const struct tzif *tzif)
{
    struct tz_rule rule;
    if (tzif->footer_bytes == 0) return 0;
    int err = bel__tz_rule_parse(tzif->footer, tzif->footer_bytes, &rule);
    if (err) return err;
    if (rule.has_dst) {
        add_dst(draft, tzif, &rule);
        return 0;
    }
    if (tzif->time_count == 0) draft->offsets[0] = rule.offset;
    return draft->offsets[draft->count] == rule.offset ? 0 : BEL_ECORRUPT;
}

/* Allocates the zone with its arrays in one block of memory. */
static int finish_draft(const struct draft *draft, const char *name, struct bel_zone **out)
{
    size_t times_bytes = draft->count * sizeof *draft->times;
    size_t offsets_bytes = (draft->count + UINT32_C(1)) * sizeof *draft->offsets;
    struct bel_zone *zone = malloc(sizeof *zone + times_bytes + offsets_bytes);
    if (zone == NULL) return BEL_ENOMEM;
    int64_t *times = (int64_t *)(zone + 1);
    int32_t *offsets = (int32_t *)(times + draft->count);
    if (times_bytes > 0) memcpy(times, draft->times, times_bytes);
    memcpy(offsets, draft->offsets, offsets_bytes);

    *zone = (struct bel_zone){
        .times = times,
        .offsets = offsets,
        .count = draft->count,
        .offset_min = offsets[0],
        .offset_max = offsets[0],
        .repeats = draft->repeats,
        .cycle_begin = draft->repeats ? draft->cycle_begin : INT64_MIN,
        .cycle_end = draft->repeats ? draft->cycle_begin + BEL_ZONE_CYCLE : INT64_MAX,
        .cycle_first = draft->repeats ? draft->cycle_first : INT64_MIN,
    };
    for (uint32_t i = 1; i <= zone->count; i++) {
        if (offsets[i] < zone->offset_min) zone->offset_min = offsets[i];
        if (offsets[i] > zone->offset_max) zone->offset_max = offsets[i];
    }
    strncpy(zone->name, name, BEL_ZONE_NAME_MAX);
    *out = zone;
    return 0;
}

static_assert(sizeof(struct bel_zone) % sizeof(int64_t) == 0, "instants may lie behind it");

int bel__zone_parse(const char *name, const uint8_t *data, size_t bytes, struct bel_zone **out)
{
    assert(name != NULL);
    struct tzif tzif;
    int err = bel__tzif_read(data, bytes, &tzif);
    if (err) return err;

    size_t room = (size_t)tzif.time_count + RULE_CHANGES;
    struct draft *draft = malloc(sizeof *draft);
    if (draft == NULL) return BEL_ENOMEM;
    *draft = (struct draft){
        .times = malloc(room * sizeof *draft->times),
        .offsets = malloc((room + 1) * sizeof *draft->offsets),
    };
    err = draft->times == NULL || draft->offsets == NULL ? BEL_ENOMEM : 0;
    if (err) goto out;
    add_listed(draft, &tzif);
    err = add_footer(draft, &tzif);
    if (err) goto out;
    err = finish_draft(draft, name, out);

out:
    free(draft->times);
    free(draft->offsets);
    free(draft);
    return err;
}

void bel__zone_destroy(struct bel_zone *zone)
{
    free(zone);
}

bool bel__zone_is_same(const struct bel_zone *a, const struct bel_zone *b)
{
    if (a->count != b->count || a->repeats != b->repeats) return false;
    if (a->cycle_begin != b->cycle_begin || a->cycle_first != b->cycle_first) return false;
    return (a->count == 0 || memcmp(a->times, b->times, a->count * sizeof *a->times) == 0) &&
           memcmp(a->offsets, b->offsets, (a->count + UINT32_C(1)) * sizeof *a->offsets) == 0;
}
