/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_READY_H
#define BEL_ENGINE_STATE_READY_H

/*
 * ready - the due timers of a topic: fills its picker, and keeps track of how far its lanes have
 * been read.
 */

#include "engine/rows/key.h"
#include "engine/rows/record.h"
#include "engine/state/picker.h"

struct bel_engine;
struct bel_topic_state;

/* Note that an unleased timer is now at a key, or no longer is. */
void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, const struct bel_record *record);
void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, const struct bel_record *record);

/* Notes that a plan's tick is at a key, which may be where the plans have rung. */
void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key);

/* Return the share of a timer; its share and the gate of its resource; in which form the picker has
 * it; and the key of a timer in the picker. */
struct bel_standing bel__ready_share(const struct bel_record *record);
struct bel_standing bel__ready_standing(const struct bel_engine *engine,
                                        const struct bel_record *record);
struct bel_ready bel__ready_of(const struct bel_place *place, const struct bel_record *record);
struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready);

/* Returns the number of ready timers in memory that are not parked. */
uint64_t bel__ready_open_count(const struct bel_topic_state *topic);

/* Wakes the partial lanes of a topic for the next turn, if the picker has room again: timers were
 * removed or parked. */
void bel__ready_read_on(struct bel_engine *engine, struct bel_topic_state *topic);

/* Empties the picker. The lanes are read again from the start. */
void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic);

/* Returns the key before which the plans of a topic have rung, except those of late ticks. */
const struct bel_key *bel__ready_rung(const struct bel_topic_state *topic);

/* For reading a lane: put a due timer into the picker (BEL_ENOMEM, BEL_EFULL); note a tick before
 * bel__ready_rung() that could not ring; return the first key of a lane at a time. */
BEL_CHECKED int bel__ready_add(struct bel_engine *engine, struct bel_topic_state *topic,
                               const struct bel_place *place, const struct bel_record *record);
void bel__ready_note_late(struct bel_topic_state *topic, const struct bel_key *key);
struct bel_key bel__ready_lane_key(const struct bel_topic_state *topic, uint8_t lane,
                                   uint64_t time);

#endif
