/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_MISFIRE_SLICE_H
#define BEL_PLAN_MISFIRE_SLICE_H

/*
 * misfire_slice - chooses missed times of a plan whose number of times is limited.
 *
 * bel_misfire_choose() finds the newest missed times without visiting the others, and counts those
 * up to a limit. A plan with a limit has to visit every time: each counts, and the times after the
 * last one are none of the plan. So this function visits a bounded number of times in one call, and
 * says where the next call begins.
 */

#include "belfry/misfire.h"

struct bel_misfire_slice {
    uint32_t made_count;    /* 0 unless the slice is the last */
    uint64_t skipped_count; /* exact */
    bool is_last;
    bool is_used_up;      /* the last slice: the plan has no more times */
    bool has_next;        /* not set if the plan has no more times */
    struct bel_wall next; /* the first time of the next slice, or after the range */
};

/* Chooses among the times in the range, of which the plan has at most `left`, as
 * bel_misfire_choose() does with an `all_max` of BEL_MISFIRE_MAX. Visits at most `visits_max` times
 * and BEL_MISFIRE_MAX more. `out_times` has room for BEL_MISFIRE_MAX times. */
struct bel_misfire_slice bel__misfire_slice(enum bel_misfire policy, uint64_t left,
                                            uint32_t visits_max,
                                            const struct bel_misfire_plan *plan,
                                            struct bel_misfire_range range,
                                            struct bel_wall out_times[BEL_MISFIRE_MAX]);

/* Returns how many times a policy chooses at most. */
uint32_t bel__misfire_made_max(enum bel_misfire policy);

#endif
