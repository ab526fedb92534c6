/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_CHECKPOINT_H
#define BEL_STORE_CHECKPOINT_H

/*
 * checkpoint - carries a frozen delta into a tree, in the order of the keys and in transactions
 * of a bounded size, the last of which stores the epoch.
 *
 *     err = bel__checkpoint_begin(checkpoint, frozen, epoch);
 *     while (bel__checkpoint_step(checkpoint)) ...          or a thread of its own does it
 *     if (bel__checkpoint_is_done(checkpoint)) err = bel__checkpoint_error(checkpoint);
 *
 * Once it is done, the tree is refreshed, and then the delta can go: in this order, or a reader
 * misses rows. A row is absolute, so that a checkpoint that was cut short is simply begun again.
 *
 * Threads: a checkpoint belongs to one thread, the reader of the tree. With a thread of its own
 * that one is the tree's writer, and reads the delta, until it is done; otherwise the caller of
 * step() is both.
 */

#include "belfry/error.h"
#include "store/delta.h"
#include "store/tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_CHECKPOINT_TRANSACTION_ROWS = 20000,
    BEL_CHECKPOINT_STEP_ROWS = 256,
    BEL_CHECKPOINT_PROGRESS_MAX = 1000,
};

enum bel_checkpoint_driver {
    BEL_CHECKPOINT_STEPS, /* bel__checkpoint_step() does the work */
    BEL_CHECKPOINT_THREAD,
};

struct bel_checkpoint_options {
    struct bel_tree *tree;   /* borrowed */
    size_t transaction_rows; /* 0: as above */
    enum bel_checkpoint_driver driver;
};

struct bel_checkpoint; /* opaque */

/* Makes one, with its thread if it has one. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__checkpoint_open(const struct bel_checkpoint_options *options,
                                     struct bel_checkpoint **out);

/* Ends it; NULL is allowed. One that is not done is cut short, at the end of a step: what it has
 * committed stays, and the tree still has the epoch from before. */
void bel__checkpoint_close(struct bel_checkpoint *checkpoint);

/* Begins to carry `delta`, which is borrowed and does not change until it is done. The one
 * before must be done. `epoch` is not below that of the tree. */
void bel__checkpoint_begin(struct bel_checkpoint *checkpoint, const struct bel_delta *delta,
                           uint64_t epoch);

/* Does a part of it: at most BEL_CHECKPOINT_STEP_ROWS rows, and a commit. True if there is more
 * for the next call; always false with a thread. */
bool bel__checkpoint_step(struct bel_checkpoint *checkpoint);

/* Waits until a thread has ended it; without one it returns at once. */
void bel__checkpoint_wait(struct bel_checkpoint *checkpoint);

/* True if the last one begun has ended, well or not, and if none was begun. */
bool bel__checkpoint_is_done(struct bel_checkpoint *checkpoint);

/* How the last one ended: 0; or BEL_EFULL or BEL_ENOMEM, and it can be begun again; or BEL_EIO
 * or BEL_ECORRUPT. */
int bel__checkpoint_error(struct bel_checkpoint *checkpoint);

/* How far it is: from 0 to BEL_CHECKPOINT_PROGRESS_MAX, which it has when it is done. */
unsigned bel__checkpoint_progress(struct bel_checkpoint *checkpoint);

#endif
