/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_DUE_H
#define BEL_ENGINE_DUE_H

/*
 * due - wakes topics: expired timers end, due timers become ready, due plans ring, ended timers are
 * swept.
 */

#include "belfry/error.h"

struct bel_engine;

/* Handles the wakes that are due. Returns 0, or an error of the store. */
/* Reads topics again whose due timers were passed over because a resource was closed, if it has
 * opened. */
void bel__due_reread(struct bel_engine *engine);

BEL_CHECKED int bel__due_turn(struct bel_engine *engine);

#endif
