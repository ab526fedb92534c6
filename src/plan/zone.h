/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_ZONE_H
#define BEL_PLAN_ZONE_H

/*
 * zone - the contents of a zone: the changes of its offset, in order of time.
 *
 *     times         [0]      [1]      [2]             [count - 1]
 *     offsets   [0]  |  [1]   |  [2]   |  [3]  ...        |   [count]
 *     ---------------+--------+--------+------- ... ------+----------> instants
 *                                         |<-- 400 years -->|
 *                                   cycle_begin         cycle_end
 *
 * Neighbouring offsets differ. A rule for future years is expanded for one cycle of the calendar,
 * 400 years, after which dates and weekdays repeat. Later instants are looked up in the cycle; if
 * the file lists no changes before the rule, earlier instants too.
 */

#include "belfry/zone.h"

struct bel_zone {
    const int64_t *times;   /* `count` instants, ascending */
    const int32_t *offsets; /* `count` + 1, seconds east of UTC */
    uint32_t count;
    int32_t offset_min, offset_max; /* of all offsets */
    bool repeats;                   /* otherwise the next three are unused */
    int64_t cycle_begin;            /* a year of expanded changes exists before this and after
                                       the end */
    int64_t cycle_end;
    int64_t cycle_first; /* earlier instants are looked up in the cycle too */
    char name[BEL_ZONE_NAME_MAX + 1];
};

#define BEL_ZONE_CYCLE (INT64_C(146097) * 86400) /* seconds in 400 years */

/* Creates a zone from the bytes of a file, which are not kept. `name` is truncated if too long.
 * Returns 0 and sets `*out`; or returns BEL_ECORRUPT or BEL_ENOMEM. */
BEL_CHECKED int bel__zone_parse(const char *name, const uint8_t *data, size_t bytes,
                                struct bel_zone **out);

/* Frees a zone; NULL is allowed. */
void bel__zone_destroy(struct bel_zone *zone);

/* Returns whether both zones have the same offset at all times. */
bool bel__zone_is_same(const struct bel_zone *a, const struct bel_zone *b);

#endif
