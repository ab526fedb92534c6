/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_RETENTION_H
#define BEL_ENGINE_STATE_RETENTION_H

/*
 * retention - deletes ended timers whose retention is over.
 */

#include "belfry/error.h"

struct bel_engine;
struct bel_topic_state;

/* Deletes ended timers of a topic whose retention is over. Returns 0, or an error of the store. */
BEL_CHECKED int bel__retention_sweep(struct bel_engine *engine, struct bel_topic_state *topic);

#endif
