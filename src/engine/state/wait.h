/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_WAIT_H
#define BEL_ENGINE_STATE_WAIT_H

/*
 * wait - parked claims: they wait until a timer can be delivered, or until their time is over.
 */

#include "belfry/backend.h"
#include "belfry/wheel.h"
#include "core/list.h"
#include "core/map.h"
#include "engine/state/hot.h"

struct bel_engine;
struct bel_topic_state;

struct bel_waiting {
    struct bel_map orphans;  /* waiters for topics that do not exist, by name */
    struct bel_hot hot;      /* topics whose first waiter may be served; has room for all topics */
    struct bel_list later;   /* topics that are hot from the next turn on */
    struct bel_wheel *wheel; /* by end of wait, real time in ns */
    uint64_t parked;         /* claims parked so far; gives their order */
    uint64_t served;         /* deliveries so far; see bel_topic_state.served */
};

BEL_CHECKED int bel__wait_open(struct bel_engine *engine, struct bel_siphash_key secret);
void bel__wait_close(struct bel_engine *engine);

/* Parks a claim. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__wait_park(struct bel_engine *engine, struct bel_request *request);
void bel__wait_leave(struct bel_engine *engine, struct bel_request *request);

/* Note that a topic may have something for its waiters; move the orphans of a new topic to its
 * line. */
void bel__wait_mark(struct bel_engine *engine, struct bel_topic_state *topic);
void bel__wait_adopt(struct bel_engine *engine, struct bel_topic_state *topic);

/* Returns the claim to serve next: of the first claims in line at all hot topics, the oldest.
 * Returns NULL if there is none. */
struct bel_request *bel__wait_first(const struct bel_engine *engine);

/* Notes that this claim got nothing. Topics where it is first in line are no longer hot. */
void bel__wait_cool(struct bel_engine *engine, const struct bel_request *request);

/* Notes that this claim has got nothing in this turn, as the turn may do no more for it. Topics
 * where it is first in line are hot again in the next turn, which bel__wait_begin() begins. */
void bel__wait_put_off(struct bel_engine *engine, const struct bel_request *request);
void bel__wait_begin(struct bel_engine *engine);

/* Ends the waits whose time is over, with an empty reply. */
void bel__wait_turn(struct bel_engine *engine);

#endif
