/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_STORE_H
#define BEL_STORE_STORE_H

/*
 * store - a durable ordered map from 24-byte keys to values. A row is a key and its value. Batches
 * of rows are committed; a batch that was synced survives a crash.
 *
 *     put, delete ----> batch ----> LOG: one frame, one sync            commit
 *          |
 *          v
 *     ACTIVE delta --full--> FROZEN delta --checkpoint--> TREE (on disk, or in memory)
 *
 *     get, cursor = active, else frozen, else tree
 *
 * A store in memory has no log and needs no tree: all its rows stay in the active delta.
 *
 * A put replaces the whole value, so replaying the log over a tree that already has a part of it is
 * harmless. A row that is put and deleted in one delta never reaches the tree.
 *
 * Changes are made in batches. Memory and log space are reserved first, so that a put or a delete
 * cannot fail:
 *
 *     err = bel__store_reserve(store, 3, record_bytes, BEL_STORE_ADD);
 *     if (err) return err;
 *     bel__store_put(store, &key, record, BEL_ROW_NEW);
 *     ...
 *     batch = bel__store_commit(store);
 *     if (bel__store_synced(store) >= batch) answer();
 *
 * A write or sync that fails is final: bel__store_error() returns the error from then on, and
 * nothing more is synced. Batches that were not synced may or may not exist after the next open.
 *
 * Threads: a store belongs to one thread. It may have threads of its own, which callers never see.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/entropy.h"
#include "core/sorted.h"
#include "core/why.h"
#include "store/delta.h"
#include "store/io/io.h"
#include "store/io/row.h"
#include "store/tree/scrub.h"
#include "store/tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_store; /* opaque */

/* The purpose of a batch. */
enum bel_store_use {
    BEL_STORE_ADD, /* adds timers: fails with BEL_EFULL when only the reserve is left */
    BEL_STORE_END, /* ends timers, or must be stored: may use the reserve */
};

/* What the caller knows about the key of a put. */
enum bel_row {
    BEL_ROW_NEW, /* the store has no row with this key */
    BEL_ROW_ANY,
};

/* Reserves space for `rows` puts and deletes with `bytes` bytes of values in total before the next
 * commit. Replaces an unused reservation; rows already put stay. Returns 0; BEL_ENOMEM; BEL_EFULL;
 * BEL_EBUSY if the batch would get too large (commit first); or bel__store_error(), if the batch is
 * still empty. With BEL_STORE_END it may wait for a checkpoint. */
BEL_CHECKED int bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes,
                                   enum bel_store_use use);

/* Puts a row, which is copied. The space must have been reserved. */
void bel__store_put(struct bel_store *store, const struct bel_key *key, struct bel_view value,
                    enum bel_row row);

/* Deletes a row, which need not exist. The space must have been reserved. */
void bel__store_delete(struct bel_store *store, const struct bel_key *key);

/* Finds a row. `*out` is valid until the next commit, even if the row is put again or deleted.
 * Returns 0; or BEL_ENOTFOUND, BEL_EIO, BEL_ECORRUPT, BEL_ENOMEM. */
BEL_CHECKED int bel__store_get(struct bel_store *store, const struct bel_key *key,
                               struct bel_view *out);

/*
 * A cursor visits rows in the order of keys. Rows may be put and deleted meanwhile, including the
 * current one: the cursor continues with the first row after the current key.
 *
 *     for (err = bel__store_seek(store, &from, &cursor); err == 0;
 *          err = bel__store_next(store, &cursor)) ... cursor.key, cursor.value
 *     if (err != BEL_ENOTFOUND) return err;
 *
 * A cursor needs no closing. The next commit invalidates it.
 */
struct bel_store_cursor {
    struct bel_key key;
    struct bel_view value;            /* valid until the next commit */
    struct bel_delta_place places[2]; /* this and all below is private: active, frozen */
    bool has_place[2];
    struct bel_key tree_key;
    struct bel_view tree_value;
    bool has_tree;
    uint64_t changes;
};

BEL_CHECKED int bel__store_seek(struct bel_store *store, const struct bel_key *from,
                                struct bel_store_cursor *out);
BEL_CHECKED int bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor);

/* Closes the batch, unless it is empty, and begins to make it durable. Returns its number, or that
 * of the last batch. Invalidates values and cursors, even if the batch was empty. */
uint64_t bel__store_commit(struct bel_store *store);

/* Returns the last durable batch. All batches before it are durable, too. */
uint64_t bel__store_synced(const struct bel_store *store);

/* Returns the last batch that may be acknowledged to a client: the last durable batch; or, in
 * a lazy store, the last written one, which survives a crash of the process but not a power
 * failure. */
uint64_t bel__store_answerable(const struct bel_store *store);

/* Returns how many rows were read by bel__store_get(), bel__store_seek() and bel__store_next(),
 * since the store was opened: a measure of work. */
uint64_t bel__store_reads(const struct bel_store *store);

/* Returns how many rows were read, put and deleted since the store was opened. 512 bytes of a row
 * that is put count as one more. */
uint64_t bel__store_touched(const struct bel_store *store);

/* Returns the last batch that was closed; and the last one that a sync covers which has ended or is
 * running. */
uint64_t bel__store_batch(const struct bel_store *store);
uint64_t bel__store_syncing(const struct bel_store *store);

/* Returns whether batches may become durable only after their commit, so that replies wait. */
bool bel__store_is_late(const struct bel_store *store);

/* With BEL_SYNC_ADAPTIVE: returns whether most of the last syncs were so slow that the caller
 * should let a thread do them. */
bool bel__store_is_slow(const struct bel_store *store);

/* Lets a thread sync from now on, or bel__store_work() in a store without threads: batches become
 * durable after their commit. Call it after a commit, in a store that is slow. Returns 0; or
 * BEL_ENOMEM, with nothing changed. */
BEL_CHECKED int bel__store_begin_late(struct bel_store *store);

/* Returns how long the last commit of a batch took that BEL_SYNC_ADAPTIVE has synced, or 0. */
uint64_t bel__store_commit_ns(const struct bel_store *store);

/* Returns 0; or BEL_EIO or BEL_ECORRUPT once a write, sync or read has failed for good. */
int bel__store_error(const struct bel_store *store);

/* Sets `*why` to what has failed, if bel__store_error() returns an error or a read has found
 * damage, and the reason is known; otherwise to "". */
void bel__store_explain(const struct bel_store *store, struct bel_why *why);

/* Returns what is known about the damage that a BEL_ECORRUPT reports; empty if nothing is. */
const char *bel__store_damage(const struct bel_store *store);

/* Installs a handler for the whole process that calls `name` with the number of a page, and exits,
 * when a read of a mapped tree ends in SIGSEGV or SIGBUS; see tree/map_fault.h. */
BEL_CHECKED int bel__store_watch_faults(void (*name)(uint64_t page));

/* Asks a store in memory to free the rows that were deleted, which stay in its tree until the next
 * checkpoint otherwise. Returns whether a turn is needed for it. Does nothing in other stores. */
bool bel__store_shed(struct bel_store *store);

/* Asks a store on disk to begin a checkpoint of what has changed, so that the pages of deleted rows
 * become free. Returns whether a turn is needed for it, or later for its end. Does nothing in
 * other stores. */
bool bel__store_free_pages(struct bel_store *store);

/* Tells a store that all pages of its tree have been checked since it was opened, and that pages
 * need no check before they are used. */
void bel__store_trust(struct bel_store *store);

/* Does a slice of background work (sync, checkpoint) that no thread does. Keeps values and cursors
 * valid. Returns whether there is more, for another call. The next commit, which may be empty,
 * frees the memory of what is finished. */
bool bel__store_work(struct bel_store *store);

/* Returns how long an idle caller may wait until it commits (if only an empty batch) and calls
 * bel__store_work() again, in nanoseconds: less than a second while the disk is full, so that the
 * store notices when it has room again; UINT64_MAX if there is no need. */
uint64_t bel__store_wait_ns(const struct bel_store *store);

/* Closes a store; NULL is allowed. Uncommitted rows are lost. */
void bel__store_close(struct bel_store *store);

/* Creates a store in memory. Its rows are lost when it is closed. */
BEL_CHECKED int bel__store_open_memory(struct bel_store **out);

/* What writes and syncs a batch. */
enum bel_store_sync {
    BEL_SYNC_IN_COMMIT, /* bel__store_commit(): the batch is durable when it returns */
    BEL_SYNC_IN_WORK,   /* bel__store_work(): all batches since its last call, in one sync */
    BEL_SYNC_IN_THREAD, /* a thread, for slow disks; bel__store_synced() reports its progress */
    BEL_SYNC_ADAPTIVE,  /* as BEL_SYNC_IN_COMMIT, until bel__store_begin_late() */
};

struct bel_store_options {
    const char *path;            /* the data directory, created if it does not exist */
    struct bel_io *io;           /* replaces the file system in `path`; borrowed. Or NULL */
    struct bel_tree *tree;       /* replaces LMDB in `path`; the store closes it. Or NULL */
    struct bel_entropy *entropy; /* borrowed; NULL: the system's */
    uint64_t segment_bytes;      /* of the log, a multiple of 4,096; 0: 64 MB. For a new store */
    uint32_t segment_count;      /* 3 or more; 0: 4. For a new store */
    size_t transaction_rows;     /* rows per transaction of the tree; 0: the tree's default */
    uint64_t disk_reserve_bytes; /* disk space that BEL_STORE_ADD leaves free; 0: 64 MB */
    bool is_buffered;            /* never use O_DIRECT */
    bool is_tree_checked;        /* all pages of the tree have been checked just now */
    bool has_thread;             /* a thread runs checkpoints; call work() all the same */
    enum bel_store_sync sync;
    bool is_lazy;                /* commits write batches; they are synced later, as `sync` says,
                                  which must be BEL_SYNC_IN_WORK or BEL_SYNC_IN_THREAD */
    uint64_t sync_interval_ns;   /* if lazy: the longest delay of a sync; 0: no limit */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* Opens a store in a directory, creating it if necessary, and recovers its rows. Returns 0 and sets
 * `*out`; or BEL_EBUSY if it is open elsewhere, BEL_ECORRUPT for damage, BEL_EUNSUPPORTED for a
 * newer format, BEL_EIO, BEL_EFULL if the disk is full, BEL_ENOMEM. On failure `*why`, which may be
 * NULL, says what was found in which file. */
BEL_CHECKED int bel__store_open(const struct bel_store_options *options, struct bel_store **out,
                                struct bel_why *why);

/* What is known about a store without reading its rows. */
struct bel_store_glance {
    bool was_left_open; /* the store was not closed, or is still open */
    uint64_t tree_rows; /* if it was left open: the row count of the tree, which may be damaged */
};

/* Inspects a store that is not open. Returns 0, BEL_ENOTFOUND if the directory does not exist, or a
 * read error. Damage may crash the process, as in bel__store_open_view(). */
BEL_CHECKED int bel__store_glance(const char *path, struct bel_store_glance *out);

struct bel_store_view {
    const char *path;
    bool is_brief; /* check the pages, but do not read every row through LMDB as well */
    int (*pages_checked)(void *context); /* if brief, called after that; 0 to continue. Or NULL */
    void *context;
};

/* Opens a store read-only: changes nothing in the directory, and no row may be put. Checks every
 * page and row of the tree, and the counts that the tree keeps. Returns as bel__store_open();
 * BEL_ENOTFOUND if there is no store. Some damage crashes the process (LMDB maps the file), so call
 * it in a subprocess; its end also frees what a failed open has left. */
BEL_CHECKED int bel__store_open_view(const struct bel_store_view *view,
                                     struct bel_tree_stats *out_stats, struct bel_store **out,
                                     struct bel_why *why);

/* Begins a backup of all committed rows to a directory that does not exist, is empty, or has an
 * unfinished backup, which is replaced. The store stays in use: a checkpoint brings the rows into
 * the tree, then a thread (without threads, bel__store_work()) copies the tree. The copy is a store
 * with an id of its own; before it is complete, it cannot be opened. Returns 0; or BEL_EBUSY if a
 * backup is running, BEL_ECONFLICT if the directory is not empty, BEL_EUNSUPPORTED for a store in
 * memory, BEL_EFULL if the disk of the copy is full, BEL_EIO, BEL_ENOMEM; on failure sets
 * `*why`. */
BEL_CHECKED int bel__store_backup_begin(struct bel_store *store, const char *path,
                                        struct bel_why *why);

/* Polls a backup. The caller must keep committing, if only empty batches. Returns BEL_EBUSY while
 * the backup is running; then, once, 0 if the copy is durable, or an error and `*why`; after that,
 * or without a backup, BEL_ENOTFOUND. BEL_EFULL means that the disk of the copy is full; that of
 * the store may be full. */
BEL_CHECKED int bel__store_backup_poll(struct bel_store *store, struct bel_why *why);

/* Makes a backup and waits until it is finished. */
BEL_CHECKED int bel__store_backup(struct bel_store *store, const char *path, struct bel_why *why);

/* Returns whether the disk was nearly full at the last check, so that BEL_STORE_ADD fails, or the
 * last checkpoint has found it full. */
bool bel__store_is_disk_low(const struct bel_store *store);

/* Returns whether a checkpoint is due or under way, which makes room in the log: BEL_STORE_ADD that
 * has failed with BEL_EFULL may work later. False if the last checkpoint has failed, or the disk is
 * nearly full. */
bool bel__store_makes_room(const struct bel_store *store);

/* Returns the bytes of free pages inside the tree's file, which are used before the file grows; 0
 * in a store in memory. They include pages that a reader still sees. */
uint64_t bel__store_reusable_bytes(struct bel_store *store);

/* Returns for how long, in ns, commands of this use should be held back, because checkpoints are
 * behind or too much waits for a sync; 0: they need not. May end sooner: ask before each batch. */
uint64_t bel__store_hold_ns(struct bel_store *store, enum bel_store_use use);

/* Returns how far checkpoints are behind the log: from 0 to 1,000, where BEL_STORE_ADD begins to
 * fail. Callers should slow down additions in proportion. */
unsigned bel__store_pressure(const struct bel_store *store);

#endif
