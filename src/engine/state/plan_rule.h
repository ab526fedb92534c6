/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_RULE_H
#define BEL_ENGINE_STATE_PLAN_RULE_H

/*
 * plan_rule - computes the times of a plan from the rule in its record.
 */

#include "belfry/plan.h"
#include "engine/rows/record.h"

struct bel_engine;

/* Sets `*out` to the zone of that name, UTC if the name is empty. Returns 0, BEL_ENOMEM, or
 * BEL_EINVAL if the zone is unknown. */
BEL_CHECKED int bel__plan_zone(struct bel_engine *engine, struct bel_view name,
                               const struct bel_zone **out, struct bel_text_error *why);

/* Creates the plan that a record describes. The caller must destroy it. */
BEL_CHECKED int bel__plan_of(struct bel_engine *engine, const struct bel_record *record,
                             struct bel_plan **out, struct bel_text_error *why);

/* Creates the plan of a record that was valid when it was written. Returns BEL_EUNSUPPORTED if its
 * zone is unknown now. */
BEL_CHECKED int bel__plan_again(struct bel_engine *engine, const struct bel_record *record,
                                struct bel_plan **out);

/* Fills in the rule of a record, and sets `*out` to the plan's first nominal time. Returns
 * BEL_EINVAL, with the reason in `why`, or BEL_ERANGE if the rule has no time in the future. */
BEL_CHECKED int bel__plan_first(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                                struct bel_record *record, struct bel_text_error *why,
                                uint64_t *out);

/* Sets `*out` to the first nominal time after `after`. Returns BEL_ERANGE if there is none. */
BEL_CHECKED int bel__plan_after(struct bel_engine *engine, const struct bel_record *record,
                                int64_t after, uint64_t *out);

/* Returns the position of a plan in its spread window: how long after a nominal time it rings. */
uint64_t bel__plan_place(const struct bel_record *record);

#endif
