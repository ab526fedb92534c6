/* SPDX-License-Identifier: MIT */

/*
 * Opens a store in a directory: takes the lock; checks what the directory is; reads the superblock,
 * so that an unknown format fails before anything is changed; opens the tree, whose epoch is the
 * last batch that need not be replayed.
 */
#include "store/directory.h"
#include "store/replay.h"
#include "store/state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT_BYTES = 64 << 20,
    SEGMENT_COUNT = 4,
    DISK_RESERVE_BYTES = 64 << 20,
};

static int lock(struct bel_store *store, const struct bel_store_options *options,
                struct bel_why *why)
{
    store->io = options->io;
    if (store->io == NULL) {
        assert(options->path != NULL);
        int err = bel__io_system_open(options->path, &store->own_io);
        if (err) return bel__why_system(why, err, options->path, "opened");
        store->io = store->own_io;
    }
    int err = bel__directory_lock(store->io, "the data directory", why);
    if (err) return err;
    store->is_locked = true;
    err = bel__directory_look(store->io, why);
    if (err != 0 && err != BEL_ENOTFOUND) return err; /* before LOCK is created */
    return bel__directory_sign(store->io, "the data directory", why);
}

static int open_log(struct bel_store *store, const struct bel_store_options *options,
                    struct bel_why *why)
{
    static const enum bel_log_driver drivers[] = {
        [BEL_SYNC_IN_COMMIT] = BEL_LOG_AT_ONCE,
        [BEL_SYNC_IN_WORK] = BEL_LOG_STEPS,
        [BEL_SYNC_IN_THREAD] = BEL_LOG_THREAD,
        [BEL_SYNC_ADAPTIVE] = BEL_LOG_AT_ONCE,
    };
    struct bel_entropy *entropy = options->entropy;
    uint64_t segment_bytes = options->segment_bytes;
    uint64_t reserve = options->disk_reserve_bytes;
    struct bel_log_options log_options = {
        .io = store->io,
        .entropy = entropy != NULL ? entropy : bel__entropy_system(),
        .segment_bytes = segment_bytes > 0 ? segment_bytes : SEGMENT_BYTES,
        .segment_count = options->segment_count > 0 ? options->segment_count : SEGMENT_COUNT,
        .is_buffered = options->is_buffered,
        .driver = drivers[options->sync],
        .is_lazy = options->is_lazy,
        .interval_ns = options->sync_interval_ns,
        .wake = options->wake,
        .context = options->context,
    };
    store->free_bytes_min = reserve > 0 ? reserve : DISK_RESERVE_BYTES;
    return bel__log_open(&log_options, &store->log, why);
}

static int open_tree(struct bel_store *store, const struct bel_store_options *options,
                     struct bel_why *why)
{
    if (options->tree != NULL) {
        store->tree = options->tree;
        return 0;
    }
    assert(options->path != NULL);
    size_t bytes = strlen(options->path) + sizeof "/tree";
    char *path = malloc(bytes);
    if (path == NULL) return BEL_ENOMEM;
    (void)snprintf(path, bytes, "%s/tree", options->path);
    struct bel_tree_options tree_options = {
        .path = path, .mode = BEL_TREE_CREATE, .is_checked = options->is_tree_checked, .why = why};
    int err = bel__tree_lmdb_open(&tree_options, &store->tree);
    free(path);
    if (err == BEL_ECORRUPT && why != NULL && why->text[0] != 0) return err;
    return err ? bel__why_say(why, err, "tree cannot be opened: %s", bel_error_text(err)) : 0;
}

static int replay_row(void *context, const struct bel_frame_row *row)
{
    return bel__replay_add(context, row);
}

/* Replays the batches that are not in the tree into the active delta. */
static int recover(struct bel_store *store, struct bel_why *why)
{
    uint64_t epoch = store->tree->epoch(store->tree);
    struct bel_replay replay;
    bel__replay_init(&replay, store->active);
    int err = bel__log_recover(store->log, epoch, replay_row, &replay, why);
    if (err == 0) err = bel__replay_end(&replay);
    bel__replay_finish(&replay);
    return err;
}

/* Creates the mark file, which a close removes; finding it at an open means a crash. A full disk or
 * a read-only view cannot create it: then a crash goes unnoticed, but the store opens. */
static int mark(struct bel_store *store, struct bel_why *why)
{
    struct bel_io *io = store->io;
    struct bel_io_file *file;
    int err = io->open(io, BEL_OPEN_MARK, BEL_IO_READ, &file);
    bool is_new = err == BEL_ENOTFOUND;
    if (is_new) err = io->open(io, BEL_OPEN_MARK, BEL_IO_CREATE, &file);
    if (err == BEL_EFULL || err == BEL_ENOTFOUND) return 0;
    if (err) return bel__why_system(why, err, BEL_OPEN_MARK, "made");
    io->close(io, file);
    if (is_new) err = io->sync_directory(io);
    if (err) return bel__why_system(why, err, BEL_OPEN_MARK, "synced");
    store->is_marked = true;
    return 0;
}

/* Opens log, tree and checkpoints, and recovers the rows. */
static int open_parts(struct bel_store *store, const struct bel_store_options *options,
                      struct bel_why *why)
{
    int err = open_log(store, options, why);
    if (err) return err;
    err = open_tree(store, options, why);
    if (err) return err;
    err = recover(store, why);
    if (err == 0) err = bel__log_raise(store->log, why);
    if (err) return err;
    store->batch = store->log->batch;
    store->has_thread = options->has_thread;
    store->is_adaptive = options->sync == BEL_SYNC_ADAPTIVE;
    store->wake = options->wake;
    store->wake_context = options->context;
    struct bel_checkpoint_options checkpoint_options = {
        .tree = store->tree,
        .transaction_rows = options->transaction_rows,
        .driver = options->has_thread ? BEL_CHECKPOINT_THREAD : BEL_CHECKPOINT_STEPS};
    err = bel__checkpoint_open(&checkpoint_options, &store->checkpoint);
    if (err) return err;

    /* If segments besides the current one are in use, begin a checkpoint now to free them. */
    store->is_freeze_due = bel__log_used_bytes(store->log, store->batch) > 0;
    bel__store_checkpoint_work(store);
    return mark(store, why);
}

int bel__store_open(const struct bel_store_options *options, struct bel_store **out,
                    struct bel_why *why)
{
    if (why != NULL) why->text[0] = 0;
    struct bel_store *store = bel__store_make();
    if (store == NULL) return BEL_ENOMEM;
    int err = lock(store, options, why);
    if (!err) err = open_parts(store, options, why);
    if (err) {
        bel__store_close(store); /* accepts a partly opened store */
        return err;
    }
    *out = store;
    return 0;
}
