/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_H
#define BEL_ENGINE_STATE_TIMER_H

/*
 * timer - every change of a timer or plan that was found.
 *
 * A change has three steps: find the timer (may fail), reserve rows (may fail), change (cannot
 * fail). Each change is reported through timer_events.h.
 */

#include "engine/state/timer_lookup.h"

/* Finds a timer or plan by id, also a task of a hidden job. First ends the timer if it has expired,
 * and deletes it if its
 * retention is over. So if nothing is found, the id is free. Returns 0; BEL_ENOTFOUND, and `*out`
 * may be partly set; or an error of the lookup or of reserving. */
BEL_CHECKED int bel__timer_find_any(struct bel_engine *engine, struct bel_topic_state *topic,
                                    struct bel_view id, struct bel_found *out);

/* As bel__timer_find_any(), but finds no task of a hidden job. */
BEL_CHECKED int bel__timer_find(struct bel_engine *engine, struct bel_topic_state *topic,
                                struct bel_view id, struct bel_found *out);

/* Reserves rows for one of the changes below, and for a new blob of `more_bytes`. Also looks up
 * what the end of an occurrence does to its plan. */
BEL_CHECKED int bel__timer_reserve(struct bel_engine *engine, struct bel_found *found,
                                   uint64_t more_bytes, enum bel_store_use use);

/* Loads the counts that change when a timer is added at, or moved to, these key parts. Reserves
 * nothing in the store. */
BEL_CHECKED int bel__timer_hold(struct bel_engine *engine, const struct bel_topic_state *topic,
                                const struct bel_place *place, struct bel_share_name share);

/* Rows and bytes to reserve for adding a record, without its blobs. */
enum {
    BEL_TIMER_ROWS = 32,
    BEL_TIMER_BYTES = 3 * BEL_RECORD_BYTES_MAX,
};

/* Adds an unfinished timer, whose id must be free. */
void bel__timer_add(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_place *place, const struct bel_record *record);

/* Adds an ended timer or plan, whose id must be free, at a place in ENDED. */
void bel__timer_add_ended(struct bel_engine *engine, struct bel_topic_state *topic,
                          const struct bel_place *place, const struct bel_record *record);

/* Adds the row of a blocked task whose job nobody sees yet, without its alias, and without counting
 * it in any number; deletes it; counts `count` such tasks of a topic, after bel__timer_hold(). */
void bel__timer_stage(struct bel_engine *engine, const struct bel_place *place,
                      const struct bel_record *record);
void bel__timer_unstage(struct bel_engine *engine, const struct bel_found *found);
void bel__timer_count_staged(struct bel_engine *engine, struct bel_topic_state *topic,
                             struct bel_share_name share, uint32_t count);

/* Deletes all rows of a timer or plan, in any state. */
void bel__timer_remove(struct bel_engine *engine, struct bel_found *found);

/* Writes the record again, under its key. */
void bel__timer_rewrite(struct bel_engine *engine, const struct bel_found *found);

/* Moves an unfinished timer to another key, and ends its lease. Call bel__timer_hold() for the new
 * key parts first. */
void bel__timer_move(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_place *place);

/* As bel__timer_move(), and counts the expiry from the new time. */
void bel__timer_reschedule(struct bel_engine *engine, struct bel_found *found,
                           const struct bel_place *place);

/* Ends the lease of a timer. The timer keeps its key. */
void bel__timer_give_back(struct bel_engine *engine, struct bel_found *found);

/* Moves an ended timer back to the unfinished ones, with its record unchanged. Call
 * bel__timer_hold() for the new key parts first. */
void bel__timer_revive(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_place *place);

/* Returns key parts in a topic, with a new sequence. */
struct bel_place bel__timer_place(struct bel_engine *engine, const struct bel_topic_state *topic,
                                  uint8_t lane, uint64_t time, uint8_t priority);

/* Ends an unfinished timer or plan. Keeps it for its retention, or deletes it if there is none. */
struct bel_ending {
    enum bel_state state;
    struct bel_view reason;
    struct bel_view result; /* of an acknowledged timer, if has_result */
    bool has_result;
};
void bel__timer_end(struct bel_engine *engine, struct bel_found *found,
                    const struct bel_ending *ending);

/* Reserves rows and ends a leased timer without reading its record. The timer must be bare, and its
 * topic must not keep ended timers. */
BEL_CHECKED int bel__timer_end_bare(struct bel_engine *engine, struct bel_lease *lease);

/* Reserves rows and ends a timer that has expired. */
BEL_CHECKED int bel__timer_expire(struct bel_engine *engine, struct bel_found *found);

/* Put and delete an alias: the row from the id of a record to its key. An id that is made from the
 * key has no alias. An alias that is put as BEL_ROW_NEW never reaches the tree if it is deleted
 * soon. */
void bel__alias_put(struct bel_engine *engine, const struct bel_key *key,
                    const struct bel_record *record, enum bel_row row);
void bel__alias_delete(struct bel_engine *engine, const struct bel_key *key,
                       const struct bel_record *record);

/* Returns the key of the row by which a timer with EXPIRES is found when it expires; puts that row,
 * if the timer has EXPIRES. */
struct bel_key bel__timer_expiry_key(const struct bel_key *key, const struct bel_record *record);
void bel__timer_put_expiry(struct bel_engine *engine, struct bel_topic_state *topic,
                           const struct bel_key *key, const struct bel_record *record);

/* Return the key of the count of a timer's hour, the index of the hour in that count, and the key
 * of the count of a share. */
struct bel_key bel__timer_hours_key(const struct bel_place *place);
unsigned bel__timer_hour_index(const struct bel_place *place);
struct bel_key bel__timer_share_key(const struct bel_engine *engine, uint32_t topic,
                                    struct bel_share_name share);

#endif
