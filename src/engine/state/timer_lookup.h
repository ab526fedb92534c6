/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_LOOKUP_H
#define BEL_ENGINE_STATE_TIMER_LOOKUP_H

/*
 * timer_lookup - timers and plans: found by id or by key, and what can be said of them. Nothing is
 * changed here.
 */

#include "belfry/timer.h"
#include "engine/rows/key.h"
#include "engine/rows/record.h"

struct bel_engine;
struct bel_lease;
struct bel_occurrence_end;
struct bel_topic_state;

/* A timer or a plan that was found: where, in what state, and its record. */
struct bel_found {
    struct bel_topic_state *topic;
    struct bel_key key; /* in TIMERS, ENDED or PLANS */
    enum bel_state state;
    struct bel_record record; /* views into the row: good until the batch ends, and into: */
    char made[BEL_MADE_ID_BYTES];
    struct bel_lease *lease;    /* if leased */
    struct bel_plan_state plan; /* of a plan that has not ended */
    struct bel_occurrence_end
        *after; /* what its end does to its plan: set by bel__timer_reserve() */
};

/* These four may leave something in `*out` when they find nothing.
 *
 * Finds by id; what has expired or is over is found as it is. Returns 0; BEL_ENOTFOUND; or why it
 * cannot look. */
BEL_CHECKED int bel__timer_peek(struct bel_engine *engine, struct bel_topic_state *topic,
                                struct bel_view id, struct bel_found *out);

/* Reads what is under a key of TIMERS, ENDED or PLANS; a tick leads to its plan. */
BEL_CHECKED int bel__timer_load(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_found *out);

/* The same of a timer of which it is known how it is leased: NULL if it is not. */
BEL_CHECKED int bel__timer_load_leased(struct bel_engine *engine, const struct bel_key *key,
                                       struct bel_lease *lease, struct bel_found *out);

/* As bel__timer_load() with a row of TIMERS or ENDED at hand. */
BEL_CHECKED int bel__timer_read(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_view row, struct bel_found *out);

/* Returns the state that a timer's key and lease tell. */
enum bel_state bel__timer_state(const struct bel_engine *engine, const struct bel_found *found);

/* Whether it has expired but nobody has looked; whether it has ended long enough ago. */
bool bel__timer_is_expired(const struct bel_engine *engine, const struct bel_found *found);
bool bel__timer_is_over(const struct bel_engine *engine, const struct bel_found *found);

/* How long timers that end in a state are kept, in ms, or BEL_RETENTION_FOREVER; and whether they
 * are kept at all. */
uint64_t bel__timer_retention(const struct bel_topic_state *topic, enum bel_state state);
bool bel__timer_is_kept(const struct bel_topic_state *topic, enum bel_state state);

/* When it is due, in wall ms. */
int64_t bel__timer_due(const struct bel_engine *engine, const struct bel_found *found);

#endif
