/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_STORE_H
#define BEL_STORE_STORE_H

/*
 * store - rows under 24-byte keys, in the order of the keys, and what was committed is there
 * after a crash.
 *
 *     put, delete ----> batch ----> LOG: one frame, one sync            commit
 *          |
 *          v
 *     ACTIVE delta --full--> FROZEN delta --checkpoint--> TREE (on disk, or in memory)
 *
 *     get, cursor = active, else frozen, else tree
 *
 * Rows are absolute: replaying a log over a tree that has part of it already ends the same. A
 * row that is put and deleted while in one delta never reaches the tree.
 *
 * Changes happen in batches. What a batch will need is reserved before it is changed, so that
 * changing cannot fail:
 *
 *     err = bel__store_reserve(store, 3, record_bytes, BEL_STORE_ADD);
 *     if (err) return err;
 *     bel__store_put(store, &key, record, BEL_ROW_NEW);
 *     ...
 *     batch = bel__store_commit(store);
 *     if (bel__store_synced(store) >= batch) answer();
 *
 * A write or sync that fails is final: bel__store_error() says so from then on, and nothing
 * more is synced. What was not synced may or may not be there when it is opened again.
 *
 * Threads: a store belongs to one thread. Those that it has itself are not seen.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/entropy.h"
#include "core/sorted.h"
#include "core/why.h"
#include "store/delta.h"
#include "store/io/io.h"
#include "store/io/row.h"
#include "store/tree/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_store; /* opaque */

/* What a batch is for. */
enum bel_store_use {
    BEL_STORE_ADD, /* it adds: refused with BEL_EFULL when only the reserve is left */
    BEL_STORE_END, /* it frees, or is owed: may use the reserve */
};

/* What the caller knows of a key that it puts. */
enum bel_row {
    BEL_ROW_NEW, /* never put before, or deleted since: nothing is under it */
    BEL_ROW_ANY,
};

/* Makes sure that `rows` puts and deletes with `bytes` bytes of values in all can be done
 * before the next commit, in addition to those already done but not to those reserved before.
 * Returns 0; or BEL_ENOMEM, BEL_EFULL, BEL_EBUSY if the batch would get too large (commit
 * first), or what bel__store_error() says, if the batch has no rows yet. With BEL_STORE_END it
 * may have to wait for the tree. */
BEL_CHECKED int bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes,
                                   enum bel_store_use use);

/* Puts a row, which is copied. It must have been reserved. */
void bel__store_put(struct bel_store *store, const struct bel_key *key, struct bel_view value,
                    enum bel_row row);

/* Deletes a row, which need not be there. It must have been reserved. */
void bel__store_delete(struct bel_store *store, const struct bel_key *key);

/* Finds a row. What `*out` points to is good until the next commit, even if the row is put or
 * deleted. Returns 0; or BEL_ENOTFOUND, BEL_EIO, BEL_ECORRUPT, BEL_ENOMEM. */
BEL_CHECKED int bel__store_get(struct bel_store *store, const struct bel_key *key,
                               struct bel_view *out);

/*
 * A cursor visits rows in order. Rows may be put and deleted meanwhile, the current one too:
 * it goes on with the first one behind, as they are then.
 *
 *     for (err = bel__store_seek(store, &from, &cursor); err == 0;
 *          err = bel__store_next(store, &cursor)) ... cursor.key, cursor.value
 *     if (err != BEL_ENOTFOUND) return err;
 *
 * A cursor needs no closing, and ends with the next commit.
 */
struct bel_store_cursor {
    struct bel_key key;
    struct bel_view value;            /* good until the next commit */
    struct bel_delta_place places[2]; /* private, as is the rest: active, frozen */
    bool has_place[2];
    struct bel_key tree_key;
    struct bel_view tree_value;
    bool has_tree;
    uint64_t changes;
};

BEL_CHECKED int bel__store_seek(struct bel_store *store, const struct bel_key *from,
                                struct bel_store_cursor *out);
BEL_CHECKED int bel__store_next(struct bel_store *store, struct bel_store_cursor *cursor);

/* Closes the batch, if it has anything, and begins to make it durable. Returns its number, or
 * that of the last one. Values and cursors end here even if there was nothing. */
uint64_t bel__store_commit(struct bel_store *store);

/* The last batch that is durable, and all before it. */
uint64_t bel__store_synced(const struct bel_store *store);

/* The last batch that may be answered for: the last durable one; or, in a store that is lazy, the
 * last that is written, which outlives the process and not the power. */
uint64_t bel__store_answerable(const struct bel_store *store);

/* 0; or BEL_EIO or BEL_ECORRUPT once something has failed for good. */
int bel__store_error(const struct bel_store *store);

/* Does a part of the work that is due behind the scenes, if it has no thread for that, and
 * leaves values and cursors alone. True if there is more: call it again, in any turn. What it
 * has finished is let go of by the next commit, which may be an empty one. */
bool bel__store_work(struct bel_store *store);

/* Closes a store; NULL is allowed. What was not committed is lost. */
void bel__store_close(struct bel_store *store);

/* Makes a store in memory, which forgets all when it is closed. */
BEL_CHECKED int bel__store_open_memory(struct bel_store **out);

/* Who writes and syncs a batch. */
enum bel_store_sync {
    BEL_SYNC_IN_COMMIT, /* bel__store_commit(): the batch is durable when it returns */
    BEL_SYNC_IN_WORK,   /* bel__store_work(), all batches since the last one */
    BEL_SYNC_IN_THREAD, /* a thread, for disks that are slow: bel__store_synced() follows */
};

struct bel_store_options {
    const char *path;            /* of the data directory, which is made if it is not there */
    struct bel_io *io;           /* instead of `path`; borrowed. NULL: the system's */
    struct bel_tree *tree;       /* instead of LMDB in `path`; the store closes it. Or NULL */
    struct bel_entropy *entropy; /* borrowed; NULL: the system's */
    uint64_t segment_bytes;      /* of the log, a multiple of 4,096; 0: 64 MB. For a new store */
    uint32_t segment_count;      /* 3 or more; 0: 4. For a new store */
    size_t transaction_rows;     /* of the tree; 0: as it likes */
    uint64_t disk_reserve_bytes; /* what BEL_STORE_ADD leaves free; 0: 64 MB */
    bool is_buffered;            /* never write past the page cache */
    bool has_thread; /* carry rows into the tree on another one; call work() all the same */
    enum bel_store_sync sync;
    bool is_lazy;                /* batches are written by commits, and synced some time later by
                                  whom `sync` says, who is not BEL_SYNC_IN_COMMIT */
    uint64_t sync_interval_ns;   /* if it is lazy: so much later at most; 0: when it must be */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* Opens a store in a directory, or makes it, and recovers what is there. Returns 0 and sets
 * `*out`; or BEL_EBUSY if somebody has it open, BEL_ECORRUPT for damage, BEL_EUNSUPPORTED for a
 * newer format, BEL_EIO, BEL_EFULL for no space, BEL_ENOMEM; and says in `*why`, which may be
 * NULL, what was found in which file. */
BEL_CHECKED int bel__store_open(const struct bel_store_options *options, struct bel_store **out,
                                struct bel_why *why);

/* What can be told of a store at once. */
struct bel_store_glance {
    bool was_left_open; /* whoever had it has not closed it, or still has it */
    uint64_t tree_rows; /* if so; as the tree says, which may be damaged */
};

/* Looks at a store that nobody has open. Returns 0, BEL_ENOTFOUND if there is no directory, or what
 * cannot be read; and may end the process, as the next does. */
BEL_CHECKED int bel__store_glance(const char *path, struct bel_store_glance *out);

/* Opens a store to be looked at: nothing in the directory is changed, and nothing may be put.
 * Every row of the tree is read and compared with the counts that it keeps. Returns and says as
 * above, BEL_ENOTFOUND if there is no store; damage that it does not survive ends the process, so
 * let it be another one, which also takes care of what a failed opening has left. */
BEL_CHECKED int bel__store_open_view(const char *path, struct bel_tree_stats *out_stats,
                                     struct bel_store **out, struct bel_why *why);

/* Begins to copy all that is committed to another directory, which is not there or empty, while the
 * store goes on; its rows are in the tree first, and a thread copies that. What is made can be
 * opened like any other, under an id of its own. Returns 0; or BEL_EBUSY if one is under way,
 * BEL_ECONFLICT if there is something in the directory, BEL_EUNSUPPORTED for a store in memory,
 * BEL_EIO, BEL_ENOMEM, and says why. */
BEL_CHECKED int bel__store_backup_begin(struct bel_store *store, const char *path,
                                        struct bel_why *why);

/* Sees how far it is; commits must go on meanwhile, be they empty. Returns BEL_EBUSY while it is
 * under way; then, once, 0 if all of it is durable, or why it is not, and says so; and
 * BEL_ENOTFOUND if there is none. */
BEL_CHECKED int bel__store_backup_poll(struct bel_store *store, struct bel_why *why);

/* Both, and waits until it is done. */
BEL_CHECKED int bel__store_backup(struct bel_store *store, const char *path, struct bel_why *why);

/* Whether BEL_STORE_ADD was last refused, or would have been, because the disk is nearly full. */
bool bel__store_is_disk_low(const struct bel_store *store);

/* How far behind the tree is: from 0, to 1,000 where BEL_STORE_ADD begins to be refused. Who
 * adds should be slowed down in proportion. */
unsigned bel__store_pressure(const struct bel_store *store);

#endif
