/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_OFFLINE_INSPECT_H
#define BEL_ENGINE_OFFLINE_INSPECT_H

/*
 * inspect - checks the rows of a data directory that no engine has open.
 */

#include "belfry/engine.h"
#include "core/why.h"
#include "store/store.h"

struct bel_engine;

/* Opens an engine for reading only. Call it in a subprocess, which damaged pages may kill: see
 * bel__store_open_view(). */
BEL_CHECKED int bel__engine_open_view(const char *folder, struct bel_tree_stats *out_stats,
                                      struct bel_engine **out, struct bel_why *why);

/* Returns the name of the table of a key, NULL if the table is unknown. */
const char *bel__table_name(const struct bel_key *key);

/* Checks that all rows are consistent with each other. Returns 0; BEL_ECORRUPT, with the reason in
 * `why`; or an error of the store. */
BEL_CHECKED int bel__engine_walk(struct bel_engine *engine, struct bel_engine_report *report,
                                 struct bel_why *why);

#endif
