/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_RING_H
#define BEL_ENGINE_STATE_PLAN_RING_H

/*
 * plan_ring - makes the occurrences of a plan whose tick is due.
 */

#include "engine/state/timer_lookup.h"

/* Rings a plan whose tick is due, until it has caught up. Returns 0, an error of reserving, or
 * BEL_EUNSUPPORTED if the plan's time zone is unknown now. */
BEL_CHECKED int bel__plan_ring(struct bel_engine *engine, struct bel_found *found);

#endif
