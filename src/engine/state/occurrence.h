/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_OCCURRENCE_H
#define BEL_ENGINE_STATE_OCCURRENCE_H

/*
 * occurrence - timers that a plan has made, and what their ends do to the plan.
 */

#include "engine/state/timer.h"

/* Writes the id of an occurrence, `<id>@<nominal>`, to `out` and returns it. */
struct bel_view bel__occurrence_id(const struct bel_record *plan, uint64_t nominal,
                                   char out[BEL_ID_BYTES]);

/* Returns the id of an occurrence's plan: the part before the last @. */
struct bel_view bel__occurrence_plan(struct bel_view id);

/* Writes the row of a new occurrence in OCCURRENCES. */
void bel__occurrence_put(struct bel_engine *engine, const struct bel_topic_state *topic,
                         const struct bel_record *record);

/* Looks up what the end of an occurrence does to its plan and to the next in its queue. Sets
 * found->after, and adds to `*rows` the rows of a body that is deleted. Returns 0, or an error of
 * the lookup. */
BEL_CHECKED int bel__occurrence_look(struct bel_engine *engine, struct bel_found *found,
                                     size_t *rows);

/* Does what bel__occurrence_look() has found. */
void bel__occurrence_ended(struct bel_engine *engine, struct bel_found *found);

/* Cancels the unfinished occurrences of a plan. */
BEL_CHECKED int bel__occurrences_cancel(struct bel_engine *engine, const struct bel_found *found);

/* Reserves rows and lets the first blocked occurrence of the plan with this id become due;
 * `is_alone`: only if no occurrence is unfinished except blocked ones. */
BEL_CHECKED int bel__occurrences_unblock(struct bel_engine *engine, struct bel_topic_state *topic,
                                         struct bel_view plan, bool is_alone);

/* Reserves rows and blocks an occurrence that is ready, until it is unblocked. */
BEL_CHECKED int bel__occurrence_block(struct bel_engine *engine, struct bel_found *found);

/* Finds the unfinished occurrence of a plan with the earliest nominal time. Returns 0,
 * BEL_ENOTFOUND, or an error of the lookup. */
BEL_CHECKED int bel__occurrences_first(struct bel_engine *engine, struct bel_topic_state *topic,
                                       struct bel_view plan, struct bel_found *out);

/* Finds the first unfinished occurrence of a plan whose nominal time is not before `nominal`.
 * Returns 0, BEL_ENOTFOUND, or an error of the lookup. */
BEL_CHECKED int bel__occurrences_next(struct bel_engine *engine, struct bel_topic_state *topic,
                                      struct bel_view plan, uint64_t nominal,
                                      struct bel_found *out);

/* What to find out about the unfinished occurrences of a plan. The search stops when it is
 * known. */
enum bel_look {
    BEL_LOOK_ANY,     /* whether there is one */
    BEL_LOOK_BLOCKED, /* how many are blocked, up to BEL_OVERLAP_QUEUE_MAX */
};

struct bel_occurrences {
    bool has_any;
    uint64_t blocked;
};

/* Searches the unfinished occurrences of the plan with this id. Ends those that have expired. */
BEL_CHECKED int bel__occurrences_look(struct bel_engine *engine, struct bel_topic_state *topic,
                                      struct bel_view plan, enum bel_look look,
                                      struct bel_occurrences *out);

#endif
