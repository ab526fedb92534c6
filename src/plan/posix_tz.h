/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_POSIX_TZ_H
#define BEL_PLAN_POSIX_TZ_H

/*
 * posix_tz - the rule at the end of a time zone file, which is a TZ string as POSIX has it:
 * "CET-1CEST,M3.5.0,M10.5.0/3" is standard time an hour east, and summer time from the last
 * Sunday of March at 2:00 to the last Sunday of October at 3:00, by the clocks before each.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tz_day_kind {
    TZ_DAY_JULIAN, /* Jn: 1 .. 365, February 29 is never counted */
    TZ_DAY_ZERO,   /* n: 0 .. 365, it is counted */
    TZ_DAY_MONTH,  /* Mm.w.d: a weekday of a week of a month; week 5 is the last */
};

/* A day of the year and a time of it. */
struct tz_day {
    enum tz_day_kind kind;
    uint16_t day;  /* TZ_DAY_MONTH: 0 is Sunday */
    uint8_t week;  /* TZ_DAY_MONTH: 1 .. 5 */
    uint8_t month; /* TZ_DAY_MONTH: 1 .. 12 */
    int32_t time;  /* seconds from that day's midnight; up to a week before or after */
};

struct tz_rule {
    int32_t offset;      /* standard time, seconds east of UTC */
    bool has_dst;        /* else the rest means nothing */
    int32_t dst_offset;  /* may also be less than standard time's */
    struct tz_day start; /* of DST, by standard time */
    struct tz_day end;   /* by DST */
};

/* Reads a rule. Returns 0 and sets `*out`, or returns BEL_ECORRUPT. */
BEL_CHECKED int bel__tz_rule_parse(const char *text, size_t bytes, struct tz_rule *out);

/* When DST starts and ends in a year, as instants. Either may come first, and either may be
 * in the year before or after. */
int64_t bel__tz_rule_start(const struct tz_rule *rule, int32_t year);
int64_t bel__tz_rule_end(const struct tz_rule *rule, int32_t year);

#endif
