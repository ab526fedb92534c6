/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_H
#define BEL_ENGINE_STATE_TIMER_H

/*
 * timer - everything that can be done to a timer that was found.
 *
 * A change is made in three parts: find it (may fail), reserve (may fail), change (cannot). Each
 * change is reported to those who have to react: timer_events.h.
 */

#include "engine/state/timer_lookup.h"

/* Finds by id, ends what has expired meanwhile, and removes what is past its retention, so that
 * if it finds nothing the id is free. Returns 0; BEL_ENOTFOUND, and `*out` may have something in
 * it; or why it cannot look. */
BEL_CHECKED int bel__timer_find(struct bel_engine *engine, struct bel_topic_state *topic,
                                struct bel_view id, struct bel_found *out);

/* Makes sure that one of the changes below can be done to a timer that was found, and that
 * `more_bytes` of a blob can be put. */
BEL_CHECKED int bel__timer_reserve(struct bel_engine *engine, struct bel_found *found,
                                   uint64_t more_bytes, enum bel_store_use use);

/* Makes sure that it can be added or moved to `place`. Reserves nothing in the store. */
BEL_CHECKED int bel__timer_hold(struct bel_engine *engine, const struct bel_topic_state *topic,
                                const struct bel_place *place, struct bel_view group);

/* How many rows and bytes adding a record takes in the store, besides its blobs. */
enum {
    BEL_TIMER_ROWS = 32,
    BEL_TIMER_BYTES = 3 * BEL_RECORD_BYTES_MAX,
};

/* Adds an unfinished timer, of whose id there is none. */
void bel__timer_add(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_place *place, const struct bel_record *record);

/* Removes a timer or plan without a trace, whatever its state. */
void bel__timer_remove(struct bel_engine *engine, struct bel_found *found);

/* Writes its record again. */
void bel__timer_rewrite(struct bel_engine *engine, const struct bel_found *found);

/* Moves an unfinished timer to another place, for which it must be held; its lease ends. */
void bel__timer_move(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_place *place);

/* Ends the lease of a timer that stays where it is. */
void bel__timer_give_back(struct bel_engine *engine, struct bel_found *found);

/* Lets a timer that has ended begin again, with its record as it is, at a place for which it must
 * be held. */
void bel__timer_revive(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_place *place);

/* A new place in a topic, with a new sequence. */
struct bel_place bel__timer_place(struct bel_engine *engine, const struct bel_topic_state *topic,
                                  uint8_t lane, uint64_t time, uint8_t priority);

/* Ends an unfinished timer or plan: keeps it for its retention, or removes it. */
struct bel_ending {
    enum bel_state state;
    struct bel_view reason;
    struct bel_view result; /* of an ack */
};
void bel__timer_end(struct bel_engine *engine, struct bel_found *found,
                    const struct bel_ending *ending);

/* Reserves and ends a leased timer that is bare and not kept, and so need not be read. */
BEL_CHECKED int bel__timer_end_bare(struct bel_engine *engine, struct bel_lease *lease);

/* Reserves and ends a timer that has expired. */
BEL_CHECKED int bel__timer_expire(struct bel_engine *engine, struct bel_found *found);

/* Aliases: from the id of a record to its key, unless the id was made from that. One that is put as
 * new leaves no trace in the tree if it is deleted soon. */
void bel__alias_put(struct bel_engine *engine, const struct bel_key *key,
                    const struct bel_record *record, enum bel_row row);

/* Where the timers of an hour and of a group are counted: the first number of a group's, and of
 * hours the one with this index. */
struct bel_key bel__timer_hours_key(const struct bel_place *place);
unsigned bel__timer_hour_index(const struct bel_place *place);
struct bel_key bel__timer_group_key(const struct bel_engine *engine, uint32_t topic,
                                    struct bel_view group);

#endif
