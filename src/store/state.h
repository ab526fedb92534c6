/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_STATE_H
#define BEL_STORE_STATE_H

/*
 * state - the struct of a store, private to its files: open.c, open_directory.c and open_view.c
 * open it, store.c puts rows and commits, read.c reads, checkpoint_schedule.c runs checkpoints,
 * pace.c holds back commands while a checkpoint is behind, backup.c makes copies, status.c reports
 * durability, errors and pressure.
 */

#include "store/checkpoint.h"
#include "store/delta.h"
#include "store/log/batch.h"
#include "store/log/log.h"
#include "store/store.h"
#include "store/tree/tree.h"

/* The mark file: it exists while the store is open, and after a crash. */
#define BEL_OPEN_MARK "OPEN"

/*
 * The state of the frozen delta. In every state but none, readers use it above the tree.
 *
 *     none --freeze--> frozen --begin--> begun --done--> applied --tree refreshed--> none
 *                         ^                |
 *                         '-----failed-----'
 */
enum bel_freeze {
    BEL_FREEZE_NONE,    /* the frozen delta is empty */
    BEL_FREEZE_FROZEN,  /* its checkpoint has not begun, or has failed and is retried */
    BEL_FREEZE_BEGUN,   /* its checkpoint is running */
    BEL_FREEZE_APPLIED, /* the tree has all its rows, and must be refreshed */
};

struct bel_store {
    struct bel_delta *active, *frozen; /* the two deltas, in either order */
    struct bel_delta deltas[2];
    struct bel_tree *tree;
    bool is_trust_due; /* trust the tree when no checkpoint is running */
    uint64_t changes;  /* counts changes and commits, and bytes a little; a cursor compares it */
    uint64_t reads;    /* rows that were asked for */
    uint64_t batch;    /* the last closed batch */
    bool has_rows;     /* the next batch is not empty */
    size_t rows_left;  /* reserved puts and deletes that are left */
    size_t bytes_left; /* reserved bytes of values that are left */
    int err;           /* final error; or 0 */

    /* Checkpoints. */
    struct bel_checkpoint *checkpoint;
    enum bel_freeze freeze; /* how far the frozen delta is */
    bool is_freeze_due;     /* the active delta is to be frozen as soon as no other is */
    bool has_thread;
    uint64_t frozen_epoch;
    size_t delta_bytes_max;  /* without a log: a larger active delta is frozen, if not whole */
    int retry_err;           /* of the last checkpoint, if it is to be retried; or 0 */
    uint64_t retry_at_ns;    /* when, by the clock of `io`; 0: at once */
    uint64_t retry_delay_ns; /* of the last failure; doubles each time */

    uint64_t begun_ns;    /* for pace.c: when the checkpoint began */
    uint64_t expected_ns; /* for pace.c: how long the last checkpoint took */
    uint64_t paced_bytes; /* for pace.c: log bytes after the frozen delta, at the last commit */
    uint64_t held_ns[2];  /* for pace.c: commands of a use are held back until then; 0: not */

    /* The log; NULL in a store in memory. */
    struct bel_log *log;
    struct bel_batch next; /* frame of the next batch */
    struct bel_io *io;
    struct bel_io *own_io;   /* equals `io` if the store owns it; or NULL */
    uint64_t free_bytes_min; /* BEL_STORE_ADD fails if the disk has less free space */
    uint64_t unasked_bytes;  /* bytes put since the free space was last checked */
    uint64_t asked_ns;       /* when that was, if the disk is low */
    bool is_disk_low;
    bool is_locked, is_marked;

    /* BEL_SYNC_ADAPTIVE. */
    bool is_adaptive;     /* commits sync, and are measured */
    unsigned slow_syncs;  /* grows with each slow one, and falls with each other one */
    uint64_t commit_ns;   /* how long the last commit of a batch took */
    void (*wake)(void *); /* called after each sync of a thread */
    void *wake_context;

    struct bel_backup *backup; /* the running backup; or NULL */
};

/* Allocates a store without log, tree and checkpoint. bel__store_close() accepts it. Returns NULL
 * if out of memory. */
struct bel_store *bel__store_make(void);

/* Trusts the tree if that is due and no checkpoint is running. */
void bel__store_trust_tree(struct bel_store *store);

/* Does what is due between two batches: refreshes the tree, clears the frozen delta, freezes the
 * active one, begins a checkpoint. */
void bel__store_checkpoint_work(struct bel_store *store);

/* Returns whether the disk has more free space than the reserve, and remembers it. */
bool bel__store_ask_disk(struct bel_store *store);

/* Notes a batch: if the checkpoint is behind, later commands are held back. The other two record
 * the begin and the end of a checkpoint. */
void bel__store_pace(struct bel_store *store);
void bel__store_pace_begin(struct bel_store *store);
void bel__store_pace_end(struct bel_store *store);

/* Begins to copy the tree if a backup waits and no checkpoint is running. */
void bel__store_backup_on(struct bel_store *store);

/* The checkpoint that a backup waits for has failed: begins to copy tree and log if the disk is
 * full, otherwise ends the backup. */
void bel__store_backup_fail(struct bel_store *store, int err);

/* Returns whether the segments of the log must not be released, because a backup reads them. */
bool bel__store_backup_holds_log(const struct bel_store *store);

/* Copies a slice, unless a thread does. Returns whether there is more. */
bool bel__store_backup_step(struct bel_store *store);

/* Stops and frees a backup. */
void bel__store_backup_end(struct bel_store *store);

/* Writes the whole frozen delta to the tree now. Returns 0 if that has freed log segments;
 * otherwise BEL_EFULL, BEL_ENOMEM or the final error. */
BEL_CHECKED int bel__store_checkpoint_all(struct bel_store *store);

#endif
