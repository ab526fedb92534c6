/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PREFETCH_H
#define BEL_STORE_TREE_PREFETCH_H

/*
 * prefetch - asks the kernel to read LMDB pages that a checkpoint will need.
 *
 * A transaction that puts rows all over a large tree waits for the disk at each page that is not in
 * memory, one after the other: 80 us per row. LMDB cannot tell where a row would be without reading
 * that very page. So the prefetch reads the branch pages itself, from the file, finds the leaf of a
 * key, and passes its page to posix_fadvise(). The disk then has many reads in flight.
 *
 * A prefetch is only a hint. If pages have moved since, or the file is damaged, it asks for a wrong
 * page or for none.
 *
 * Threads: a prefetch belongs to one thread.
 */

#include "belfry/error.h"
#include "store/io/row.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BEL_PREFETCH_LEVELS_MAX = 8,
};

/* The state of a prefetch. The fields are private. */
struct bel_prefetch {
    int file; /* borrowed */
    size_t page_bytes;
    unsigned char *pages;                      /* the last page read on each level of branches */
    uint64_t numbers[BEL_PREFETCH_LEVELS_MAX]; /* numbers of those pages, or 0 */
    unsigned branch_levels;                    /* 0: disabled */
    uint64_t root, leaf;                       /* page numbers: the root, the last leaf requested */
    struct bel_key from, until;                /* keys from <= key < until are in that leaf */
};

/* Initializes a prefetch of a file, which is borrowed. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__prefetch_init(struct bel_prefetch *prefetch, int file, size_t page_bytes);

/* Frees its memory. */
void bel__prefetch_finish(struct bel_prefetch *prefetch);

/* Starts again from the root of a table. `record` is LMDB's record of it in the main table. */
void bel__prefetch_start(struct bel_prefetch *prefetch, struct bel_view record);

/* Requests the leaf page of a key that will be read or changed soon. */
void bel__prefetch_expect(struct bel_prefetch *prefetch, const struct bel_key *key);

#endif
