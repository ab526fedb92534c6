/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_EXPIRY_H
#define BEL_ENGINE_STATE_EXPIRY_H

/*
 * expiry - ends expired timers that no command looks at.
 */

#include "engine/rows/record.h"

struct bel_engine;

/* The hourly pass over all ready timers. */
struct bel_expiry {
    bool is_armed, is_running;
    bool has_seen;  /* a timer that can expire was seen since the pass began */
    uint64_t at;    /* start of the next pass in engine time, if armed */
    uint32_t topic; /* the current topic, and the position in its picker, if running */
    struct bel_key place;
};

/* Note a timer, which arms the pass if it can expire; run a part of the pass; return when it is
 * due, in engine time. */
void bel__expiry_expect(struct bel_engine *engine, const struct bel_record *record);
BEL_CHECKED int bel__expiry_turn(struct bel_engine *engine);
uint64_t bel__expiry_next(const struct bel_engine *engine);

#endif
