/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_STATE_H
#define BEL_STORE_STATE_H

/*
 * state - what a store is made of. Private to the files of the store: store.c changes rows and
 * commits, read.c finds them.
 */

#include "store/checkpoint.h"
#include "store/delta.h"
#include "store/store.h"
#include "store/tree.h"

struct bel_store {
    struct bel_delta *active, *frozen; /* the two deltas, in either order */
    struct bel_delta deltas[2];
    struct bel_tree *tree;
    uint64_t changes; /* of rows, so that a cursor sees that there were any */
    uint64_t batch;   /* the last one that was closed */
    bool has_rows;    /* the next batch is not empty */
    int err;          /* for good */

    struct bel_checkpoint *checkpoint;
    bool is_frozen; /* the frozen delta is in use: it lies over the tree */
    uint64_t frozen_epoch;
    size_t delta_bytes_max; /* of a delta that no log makes freeze */
};

#endif
