/* SPDX-License-Identifier: MIT */

/*
 * Puts, deletes and commits. A row goes into the active delta and into the frame of the next batch.
 * A commit writes the frame to the log.
 *
 * bel__store_reserve() finds log space for the frame. BEL_STORE_ADD always leaves one free segment,
 * so that timers can be ended, which frees space. If that segment is used up, too, BEL_STORE_END
 * waits for a checkpoint to free segments.
 */
#include "store/state.h"

#include <assert.h>

enum {
    ASK_DISK_BYTES = 1 << 20,      /* bytes put between two checks of the free disk space */
    FRAME_BYTES_USUAL = 16 << 20,  /* a larger reservation must be a batch of its own */
    BACKUP_PAUSE_NS = 1000 * 1000, /* between two polls of a backup */
    BYTES_OF_ROW = 512,            /* bytes of a value that take as long as one more row, about */
    SLOW_NS = 5 * 1000 * 1000,     /* a sync that should not be waited for in a commit ... */
    SLOW_NS_PER_BYTE = 10,         /* ... and what its bytes take on a disk of 100 MB/s */
    SLOW_SYNCS = 8,                /* so many more slow syncs than others: the disk is slow */
};

/* Returns whether the disk has more free space than the reserve. Asks the system on each call while
 * the disk is low, and otherwise once per ASK_DISK_BYTES. */
static bool has_disk(struct bel_store *store, size_t bytes)
{
    bool is_much = store->unasked_bytes >= ASK_DISK_BYTES || bytes >= ASK_DISK_BYTES;
    if (!store->is_disk_low && !is_much) return true;
    return bel__store_ask_disk(store);
}

/* Makes sure that the log has room for a frame. */
static int find_room(struct bel_store *store, size_t frame_bytes, enum bel_store_use use)
{
    unsigned spare = use == BEL_STORE_ADD ? 1 : 0;
    for (;;) {
        unsigned needed = bel__log_has_room(store->log, frame_bytes) ? 0 : 1;
        if (bel__log_free_count(store->log) >= needed + spare) return 0;
        if (use == BEL_STORE_ADD) return BEL_EFULL;
        int err = bel__store_checkpoint_all(store);
        if (err) return err;
    }
}

static int reserve_frame(struct bel_store *store, size_t rows, size_t bytes, enum bel_store_use use)
{
    size_t frame_bytes = bel__batch_bytes_with(&store->next, rows, bytes);
    size_t max = bel__log_frame_bytes_max(store->log);
    if (frame_bytes > max) return store->has_rows ? BEL_EBUSY : BEL_EFULL;
    if (frame_bytes > FRAME_BYTES_USUAL && store->has_rows) return BEL_EBUSY;
    if (use == BEL_STORE_ADD && !has_disk(store, bytes + rows)) return BEL_EFULL;
    int err = find_room(store, frame_bytes, use);
    if (err) return err;
    return bel__batch_reserve(&store->next, frame_bytes);
}

int bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes, enum bel_store_use use)
{
    int err = store->has_rows ? 0 : bel__store_error(store); /* a begun batch may be completed */
    if (err) return err;
    if (store->log != NULL) {
        err = reserve_frame(store, rows, bytes, use);
        if (err) return err;
    }
    err = bel__delta_reserve(store->active, rows, bytes);
    if (err) return err;
    store->rows_left = rows;
    store->bytes_left = bytes;
    return 0;
}

static void change(struct bel_store *store, const struct bel_frame_row *row)
{
    assert(store->rows_left > 0 && store->bytes_left >= row->value.bytes); /* reserved */
    store->rows_left--;
    store->bytes_left -= row->value.bytes;
    store->unasked_bytes += sizeof row->key + row->value.bytes;
    if (store->log != NULL) bel__batch_add(&store->next, row);
    store->changes += 1 + row->value.bytes / BYTES_OF_ROW;
    store->has_rows = true;
}

void bel__store_put(struct bel_store *store, const struct bel_key *key, struct bel_view value,
                    enum bel_row row)
{
    assert(value.bytes <= BEL_STORE_VALUE_BYTES_MAX);
    bel__delta_put(store->active, key, value, row == BEL_ROW_NEW);
    change(store, &(struct bel_frame_row){.key = *key, .value = value});
}

void bel__store_delete(struct bel_store *store, const struct bel_key *key)
{
    bel__delta_delete(store->active, key);
    change(store, &(struct bel_frame_row){.key = *key, .is_gone = true});
}

/* Appends the batch to the log, and syncs it. Notes whether the disk is slow. */
static int append_measured(struct bel_store *store)
{
    uint64_t begun_ns = store->io->mono_ns(store->io);
    uint64_t slow_ns = SLOW_NS + (uint64_t)store->next.bytes * SLOW_NS_PER_BYTE;
    int err = bel__log_append(store->log, &store->next);
    store->commit_ns = store->io->mono_ns(store->io) - begun_ns;
    if (store->commit_ns >= slow_ns) {
        store->slow_syncs++;
    } else if (store->slow_syncs > 0) {
        store->slow_syncs--;
    }
    return err;
}

/* Closes a batch that has rows, and writes it. */
static void close_batch(struct bel_store *store)
{
    store->batch++;
    store->has_rows = false;
    if (store->log == NULL) return;
    uint64_t use = store->log->use;
    int err =
        store->is_adaptive ? append_measured(store) : bel__log_append(store->log, &store->next);
    if (err) store->err = err;
    assert(err != 0 || store->log->batch == store->batch);
    if (use != 0 && use != store->log->use) store->is_freeze_due = true;
    bel__batch_clear(&store->next);
}

uint64_t bel__store_commit(struct bel_store *store)
{
    if (store->has_rows) close_batch(store);
    assert(!store->has_rows);
    store->changes++; /* invalidates cursors */
    store->rows_left = store->bytes_left = 0;
    if (store->active->is_whole) { /* in memory: no checkpoint */
        bel__delta_settle(store->active);
        return store->batch;
    }
    bel__store_checkpoint_work(store);
    bel__store_pace(store);
    return store->batch;
}

bool bel__store_is_slow(const struct bel_store *store)
{
    return store->is_adaptive && store->slow_syncs >= SLOW_SYNCS;
}

uint64_t bel__store_commit_ns(const struct bel_store *store)
{
    return store->commit_ns;
}

int bel__store_begin_late(struct bel_store *store)
{
    struct bel_log_options options = {.driver = store->has_thread ? BEL_LOG_THREAD : BEL_LOG_STEPS,
                                      .wake = store->wake,
                                      .context = store->wake_context};
    assert(store->is_adaptive && !store->has_rows);
    int err = bel__log_begin_late(store->log, &options);
    if (err) return err;
    store->is_adaptive = false;
    return 0;
}

int bel__store_backup(struct bel_store *store, const char *path, struct bel_why *why)
{
    int err = bel__store_backup_begin(store, path, why);
    if (err) return err;
    do {
        bool has_more = bel__store_work(store);
        (void)bel__store_commit(store);
        err = bel__store_backup_poll(store, why);
        if (err == BEL_EBUSY && !has_more) store->io->pause(store->io, BACKUP_PAUSE_NS);
    } while (err == BEL_EBUSY);
    return err;
}
