/* SPDX-License-Identifier: MIT */

/*
 * Converts dates to local times and local times to instants. The times of day are the lowest bits
 * of three words, as for cron. For rules with a frequency of less than a day, the result is the
 * first time of the sets, on a day that matches, in a period that matches the interval.
 *
 * plan/local.h does the rest, as for all rules; exceptions that are instants are removed from its
 * results.
 */
#include "plan/civil.h"
#include "plan/explain.h"
#include "plan/rrule.h"

#include <assert.h>

static int64_t lowest_from(uint64_t bits, int64_t from)
{
    bits = from < 64 ? bits >> from << from : 0;
    return bits != 0 ? __builtin_ctzll(bits) : -1;
}

/* Returns the first second of a day, not before `second`, that matches; -1 if there is none. */
static int64_t next_time(const struct bel_rrule *rrule, int64_t second)
{
    int64_t hour = second / 3600, minute = second / 60 % 60;
    int64_t first_minute = lowest_from(rrule->minutes, 0),
            first_second = lowest_from(rrule->seconds, 0);
    if ((rrule->hours >> hour & 1) != 0) {
        if ((rrule->minutes >> minute & 1) != 0) {
            int64_t at = lowest_from(rrule->seconds, second % 60);
            if (at >= 0) return second / 60 * 60 + at;
        }
        int64_t later = lowest_from(rrule->minutes, minute + 1);
        if (later >= 0) return hour * 3600 + later * 60 + first_second;
    }
    int64_t later = lowest_from(rrule->hours, hour + 1);
    return later >= 0 ? later * 3600 + first_minute * 60 + first_second : -1;
}

static int64_t next_of_dates(struct rrule_search *search, int64_t from)
{
    const struct bel_rrule *rrule = search->rrule;
    int64_t day = floor_div(from, SECONDS_PER_DAY);
    int64_t date = bel__rrule_date(search, day);
    if (date == day) {
        int64_t at = next_time(rrule, floor_mod(from, SECONDS_PER_DAY));
        if (at >= 0) return day * SECONDS_PER_DAY + at;
        date = bel__rrule_date(search, day + 1);
    }
    return date == LOCAL_NONE ? LOCAL_NONE : date * SECONDS_PER_DAY + next_time(rrule, 0);
}

static const int64_t units[] = {[RRULE_SECONDLY] = 1, [RRULE_MINUTELY] = 60, [RRULE_HOURLY] = 3600};

/* Returns the day after one that does not match, without the rest of a month that does not. */
static int64_t day_after(const struct bel_rrule *rrule, int64_t day)
{
    struct civil_date date = civil_from_days(day);
    if ((rrule->months >> date.month & 1) != 0) return day + 1;
    return day + days_in_month(date.year, date.month) - date.day + 1;
}

static int64_t next_of_periods(struct rrule_search *search, int64_t from)
{
    const struct bel_rrule *rrule = search->rrule;
    int64_t unit = units[rrule->freq], base = floor_div(rrule->start, unit);
    int64_t horizon = from + (int64_t)RRULE_CYCLE * SECONDS_PER_DAY;
    for (; from < horizon && search->steps < search->steps_max; search->steps++) {
        int64_t day = floor_div(from, SECONDS_PER_DAY);
        bool is_day = bel__rrule_has_day(rrule, day);
        int64_t at = is_day ? next_time(rrule, floor_mod(from, SECONDS_PER_DAY)) : -1;
        if (at < 0) {
            from = (is_day ? day + 1 : day_after(rrule, day)) * SECONDS_PER_DAY;
            continue;
        }
        int64_t local = day * SECONDS_PER_DAY + at, period = floor_div(local, unit);
        int64_t rest = floor_mod(period - base, rrule->interval);
        if (rest == 0) return local;
        from = (period - rest + rrule->interval) * unit;
    }
    return LOCAL_NONE;
}

/* Finds a position in the set of an hour, a minute or a second. */
static int64_t next_of_positions(struct rrule_search *search, int64_t from)
{
    const struct bel_rrule *rrule = search->rrule;
    int64_t unit = units[rrule->freq], at = floor_div(from, unit) * unit;
    while ((at = next_of_periods(search, at)) != LOCAL_NONE) {
        int64_t found = bel__rrule_position_within(rrule, at, unit, from);
        if (found != LOCAL_NONE) return found;
        at = (floor_div(at, unit) + 1) * unit;
        search->steps++;
    }
    return LOCAL_NONE;
}

/* Returns the first local time not before `from` that matches the rule. */
static int64_t next_of_any(struct rrule_search *search, int64_t from)
{
    const struct bel_rrule *rrule = search->rrule;
    bool is_short = rrule->freq < RRULE_DAILY;
    if (rrule->has_positions) {
        return is_short ? next_of_positions(search, from) : bel__rrule_next_position(search, from);
    }
    return is_short ? next_of_periods(search, from) : next_of_dates(search, from);
}

int64_t bel__rrule_next_local(struct rrule_search *search, int64_t local)
{
    const struct bel_rrule *rrule = search->rrule;
    int64_t from = local < rrule->start ? rrule->start : local + 1;
    int64_t next = next_of_any(search, from);
    /* One day less, so that the result is before the year 10,000 in any zone. */
    int64_t end = civil_to_days(CIVIL_YEAR_MAX, 12, 30) * SECONDS_PER_DAY;
    return next < end ? next : LOCAL_NONE;
}

static bool is_excluded(const struct bel_rrule *rrule, unsigned kind, int64_t at)
{
    size_t low = 0, high = rrule->excluded_count[kind];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rrule->excluded[kind][middle] < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < rrule->excluded_count[kind] && rrule->excluded[kind][low] == at;
}

static int64_t next_of_context(void *context, int64_t local)
{
    struct rrule_search *search = context;
    const struct bel_rrule *rrule = search->rrule;
    do {
        if (local >= rrule->last) return LOCAL_NONE;
        local = bel__rrule_next_local(search, local);
        if (local == LOCAL_NONE || local > rrule->last) return LOCAL_NONE;
    } while (is_excluded(rrule, 0, local));
    return local;
}

int64_t bel__rrule_local_after(const struct bel_rrule *rrule, int64_t local)
{
    struct rrule_search search;
    bel__rrule_search_begin(&search, rrule);
    int64_t next = next_of_context(&search, local);
    bel__rrule_search_end(&search);
    return search.err ? LOCAL_NONE : next;
}

bool bel__rrule_is_real_time(const struct bel_rrule *rrule)
{
    return rrule->is_real_time;
}

int bel_rrule_next(const struct bel_rrule *rrule, const struct bel_zone_when *when, int64_t utc,
                   int64_t *out)
{
    struct rrule_search search;
    bel__rrule_search_begin(&search, rrule);
    struct local_rule rule = {
        .next = next_of_context,
        .context = &search,
        .is_real_time = rrule->is_real_time,
        .gap = when->gap,
        .fold = when->fold,
    };
    int64_t next = utc;
    bool found;
    do {
        found = bel__local_next(&rule, when->zone, next, &next);
    } while (found && is_excluded(rrule, 1, next));
    bel__rrule_search_end(&search);
    if (search.err) return search.err;
    if (!found || next > rrule->last_utc) return BEL_ERANGE;
    assert(next > utc);
    *out = next;
    return 0;
}
