/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_TREE_CHECK_H
#define BEL_SERVER_EMBEDDED_TREE_CHECK_H

/*
 * tree_check - checks the whole tree in a subprocess while the server is running: once if the check
 * before the start was not finished, and then at the interval of the setting `scrub`.
 *
 *     waiting --timer--> running --result--> waiting --> ...
 *                           |
 *                           '--damage: the server stops
 *
 * The subprocess is the same program (engine/offline/checker.h). Its lines update the metrics.
 * After the first check without damage, the engine no longer checks pages before it uses them.
 *
 * Threads: only the loop thread may use it.
 */

#include "belfry/engine.h"
#include "metrics/metrics.h"
#include "server/config.h"
#include "server/logger.h"
#include "server/loop.h"

struct bel_tree_check; /* opaque */

/* All pointers are borrowed. */
struct bel_tree_check_options {
    const char *program; /* the path of this program */
    const struct bel_config *config;
    const struct bel_logger *log;
    struct bel_loop *loop;
    struct bel_engine *engine;
    struct bel_metrics *metrics;
    bool is_checked; /* the whole tree was checked before the start */
};

/* Starts the first check, or the wait for it. Returns 0 and sets `*out`; BEL_ENOMEM or BEL_EIO. */
BEL_CHECKED int bel__tree_check_start(const struct bel_tree_check_options *options,
                                      struct bel_tree_check **out);

/* Returns BEL_ECORRUPT if a check has found damage, which was logged; otherwise 0. NULL is
 * allowed. */
int bel__tree_check_error(const struct bel_tree_check *check);

/* Ends a running check. Call it before the engine is closed; NULL is allowed. */
void bel__tree_check_stop(struct bel_tree_check *check);

/* Frees it, after the loop was destroyed; NULL is allowed. */
void bel__tree_check_destroy(struct bel_tree_check *check);

#endif
