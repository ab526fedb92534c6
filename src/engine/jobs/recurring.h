/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_JOBS_RECURRING_H
#define BEL_ENGINE_JOBS_RECURRING_H

/*
 * recurring - jobs that make a job at each time of a rule.
 */

#include "belfry/error.h"

struct bel_engine;

/* Makes the jobs whose times have come, in slices. Returns 0, or an error that is final. */
BEL_CHECKED int bel__recurring_turn(struct bel_engine *engine);

#endif
