/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_WAKES_H
#define BEL_ENGINE_STATE_WAKES_H

/*
 * wakes - alarms of topics: to read a lane on when its next timer comes due, to end timers when the
 * next one expires, and to sweep ended timers when the next retention is over.
 */

#include "belfry/wheel.h"
#include "engine/state/topic.h"

struct bel_engine;

struct bel_wakes {
    struct bel_wheel *wheels[BEL_LANES_TIMED];
    uint32_t reserved; /* topics whose wakes can be set without more memory */
    bool is_due;       /* a wake may be due: one was set to a time that has come */
};

enum bel_wake_kind {
    BEL_WAKE_LANE,
    BEL_WAKE_SWEEP, /* in the wheel of the wall lane */
    BEL_WAKE_EXPIRY,
    BEL_WAKE_KINDS,
};

struct bel_wake {
    struct bel_topic_state *topic;
    enum bel_wake_kind kind;
};

BEL_CHECKED int bel__wakes_open(struct bel_engine *engine);
void bel__wakes_close(struct bel_engine *engine);

/* Makes sure that the wakes of this number of topics can be set. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__wakes_reserve(struct bel_engine *engine, uint32_t topics);

/* Set the wake of a lane, of the sweep in wall ms, or of the expiry on a lane, unless it is set to
 * an earlier time. */
void bel__wake_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                    uint64_t time);
void bel__wake_sweep(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time);
void bel__wake_expiry(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                      uint64_t time);

/* Cancels the wake of a lane, if it is set. */
void bel__wake_cancel(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane);

/* Cancels the wake of the expiry on a lane, if it is set to `time` or an earlier time. */
void bel__wake_expiry_cancel(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                             uint64_t time);

/* Returns whether a wake in a lane's wheel is due. */
bool bel__wakes_are_due(const struct bel_engine *engine, uint8_t lane);

/* Takes out a due wake. Returns false if there is none, or if the wheel must be asked again: see
 * bel_wheel_pop(). */
bool bel__wakes_pop(struct bel_engine *engine, uint8_t lane, struct bel_wake *out);

#endif
