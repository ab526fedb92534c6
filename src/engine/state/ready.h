/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_READY_H
#define BEL_ENGINE_STATE_READY_H

/*
 * ready - the timers of a topic that are due: its picker, and how far its lanes have been read.
 */

#include "engine/rows/key.h"
#include "engine/state/picker.h"

struct bel_engine;
struct bel_topic_state;

/* A timer that is not leased is at a key, or is not any more. */
void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);
void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group);

/* A plan's tick is at a key; it may be one that has been read past. */
void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key);

/* The key of the timer that the picker has chosen. */
struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready);

/* Forgets what is ready, to be read anew. */
void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic);

/* For reading a lane: puts a timer that is due into the picker (BEL_ENOMEM, BEL_EFULL); notes a
 * tick before `loaded`, which could not ring; the first key of a lane at a time. */
BEL_CHECKED int bel__ready_add(struct bel_engine *engine, struct bel_topic_state *topic,
                               const struct bel_place *place, struct bel_view group);
void bel__ready_note_late(struct bel_topic_state *topic, const struct bel_key *key);
struct bel_key bel__ready_lane_key(const struct bel_topic_state *topic, uint8_t lane,
                                   uint64_t time);

#endif
