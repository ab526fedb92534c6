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
BEL_CHECKED int bel__engine_open_view(const struct bel_store_view *view,
                                      struct bel_tree_stats *out_stats, struct bel_engine **out,
                                      struct bel_why *why);

/* How far a check came in the time that it had. */
struct bel_engine_checked {
    bool is_tree_checked;            /* every page and row of the tree; no damage */
    bool is_done;                    /* and everything that bel_engine_check() checks */
    struct bel_engine_report report; /* if it is done */
};

/* Checks a data directory that is not open for at most `ms_max` ms, pages first. Returns 0, also if
 * the time was over or there is no data; or as bel_engine_check(). */
BEL_CHECKED int bel__engine_check_for(const char *folder, uint64_t ms_max,
                                      struct bel_engine_checked *out, struct bel_why *why);

/* Returns the name of the table of a key, NULL if the table is unknown. */
const char *bel__table_name(const struct bel_key *key);

/* Checks that all rows are consistent with each other. Returns 0; BEL_ECORRUPT, with the reason in
 * `why`; or an error of the store. */
BEL_CHECKED int bel__engine_walk(struct bel_engine *engine, struct bel_engine_report *report,
                                 struct bel_why *why);

#endif
