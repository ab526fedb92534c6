/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_WHEEL_H
#define BEL_CORE_WHEEL_WHEEL_H

/* wheel - the parts of a wheel, for the files that implement belfry/wheel.h. */

#include "core/wheel/front.h"

struct bel_wheel {
    struct slots slots;
    struct rack rack;
    struct front front;
    uint64_t sequence; /* of the next timer armed or moved */
    uint32_t timers_max;
    uint32_t touched_max;  /* entries touched by the most expensive call so far */
    uint32_t untidy_calls; /* calls that ended or moved a timer while a sweep was due */
};

#endif
