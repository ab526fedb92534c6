/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_LOOKUP_H
#define BEL_ENGINE_STATE_TIMER_LOOKUP_H

/*
 * timer_lookup - finds timers and plans by id or by key, and computes their properties. Changes
 * nothing.
 */

#include "belfry/timer.h"
#include "engine/rows/key.h"
#include "engine/rows/record.h"

struct bel_engine;
struct bel_lease;
struct bel_occurrence_end;
struct bel_task_end;
struct bel_topic_state;

/* A timer or a plan that was found: its key, its state and its record. */
struct bel_found {
    struct bel_topic_state *topic;
    struct bel_key key; /* in TIMERS, ENDED or PLANS */
    enum bel_state state;
    struct bel_record record; /* views into the row, valid until the batch ends, or into: */
    char made[BEL_MADE_ID_BYTES];
    struct bel_lease *lease;          /* if leased */
    struct bel_plan_state plan;       /* of an unfinished plan */
    struct bel_occurrence_end *after; /* what its end does to its plan, by bel__timer_reserve() */
    struct bel_task_end *task;        /* what its change does to its job, by the same */
};

/* The next four functions may set `*out` partly when they find nothing.
 * 
 * Finds a timer or plan by id, also if it has expired or its retention is over. Returns 0,
 * BEL_ENOTFOUND, or an error of the lookup. */
BEL_CHECKED int bel__timer_peek(struct bel_engine *engine, struct bel_topic_state *topic,
                                struct bel_view id, struct bel_found *out);

/* Reads the row under a key of TIMERS, ENDED or PLANS. The key of a tick finds its plan. */
BEL_CHECKED int bel__timer_load(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_found *out);

/* Reads a timer whose lease is known: `lease` is NULL if it is not leased. */
BEL_CHECKED int bel__timer_load_leased(struct bel_engine *engine, const struct bel_key *key,
                                       struct bel_lease *lease, struct bel_found *out);

/* As bel__timer_load(), for a row of TIMERS or ENDED that the caller has read. */
BEL_CHECKED int bel__timer_read(struct bel_engine *engine, const struct bel_key *key,
                                struct bel_view row, struct bel_found *out);

/* Returns the state that follows from a timer's key and lease. */
enum bel_state bel__timer_state(const struct bel_engine *engine, const struct bel_found *found);

/* Returns whether a timer has expired but has not been ended yet; whether an ended timer's
 * retention is over, which for tasks only their job knows. */
bool bel__timer_is_expired(const struct bel_engine *engine, const struct bel_found *found);
bool bel__timer_is_over(const struct bel_engine *engine, const struct bel_found *found);

/* Returns how long timers that end in `state` are kept, in ms, or BEL_RETENTION_FOREVER; and
 * whether they are kept at all. */
uint64_t bel__timer_retention(const struct bel_topic_state *topic, enum bel_state state);
bool bel__timer_is_kept(const struct bel_topic_state *topic, enum bel_state state);

/* Returns whether a timer is a task of a job that no command sees yet, or any more. */
bool bel__timer_is_hidden(const struct bel_engine *engine, const struct bel_found *found);

/* Returns when a timer or plan is due, in wall ms. */
int64_t bel__timer_due(const struct bel_engine *engine, const struct bel_found *found);

#endif
