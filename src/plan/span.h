/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_SPAN_H
#define BEL_PLAN_SPAN_H

/*
 * span - the time between two changes of a zone's offset.
 */

#include "belfry/zone.h"

/* Instants from `start` to before `end`, during which the offset is constant. Before the first
 * change `start` is INT64_MIN, after the last `end` is INT64_MAX; the offset on that side is then
 * equal to `offset`. */
struct zone_span {
    int64_t start, end;
    int32_t offset;
    int32_t offset_before, offset_after;
};

/* Returns the span that contains an instant. */
struct zone_span bel__zone_span(const struct bel_zone *zone, int64_t utc);

#endif
