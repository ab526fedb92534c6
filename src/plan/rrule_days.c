/* SPDX-License-Identifier: MIT */

/*
 * Days and positions by arithmetic alone. A day is tested by its date. BYSETPOS counts in the set
 * of times of one period, which is never written out: the set of a day, week, month or year is its
 * days times the times of day, so that the n-th time is a day and a time of day by division; the
 * set of an hour or a minute is a part of a day.
 */
#include "plan/civil.h"
#include "plan/rrule.h"

#include <assert.h>

enum {
    DAYS_MAX = 371, /* of a year of weeks */
};

/* Returns whether a weekday matches, by itself or by its number from the start or the end. */
static bool has_weekday(const struct bel_rrule *rrule, int64_t day, int64_t index, int64_t back)
{
    unsigned weekdays = rrule->weekdays;
    weekdays |= rrule->nth[0][index / 7] | (unsigned)rrule->nth[1][back / 7];
    return (weekdays >> weekday_of(day) & 1) != 0;
}

static bool has_month_day(const struct bel_rrule *rrule, int64_t day)
{
    struct civil_date date = civil_from_days(day);
    unsigned back = days_in_month(date.year, date.month) - date.day;
    bool is_any = rrule->month_days[0] == 0 && rrule->month_days[1] == 0;
    if ((rrule->months >> date.month & 1) == 0) return false;
    bool is_day = is_any || (rrule->month_days[0] >> date.day & 1) != 0 ||
                  (rrule->month_days[1] >> (back + 1) & 1) != 0;
    return is_day && has_weekday(rrule, day, date.day - 1, back);
}

static bool has_bit(const uint64_t *words, int64_t bit)
{
    return (words[bit / 64] >> bit % 64 & 1) != 0;
}

static bool has_year_day(const struct bel_rrule *rrule, int64_t day)
{
    int32_t year = civil_from_days(day).year;
    int64_t index = day - civil_to_days(year, 1, 1), back = civil_to_days(year + 1, 1, 1) - 1 - day;
    uint64_t named = 0;
    for (unsigned i = 0; i < RRULE_YEAR_DAY_WORDS; i++) {
        named |= rrule->year_days[0][i] | rrule->year_days[1][i];
    }
    bool is_day = named == 0 || has_bit(rrule->year_days[0], index + 1) ||
                  has_bit(rrule->year_days[1], back + 1);
    return is_day && has_weekday(rrule, day, index, back);
}

bool bel__rrule_has_day(const struct bel_rrule *rrule, int64_t day)
{
    switch (rrule->dates) {
    case RRULE_EVERY_DAY:
        return true;
    case RRULE_WEEKDAYS:
        return (rrule->weekdays >> weekday_of(day) & 1) != 0;
    case RRULE_WEEKS:
        return (rrule->weekdays >> weekday_of(day) & 1) != 0 && bel__rrule_has_week(rrule, day);
    case RRULE_YEARS:
        return has_year_day(rrule, day);
    default:
        return has_month_day(rrule, day);
    }
}

unsigned bel__rrule_times(const struct bel_rrule *rrule)
{
    return (unsigned)(__builtin_popcountll(rrule->hours) * __builtin_popcountll(rrule->minutes) *
                      __builtin_popcountll(rrule->seconds));
}

/* Returns the n-th bit that is set, from 0 on. */
static int64_t nth_bit(uint64_t bits, int64_t n)
{
    for (; n > 0; n--) {
        bits &= bits - 1;
    }
    return __builtin_ctzll(bits);
}

static int64_t count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* The set of times of a period. */
struct set {
    int64_t count;
    int64_t unit;           /* the part of a day that the times are in, in seconds */
    int64_t begin;          /* of that part, if the period is within a day */
    int64_t days[DAYS_MAX]; /* otherwise */
};

/* Returns the n-th time of a set, from 0 on. */
static int64_t nth_time(const struct bel_rrule *rrule, const struct set *set, int64_t n)
{
    int64_t seconds = count_bits(rrule->seconds), minutes = count_bits(rrule->minutes);
    int64_t second = nth_bit(rrule->seconds, n % seconds);
    if (set->unit == 1) return set->begin;
    if (set->unit == 60) return set->begin + second;
    int64_t minute = nth_bit(rrule->minutes, n / seconds % minutes);
    if (set->unit == 3600) return set->begin + minute * 60 + second;
    int64_t times = bel__rrule_times(rrule);
    int64_t hour = nth_bit(rrule->hours, n % times / (seconds * minutes));
    return set->days[n / times] * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
}

/* Returns the first time of a set, not before `from`, that a position names; LOCAL_NONE if there is
 * none. */
static int64_t first_position(const struct bel_rrule *rrule, const struct set *set, int64_t from)
{
    int64_t first = LOCAL_NONE;
    for (int64_t place = 1; place <= RRULE_POSITION_MAX && place <= set->count; place++) {
        for (unsigned sign = 0; sign < 2; sign++) {
            if (!has_bit(rrule->positions[sign], place)) continue;
            int64_t at = nth_time(rrule, set, sign == 0 ? place - 1 : set->count - place);
            if (at >= from && (first == LOCAL_NONE || at < first)) first = at;
        }
    }
    return first;
}

/* Fills in the days of a period. */
static void take_days(struct rrule_search *search, int64_t day, int64_t end, struct set *set)
{
    const struct bel_rrule *rrule = search->rrule;
    int64_t days = 0;
    assert(end - day <= DAYS_MAX);
    for (; day < end; day++, search->steps++) {
        if (bel__rrule_has_day(rrule, day)) set->days[days++] = day;
    }
    set->unit = SECONDS_PER_DAY;
    set->count = days * bel__rrule_times(rrule);
}

int64_t bel__rrule_next_position(struct rrule_search *search, int64_t from)
{
    const struct bel_rrule *rrule = search->rrule;
    struct set set = {0};
    int64_t base = bel__rrule_period(rrule, floor_div(rrule->start, SECONDS_PER_DAY));
    int64_t period = bel__rrule_period(rrule, floor_div(from, SECONDS_PER_DAY));
    int64_t rest = floor_mod(period - base, rrule->interval);
    int64_t horizon = floor_div(from, SECONDS_PER_DAY) + RRULE_CYCLE, day = 0;
    if (rest != 0) period += rrule->interval - rest;
    for (; search->steps < search->steps_max && day < horizon; period += rrule->interval) {
        day = bel__rrule_period_begin(rrule, period);
        take_days(search, day, bel__rrule_period_begin(rrule, period + 1), &set);
        int64_t at = first_position(rrule, &set, from);
        if (at != LOCAL_NONE) return at;
    }
    return LOCAL_NONE;
}

int64_t bel__rrule_position_within(const struct bel_rrule *rrule, int64_t local, int64_t unit,
                                   int64_t from)
{
    struct set set = {.unit = unit, .begin = floor_div(local, unit) * unit, .count = 1};
    if (unit >= 60) set.count = count_bits(rrule->seconds);
    if (unit >= 3600) set.count *= count_bits(rrule->minutes);
    return first_position(rrule, &set, from);
}
