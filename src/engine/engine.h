/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ENGINE_H
#define BEL_ENGINE_ENGINE_H

/*
 * engine - durable timers as a state machine: (state, now, command) -> (state, reply, rows).
 *
 *     engine.c          open, close, a turn
 *     due.c             a turn: timers come due, plans ring
 *     lease_timeout.c   a turn: leases end
 *     migration.c       a turn: rows that older formats do not have are added
 *     backup.c          copies the data directory while the engine is open
 *     health.c          what a server measures and checks outside of the engine
 *     commands/         the commands, one file each
 *     state/            topics, timers, leases, plans, and every change of them
 *     rows/             keys and records as bytes
 *     offline/          for a data directory that no engine has open
 *
 * Every command has three steps: look (may fail), reserve (may fail), change (cannot fail). So a
 * command that fails has changed nothing.
 */

#include "belfry/engine.h"
#include "core/entropy.h"
#include "engine/state/state.h"
#include "store/store.h"

/* Opens an engine on a store, which the engine owns from then on, and on a borrowed source of
 * random numbers. On an error, the store stays the caller's. */
BEL_CHECKED int bel__engine_open_on(const struct bel_engine_options *options,
                                    struct bel_store *store, struct bel_entropy *entropy,
                                    struct bel_engine **out);

/* Sets `*why` to what has failed in an engine that answers only errors; otherwise to "". */
void bel__engine_explain(const struct bel_engine *engine, struct bel_why *why);

/* Tells an engine that all pages of its tree have been checked since it was opened. */
void bel__engine_trust(struct bel_engine *engine);

/* Installs a handler for the process that names unreadable pages; see store/tree/map_fault.h. */
BEL_CHECKED int bel__engine_watch_faults(void (*name)(uint64_t page));

#endif
