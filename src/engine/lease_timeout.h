/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_LEASE_TIMEOUT_H
#define BEL_ENGINE_LEASE_TIMEOUT_H

/*
 * lease_timeout - takes back timers whose leases have ended.
 */

#include "belfry/error.h"

struct bel_engine;

/* Takes back the timers whose leases have ended. Returns 0, or an error of the store. */
BEL_CHECKED int bel__lease_timeouts_turn(struct bel_engine *engine);

#endif
