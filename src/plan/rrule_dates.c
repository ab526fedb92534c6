/* SPDX-License-Identifier: MIT */

/*
 * Finds dates, without times. Every day, weekdays and numbered weeks are computed here (libical 3
 * omits the last days of a year's last week). For months and years libical is used, in a way that
 * makes it return quickly:
 *
 *   - without INTERVAL, COUNT, UNTIL and times of day, so that a rule that matches any date
 *     matches one within forty years: 29 February on a given weekday is the rarest. Rules that
 *     match none were rejected before;
 *   - always starting at the date of interest. Nothing depends on the start, because the open
 *     parts were filled in;
 *   - in the years 2000 to 2399, because libical gives up in 2582. The calendar repeats after
 *     400 years, so other dates are moved there and back by whole cycles.
 *
 * The interval is applied here. If a date is in a period that the interval skips, the search
 * continues at the beginning of the next period that it does not skip:
 *
 *     period     0         1         2         3      INTERVAL=2
 *                | x     x |     x   |         |   x
 *     search     '-1-'-2-'-'-3-'(no) '--4------'(no)  '--5 ...
 */
#include "plan/civil.h"
#include "plan/rrule.h"

#include <assert.h>
#include <libical/ical.h>

static_assert(RRULE_WEEKDAYS_MAX < ICAL_BY_DAY_SIZE, "libical's list has room");

enum {
    NEAR_DAYS = 31, /* an open iterator is advanced for a date at most this far ahead */
    YEAR_FIRST = 2000,
    CYCLE_YEARS = 400,
};

void bel__rrule_search_begin(struct rrule_search *search, const struct bel_rrule *rrule)
{
    *search = (struct rrule_search){
        .rrule = rrule,
        .calls_max = RRULE_CALLS_MAX,
        .steps_max = RRULE_STEPS_MAX,
    };
}

void bel__rrule_search_end(struct rrule_search *search)
{
    if (search->iterator != NULL) icalrecur_iterator_free(search->iterator);
    search->iterator = NULL;
}

/* Writes the values of two sets to a list of libical, which has room for `max` values and the end;
 * the parser accepted no more. */
static void put_list(short *list, const uint64_t *from_start, const uint64_t *from_end, int max)
{
    size_t count = 0;
    for (int sign = 0; sign < 2; sign++) {
        const uint64_t *set = sign == 0 ? from_start : from_end;
        for (int value = 1; set != NULL && value <= max; value++) {
            if ((set[value / 64] >> value % 64 & 1) == 0) continue;
            assert(count < (size_t)max);
            list[count++] = (short)(sign == 0 ? value : -value);
        }
    }
    list[count] = ICAL_RECURRENCE_ARRAY_MAX;
}

/* Writes weekdays with their numbers as libical encodes them: 1 is Sunday, plus 8 for each
 * number. */
static void put_weekdays(short *list, const struct bel_rrule *rrule)
{
    size_t count = 0;
    for (int weekday = 0; weekday < 7; weekday++) {
        if ((rrule->weekdays >> weekday & 1) != 0) list[count++] = (short)(weekday + 1);
        for (int i = 0; i < RRULE_NTH_MAX; i++) {
            short place = (short)(weekday + 1 + 8 * (i + 1));
            if ((rrule->nth[0][i] >> weekday & 1) != 0) list[count++] = place;
            if ((rrule->nth[1][i] >> weekday & 1) != 0) list[count++] = (short)-place;
        }
    }
    assert(count <= RRULE_WEEKDAYS_MAX);
    list[count] = ICAL_RECURRENCE_ARRAY_MAX;
}

static void put_rule(struct icalrecurrencetype *out, const struct bel_rrule *rrule)
{
    icalrecurrencetype_clear(out);
    out->freq = rrule->dates == RRULE_MONTHS ? ICAL_MONTHLY_RECURRENCE : ICAL_YEARLY_RECURRENCE;
    if (rrule->weekdays != 0x7f) put_weekdays(out->by_day, rrule);
    if (rrule->dates == RRULE_MONTHS) {
        uint64_t every_day[2] = {UINT32_MAX - 1, 0};
        bool any = rrule->month_days[0] == 0 && rrule->month_days[1] == 0;
        const uint64_t *days = any && rrule->weekdays == 0x7f ? every_day : rrule->month_days;
        put_list(out->by_month, &rrule->months, NULL, 12);
        put_list(out->by_month_day, &days[0], &days[1], 31);
    } else {
        put_list(out->by_year_day, rrule->year_days[0], rrule->year_days[1], 366);
    }
}

/* Opens an iterator at a day. */
static bool open_at(struct rrule_search *search, int64_t day)
{
    struct icalrecurrencetype rule;
    bel__rrule_search_end(search);
    put_rule(&rule, search->rrule);
    int32_t year = civil_from_days(day).year;
    search->shift = floor_div(year - YEAR_FIRST, CYCLE_YEARS) * RRULE_CYCLE;
    struct civil_date date = civil_from_days(day - search->shift);
    struct icaltimetype start = icaltime_null_time();
    start.year = date.year;
    start.month = date.month;
    start.day = date.day;
    start.is_date = 1;
    search->iterator = icalrecur_iterator_new(rule, start);
    if (search->iterator == NULL) search->err = BEL_ENOMEM;
    return search->iterator != NULL;
}

/* Gets the next date of the open iterator. Returns false at its end. */
static bool step(struct rrule_search *search)
{
    struct icaltimetype next = icalrecur_iterator_next(search->iterator);
    search->calls++;
    if (icaltime_is_null_time(next)) {
        bel__rrule_search_end(search);
        return false;
    }
    assert(next.month >= 1 && next.month <= 12 && next.day >= 1 && next.day <= 31);
    int64_t date = civil_to_days(next.year, (unsigned)next.month, (unsigned)next.day);
    search->date = date + search->shift;
    return true;
}

static int64_t date_by_libical(struct rrule_search *search, int64_t day)
{
    bool is_open = search->iterator != NULL && day >= search->from;
    while (is_open && search->date < day && day - search->date <= NEAR_DAYS) {
        if (search->calls >= search->calls_max) return LOCAL_NONE;
        search->from = search->date + 1;
        is_open = step(search);
    }
    if (is_open && search->date >= day) return search->date;
    if (search->calls >= search->calls_max || !open_at(search, day)) return LOCAL_NONE;
    search->from = day;
    return step(search) ? search->date : LOCAL_NONE;
}

/* Return the number of the week that contains a day, counted from one in 1970, and the first day of
 * a week. */
static int64_t week_of(const struct bel_rrule *rrule, int64_t day)
{
    return floor_div(day + 4 - rrule->week_start, 7);
}

static int64_t week_begin(const struct bel_rrule *rrule, int64_t week)
{
    return week * 7 - 4 + rrule->week_start;
}

/* Returns the first week of a year: the one that contains 4 January, so that most of it is in the
 * year. */
static int64_t first_week(const struct bel_rrule *rrule, int32_t year)
{
    return week_of(rrule, civil_to_days(year, 1, 4));
}

/* Returns the year that contains most of a week. */
static int32_t year_of_week(const struct bel_rrule *rrule, int64_t week)
{
    return civil_from_days(week_begin(rrule, week) + 3).year;
}

bool bel__rrule_has_week(const struct bel_rrule *rrule, int64_t day)
{
    int64_t week = week_of(rrule, day);
    int32_t year = year_of_week(rrule, week);
    int64_t number = week - first_week(rrule, year) + 1;
    int64_t from_end = first_week(rrule, year + 1) - week;
    return ((rrule->weeks[0] >> number | rrule->weeks[1] >> from_end) & 1) != 0;
}

static int64_t date_by_weekday(const struct bel_rrule *rrule, int64_t day)
{
    unsigned ahead = (unsigned)(rrule->weekdays | rrule->weekdays << 7) >> weekday_of(day);
    return day + __builtin_ctz(ahead);
}

static int64_t date_by_week(struct rrule_search *search, int64_t day)
{
    const struct bel_rrule *rrule = search->rrule;
    for (; search->steps < search->steps_max; search->steps++) {
        int64_t date = date_by_weekday(rrule, day), week = week_of(rrule, date);
        if (bel__rrule_has_week(rrule, date)) return date;
        day = week_begin(rrule, week + 1);
    }
    return LOCAL_NONE;
}

int64_t bel__rrule_date_of_any(struct rrule_search *search, int64_t day)
{
    switch (search->rrule->dates) {
    case RRULE_EVERY_DAY:
        return day;
    case RRULE_WEEKDAYS:
        return date_by_weekday(search->rrule, day);
    case RRULE_WEEKS:
        return date_by_week(search, day);
    default:
        return date_by_libical(search, day);
    }
}

int64_t bel__rrule_period(const struct bel_rrule *rrule, int64_t day)
{
    struct civil_date date;
    switch (rrule->freq) {
    case RRULE_DAILY:
        return day;
    case RRULE_WEEKLY:
        return week_of(rrule, day);
    case RRULE_MONTHLY:
        date = civil_from_days(day);
        return (int64_t)date.year * 12 + date.month - 1;
    default:
        if (rrule->dates == RRULE_WEEKS) return year_of_week(rrule, week_of(rrule, day));
        return civil_from_days(day).year;
    }
}

int64_t bel__rrule_period_begin(const struct bel_rrule *rrule, int64_t period)
{
    switch (rrule->freq) {
    case RRULE_DAILY:
        return period;
    case RRULE_WEEKLY:
        return week_begin(rrule, period);
    case RRULE_MONTHLY:
        return civil_to_days((int32_t)floor_div(period, 12), (unsigned)floor_mod(period, 12) + 1,
                             1);
    default:
        if (rrule->dates != RRULE_WEEKS) return civil_to_days((int32_t)period, 1, 1);
        return week_begin(rrule, first_week(rrule, (int32_t)period));
    }
}

int64_t bel__rrule_date(struct rrule_search *search, int64_t day)
{
    const struct bel_rrule *rrule = search->rrule;
    assert(rrule->freq >= RRULE_DAILY && rrule->interval > 0);
    int64_t base = bel__rrule_period(rrule, floor_div(rrule->start, SECONDS_PER_DAY));
    int64_t horizon = day + RRULE_CYCLE;
    for (; search->steps < search->steps_max; search->steps++) {
        int64_t period = bel__rrule_period(rrule, day);
        int64_t rest = floor_mod(period - base, rrule->interval);
        if (rest != 0) day = bel__rrule_period_begin(rrule, period - rest + rrule->interval);
        if (day > horizon) return LOCAL_NONE;
        int64_t date = bel__rrule_date_of_any(search, day);
        if (date == LOCAL_NONE || date > horizon) return LOCAL_NONE;
        if (floor_mod(bel__rrule_period(rrule, date) - base, rrule->interval) == 0) return date;
        day = date;
    }
    return LOCAL_NONE;
}
