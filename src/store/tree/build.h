/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_BUILD_H
#define BEL_STORE_TREE_BUILD_H

/*
 * build - writes a new tree file in LMDB's format from rows in ascending order, without LMDB.
 *
 *     err = bel__tree_build_open(io, &build);
 *     while (...) err = bel__tree_build_put(build, &key, value);
 *     err = bel__tree_build_end(build, epoch, &stats);
 *     bel__tree_build_close(build);
 *
 * LMDB maps the files that it writes, and a process that touches a mapped page of a full or failing
 * disk is killed by a signal. A build writes through struct bel_io, so that each failure of the
 * disk is an error code.
 *
 * Threads: a build belongs to one thread at a time.
 */

#include "store/io/io.h"
#include "store/tree/tree.h"

#define BEL_TREE_FILE "data.mdb"

struct bel_tree_build; /* opaque */

/* Creates the file of a tree in a directory, or truncates it. `io` is borrowed. Returns 0 and sets
 * `*out`; or BEL_ENOMEM, or an error of struct bel_io. */
BEL_CHECKED int bel__tree_build_open(struct bel_io *io, struct bel_tree_build **out);

/* Adds a row, whose key must be higher than the previous one. Returns 0 or an error of struct
 * bel_io, after which the build must be closed. */
BEL_CHECKED int bel__tree_build_put(struct bel_tree_build *build, const struct bel_key *key,
                                    struct bel_view value);

/* Completes the file and makes it durable. Sets the rows, sum and bytes of `*out`. Returns 0 or an
 * error of struct bel_io. */
BEL_CHECKED int bel__tree_build_end(struct bel_tree_build *build, uint64_t epoch,
                                    struct bel_tree_stats *out);

/* Closes a build, which need not be complete; NULL is allowed. */
void bel__tree_build_close(struct bel_tree_build *build);

#endif
