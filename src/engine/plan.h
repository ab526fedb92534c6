/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_PLAN_H
#define BEL_ENGINE_PLAN_H

/*
 * plan - plans that ring (plan.c) and what they have made (occurrence.c).
 */

#include "belfry/plan.h"
#include "engine/rows/record.h"
#include "engine/timer.h"

struct bel_engine;
struct bel_topic_state;

/* Adds a plan; its body has been put. `first` is its first nominal time. */
BEL_CHECKED int bel__plan_first(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                                struct bel_record *record, struct bel_text_error *why,
                                uint64_t *out);
void bel__plan_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   struct bel_record *record, uint64_t number, uint64_t first);

/* A plan's tick has come due. BEL_EUNSUPPORTED if its time zone is not known any more. */
BEL_CHECKED int bel__plan_ring(struct bel_engine *engine, struct bel_found *found);

/* Sets the next nominal time. Reserved by bel__timer_reserve(). */
BEL_CHECKED int bel__plan_reschedule(struct bel_engine *engine, struct bel_found *found,
                                     uint64_t nominal);

/* Cancels the unfinished occurrences of a plan. */
BEL_CHECKED int bel__plan_cancel_occurrences(struct bel_engine *engine,
                                             const struct bel_found *found);

/* What the end of an occurrence does to its plan: looked up, and then done. */
BEL_CHECKED int bel__after_look(struct bel_engine *engine, const struct bel_found *found,
                                struct bel_after **out);
void bel__after_do(struct bel_engine *engine, struct bel_after *after);

/* How many rows of a body go with it, besides what each timer takes. */
size_t bel__after_rows(const struct bel_after *after);

/* A dead occurrence is revived. */
void bel__occurrence_put(struct bel_engine *engine, const struct bel_topic_state *topic,
                         const struct bel_record *record);

/* The zone of that name; UTC if it has none. BEL_EINVAL: it is not known. */
BEL_CHECKED int bel__plan_zone(struct bel_engine *engine, struct bel_view name,
                               const struct bel_zone **out, struct bel_text_error *why);

/* The plan that a record describes. */
BEL_CHECKED int bel__plan_of(struct bel_engine *engine, const struct bel_record *record,
                             struct bel_plan **out, struct bel_text_error *why);

/* The place of a plan in its spread window: how long after a nominal time it rings. */
uint64_t bel__plan_place(const struct bel_record *record);

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

/* `<id>@<nominal>`, in `out`. */
struct bel_view bel__occurrence_id(const struct bel_record *plan, uint64_t nominal,
                                   char out[BEL_ID_BYTES]);

/* What stands before the @: the id of an occurrence's plan. */
struct bel_view bel__occurrence_plan(struct bel_view id);

/* The next time of a plan that counts from the end of its occurrence, which is now. */
BEL_CHECKED int bel__plan_go_on(struct bel_engine *engine, struct bel_found *found, uint64_t *out);
void bel__plan_set_next(struct bel_engine *engine, struct bel_found *found, uint64_t next);

#endif
