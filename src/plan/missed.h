/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_MISSED_H
#define BEL_PLAN_MISSED_H

/*
 * missed - which missed times of a plan are made up for, with or without a limit of their number.
 * Every backend rings its plans by these choices.
 */

#include "belfry/plan.h"

struct bel_missed_plan {
    const struct bel_plan *plan; /* without a count */
    enum bel_misfire policy;
    struct bel_wall next; /* the first missed time, which a command may have set */
    bool has_until;
    struct bel_wall until;
    uint64_t left; /* times that the plan has, from `next` on; 0: no limit */
};

struct bel_missed {
    uint32_t made_count;
    uint64_t skipped_count; /* exact with a limit; otherwise as of bel_misfire_choose() */
    bool is_cut;            /* there are more missed times: `next` is the first, call again */
    bool has_next;
    struct bel_wall next; /* after the missed times, if has_next */
};

/* Chooses among the times from `next` up to and including `end`. */
struct bel_missed bel__missed_choose(const struct bel_missed_plan *plan, struct bel_wall end,
                                     struct bel_wall out_times[BEL_MISFIRE_MAX]);

#endif
