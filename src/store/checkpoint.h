/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_CHECKPOINT_H
#define BEL_STORE_CHECKPOINT_H

/*
 * checkpoint - writes a frozen delta into a tree, in the order of keys and in transactions of a
 * bounded size. The last transaction stores the epoch.
 *
 *     bel__checkpoint_begin(checkpoint, frozen, epoch);
 *     while (bel__checkpoint_step(checkpoint)) ...          unless it has a thread
 *     if (bel__checkpoint_is_done(checkpoint)) err = bel__checkpoint_error(checkpoint);
 *
 * When it is done, the caller refreshes the tree and then clears the delta. In the other order a
 * reader would miss rows. A put replaces the whole value, so an interrupted checkpoint is simply
 * begun again.
 *
 * Threads: a checkpoint belongs to the thread that reads the tree. If it has a thread of its own,
 * that thread writes the tree and reads the delta until it is done; otherwise the caller of step()
 * does.
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
    size_t transaction_rows; /* 0: BEL_CHECKPOINT_TRANSACTION_ROWS */
    enum bel_checkpoint_driver driver;
};

struct bel_checkpoint; /* opaque */

/* Opens a checkpoint, and starts its thread if it has one. Returns 0 and sets `*out`, or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__checkpoint_open(const struct bel_checkpoint_options *options,
                                     struct bel_checkpoint **out);

/* Closes a checkpoint; NULL is allowed. A run that is not done is stopped after the current step:
 * committed transactions stay, and the tree keeps its old epoch. */
void bel__checkpoint_close(struct bel_checkpoint *checkpoint);

/* Begins to write `delta`, which is borrowed and must not change until the run is done. The
 * previous run must be done. `epoch` must be at least that of the tree. */
void bel__checkpoint_begin(struct bel_checkpoint *checkpoint, const struct bel_delta *delta,
                           uint64_t epoch);

/* Writes at most BEL_CHECKPOINT_STEP_ROWS rows, and commits at the end of a transaction. Returns
 * whether there is more; always false with a thread. */
bool bel__checkpoint_step(struct bel_checkpoint *checkpoint);

/* Waits until the thread has finished the run. Without a thread, returns at once. */
void bel__checkpoint_wait(struct bel_checkpoint *checkpoint);

/* Returns whether the last run has finished, successfully or not, or none was begun. */
bool bel__checkpoint_is_done(struct bel_checkpoint *checkpoint);

/* Returns the result of the last run: 0; BEL_EFULL or BEL_ENOMEM, after which it can be begun
 * again; or BEL_EIO or BEL_ECORRUPT. */
int bel__checkpoint_error(struct bel_checkpoint *checkpoint);

/* Returns the progress: from 0 to BEL_CHECKPOINT_PROGRESS_MAX, when it is done. */
unsigned bel__checkpoint_progress(struct bel_checkpoint *checkpoint);

#endif
