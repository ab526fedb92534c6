/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_LOOKUP_H
#define BEL_STORE_TREE_LOOKUP_H

/*
 * lookup - finds rows in the mapped pages of an LMDB file without LMDB, and returns no wrong answer
 * if a bit of a page has changed since the page was checked.
 *
 *     err = bel__lookup_get(&lookup, &key, &value);      the row of a key
 *     err = bel__lookup_seek(&lookup, &key, &value);     the first row from a key on
 *
 * Every offset is checked before it is followed. A row that is found is returned if its checksum,
 * which covers its key, is right. "Not found" is an answer only between two rows that are next to
 * each other and whose checksums are right:
 *
 *     branch    . k k k k .       the keys on both sides of the path are in order, and inside the
 *                   |             range that the branch above gives; the nodes fill the page
 *     leaf      . r r ? r r .     the rows before and after the place are right and in order; the
 *                                 nodes fill the page
 *
 * If the place is before the first or after the last row of its leaf, then the row on the other
 * side is the nearest one of the neighbouring leaf, because a damaged key of a branch may have led
 * to the wrong one of both.
 *
 * A page number that has changed to that of an older version of the same page, which is free and
 * not yet reused, is not noticed: only a check of the whole file compares the pages in use with the
 * free ones.
 *
 * Threads: a lookup belongs to one thread.
 */

#include "store/tree/page.h"

/* The fields are private, except `why`. */
struct bel_lookup {
    struct bel_page_file file; /* the map is borrowed */
    int fd;                    /* borrowed */
    uint64_t root;
    unsigned levels;
    bool has_last; /* the last seek has found a row of a leaf: */
    uint64_t leaf;
    unsigned index, count; /* of the row, and of all in the leaf */
    unsigned char last[BEL_KEY_BYTES];
    struct bel_why why; /* what was found; empty: nothing */
};

/* Initialises a lookup in a mapped file, which is borrowed. */
void bel__lookup_init(struct bel_lookup *lookup, const unsigned char *map, int fd,
                      size_t page_bytes);

/* Starts from the root of a table in another snapshot of the file, which has `page_count` pages.
 * `record` is LMDB's record of the table. Returns 0, BEL_EIO or BEL_ECORRUPT. */
BEL_CHECKED int bel__lookup_start(struct bel_lookup *lookup, struct bel_view record,
                                  uint64_t page_count);

/* Finds the row of a key. Returns 0 and sets `*out` to its value; BEL_ENOTFOUND; or BEL_ECORRUPT
 * and sets `lookup->why`. */
BEL_CHECKED int bel__lookup_get(struct bel_lookup *lookup, const struct bel_key *key,
                                struct bel_view *out);

/* Finds the first row with a key >= `*key`, and sets `*key` to its key. Returns as get(). */
BEL_CHECKED int bel__lookup_seek(struct bel_lookup *lookup, struct bel_key *key,
                                 struct bel_view *out);

#endif
