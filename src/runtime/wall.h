/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_WALL_H
#define BEL_RUNTIME_WALL_H

/*
 * wall - timers for a wall time follow the wall clock when it is set; wall.c.
 */

#include "belfry/error.h"
#include "belfry/wheel.h"

#include "runtime/found.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_runtime;
struct visitor;

/* Moves a timer that was found with a wall time, unless it has changed since. */
typedef void wall_move_fn(struct bel_runtime *runtime, struct visitor *visitor,
                          const struct found *found, uint64_t due);

struct wall {
    _Atomic bool is_used;   /* a timer for a wall time was scheduled */
    _Atomic uint32_t steps; /* how often the clock was set */
    int64_t offset_ns;      /* wall - boot, when the timers were last moved; with the mutex held */
    wall_move_fn *move;     /* bel__timer_follow(), which is above this file */
};

/* Computes when a wall time is due; a time in the past is due now. Returns 0, or BEL_ERANGE. */
BEL_CHECKED int bel__wall_due(int64_t wall_ms, int64_t now_ms, uint64_t now_ns, uint64_t *out);

/* Begins to watch the wall clock. Called before the first timer for a wall time is scheduled. */
void bel__wall_begin(struct bel_runtime *runtime);

/* Returns how often the clock was set. Called before a timer for a wall time is scheduled and
 * after; if the result has changed, its due may have been computed from the old time. */
uint32_t bel__wall_steps(struct bel_runtime *runtime);

/* Moves the timers for wall times if the wall clock was set. Returns true if it was. */
bool bel__wall_check(struct bel_runtime *runtime);

/* Moves a timer that has just been scheduled to where the clocks say that it is due. */
void bel__wall_follow(struct bel_runtime *runtime, bel_timer_t timer);

wall_move_fn bel__timer_follow; /* timer.c */

#endif
