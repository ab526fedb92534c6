/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_STATE_H
#define BEL_STORE_STATE_H

/*
 * state - what a store is made of. Private to its files: open.c and
 * open_directory.c make one, store.c changes rows and commits, read.c finds rows, carry.c brings
 * them into the tree, pace.c slows down those who are too fast for that, backup.c makes copies.
 */

#include "store/checkpoint.h"
#include "store/delta.h"
#include "store/log/batch.h"
#include "store/log/log.h"
#include "store/store.h"
#include "store/tree/tree.h"

/* A file that is there while somebody has the store, and after a crash. */
#define BEL_OPEN_MARK "OPEN"

struct bel_store {
    struct bel_delta *active, *frozen; /* the two deltas, in either order */
    struct bel_delta deltas[2];
    struct bel_tree *tree;
    uint64_t changes; /* of rows, so that a cursor sees that there were any */
    uint64_t batch;   /* the last one that was closed */
    bool has_rows;    /* the next batch is not empty */
    size_t rows_left; /* that may be put or deleted, as was reserved; and the bytes of values */
    size_t bytes_left;
    int err; /* for good */

    /* Carrying into the tree. */
    struct bel_checkpoint *checkpoint;
    bool is_freeze_due;
    bool is_frozen;  /* the frozen delta is in use: it lies over the tree */
    bool is_begun;   /* its checkpoint is */
    bool is_applied; /* the tree has all of it, and needs only be refreshed */
    bool has_thread;
    uint64_t frozen_epoch;
    size_t delta_bytes_max; /* of a delta that no log makes freeze */
    unsigned retry_left;    /* calls of work until a checkpoint is tried again, that has had */
    unsigned retry_calls;   /* neither memory nor space; and how many the last time */

    uint64_t begun_ns;    /* when the checkpoint began, and how long the last one took: */
    uint64_t expected_ns; /* pace.c */
    uint64_t paced_bytes; /* of the log, behind the frozen delta, at the last commit */

    /* The log, which a store in memory has not. */
    struct bel_log *log;
    struct bel_batch next; /* its frame */
    struct bel_io *io;
    struct bel_io *own_io;   /* the same, if it is the store's */
    uint64_t free_bytes_min; /* of the disk, for those who add */
    uint64_t unasked_bytes;  /* put since the disk was last asked */
    bool is_disk_low;
    bool is_locked, is_marked;

    struct bel_backup *backup; /* that is under way; or NULL */
};

/* Makes one without any part, for bel__store_close(). NULL without memory. */
struct bel_store *bel__store_make(void);

/* Does what is due between two batches: refreshes the tree, lets the frozen delta go, freezes
 * the active one, begins a checkpoint. */
void bel__store_checkpoint_work(struct bel_store *store);

/* Lets a batch wait a little if the checkpoint is behind; a checkpoint begins, and has ended. */
void bel__store_pace(struct bel_store *store);
void bel__store_pace_begin(struct bel_store *store);
void bel__store_pace_end(struct bel_store *store);

/* Begins to copy the tree, if a backup waits for that and this is the time: no transaction of a
 * checkpoint is under way. Ends a backup, for good. */
void bel__store_backup_on(struct bel_store *store);
void bel__store_backup_end(struct bel_store *store);

/* Brings the frozen delta into the tree, now. Returns 0 if that has freed log segments;
 * otherwise BEL_EFULL, BEL_ENOMEM or what has failed for good. */
BEL_CHECKED int bel__store_checkpoint_all(struct bel_store *store);

#endif
