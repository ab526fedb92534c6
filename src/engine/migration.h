/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_MIGRATION_H
#define BEL_ENGINE_MIGRATION_H

/*
 * migration - adds rows that a store of an earlier format does not have, a slice in each turn:
 *
 *     EXPIRIES    of timers with EXPIRES, since format 3
 */

#include "belfry/error.h"

#include <stdint.h>

struct bel_engine;

/* Reads how far the migration has come; notes that a new store needs none. */
BEL_CHECKED int bel__migration_open(struct bel_engine *engine);
BEL_CHECKED int bel__migration_skip(struct bel_engine *engine);

/* Does a slice. Returns 0, or an error of the store that is final. */
BEL_CHECKED int bel__migration_turn(struct bel_engine *engine);

/* Returns when to continue, in engine time; BEL_NEVER if the migration is complete. */
uint64_t bel__migration_next(const struct bel_engine *engine);

#endif
