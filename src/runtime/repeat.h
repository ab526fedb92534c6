/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_REPEAT_H
#define BEL_RUNTIME_REPEAT_H

/*
 * repeat - computes the next ring of a repeating timer. Pure arithmetic without overflow: a time
 * after the last instant becomes the last instant.
 */

#include "belfry/runtime.h"

struct beat {
    uint64_t due;
    uint64_t period_ns;
    uint64_t now; /* when the timer rang */
    uint64_t end; /* when the callback returned */
    enum bel_repeat repeat;
};

/* Returns how many later periods had passed when the timer rang; they are left out. */
uint64_t bel__repeat_missed(const struct beat *beat);

/* Returns when the timer rings next: after `due`, and for BEL_RATE_SKIP and _DELAY after `now`. */
uint64_t bel__repeat_next(const struct beat *beat);

#endif
