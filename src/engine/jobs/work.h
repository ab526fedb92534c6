/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_WORK_H
#define BEL_ENGINE_JOBS_WORK_H

/*
 * work - does what is to be done for jobs, in slices.
 */

#include "engine/rows/key.h"

struct bel_engine;

/* Works through JOB_WORK, as far as the units of this turn allow. If there is more, or the batch is
 * full, the next turn continues. Returns 0, or an error of the store that is final. */
BEL_CHECKED int bel__work_turn(struct bel_engine *engine);

#endif
