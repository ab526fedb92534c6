/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_CLOCK_H
#define BEL_CORE_CLOCK_H

/*
 * clock - what a wall time in milliseconds does not show.
 *
 * The milliseconds of the wall do not begin where those of the boot clock do. Who sleeps on the one
 * until a time of the other must know how far the wall is into its millisecond.
 */

#include "belfry/clock.h"

/* Reads the wall, and sets how many ns of that millisecond have gone by: 0, as if it had just
 * begun, for a clock that is not the system's. */
struct bel_wall bel__clock_wall(const struct bel_clock *clock, uint32_t *out_rest_ns);

#endif
