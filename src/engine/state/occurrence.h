/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_OCCURRENCE_H
#define BEL_ENGINE_STATE_OCCURRENCE_H

/*
 * occurrence - timers that a plan has made, and what their ends do to the plan.
 */

#include "engine/state/timer.h"

/* The id of an occurrence: `<id>@<nominal>`, in `out`. */
struct bel_view bel__occurrence_id(const struct bel_record *plan, uint64_t nominal,
                                   char out[BEL_ID_BYTES]);

/* The id of an occurrence's plan: what stands before the @. */
struct bel_view bel__occurrence_plan(struct bel_view id);

/* A timer that is an occurrence was added: writes its row in OCCURRENCES. */
void bel__occurrence_put(struct bel_engine *engine, const struct bel_topic_state *topic,
                         const struct bel_record *record);

/* Looks up what the end of an occurrence does to its plan and to the next in its queue, sets
 * found->after to it, and adds to `*rows` the rows of a body that go with it. Returns 0, or why it
 * cannot look. */
BEL_CHECKED int bel__occurrence_look(struct bel_engine *engine, struct bel_found *found,
                                     size_t *rows);

/* Does it. */
void bel__occurrence_ended(struct bel_engine *engine, struct bel_found *found);

/* Cancels the unfinished occurrences of a plan. */
BEL_CHECKED int bel__occurrences_cancel(struct bel_engine *engine, const struct bel_found *found);

/* What is to be known of the unfinished occurrences of a plan: looking ends when it is. */
enum bel_look {
    BEL_LOOK_ANY,     /* whether there is one */
    BEL_LOOK_BLOCKED, /* how many are blocked, up to as many as may be */
};

struct bel_occurrences {
    bool has_any;
    uint64_t blocked;
};

/* Looks at those of the plan with this id. What has expired ends here. */
BEL_CHECKED int bel__occurrences_look(struct bel_engine *engine, struct bel_topic_state *topic,
                                      struct bel_view plan, enum bel_look look,
                                      struct bel_occurrences *out);

#endif
