/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_POSIX_TZ_H
#define BEL_PLAN_POSIX_TZ_H

/*
 * posix_tz - parses the rule at the end of a time zone file, a POSIX TZ string:
 * "CET-1CEST,M3.5.0,M10.5.0/3" means standard time one hour east of UTC, and summer time from the
 * last Sunday of March at 2:00 to the last Sunday of October at 3:00, by the clocks before each
 * change.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tz_day_kind {
    TZ_DAY_JULIAN, /* Jn: 1 .. 365, February 29 is not counted */
    TZ_DAY_ZERO,   /* n: 0 .. 365, February 29 is counted */
    TZ_DAY_MONTH,  /* Mm.w.d: weekday d of week w of month m; week 5 is the last */
};

/* A day of the year and a time of day. */
struct tz_day {
    enum tz_day_kind kind;
    uint16_t day;  /* TZ_DAY_MONTH: 0 is Sunday */
    uint8_t week;  /* TZ_DAY_MONTH: 1 .. 5 */
    uint8_t month; /* TZ_DAY_MONTH: 1 .. 12 */
    int32_t time;  /* seconds from midnight of that day; up to a week before or after */
};

struct tz_rule {
    int32_t offset;      /* standard time, seconds east of UTC */
    bool has_dst;        /* otherwise the fields below are unused */
    int32_t dst_offset;  /* may be less than the standard offset */
    struct tz_day start; /* start of DST, in standard time */
    struct tz_day end;   /* end of DST, in DST */
};

/* Parses a rule. Returns 0 and sets `*out`, or returns BEL_ECORRUPT. */
BEL_CHECKED int bel__tz_rule_parse(const char *text, size_t bytes, struct tz_rule *out);

/* Return the instants at which DST starts and ends in a year. Either may come first, and either may
 * fall into the year before or after. */
int64_t bel__tz_rule_start(const struct tz_rule *rule, int32_t year);
int64_t bel__tz_rule_end(const struct tz_rule *rule, int32_t year);

#endif
