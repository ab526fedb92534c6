/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_REACTIONS_H
#define BEL_ENGINE_STATE_REACTIONS_H

/*
 * reactions - the engine's own callbacks for changes of timers: see timer_events.h.
 */

#include "engine/state/timer_events.h"

extern const struct bel_timer_events bel__reactions;

#endif
