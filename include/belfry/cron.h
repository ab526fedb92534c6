/* SPDX-License-Identifier: MIT */
#ifndef BEL_CRON_H
#define BEL_CRON_H

/*
 * cron - rules of the form "minute hour day month weekday", and their next time.
 *
 *     field      values        also
 *     second     0-59          only in rules of six or seven fields, and first; else 0
 *     minute     0-59
 *     hour       0-23
 *     day        1-31          L last, L-3, 15W the weekday nearest to the 15th, LW, L-3W, ?
 *     month      1-12, JAN-DEC
 *     weekday    0-7, SUN-SAT  0 and 7 are Sunday; 5L, L5 or 5#L the last Friday, 5#2 the second, ?
 *     year       1970-2199     only in rules of seven fields
 *
 * A field is a list of values, ranges (1-5), steps (10-30/5, 5/10, with a star for all) and H, a
 * value derived from the seed that is always the same for one seed (H, H(0-29), H/15, H(0-29)/10).
 * A range may wrap: 22-6, FRI-SUN, NOV-MAR. Names may be longer, up to the whole: Thurs, friday.
 * If both day and weekday are restricted, a date that matches either one matches; a field that
 * starts with a star, or is ?, is unrestricted. @hourly, @daily (@midnight), @weekly, @monthly,
 * @yearly (@annually) mean the first moment of each. A rule that no date can match is invalid.
 *
 * Clock changes: if the hour field starts with a star, the rule follows real time: it matches both
 * passes of a fold, and times in a gap are left out, because no real time passes. Any other hour
 * runs once a day: a local time that is skipped moves to the end of the gap or is left out (enum
 * bel_gap); a local time that occurs twice is used the first time, the second time, or both (enum
 * bel_fold). Times that a gap moves to the same instant count once.
 */

#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/view.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_CRON_TEXT_MAX = 1024, /* of a rule, in bytes */
};

/* A rule. May be copied; the fields are private. */
struct bel_cron {
    uint64_t seconds, minutes;
    uint32_t hours, days, months; /* bit n: the value n */
    uint32_t before_last;         /* bit n: n days before the last of the month */
    uint32_t nearest;             /* bit n: the weekday nearest to day n */
    uint32_t nearest_before_last; /* bit n: the weekday nearest to n days before the last; n > 0 */
    uint8_t weekdays;
    uint8_t last_weekdays;   /* bit n: the last weekday n of the month */
    uint8_t nth_weekdays[5]; /* bit n of [k - 1]: the k-th weekday n of the month */
    uint8_t star_steps[6];   /* step of a field that starts with a star; 0: it does not */
    bool nearest_last;       /* the last day of the month from Monday to Friday */
    bool has_seconds;        /* the rule was written with six fields or seven */
    bool has_years;          /* only the years in `years` match */
    uint64_t years[4];       /* bit n: the year 1970 + n */
};

/* Splits TZ=ZONE or CRON_TZ=ZONE off the start of a rule, as other crons have it. Returns whether
 * there was one; then `*zone` is its value, and `*rule` begins after it. */
bool bel_cron_split_zone(struct bel_view *rule, struct bel_view *zone);

/* Parses a rule. `seed` selects the values of H: use a hash of the name of the job. Returns 0; or
 * returns BEL_EINVAL and sets `*why`, unless `why` is NULL. */
BEL_CHECKED int bel_cron_parse(const char *text, size_t bytes, uint64_t seed, struct bel_cron *out,
                               struct bel_text_error *why);

/* Prints an equivalent rule, with H replaced by its value. Like snprintf, writes what fits into
 * `room` bytes and returns the full length. */
size_t bel_cron_print(const struct bel_cron *cron, char *out, size_t room);

/* Finds the first instant after `utc` that matches the rule, in seconds since 1970. Returns false
 * if there is none before the year 10,000. Takes bounded time and allocates no memory. */
bool bel_cron_next(const struct bel_cron *cron, const struct bel_zone_when *when, int64_t utc,
                   int64_t *out);

BEL_END_DECLARATIONS
#endif
