/* SPDX-License-Identifier: MIT */

/*
 * Converting an instant to local time is one binary search. The other direction examines every
 * period between two changes in which the clocks can show the local time:
 *
 *     local - offset_max         local - offset_min
 *             |                         |
 *     --------v------------+------------v-------> instants
 *         offsets[i]    times[i]   offsets[i + 1]
 *
 *     In a period with an offset, the local time is shown at local - offset, if that instant is in
 *     the period. If no period contains it, a change skipped it: with the offset before the change
 *     the instant would be after the change, with the offset after it before the change.
 *
 * The two ends are hours apart and most periods are months long, so there are usually one or two
 * periods; the search handles any number.
 */
#include "plan/zone.h"

#include "plan/civil.h"
#include "plan/span.h"

#include <assert.h>

static const int32_t utc_offsets[1] = {0};

static const struct bel_zone utc_zone = {
    .offsets = utc_offsets,
    .cycle_begin = INT64_MIN,
    .cycle_end = INT64_MAX,
    .cycle_first = INT64_MIN,
    .name = "UTC",
};

const struct bel_zone *bel_zone_utc(void)
{
    return &utc_zone;
}

const char *bel_zone_name(const struct bel_zone *zone)
{
    assert(zone != NULL);
    return zone->name;
}

/* Moves a time by whole cycles into the range where the changes are known. */
static inline int64_t into_cycle(const struct bel_zone *zone, int64_t time)
{
    if (time < zone->cycle_end && time >= zone->cycle_first) return time;
    if (!zone->repeats) return time;
    int64_t ahead = floor_mod(time, BEL_ZONE_CYCLE) - floor_mod(zone->cycle_begin, BEL_ZONE_CYCLE);
    return zone->cycle_begin + (ahead < 0 ? ahead + BEL_ZONE_CYCLE : ahead);
}

/* Returns the number of changes up to an instant, which is the index of its offset. */
static inline uint32_t period_of(const struct bel_zone *zone, int64_t instant)
{
    const int64_t *from = zone->times;
    uint32_t count = zone->count;
    if (count == 0) return 0;
    while (count > 1) {
        uint32_t half = count / 2;
        from += from[half - 1] <= instant ? half : 0;
        count -= half;
    }
    return (uint32_t)(from - zone->times) + (*from <= instant);
}

int32_t bel_zone_offset(const struct bel_zone *zone, int64_t utc)
{
    assert(zone != NULL);
    return zone->offsets[period_of(zone, into_cycle(zone, utc))];
}

int bel_zone_civil(const struct bel_zone *zone, int64_t utc, struct bel_civil *out)
{
    const int64_t limit = INT64_C(10000) * 366 * SECONDS_PER_DAY;
    if (utc < -limit - limit || utc > limit) return BEL_ERANGE; /* so that the sum fits */
    int64_t local = utc + bel_zone_offset(zone, utc);
    int64_t days = floor_div(local, SECONDS_PER_DAY);
    unsigned second = (unsigned)(local - days * SECONDS_PER_DAY);
    struct civil_date date = civil_from_days(days);
    if (date.year < CIVIL_YEAR_MIN || date.year > CIVIL_YEAR_MAX) return BEL_ERANGE;
    *out = (struct bel_civil){
        .year = date.year,
        .month = date.month,
        .day = date.day,
        .hour = (uint8_t)(second / 3600),
        .minute = (uint8_t)(second / 60 % 60),
        .second = (uint8_t)(second % 60),
    };
    return 0;
}

static bool is_valid(const struct bel_civil *civil)
{
    if (civil->year < CIVIL_YEAR_MIN || civil->year > CIVIL_YEAR_MAX) return false;
    if (civil->month < 1 || civil->month > 12 || civil->day < 1) return false;
    if (civil->day > days_in_month(civil->year, civil->month)) return false;
    return civil->hour < 24 && civil->minute < 60 && civil->second < 60;
}

/* Returns the change that skipped a local time, searching from `period` on. */
static int64_t gap_over(const struct bel_zone *zone, int64_t local, uint32_t period)
{
    while (local >= zone->times[period] + zone->offsets[period + 1]) {
        period++;
        assert(period < zone->count);
    }
    return zone->times[period];
}

/* Finds the instants of a local time that is already in the cycle. */
static struct bel_zone_instants find_local(const struct bel_zone *zone, int64_t local)
{
    uint32_t first_period = period_of(zone, local - zone->offset_max);
    struct bel_zone_instants found = {.answer = BEL_ZONE_GAP};
    for (uint32_t i = first_period;; i++) {
        int64_t instant = local - zone->offsets[i];
        bool begun = i == 0 || zone->times[i - 1] <= instant;
        bool ended = i < zone->count && zone->times[i] <= instant;
        if (begun && !ended) {
            bool again = found.answer != BEL_ZONE_GAP;
            if (!again) found.first = instant;
            found.second = instant;
            found.answer = again ? BEL_ZONE_FOLD : BEL_ZONE_EXACT;
        }
        if (i == zone->count || zone->times[i] > local - zone->offset_min) break;
    }
    if (found.answer == BEL_ZONE_GAP) {
        found.first = found.second = gap_over(zone, local, first_period);
    }
    return found;
}

int bel_zone_at(const struct bel_zone *zone, const struct bel_civil *civil,
                struct bel_zone_instants *out)
{
    assert(zone != NULL);
    if (!is_valid(civil)) return BEL_EINVAL;
    int64_t days = civil_to_days(civil->year, civil->month, civil->day);
    int64_t second = civil->hour * 3600 + civil->minute * 60 + civil->second;
    int64_t local = days * SECONDS_PER_DAY + second, moved = into_cycle(zone, local);
    *out = find_local(zone, moved);
    out->first += local - moved;
    out->second += local - moved;
    return 0;
}

bool bel_zone_next_change(const struct bel_zone *zone, int64_t utc, int64_t *out)
{
    assert(zone != NULL);
    int64_t moved = into_cycle(zone, utc), next, change;
    uint32_t period = period_of(zone, moved);
    if (period < zone->count && zone->times[period] < zone->cycle_end) {
        next = zone->times[period];
    } else if (zone->repeats) { /* the first change of the next cycle */
        uint32_t first = period_of(zone, zone->cycle_begin - 1);
        assert(first < zone->count && zone->times[first] < zone->cycle_end);
        next = zone->times[first] + BEL_ZONE_CYCLE;
    } else {
        return false;
    }
    if (moved == utc) {
        *out = next;
        return true;
    }
    if (__builtin_add_overflow(utc, next - moved, &change)) return false;
    *out = change;
    return true;
}

struct zone_span bel__zone_span(const struct bel_zone *zone, int64_t utc)
{
    int64_t moved = into_cycle(zone, utc), shift = utc - moved;
    uint32_t period = period_of(zone, moved);
    int32_t offset = zone->offsets[period];
    struct zone_span span = {INT64_MIN, INT64_MAX, offset, offset, offset};
    if (period > 0) {
        span.start = zone->times[period - 1] + shift;
        span.offset_before = zone->offsets[period - 1];
    }
    if (period < zone->count) {
        span.end = zone->times[period] + shift;
        span.offset_after = zone->offsets[period + 1];
    }
    return span;
}
