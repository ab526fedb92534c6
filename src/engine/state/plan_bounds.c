/* SPDX-License-Identifier: MIT */

/*
 * A direct-mapped cache: the hash of a plan's id chooses its entry, and replaces another plan
 * there. Hashes are keyed, so clients cannot choose ids that share an entry.
 */
#include "engine/state/plan_bounds.h"

#include <assert.h>
#include <string.h>

struct bel_plan_bound *bel__plan_bounds_of(struct bel_plan_bounds *bounds, uint32_t topic,
                                           uint64_t plan)
{
    struct bel_plan_bound *known = &bounds->plans[(plan ^ topic) % BEL_PLAN_BOUNDS_PLANS];
    if (!known->is_known || known->plan != plan || known->topic != topic) {
        *known = (struct bel_plan_bound){.plan = plan, .topic = topic, .is_known = true};
    }
    assert(known->plan == plan && known->topic == topic);
    return known;
}

void bel__plan_bounds_lower(struct bel_plan_bounds *bounds, uint32_t topic, uint64_t plan,
                            uint64_t nominal)
{
    struct bel_plan_bound *known = &bounds->plans[(plan ^ topic) % BEL_PLAN_BOUNDS_PLANS];
    if (!known->is_known || known->plan != plan || known->topic != topic) return;
    for (int i = 0; i < BEL_PLAN_BOUNDS_COUNT; i++) {
        if (nominal < known->from[i]) known->from[i] = nominal;
    }
}

void bel__plan_bounds_forget(struct bel_plan_bounds *bounds)
{
    memset(bounds, 0, sizeof *bounds);
}
