/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKEND_PRESSURE_H
#define BEL_BACKEND_PRESSURE_H

/*
 * pressure - levels with hysteresis, as pure functions: belfry/pressure.h has the table.
 *
 *     after = bel__pressure_next(before, &use);
 *
 * A backend that starts tasks of jobs waits bel__pressure_pace_ms(level) between two starts of one
 * job, whatever the pace of the job itself is: the longer of the two counts.
 */

#include "belfry/pressure.h"

/* Returns the level of a use that had the level `before` until now. */
enum bel_pressure_level bel__pressure_next(enum bel_pressure_level before,
                                           const struct bel_pressure_use *use);

/* Updates all levels to new uses. Returns whether state->level has changed. */
bool bel__pressure_update(struct bel_pressure_state *state,
                          const struct bel_pressure_use uses[BEL_PRESSURE_CAUSES]);

/* Returns the least time between two starts of tasks of one job, in ms. */
uint32_t bel__pressure_pace_ms(enum bel_pressure_level level);

/* Returns how much is used, in percent, rounded up, so that 50.1 % is not shown as 50; at most 999.
 * 0 without a limit. */
unsigned bel__pressure_percent(const struct bel_pressure_use *use);

/* Returns whether one use is a larger part of its limit than another. Unreadable is the largest. */
bool bel__pressure_is_worse(const struct bel_pressure_use *one,
                            const struct bel_pressure_use *other);

#endif
