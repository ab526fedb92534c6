/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PATH_CHECK_H
#define BEL_STORE_TREE_PATH_CHECK_H

/*
 * path_check - checks the pages that LMDB is about to read for a key, as page.h describes, before
 * LMDB reads them. A writer checks the pages in each transaction, because LMDB moves nodes by the
 * sizes that it finds, and beyond its memory if one is wrong. A reader, which does not use LMDB for
 * rows (see lookup.h), checks pages in a tree that has not been checked since it was opened.
 *
 *     root   branch   . . X . .
 *            branch    . . X .            X: on the path of the key
 *            leaf       n X n             n: the leaves before and after it
 *
 * If a key is not found, it could be in a neighbouring leaf: if a key of a branch is damaged, then
 * either a leaf on one side of it has a key outside its range, or no key is misdirected. So both
 * neighbours are checked, too.
 *
 * A writer may move nodes between a page and its siblings, on each level, when it removes rows from
 * a page that becomes less than a quarter full. It reads the first key below a branch that it
 * moves.
 *
 * A mark for each page tells that it was checked. A marked page that LMDB has freed and used again
 * was written by this process after its neighbours had been checked.
 *
 * Threads: a path check belongs to one thread.
 */

#include "store/tree/page.h"

enum bel_path_use {
    BEL_PATH_READ,  /* the path and the leaves before and after it */
    BEL_PATH_WRITE, /* and the siblings */
    BEL_PATH_TOUCH, /* the path alone: of a writer that calls shrink() before it removes rows */
};

/* The fields are private. */
struct bel_path_check {
    struct bel_page_file file; /* the map is borrowed */
    int fd;                    /* borrowed */
    uint8_t *marks;            /* of each page */
    uint64_t root;
    unsigned levels;
    bool has_leaf;   /* keys from `from` on and before `until` are in a leaf that was checked */
    bool skips_rows; /* checks no checksums of rows */
    unsigned char from[BEL_KEY_BYTES], until[BEL_KEY_BYTES];
    bool has_from, has_until;
    size_t leaf_bytes, shrunk_bytes; /* of that leaf: used, and removed since */
    struct bel_why why;              /* what was found; empty: nothing */
};

/* Creates a path check of a mapped file, which is borrowed. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__path_check_create(const unsigned char *map, int fd, size_t page_bytes,
                                       struct bel_path_check **out);

/* Frees a path check; NULL is allowed. */
void bel__path_check_destroy(struct bel_path_check *check);

/* Starts from the root of a table in another snapshot of the file, which has `page_count` pages.
 * `record` is LMDB's record of the table. Returns 0, BEL_EIO, BEL_ENOMEM or BEL_ECORRUPT. */
BEL_CHECKED int bel__path_check_start(struct bel_path_check *check, struct bel_view record,
                                      uint64_t page_count);

/* Checks the pages for a key. Returns 0, or BEL_ECORRUPT and sets `check->why`. */
BEL_CHECKED int bel__path_check_key(struct bel_path_check *check, const struct bel_key *key,
                                    enum bel_path_use use);

/* Checks the siblings of the pages of a key, if `bytes` more removed from its leaf could make LMDB
 * merge pages. Returns as key(), which was called before with the same key. */
BEL_CHECKED int bel__path_check_shrink(struct bel_path_check *check, const struct bel_key *key,
                                       size_t bytes);

/* Forgets which pages were checked. */
void bel__path_check_forget(struct bel_path_check *check);

#endif
