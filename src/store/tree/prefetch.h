/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PREFETCH_H
#define BEL_STORE_TREE_PREFETCH_H

/*
 * scout - asks the system to read the pages of an LMDB file that will be needed soon.
 *
 * A transaction that puts rows all over a large tree waits for the disk at each page that is not
 * in memory, one after the other: 80 us a row. The library cannot be asked where a row would be
 * without reading just that page. So the scout goes ahead: it reads branch pages itself, from
 * the file, finds the leaf where a key belongs, and says to the system that it will be wanted.
 * The disk then has many reads at a time.
 *
 * What it says is a hint. A scout that has lost its way, because pages have moved since or the
 * file is damaged, asks for the wrong page or for none.
 *
 * Threads: a scout belongs to one thread.
 */

#include "belfry/error.h"
#include "store/io/row.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BEL_PREFETCH_LEVELS_MAX = 8,
};

/* A scout. The fields are private. */
struct bel_prefetch {
    int file; /* borrowed */
    size_t page_bytes;
    unsigned char *pages;                      /* the last page read on each level of branches */
    uint64_t numbers[BEL_PREFETCH_LEVELS_MAX]; /* of those, or 0 */
    unsigned branch_levels;                    /* 0 if it does not know its way */
    uint64_t root, leaf;                       /* pages; the last leaf asked for */
    struct bel_key from, until;                /* a key between them belongs there, too */
};

/* Makes a scout of a file, which it borrows. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__prefetch_init(struct bel_prefetch *scout, int file, size_t page_bytes);

/* Releases its memory. */
void bel__prefetch_finish(struct bel_prefetch *scout);

/* Starts anew, at what the library keeps of the table: its record in the main table. */
void bel__prefetch_start(struct bel_prefetch *scout, struct bel_view record);

/* Says that the row of a key will be read or changed soon. */
void bel__prefetch_expect(struct bel_prefetch *scout, const struct bel_key *key);

#endif
