/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_RRULE_H
#define BEL_PLAN_RRULE_H

/*
 * What is inside of a recurrence rule. What was left open has been filled in from the start,
 * so that a search can begin anywhere. A rule is three questions, asked apart:
 *
 *     which dates    by enum rrule_dates, as if there were no INTERVAL
 *     which periods  every `interval`-th day, week, month or year, counted from the start's
 *     which times    every hour, minute and second that is in the sets
 *
 * or, if it is SECONDLY, MINUTELY or HOURLY, only the last two. Local times are in seconds,
 * counted as if they were UTC; dates are numbers as in plan/civil.h; bit n of a set is the
 * value n, and of the second of two sets the n-th from the end.
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
    RRULE_MONTHS, /* by months, month_days, weekdays, nth and positions */
    RRULE_YEARS,  /* by year_days, weekdays and nth */
    RRULE_WEEKS,  /* by weeks and weekdays; its years are of whole weeks */
};

enum {
    RRULE_NTH_MAX = 53,
    RRULE_WEEKDAYS_MAX = 128,
    RRULE_YEAR_DAY_WORDS = 6,
    RRULE_CYCLE = 146097,      /* days in 400 years, after which the calendar is the same again */
    RRULE_CALLS_MAX = 2000,    /* of libical, for one next time */
    RRULE_STEPS_MAX = 400000,  /* that are arithmetic only */
    RRULE_COUNT_CALLS = 12000, /* the same, to find the end of a COUNT */
    RRULE_COUNT_STEPS = 1000000,
};

struct bel_rrule {
    enum rrule_freq freq;
    enum rrule_dates dates;
    uint32_t interval;
    bool is_real_time;
    uint8_t week_start; /* 0 is Sunday */
    uint8_t weekdays;   /* without a number; all, if neither these nor others were named */
    uint8_t nth[2][RRULE_NTH_MAX];
    uint64_t seconds, minutes, hours, months;
    uint64_t month_days[2], weeks[2], positions[2]; /* none: of no matter */
    uint64_t year_days[2][RRULE_YEAR_DAY_WORDS];
    int64_t start;
    int64_t last, last_utc; /* INT64_MAX: no end */
    int64_t *excluded[2];   /* local times; instants */
    size_t excluded_count[2];
    char *text;
};

/* A search for dates: an iterator of libical's that is somewhere. */
struct rrule_search {
    const struct bel_rrule *rrule;
    struct icalrecur_iterator_impl *iterator; /* NULL: none is open */
    int64_t shift;                            /* from its dates to ours, in days */
    int64_t from, date;                       /* what it gave last: the first from there on */
    unsigned calls, calls_max;                /* of libical; beyond it nothing is found */
    unsigned steps, steps_max;                /* likewise */
    int err;                                  /* BEL_ENOMEM, likewise */
};

void bel__rrule_search_begin(struct rrule_search *search, const struct bel_rrule *rrule);
void bel__rrule_search_end(struct rrule_search *search);

/* The first date from `day` on that the rule names, in the periods that it names or, for
 * the second, in any. LOCAL_NONE if there is none. */
int64_t bel__rrule_date(struct rrule_search *search, int64_t day);
int64_t bel__rrule_date_of_any(struct rrule_search *search, int64_t day);

/* The first local time after `local` that the rule names, exceptions or not, whatever comes
 * last; LOCAL_NONE if there is none. */
int64_t bel__rrule_next_local(struct rrule_search *search, int64_t local);

/* How many of a day's times the rule names. */
unsigned bel__rrule_times(const struct bel_rrule *rrule);

#endif
