/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_H
#define BEL_ENGINE_STATE_PLAN_H

/*
 * plan - the rows of a plan: its record, its state and its tick.
 */

#include "engine/state/timer.h"

/* Adds a plan whose body has been put and whose rows are reserved. Its sequence is a new one. */
void bel__plan_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   struct bel_record *record, const struct bel_plan_state *state);

/* Reserves rows and sets the next nominal time, as requested by a command. */
BEL_CHECKED int bel__plan_reschedule(struct bel_engine *engine, struct bel_found *found,
                                     uint64_t nominal);

/* Counts an occurrence that was made as skipped, and writes the state. One row must be reserved. */
void bel__plan_skip_made(struct bel_engine *engine, struct bel_found *found);

/* Sets or clears the next nominal time of a plan, moves its tick and writes its state. The rows
 * must be reserved. */
void bel__plan_set_next(struct bel_engine *engine, struct bel_found *found, bool has_next,
                        uint64_t next);

#endif
