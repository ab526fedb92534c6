/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_REPEAT_H
#define BEL_RUNTIME_REPEAT_H

/*
 * repeat - when a timer that repeats rings next. Pure arithmetic that cannot overflow: what
 * would be after the last instant is the last instant.
 */

#include "belfry/runtime.h"

struct beat {
    uint64_t due;
    uint64_t period_ns;
    uint64_t now; /* when it rang */
    uint64_t end; /* when its callback returned */
    enum bel_repeat repeat;
};

/* How many later beats had passed when it rang, and are left out. */
uint64_t bel__repeat_missed(const struct beat *beat);

/* When it rings next: after `due`, and for BEL_RATE_SKIP and _DELAY after `now`. */
uint64_t bel__repeat_next(const struct beat *beat);

#endif
