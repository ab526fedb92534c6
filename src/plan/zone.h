/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_ZONE_H
#define BEL_PLAN_ZONE_H

/*
 * zone - what is inside of a zone: the changes of its offset, in the order of time.
 *
 *     times         [0]      [1]      [2]             [count - 1]
 *     offsets   [0]  |  [1]   |  [2]   |  [3]  ...        |   [count]
 *     ---------------+--------+--------+------- ... ------+----------> instants
 *                                         |<-- 400 years -->|
 *                                   cycle_begin         cycle_end
 *
 * Neighbours among the offsets differ. A rule for the years to come is written out for one
 * cycle of the calendar, 400 years, after which dates and weekdays are the same again. What
 * is later is looked up in it; if there is nothing before the rule, what is earlier too.
 */

#include "belfry/zone.h"

struct bel_zone {
    const int64_t *times;   /* `count` instants, ascending */
    const int32_t *offsets; /* `count` + 1, seconds east of UTC */
    uint32_t count;
    int32_t offset_min, offset_max; /* of all */
    bool repeats;                   /* else the next three mean nothing */
    int64_t cycle_begin;            /* there is a year of the rule before this and after the end */
    int64_t cycle_end;
    int64_t cycle_first; /* what is before is looked up in the cycle as well */
    char name[BEL_ZONE_NAME_MAX + 1];
};

#define BEL_ZONE_CYCLE (INT64_C(146097) * 86400) /* seconds in 400 years */

/* Makes a zone from the bytes of a file, which are not kept. `name` is cut off if it is too
 * long. Returns 0 and sets `*out`; or BEL_ECORRUPT or BEL_ENOMEM. */
BEL_CHECKED int bel__zone_parse(const char *name, const uint8_t *data, size_t bytes,
                                struct bel_zone **out);

/* NULL is allowed. */
void bel__zone_destroy(struct bel_zone *zone);

/* Whether the clocks of both show the same at all times. */
bool bel__zone_is_same(const struct bel_zone *a, const struct bel_zone *b);

#endif
