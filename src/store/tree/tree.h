/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_TREE_H
#define BEL_STORE_TREE_TREE_H

/*
 * tree - where rows end up: an ordered table that is changed by large sorted transactions,
 * each of which is wholly there after a crash or not at all.
 *
 * Two of them: on LMDB (tree_lmdb.c), and in memory (tree_memory.c), which is its twin for the
 * simulator and the store in memory. Rows carry a checksum of key and value.
 *
 * Threads: one reads (get, seek, refresh), one writes (begin, put, delete, commit, abort); the two
 * may be the same. A reader sees the tree as it was at its last refresh.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_tree_stats {
    uint64_t rows;
    uint64_t sum;        /* of all rows, whatever their order; see row.h */
    uint64_t bytes;      /* on disk, or in memory */
    uint64_t free_bytes; /* of those: in pages that are used again before it grows */
};

/* A tree. To make one, put this first in it and fill in all of it. */
struct bel_tree {
    /* Reader. What `*out` points to is good until the next refresh. 0, BEL_ENOTFOUND, BEL_EIO,
     * BEL_ECORRUPT. */
    int (*get)(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out);
    /* Reader: the first row that is not before `*key`, whose key goes there. */
    int (*seek)(struct bel_tree *tree, struct bel_key *key, struct bel_view *out);
    /* Reader: from here on the rows of the last transaction are seen. 0, BEL_EIO, BEL_ENOMEM. */
    int (*refresh)(struct bel_tree *tree);
    /* Reader: the epoch of the last transaction that it sees; 0 at first. */
    uint64_t (*epoch)(const struct bel_tree *tree);

    /* Writer. 0, BEL_EIO, BEL_EFULL for no space on disk, BEL_ENOMEM; then abort. */
    int (*begin)(struct bel_tree *tree);
    /* Says that the row of a key will be changed soon, in this transaction or the next: a hint,
     * so that a tree on disk can read ahead. */
    void (*expect)(struct bel_tree *tree, const struct bel_key *key);
    int (*put)(struct bel_tree *tree, const struct bel_key *key, struct bel_view value);
    int (*remove)(struct bel_tree *tree, const struct bel_key *key); /* it need not be there */
    int (*commit)(struct bel_tree *tree, uint64_t epoch);            /* durable when it returns 0 */
    void (*abort)(struct bel_tree *tree);

    /* Reader: another one, which sees the tree as it is now and may be used by a thread of its
     * own; it only reads, and is closed before this one. 0, BEL_EIO, BEL_ENOMEM, BEL_ECORRUPT. NULL
     * if there can be none. */
    int (*twin)(struct bel_tree *tree, struct bel_tree **out);
    /* Reader: the counts kept beside the rows that it sees. */
    void (*stats)(struct bel_tree *tree, struct bel_tree_stats *out);
    void (*close)(struct bel_tree *tree);
};

/* Walks through the whole tree as the reader sees it, and says what is there. Returns 0; or
 * BEL_ECORRUPT if a row, the order, the count or the sum is wrong; or BEL_EIO. A tree on disk
 * whose pages are damaged may also end the process: let it be another one. */
BEL_CHECKED int bel__tree_check(struct bel_tree *tree, struct bel_tree_stats *out);

enum bel_tree_mode {
    BEL_TREE_CREATE, /* make what is not there yet */
    BEL_TREE_OPEN,   /* it must be there: what is empty is damaged */
    BEL_TREE_READ,   /* the same, for the reader alone; another process may write */
};

struct bel_tree_options {
    const char *path; /* a folder; borrowed until it is open */
    enum bel_tree_mode mode;
    uint64_t map_bytes; /* it grows to this at most; 0: as much as can be mapped, up to 2^40 */
};

/* Opens a tree on LMDB. Returns 0 and sets `*out`; or BEL_ENOTFOUND, BEL_ECORRUPT, BEL_EIO,
 * BEL_EFULL, BEL_ENOMEM, or BEL_EUNSUPPORTED for one of a later version. */
BEL_CHECKED int bel__tree_lmdb_open(const struct bel_tree_options *options, struct bel_tree **out);

/* Makes an empty tree in memory, which belongs to one thread. Returns 0 and sets `*out`, or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__tree_memory_create(struct bel_tree **out);

/* The same, but it is there after close(), as one on disk is: without an open transaction, with
 * all that was committed, and can be used again. The simulator's crash is a close(). */
BEL_CHECKED int bel__tree_memory_create_lasting(struct bel_tree **out);

/* Releases a tree in memory that lasts; NULL is allowed. */
void bel__tree_memory_destroy(struct bel_tree *tree);

#endif
