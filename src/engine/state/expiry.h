/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_EXPIRY_H
#define BEL_ENGINE_STATE_EXPIRY_H

/*
 * expiry - ends timers when they expire.
 */

#include "engine/rows/key.h"
#include "engine/state/topic.h"

struct bel_engine;

struct bel_expiry {
    uint32_t rows_max;             /* that a turn reads */
    uint32_t left;                 /* rows that this turn may still read */
    bool is_lowered;               /* a row was added before the position of a topic */
    struct bel_topic_state *first; /* list of topics with more expired timers than one turn ends */
    struct bel_topic_state *last;
};

/* Sets the wakes of all topics that have timers with EXPIRES. */
BEL_CHECKED int bel__expiry_open(struct bel_engine *engine);

/* Notes that the timer of a row in EXPIRIES can expire: the row is new, or a lease has ended. */
void bel__expiry_expect(struct bel_engine *engine, struct bel_topic_state *topic,
                        const struct bel_key *row);

/* Begins a turn: continues with topics that have expired timers left from the turn before. */
BEL_CHECKED int bel__expiry_turn(struct bel_engine *engine);

/* Ends the expired timers of a topic. If there are more than the turn may end, or the batch is
 * full, the rest is ended in the next turns: bel__expiry_is_behind(). Returns 0, or an error of the
 * store that is final. */
BEL_CHECKED int bel__expiry_settle(struct bel_engine *engine, struct bel_topic_state *topic);

/* Returns whether this turn may end another expired timer of a topic, and counts it. If not, later
 * turns end the expired timers of the topic, and its waiting claims are tried again then. */
bool bel__expiry_may_end(struct bel_engine *engine, struct bel_topic_state *topic);

/* Ends a few expired timers of a topic that is behind, whatever the turn has done so far. Returns
 * 0, BEL_EBUSY if the batch is full, or another error of the store. */
BEL_CHECKED int bel__expiry_make_room(struct bel_engine *engine, struct bel_topic_state *topic);

/* Returns whether a topic, or any topic if NULL, has expired timers that later turns will end. */
bool bel__expiry_is_behind(const struct bel_engine *engine, const struct bel_topic_state *topic);

#endif
