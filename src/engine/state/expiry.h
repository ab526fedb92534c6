/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_EXPIRY_H
#define BEL_ENGINE_STATE_EXPIRY_H

/*
 * expiry - the end of timers that nobody looks at.
 */

#include "engine/rows/record.h"

struct bel_engine;

/* The hourly look at what nobody else looks at. */
struct bel_expiry {
    bool is_armed, is_running;
    bool has_seen;  /* one that can expire, since it began */
    uint64_t at;    /* engine time, if armed */
    uint32_t topic; /* where it is, if it runs */
    struct bel_key place;
};

/* A timer is about, which may expire; the hourly look for those that have, and when it is due,
 * in engine time. */
void bel__expiry_expect(struct bel_engine *engine, const struct bel_record *record);
BEL_CHECKED int bel__expiry_turn(struct bel_engine *engine);
uint64_t bel__expiry_next(const struct bel_engine *engine);

#endif
