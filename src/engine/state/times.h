/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMES_H
#define BEL_ENGINE_STATE_TIMES_H

/*
 * times - the present, on the three timelines.
 */

#include "belfry/backend.h"
#include "belfry/error.h"
#include "engine/rows/key.h"

#include <stdbool.h>
#include <stdint.h>

/* The present, on every timeline, in ms. A time that something is measured from is rounded up,
 * so that what is counted from it is never early. */
struct bel_times {
    int64_t wall;
    uint64_t engine, engine_up;
    uint64_t open, open_up;
    struct bel_boot boot;
    struct bel_mono real;
    uint64_t engine_base, open_base; /* what they are ahead of the boot clock */
    uint64_t open_start;             /* open time when it was opened */
    int64_t offset;                  /* wall - engine, as of the last step */
};

/* Begins time: engine and open time go on from what was written down. */
void bel__times_open(struct bel_times *times, struct bel_now now, uint64_t engine, uint64_t open);

/* Moves the present. True if it was a step: see docs/SEMANTICS.md. */
bool bel__times_move(struct bel_times *times, struct bel_now now);

/* The present on a lane; a time of a lane in wall ms, as of now; and the way back. */
uint64_t bel__lane_now(const struct bel_times *times, uint8_t lane);
uint64_t bel__lane_wall(const struct bel_times *times, uint8_t lane, uint64_t time);
uint64_t bel__lane_time(const struct bel_times *times, uint8_t lane, struct bel_wall wall);

/* A time so many ms from now on the engine's lane; BEL_EINVAL after the year 9999. */
BEL_CHECKED int bel__times_after(const struct bel_times *times, uint64_t delay_ms, uint64_t *out);
bool bel__time_is_valid(uint64_t ms);

/* The lane and the time that a command means; BEL_EINVAL after the year 9999. */
BEL_CHECKED int bel__times_when(const struct bel_times *times, enum bel_when when,
                                struct bel_wall at, uint64_t delay_ms, struct bel_place *out);

#endif
