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
BEL_CHECKED int bel__due_turn(struct bel_engine *engine);

#endif
