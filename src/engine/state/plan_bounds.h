/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_BOUNDS_H
#define BEL_ENGINE_STATE_PLAN_BOUNDS_H

/*
 * plan_bounds - a cache of nominal times before which a plan has no unfinished occurrence.
 *
 * The rows of a plan's occurrences are in the order of their nominal times, and are deleted roughly
 * in that order. Deleted rows are skipped one by one until a checkpoint removes them. So a search
 * from the first time on, at each end of an occurrence, would pass all occurrences that ended
 * before:
 *
 *     x x x x x x x x R R b R b b          x: deleted, R: runs, b: blocked
 *                     ^   ^
 *               running   blocked
 *
 * So the engine caches start times of the plans that it has searched recently. A bound may be too
 * early, which costs rows, but never too late. Bounds are in memory only: a plan without bounds is
 * searched from its first row on.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_PLAN_BOUNDS_PLANS = 256, /* size of the cache */
};

/* Which occurrences do not exist before a bound. */
enum bel_plan_bounds_kind {
    BEL_PLAN_BOUNDS_ROW,     /* any unfinished occurrence */
    BEL_PLAN_BOUNDS_RUNNING, /* scheduled, ready or leased, and not expired */
    BEL_PLAN_BOUNDS_BLOCKED,
    BEL_PLAN_BOUNDS_COUNT,
};

struct bel_plan_bound {
    uint64_t plan; /* hash of the plan's id */
    uint32_t topic;
    bool is_known;
    uint64_t from[BEL_PLAN_BOUNDS_COUNT];
};

struct bel_plan_bounds {
    struct bel_plan_bound plans[BEL_PLAN_BOUNDS_PLANS];
};

/* Returns the bounds of a plan; of a plan that is not in the cache, all 0. Valid until the next
 * call. */
struct bel_plan_bound *bel__plan_bounds_of(struct bel_plan_bounds *bounds, uint32_t topic,
                                           uint64_t plan);

/* Lowers the bounds of a plan to an occurrence that was added or unblocked. */
void bel__plan_bounds_lower(struct bel_plan_bounds *bounds, uint32_t topic, uint64_t plan,
                            uint64_t nominal);

/* Clears the cache: after a clock step, expired occurrences may not be expired any more. */
void bel__plan_bounds_forget(struct bel_plan_bounds *bounds);

#endif
