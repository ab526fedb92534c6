/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_REACTIONS_H
#define BEL_ENGINE_STATE_REACTIONS_H

/*
 * reactions - what the engine does when something happens to a timer.
 */

#include "engine/state/timer_events.h"

extern const struct bel_timer_events bel__reactions;

#endif
