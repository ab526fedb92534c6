/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_CLOCK_H
#define BEL_CORE_CLOCK_H

/*
 * clock - the fraction of a millisecond that a bel_wall does not contain.
 *
 * Milliseconds of the wall clock and of the boot clock do not begin at the same instants. To sleep
 * on the boot clock until a wall time, the caller needs the fraction of the current wall
 * millisecond.
 */

#include "belfry/clock.h"

/* Reads the wall clock, and sets `*out_rest_ns` to the nanoseconds since its last full millisecond;
 * 0 for a clock that is not the system clock. */
struct bel_wall bel__clock_wall(const struct bel_clock *clock, uint32_t *out_rest_ns);

#endif
