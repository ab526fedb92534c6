/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_RESULTS_H
#define BEL_ENGINE_JOBS_RESULTS_H

/*
 * results - what tasks hand on to the tasks after them.
 */

#include "belfry/delivery.h"
#include "engine/state/timer_lookup.h"

enum {
    BEL_RESULTS_OF_JOB_MAX = 64 << 20, /* bytes */
};

/* Sets `*out` to the results of the tasks that a task comes after, in memory of the answer. */
BEL_CHECKED int bel__results_get(struct bel_engine *engine, const struct bel_found *found,
                                 const struct bel_task_result **out, size_t *out_count);

/* Returns whether the job of a task has room for its result. The task's change must be reserved. */
bool bel__results_fit(const struct bel_found *found, uint64_t bytes);

#endif
