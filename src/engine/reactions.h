/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_REACTIONS_H
#define BEL_ENGINE_REACTIONS_H

/*
 * reactions - what the engine does when something happens to a timer.
 */

#include "engine/timer_events.h"

extern const struct bel_timer_events bel__reactions;

#endif
