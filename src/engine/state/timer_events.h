/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TIMER_EVENTS_H
#define BEL_ENGINE_STATE_TIMER_EVENTS_H

/*
 * timer_events - what happens to timers, for those who have to react.
 *
 * timer.c and lease.c change the rows of a timer, and report each change through the table that
 * engine->events points to. They know nobody who reacts. The engine's own reactions are in
 * reactions.c, one function for each event, in the order in which they happen.
 *
 * A layer above the engine reacts, too, with a table of its own. Each of its functions calls the
 * engine's reaction, and does what the layer wants:
 *
 *     static void ended(struct bel_engine *engine, struct bel_found *found)
 *     {
 *         bel__reactions.ended(engine, found);
 *         ...
 *     }
 *     engine->events = &events;     after opening, before the first turn
 *
 * Only look() may fail. The other events come after the change, where nothing may fail any more:
 * what they write has been reserved because look() has counted it. They may change other timers.
 */

#include "engine/rows/key.h"
#include "engine/rows/record.h"

#include <stddef.h>
#include <stdint.h>

struct bel_engine;
struct bel_found;
struct bel_topic_state;

struct bel_timer_events {
    /* An unfinished timer may be about to end. Finds out what that will entail, keeps it in
     * `found`, and adds the rows of blobs that it takes to `*rows`; some further rows are reserved
     * for each timer. Returns 0, or why the timer cannot end now. */
    int (*look)(struct bel_engine *engine, struct bel_found *found, size_t *rows);

    /* There is a timer more. arrived() follows. */
    void (*added)(struct bel_engine *engine, struct bel_topic_state *topic,
                  const struct bel_record *record);

    /* A timer is at a key and nobody has leased it; it is not at the key any more, or is leased. */
    void (*arrived)(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *key, struct bel_view group);
    void (*left)(struct bel_engine *engine, struct bel_topic_state *topic,
                 const struct bel_key *key, struct bel_view group);

    /* A topic may deliver more: it has a lease less, or a share less that has unfinished timers. */
    void (*freed)(struct bel_engine *engine, struct bel_topic_state *topic);

    /* An ended timer is kept until `time`, in wall ms. */
    void (*kept)(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time);

    /* An unfinished timer has ended, with found->state saying how, or was removed. Timers that
     * nothing can depend on are not reported: bel__record_is_bare(). */
    void (*ended)(struct bel_engine *engine, struct bel_found *found);
};

#endif
