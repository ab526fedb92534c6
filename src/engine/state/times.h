/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMES_H
#define BEL_ENGINE_STATE_TIMES_H

/*
 * times - the current time on the three timelines.
 */

#include "belfry/backend.h"
#include "belfry/error.h"
#include "engine/rows/key.h"

#include <stdbool.h>
#include <stdint.h>

/* The current time on every timeline, in ms. The `_up` times are rounded up: a delay that is
 * counted from them never ends early. */
struct bel_times {
    int64_t wall;
    uint64_t engine, engine_up;
    uint64_t open, open_up;
    struct bel_boot boot;
    struct bel_mono real;
    uint64_t engine_base, open_base; /* engine and open time minus boot time */
    uint64_t open_start;             /* open time when the engine was opened */
    int64_t offset;                  /* wall - engine, as of the last step */
};

/* Sets the times at opening: engine and open time continue from the values in the store. */
void bel__times_open(struct bel_times *times, struct bel_now now, uint64_t engine, uint64_t open);

/* Advances the times. Returns true if the wall clock was set: see docs/SEMANTICS.md. */
bool bel__times_move(struct bel_times *times, struct bel_now now);

/* Return the current time on a lane; a lane's time as wall ms; wall time as a lane's time. */
uint64_t bel__lane_now(const struct bel_times *times, uint8_t lane);
uint64_t bel__lane_wall(const struct bel_times *times, uint8_t lane, uint64_t time);
uint64_t bel__lane_time(const struct bel_times *times, uint8_t lane, struct bel_wall wall);

/* Sets `*out` to the engine time `delay_ms` from now. Returns BEL_EINVAL after the year 9999. */
BEL_CHECKED int bel__times_after(const struct bel_times *times, uint64_t delay_ms, uint64_t *out);
bool bel__time_is_valid(uint64_t ms);

/* Sets the lane and the time of `*out` to what a command asks for. Returns BEL_EINVAL after the
 * year 9999. */
BEL_CHECKED int bel__times_when(const struct bel_times *times, enum bel_when when,
                                struct bel_wall at, uint64_t delay_ms, struct bel_place *out);

#endif
