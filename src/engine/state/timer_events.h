/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_EVENTS_H
#define BEL_ENGINE_STATE_TIMER_EVENTS_H

/*
 * timer_events - callbacks for changes of timers.
 *
 * timer.c and lease.c change the rows of a timer, and report each change through the table that
 * engine->events points to. They do not know which modules react. The engine's own reactions are in
 * reactions.c, one function for each event, in the order in which events happen.
 *
 * A layer above the engine can react too, with its own table. Each of its functions first calls the
 * engine's reaction, then does the layer's work:
 *
 *     static void ended(struct bel_engine *engine, struct bel_found *found)
 *     {
 *         bel__reactions.ended(engine, found);
 *         ...
 *     }
 *     engine->events = &events;     after opening, before the first turn
 *
 * Only look() and rings() may fail. The other events come after the change, where nothing may fail
 * any more: the rows that they write were counted by look() and reserved. They may change other
 * timers.
 */

#include "engine/rows/key.h"
#include "engine/rows/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_engine;
struct bel_found;
struct bel_topic_state;

enum {
    BEL_RANG_ROWS = 8,
    BEL_RANG_BYTES = 8 << 10,
};

struct bel_timer_events {
    /* An unfinished timer may be about to end. Looks up the consequences, keeps them in `found`,
     * and adds the rows of blobs that they take to `*rows`; BEL_TIMER_ROWS are reserved in any
     * case. Returns 0, or an error if the timer cannot end now. */
    int (*look)(struct bel_engine *engine, struct bel_found *found, size_t *rows);

    /* An unfinished timer was added. arrived() follows. */
    void (*added)(struct bel_engine *engine, struct bel_topic_state *topic,
                  const struct bel_record *record);

    /* arrived: an unleased timer is now at `key`. left: it no longer is, or it is leased now. */
    void (*arrived)(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *key, const struct bel_record *record);
    void (*left)(struct bel_engine *engine, struct bel_topic_state *topic,
                 const struct bel_key *key, const struct bel_record *record);

    /* An unfinished timer was moved from the key `from` to found->key. Not called when it is added
     * or ended. */
    void (*moved)(struct bel_engine *engine, struct bel_found *found, const struct bel_key *from);

    /* A plan in one of the engine's own topics rings. Sets `*out_makes` to whether it may make an
     * occurrence now. Returns 0, or an error if it cannot ring now. */
    int (*rings)(struct bel_engine *engine, const struct bel_found *plan, bool *out_makes);

    /* Such a plan has rung. `is_skipped`: its overlap policy has left out the time. It has no next
     * time if that was the last. BEL_RANG_ROWS are reserved. */
    void (*rang)(struct bel_engine *engine, const struct bel_found *plan, bool is_skipped);

    /* The timer of a row in EXPIRIES expires at the time of the row's key: the row is new, or the
     * timer's lease has ended. */
    void (*expires)(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *row);

    /* A topic may deliver more: a lease ended, or one of its shares has no unfinished timers
     * left. */
    void (*freed)(struct bel_engine *engine, struct bel_topic_state *topic);

    /* An ended timer is kept until `time`, in wall ms. */
    void (*kept)(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time);

    /* An unfinished timer was removed, or has ended in found->state. Not called by
     * bel__timer_end_bare(): nothing depends on a bare timer. */
    void (*ended)(struct bel_engine *engine, struct bel_found *found);
};

#endif
