/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_BOUNDS_H
#define BEL_ENGINE_STATE_PLAN_BOUNDS_H

/*
 * bounds - from where on the occurrences of a plan are to be looked for.
 *
 * The rows of a plan's occurrences lie in the order of their nominal times, and end more or less in
 * that order. What has ended is passed over row by row until the store has let go of it, so who
 * looks from the first time on, at each end, looks at all that have ended before:
 *
 *     x x x x x x x x R R b R b b          x: gone, R: runs, b: blocked
 *                     ^   ^
 *               running   blocked
 *
 * So the engine remembers, of the plans that it has looked at of late, times before which there is
 * nothing to be found. They may be too early, which costs rows, and never too late. That is all in
 * memory: what is forgotten is looked for from the first row on.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_PLAN_BOUNDS_PLANS = 256, /* that are remembered */
};

/* What does not exist before the time. */
enum bel_plan_bounds_kind {
    BEL_PLAN_BOUNDS_ROW,     /* an occurrence that has not been ended */
    BEL_PLAN_BOUNDS_RUNNING, /* one that is scheduled, ready or leased, and has not expired */
    BEL_PLAN_BOUNDS_BLOCKED,
    BEL_PLAN_BOUNDS_COUNT,
};

struct bel_plan_bound {
    uint64_t plan; /* a hash of its id */
    uint32_t topic;
    bool is_known;
    uint64_t from[BEL_PLAN_BOUNDS_COUNT];
};

struct bel_plan_bounds {
    struct bel_plan_bound plans[BEL_PLAN_BOUNDS_PLANS];
};

/* Those of a plan: of one that is not known, the beginning of time. Good until the next call. */
struct bel_plan_bound *bel__plan_bounds_of(struct bel_plan_bounds *bounds, uint32_t topic,
                                           uint64_t plan);

/* One that has this nominal time is there from now on, or runs. */
void bel__plan_bounds_lower(struct bel_plan_bounds *bounds, uint32_t topic, uint64_t plan,
                            uint64_t nominal);

/* Forgets all: what had expired may not have any more. */
void bel__plan_bounds_forget(struct bel_plan_bounds *bounds);

#endif
