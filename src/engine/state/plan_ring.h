/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_PLAN_RING_H
#define BEL_ENGINE_STATE_PLAN_RING_H

/*
 * plan_ring - a plan whose tick has come due makes its occurrences.
 */

#include "engine/state/timer_lookup.h"

/* Rings a plan whose tick has come due, until it is not behind any more. Returns 0, why there is no
 * room, or BEL_EUNSUPPORTED if its time zone is unknown by now. */
BEL_CHECKED int bel__plan_ring(struct bel_engine *engine, struct bel_found *found);

#endif
