/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_INSPECT_H
#define BEL_ENGINE_OFFLINE_INSPECT_H

/*
 * inspect - an engine's rows, looked at from outside: by who checks them and who dumps them.
 */

#include "belfry/engine.h"
#include "core/why.h"
#include "store/store.h"

struct bel_engine;

/* Opens an engine to be looked at, in a process that may be lost: see bel__store_open_view(). */
BEL_CHECKED int bel__engine_open_view(const char *folder, struct bel_tree_stats *out_stats,
                                      struct bel_engine **out, struct bel_why *why);

/* The name of the table that a row is in; NULL if there is none. */
const char *bel__table_name(const struct bel_key *key);

/* Walks through all rows and sees that they fit together. Returns 0, or BEL_ECORRUPT and says
 * why, or what the store says. */
BEL_CHECKED int bel__engine_walk(struct bel_engine *engine, struct bel_engine_report *report,
                                 struct bel_why *why);

#endif
