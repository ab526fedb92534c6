/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_READY_H
#define BEL_ENGINE_READY_H

/*
 * ready - what has come due: from the store into the picker of its topic.
 */

#include "engine/picker.h"
#include "engine/rows/key.h"

struct bel_engine;
struct bel_topic_state;

/* A timer is, or is no more, at a key that is not leased. */
void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);
void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);

/* A plan's tick is at a key; it may be one that has been read past. */
void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key);

/* Something will come due in a lane. */
void bel__ready_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                     uint64_t time);

/* Reads on what has come due. */
BEL_CHECKED int bel__ready_turn(struct bel_engine *engine);

/* Where the timer is that the picker has chosen. */
struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready);

/* Forgets what is ready, to be read anew. */
void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic);

/* When a topic's ended timers are to be looked at again, in wall ms. */
void bel__sweep_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time);
BEL_CHECKED int bel__sweep_topic(struct bel_engine *engine, struct bel_topic_state *topic);

#endif
