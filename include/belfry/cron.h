/* SPDX-License-Identifier: MIT */
#ifndef BEL_CRON_H
#define BEL_CRON_H

/*
 * cron - rules of the form "minute hour day month weekday", and when they say next.
 *
 *     field      values        also
 *     second     0-59          only in rules of six fields, and first; else 0
 *     minute     0-59
 *     hour       0-23
 *     day        1-31          L last, L-3, 15W the weekday nearest to the 15th, LW, ?
 *     month      1-12, JAN-DEC
 *     weekday    0-7, SUN-SAT  0 and 7 are Sunday; 5L the last Friday, 5#2 the second, ?
 *
 * A field is a list of values, ranges (1-5), steps (10-30/5, 5/10, with a star for all) and
 * H: a value that depends on the seed, the same each time (H, H(0-29), H/15, H(0-29)/10).
 * If day and weekday both say something, either will do; a field that starts with a star,
 * or is ?, says nothing. @hourly, @daily (@midnight), @weekly, @monthly, @yearly (@annually)
 * stand for the first moment of each. A rule that never comes true is refused.
 *
 * When clocks change: an hour field that starts with a star follows real time, so it has no
 * gaps and no repetitions longer than the clock's own. Any other hour is a promise of once a
 * day: a time that is skipped comes at the end of the gap, or not at all (enum bel_gap); one
 * that comes twice is taken the first time, the second, or both (enum bel_fold). Times that
 * a gap moves onto one instant are one.
 */

#include "belfry/error.h"
#include "belfry/text.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_CRON_TEXT_MAX = 1024, /* bytes of a rule */
};

/* A rule. It can be copied; the fields are private. */
struct bel_cron {
    uint64_t seconds, minutes;
    uint32_t hours, days, months; /* bit n: the value n */
    uint32_t before_last;         /* bit n: the day n before the last of the month */
    uint32_t nearest;             /* bit n: the weekday nearest to the n-th */
    uint8_t weekdays;
    uint8_t last_weekdays;   /* bit n: the last such weekday of the month */
    uint8_t nth_weekdays[5]; /* bit n of [k - 1]: the k-th such weekday of the month */
    uint8_t star_steps[6];   /* n: the field starts with a star and this step; 0: it does not */
    bool nearest_last;       /* the last weekday, Monday to Friday, of the month */
    bool has_seconds;        /* it was written with six fields */
};

/* Reads a rule. `seed` is for H: a hash of what the rule is for. Returns 0; or BEL_EINVAL,
 * and `*why`, unless it is NULL, says where and what was expected. */
BEL_CHECKED int bel_cron_parse(const char *text, size_t bytes, uint64_t seed, struct bel_cron *out,
                               struct bel_text_error *why);

/* Writes a rule that means the same, with H replaced by its value. Returns the length it
 * needs, and writes what fits, as snprintf does. */
size_t bel_cron_print(const struct bel_cron *cron, char *out, size_t room);

/* The first instant after `utc` that the rule names, in seconds since 1970. False if there
 * is none before the year 10,000. It takes a bounded time and no memory. */
bool bel_cron_next(const struct bel_cron *cron, const struct bel_zone_when *when, int64_t utc,
                   int64_t *out);

#pragma GCC visibility pop
#endif
