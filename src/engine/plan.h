/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_PLAN_H
#define BEL_ENGINE_PLAN_H

/*
 * plan - what the two files about plans share: plan.c, which rings, and occurrence.c, which
 * looks after what has been made.
 */

#include "engine/engine.h"

/* The unfinished occurrences of a plan. */
struct bel_occurrences {
    uint64_t count;   /* at least 1 if there is any; all, if they were counted */
    uint64_t blocked; /* if they were counted */
    bool has_running; /* one that is not blocked; if they were counted */
    bool has_blocked;
    struct bel_found blocked_first; /* by nominal time */
};

/* Looks at those of the plan with this id, but not at the one of `except`, a nominal time.
 * Counts if it is to, and else stops at the first. */
BEL_CHECKED int bel__occurrences_look(struct bel_engine *engine, struct bel_topic_state *topic,
                                      struct bel_view plan, uint64_t except, bool counts,
                                      struct bel_occurrences *out);

/* `<id>@<nominal>`, in `out`. */
struct bel_view bel__occurrence_id(const struct bel_record *plan, uint64_t nominal,
                                   char out[BEL_ID_BYTES]);

/* The next time of a plan that counts from the end of its occurrence, which is now. */
BEL_CHECKED int bel__plan_go_on(struct bel_engine *engine, struct bel_found *found, uint64_t *out);
void bel__plan_set_next(struct bel_engine *engine, struct bel_found *found, uint64_t next);

#endif
