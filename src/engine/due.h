/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_DUE_H
#define BEL_ENGINE_DUE_H

/*
 * due - what has come due: timers become ready, plans ring, retentions end.
 */

#include "belfry/error.h"

struct bel_engine;

/* Looks at the topics whose wakes are due. Returns 0, or an error of the store. */
BEL_CHECKED int bel__due_turn(struct bel_engine *engine);

#endif
