/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_TREE_H
#define BEL_STORE_TREE_TREE_H

/*
 * tree - the interface of an ordered table that checkpoints write to, in large sorted transactions.
 * After a crash a transaction is there completely or not at all.
 *
 * There are two implementations: lmdb.c on disk, and memory.c for the simulator and the store in
 * memory. Each row has a checksum of key and value.
 *
 * Threads: one thread reads (get, seek, refresh), one writes (begin, put, remove, commit, abort);
 * they may be the same. The reader sees the tree as of its last refresh.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"
#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_tree_stats {
    uint64_t rows;
    uint64_t sum;        /* total of the sums of all rows; see io/row.h */
    uint64_t bytes;      /* on disk, or in memory */
    uint64_t free_bytes; /* part of `bytes`: free pages, which are reused before the file grows */
};

/* The interface. An implementation has this struct as its first member and sets all functions. */
struct bel_tree {
    /* Reader. `*out` is valid until the next refresh. 0, BEL_ENOTFOUND, BEL_EIO, BEL_ECORRUPT. */
    int (*get)(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out);
    /* Reader: finds the first row with a key >= `*key` and sets `*key` to its key. */
    int (*seek)(struct bel_tree *tree, struct bel_key *key, struct bel_view *out);
    /* Reader: makes the last committed transaction visible. 0, BEL_EIO, BEL_ENOMEM. */
    int (*refresh)(struct bel_tree *tree);
    /* Reader: returns the epoch of the last visible transaction; 0 in a new tree. */
    uint64_t (*epoch)(const struct bel_tree *tree);

    /* Writer: begins a transaction. This, put, remove and commit return 0; or BEL_EIO, BEL_EFULL if
     * the disk is full, BEL_ENOMEM, and then abort must follow. */
    int (*begin)(struct bel_tree *tree);
    /* Hints that the row of a key will be changed soon, in this transaction or the next, so that a
     * tree on disk can prefetch its page. */
    void (*expect)(struct bel_tree *tree, const struct bel_key *key);
    int (*put)(struct bel_tree *tree, const struct bel_key *key, struct bel_view value);
    int (*remove)(struct bel_tree *tree, const struct bel_key *key); /* the row need not exist */
    int (*commit)(struct bel_tree *tree, uint64_t epoch);            /* durable when it returns 0 */
    void (*abort)(struct bel_tree *tree);

    /* Reader: opens a second reader, a snapshot of the current tree, for use by another thread. It
     * must be closed before the tree. 0, BEL_EIO, BEL_ENOMEM, BEL_ECORRUPT. NULL if the tree does
     * not support it. */
    int (*twin)(struct bel_tree *tree, struct bel_tree **out);
    /* Reader: returns the counts that are stored with the visible rows. */
    void (*stats)(struct bel_tree *tree, struct bel_tree_stats *out);
    /* Reader: stops checking pages before they are used, because all of them have been checked.
     * There is no transaction. NULL if the tree does not check them. */
    void (*trust)(struct bel_tree *tree);
    /* Reader: returns what a BEL_ECORRUPT of the reader, or of the last transaction, has found;
     * empty if it is not known. NULL if the tree does not tell. */
    const char *(*damage)(const struct bel_tree *tree);
    void (*close)(struct bel_tree *tree);
};

/* Reads the whole tree as the reader sees it and compares it with its counts. Returns 0 and sets
 * `*out`; BEL_ECORRUPT if a row, the order, the count or the sum is wrong; or BEL_EIO. Damaged
 * pages of a tree on disk may crash the process: call it in a subprocess. */
BEL_CHECKED int bel__tree_check(struct bel_tree *tree, struct bel_tree_stats *out);

enum bel_tree_mode {
    BEL_TREE_CREATE, /* create the tree if it does not exist */
    BEL_TREE_OPEN,   /* the tree must exist; an empty file is damage */
    BEL_TREE_READ,   /* like OPEN, for the reader alone; another process may write */
};

struct bel_tree_options {
    const char *path; /* a folder; borrowed during the open */
    enum bel_tree_mode mode;
    uint64_t map_bytes;  /* largest size of the file; 0: what can be mapped, up to 2^40 */
    bool is_checked;     /* all pages have been checked: do not check them when they are used */
    struct bel_why *why; /* is set on BEL_ECORRUPT if more is known; or NULL */
};

/* Opens a tree on LMDB. Until bel_tree.trust(), pages are checked when they are first used, see
 * path_check.h, except in the mode BEL_TREE_READ. Returns 0 and sets `*out`; or BEL_ENOTFOUND,
 * BEL_ECORRUPT, BEL_EIO, BEL_EFULL, BEL_ENOMEM, or BEL_EUNSUPPORTED for one of a later version. */
BEL_CHECKED int bel__tree_lmdb_open(const struct bel_tree_options *options, struct bel_tree **out);

/* Creates an empty tree in memory, which belongs to one thread. Returns 0 and sets `*out`, or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__tree_memory_create(struct bel_tree **out);

/* Creates a tree in memory that survives close(), like one on disk: an open transaction is aborted,
 * committed rows stay, and the tree can be used again. The simulator's crash is a close(). */
BEL_CHECKED int bel__tree_memory_create_lasting(struct bel_tree **out);

/* Frees such a tree; NULL is allowed. */
void bel__tree_memory_destroy(struct bel_tree *tree);

#endif
