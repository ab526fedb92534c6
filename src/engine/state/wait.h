/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_WAIT_H
#define BEL_ENGINE_STATE_WAIT_H

/*
 * wait - claims that wait for something to be delivered.
 */

#include "belfry/backend.h"
#include "belfry/wheel.h"
#include "core/list.h"

struct bel_engine;
struct bel_topic_state;

struct bel_waiting {
    struct bel_list orphans; /* waiters for topics that do not exist */
    struct bel_list hot;     /* topics whose waiters may be served */
    struct bel_wheel *wheel; /* by real time, ns */
    uint64_t parked;         /* claims so far: says who came first */
    uint64_t served;         /* deliveries so far: topics remember theirs */
};

BEL_CHECKED int bel__wait_open(struct bel_engine *engine);
void bel__wait_close(struct bel_engine *engine);

/* Lets a claim wait. BEL_ENOMEM. */
BEL_CHECKED int bel__wait_park(struct bel_engine *engine, struct bel_request *request);
void bel__wait_leave(struct bel_engine *engine, struct bel_request *request);

/* A topic may have something for who waits for it; a topic has come to be. */
void bel__wait_mark(struct bel_engine *engine, struct bel_topic_state *topic);
void bel__wait_adopt(struct bel_engine *engine, struct bel_topic_state *topic);

/* The claim that is to be served next: of those that are first in line at a topic that may have
 * something, the one that came first. NULL if there is none. */
struct bel_request *bel__wait_first(struct bel_engine *engine);

/* There was nothing for this claim, which is first in line: nobody behind it gets anything. */
void bel__wait_cool(struct bel_engine *engine, const struct bel_request *request);

/* Ends waits that are over. */
void bel__wait_turn(struct bel_engine *engine);

#endif
