/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_RRULE_H
#define BEL_PLAN_RRULE_H

/*
 * The contents of a recurrence rule. Parts that the text leaves open are filled in from the start,
 * so that a search can begin anywhere. A rule consists of three independent conditions:
 *
 *     dates          by enum rrule_dates, ignoring INTERVAL
 *     periods        every `interval`-th day, week, month or year, counted from the start's
 *     times of day   every hour, minute and second that is in the sets
 *
 * If it is SECONDLY, MINUTELY or HOURLY, the interval counts these periods. BYSETPOS then chooses
 * from the times of each period. Local times are in seconds,
 * counted as if they were UTC; dates are day numbers as in plan/civil.h. Bit n of a set is the
 * value n; in the second of two sets, bit n is the n-th from the end.
 */

#include "belfry/rrule.h"
#include "plan/local.h"

enum rrule_freq {
    RRULE_SECONDLY,
    RRULE_MINUTELY,
    RRULE_HOURLY,
    RRULE_DAILY,
    RRULE_WEEKLY,
    RRULE_MONTHLY,
    RRULE_YEARLY,
    RRULE_FREQS,
};

enum rrule_dates {
    RRULE_EVERY_DAY,
    RRULE_WEEKDAYS,
    RRULE_MONTHS, /* by months, month_days, weekdays and nth */
    RRULE_YEARS,  /* by year_days, weekdays and nth */
    RRULE_WEEKS,  /* by weeks and weekdays; years consist of whole weeks */
};

enum {
    RRULE_NTH_MAX = 53,
    RRULE_WEEKDAYS_MAX = 128,
    RRULE_YEAR_DAY_WORDS = 6,
    RRULE_POSITION_MAX = 366,
    RRULE_CYCLE = 146097,      /* days in 400 years, after which the calendar repeats */
    RRULE_CALLS_MAX = 2000,    /* calls of libical for one next time */
    RRULE_STEPS_MAX = 400000,  /* steps of arithmetic for one next time */
    RRULE_COUNT_CALLS = 12000, /* calls of libical to find the end of a COUNT */
    RRULE_COUNT_STEPS = 1000000,
};

struct bel_rrule {
    enum rrule_freq freq;
    enum rrule_dates dates;
    uint32_t interval;
    bool is_real_time;
    uint8_t week_start; /* 0 is Sunday */
    uint8_t weekdays;   /* without a number; all, if the rule names no weekday */
    uint8_t nth[2][RRULE_NTH_MAX];
    uint64_t seconds, minutes, hours, months;
    uint64_t month_days[2], weeks[2]; /* 0: no restriction */
    bool has_positions;
    uint64_t positions[2][RRULE_YEAR_DAY_WORDS];
    uint64_t year_days[2][RRULE_YEAR_DAY_WORDS];
    int64_t start;
    int64_t last, last_utc; /* INT64_MAX: no end */
    int64_t *excluded[2];   /* local times; instants */
    size_t excluded_count[2];
    char *text;
};

/* bel_rrule_parse() for a rule of this time zone: EXDATE may have it as its TZID. */
BEL_CHECKED int bel__rrule_parse(struct bel_view text, const struct bel_civil *start,
                                 const char *zone, struct bel_rrule **out,
                                 struct bel_text_error *why);

/* A search for dates, with an open iterator of libical. */
struct rrule_search {
    const struct bel_rrule *rrule;
    struct icalrecur_iterator_impl *iterator; /* NULL: none is open */
    int64_t shift;                            /* from dates of libical to dates of the rule, in
                                                 days */
    int64_t from, date;                       /* its last result: `date` is the first date not
                                                 before `from` */
    unsigned calls, calls_max;                /* of libical; the search ends at calls_max */
    unsigned steps, steps_max;                /* of arithmetic; the search ends at steps_max */
    int err;                                  /* 0 or BEL_ENOMEM; the search ends */
};

void bel__rrule_search_begin(struct rrule_search *search, const struct bel_rrule *rrule);
void bel__rrule_search_end(struct rrule_search *search);

/* Return the first date not before `day` that matches the rule; the first function only in periods
 * that match the interval, the second in any period. LOCAL_NONE if there is none. */
int64_t bel__rrule_date(struct rrule_search *search, int64_t day);
int64_t bel__rrule_date_of_any(struct rrule_search *search, int64_t day);

/* Returns the first local time after `local` that matches the rule, ignoring exceptions and the
 * end; LOCAL_NONE if there is none. */
int64_t bel__rrule_next_local(struct rrule_search *search, int64_t local);

/* Return whether a day matches the rule in any period, and the week of a day by its number. */
bool bel__rrule_has_day(const struct bel_rrule *rrule, int64_t day);
bool bel__rrule_has_week(const struct bel_rrule *rrule, int64_t day);

/* Return the period of the frequency that contains a day, and the first day of a period. */
int64_t bel__rrule_period(const struct bel_rrule *rrule, int64_t day);
int64_t bel__rrule_period_begin(const struct bel_rrule *rrule, int64_t period);

/* Return the first local time not before `from` that a position of the rule names: of any period of
 * a day or more; or of the hour, minute or second (`unit`) that contains `local`. */
int64_t bel__rrule_next_position(struct rrule_search *search, int64_t from);
int64_t bel__rrule_position_within(const struct bel_rrule *rrule, int64_t local, int64_t unit,
                                   int64_t from);

/* Returns the number of times of day that match the rule. */
unsigned bel__rrule_times(const struct bel_rrule *rrule);

#endif
