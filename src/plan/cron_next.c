/* SPDX-License-Identifier: MIT */

/*
 * The first step is the calendar without zones. The days of a month that match a rule are one word,
 * with one bit per day, computed by shifts: weekdays are a pattern of seven bits that repeats. The
 * next day is the lowest bit set, in this month or in one of the next matching months; the time of
 * day is the lowest bits of three more words.
 *
 * The second step is the zone, which is the same for all rules (plan/local.h): a rule with a star
 * for the hour follows real time.
 */
#include "plan/civil.h"
#include "plan/cron.h"
#include "plan/local.h"

/* Returns a word with the bits 1 .. count. */
static uint32_t first_days(unsigned count)
{
    return (uint32_t)((UINT64_C(1) << (count + 1)) - 2);
}

/* Returns the days of a month, bit n for day n, that fall on some weekdays. `first` is the weekday
 * of the 1st. */
static uint32_t days_of_weekdays(uint8_t weekdays, unsigned first)
{
    uint64_t week = ((uint64_t)weekdays >> first | (uint64_t)weekdays << (7 - first)) & 0x7f;
    return (uint32_t)((week | week << 7 | week << 14 | week << 21 | week << 28) << 1);
}

/* Returns the day from Monday to Friday that is nearest to `day` in the same month. */
static unsigned nearest_weekday(unsigned day, unsigned count, unsigned first)
{
    unsigned weekday = (first + day - 1) % 7;
    if (weekday == 6) return day > 1 ? day - 1 : day + 2;
    if (weekday == 0) return day < count ? day + 1 : day - 2;
    return day;
}

/* Returns the days of a month that match the day field. */
static uint32_t days_by_day(const struct bel_cron *cron, unsigned count, unsigned first)
{
    uint32_t days = cron->days;
    for (uint32_t rest = cron->before_last; rest != 0; rest &= rest - 1) {
        unsigned before = (unsigned)__builtin_ctz(rest);
        if (before < count) days |= UINT32_C(1) << (count - before);
    }
    for (uint32_t rest = cron->nearest & first_days(count); rest != 0; rest &= rest - 1) {
        days |= UINT32_C(1) << nearest_weekday((unsigned)__builtin_ctz(rest), count, first);
    }
    for (uint32_t rest = cron->nearest_before_last; rest != 0; rest &= rest - 1) {
        unsigned before = (unsigned)__builtin_ctz(rest);
        if (before < count) {
            days |= UINT32_C(1) << nearest_weekday(count - before, count, first);
        }
    }
    if (cron->nearest_last) days |= UINT32_C(1) << nearest_weekday(count, count, first);
    return days;
}

/* Returns the days of a month that match the weekday field. */
static uint32_t days_by_weekday(const struct bel_cron *cron, unsigned count, unsigned first)
{
    uint32_t days = days_of_weekdays(cron->weekdays, first);
    for (unsigned nth = 0; nth < 5; nth++) {
        uint32_t week = (UINT32_C(0x7f) << 1) << (7 * nth);
        if (cron->nth_weekdays[nth] != 0) {
            days |= days_of_weekdays(cron->nth_weekdays[nth], first) & week;
        }
    }
    if (cron->last_weekdays != 0) {
        days |= days_of_weekdays(cron->last_weekdays, first) & ~first_days(count - 7);
    }
    return days;
}

/* Returns the days of a month that match the rule. */
static uint32_t days_named(const struct bel_cron *cron, int32_t year, unsigned month)
{
    unsigned count = days_in_month(year, month);
    unsigned first = weekday_of(civil_to_days(year, month, 1));
    uint32_t by_day = days_by_day(cron, count, first);
    uint32_t by_weekday = days_by_weekday(cron, count, first);
    uint32_t days = cron_either(cron) ? by_day | by_weekday : by_day & by_weekday;
    return days & first_days(count);
}

/* Returns the first day not before `day` that matches the rule. */
static int64_t next_day(const struct bel_cron *cron, int64_t day)
{
    struct civil_date date = civil_from_days(day);
    int32_t year = date.year;
    unsigned month = date.month;
    uint32_t from = UINT32_MAX << date.day;
    while (year <= CIVIL_YEAR_MAX) {
        uint32_t months = cron_has_year(cron, year) ? cron->months >> month : 0;
        if (months == 0) {
            if (cron->has_years && year >= CRON_YEAR_MAX) return CRON_NONE;
            year++;
            month = 1;
            from = UINT32_MAX;
            continue;
        }
        if ((months & 1) == 0) {
            month += (unsigned)__builtin_ctz(months);
            from = UINT32_MAX;
        }
        uint32_t days = days_named(cron, year, month) & from;
        if (days != 0) return civil_to_days(year, month, (unsigned)__builtin_ctz(days));
        month++;
        from = UINT32_MAX;
    }
    return CRON_NONE;
}

static int64_t lowest_from(uint64_t bits, unsigned from)
{
    bits = from < 64 ? bits >> from << from : 0;
    return bits != 0 ? __builtin_ctzll(bits) : -1;
}

/* Returns the first second of a day, not before `second`, that matches the rule; -1 if there is
 * none. */
static int64_t next_time(const struct bel_cron *cron, int64_t second)
{
    unsigned hour = (unsigned)(second / 3600), minute = (unsigned)(second / 60 % 60);
    int64_t first_minute = lowest_from(cron->minutes, 0);
    int64_t first_second = lowest_from(cron->seconds, 0);
    if ((cron->hours >> hour & 1) != 0) {
        if ((cron->minutes >> minute & 1) != 0) {
            int64_t at = lowest_from(cron->seconds, (unsigned)(second % 60));
            if (at >= 0) return second / 60 * 60 + at;
        }
        int64_t later = lowest_from(cron->minutes, minute + 1);
        if (later >= 0) return second / 3600 * 3600 + later * 60 + first_second;
    }
    int64_t later = lowest_from(cron->hours, hour + 1);
    return later >= 0 ? later * 3600 + first_minute * 60 + first_second : -1;
}

int64_t bel__cron_next_local(const struct bel_cron *cron, int64_t local)
{
    int64_t day = floor_div(local + 1, SECONDS_PER_DAY);
    int64_t second = floor_mod(local + 1, SECONDS_PER_DAY);
    int64_t named = next_day(cron, day);
    if (named == day) {
        int64_t at = next_time(cron, second);
        if (at >= 0) return day * SECONDS_PER_DAY + at;
        named = next_day(cron, day + 1);
    }
    return named == CRON_NONE ? CRON_NONE : named * SECONDS_PER_DAY + next_time(cron, 0);
}

static int64_t next_of_context(void *context, int64_t local)
{
    const struct bel_cron *const *cron = context;
    return bel__cron_next_local(*cron, local);
}

bool bel_cron_next(const struct bel_cron *cron, const struct bel_zone_when *when, int64_t utc,
                   int64_t *out)
{
    struct local_rule rule = {
        .next = next_of_context,
        .context = &cron,
        .is_real_time = cron->star_steps[CRON_HOUR] != 0,
        .gap = when->gap,
        .fold = when->fold,
    };
    return bel__local_next(&rule, when->zone, utc, out);
}
