/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_JOBS_H
#define BEL_ENGINE_JOBS_JOBS_H

/*
 * jobs - the jobs of an engine: graphs of tasks, which are timers.
 *
 *     jobs.c         opening, closing, turns, what is due
 *     submission.c   from a JSON text to rows, slice by slice
 *     work.c         what the end of a task does to other tasks, cancelling, removing
 *     task.c         one task, and the reaction to changes of its timer
 *     job.c          one job
 *
 * All of it is in the store. In memory are only the jobs that are being submitted, those that are
 * held, and those with leased tasks. A blocked task takes no memory and no wake-up.
 */

#include "belfry/error.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stdint.h>

struct bel_engine;

/* Sets the engine's events, and finds the jobs that are held or hidden. `retention_ms`: of jobs
 * that have ended; 0: the default. */
BEL_CHECKED int bel__jobs_open(struct bel_engine *engine, uint64_t retention_ms);
void bel__jobs_close(struct bel_engine *engine);

/* Begins a turn: does what is due, and a slice of work. Returns 0, or an error that is final. */
BEL_CHECKED int bel__jobs_turn(struct bel_engine *engine);

/* Returns the engine time of the next turn that jobs need; BEL_NEVER: none. */
uint64_t bel__jobs_next(const struct bel_engine *engine);

/* The same for what ended jobs need, in wall ms. */
uint64_t bel__jobs_next_wall(const struct bel_engine *engine);

/* Returns the number of leases of occurrences of recurring jobs. */
uint64_t bel__jobs_leases(const struct bel_engine *engine);

/* Sets `*out` to whether an id may belong to a task of a job that is about to replace another one,
 * or just has: such a task is not found by its id yet. */
BEL_CHECKED int bel__jobs_reserve(struct bel_engine *engine, struct bel_view id, bool *out);

#endif
