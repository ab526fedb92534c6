/* SPDX-License-Identifier: MIT */

/* The status of a store: durable batches, final error, low disk space, pressure. */
#include "store/state.h"

uint64_t bel__store_synced(const struct bel_store *store)
{
    return store->log == NULL ? store->batch : bel__log_synced(store->log);
}

uint64_t bel__store_answerable(const struct bel_store *store)
{
    return store->log == NULL ? store->batch : bel__log_answerable(store->log);
}

uint64_t bel__store_batch(const struct bel_store *store)
{
    return store->batch;
}

uint64_t bel__store_syncing(const struct bel_store *store)
{
    return store->log == NULL ? store->batch : bel__log_syncing(store->log);
}

bool bel__store_is_late(const struct bel_store *store)
{
    return store->log != NULL && bel__log_is_late(store->log);
}

int bel__store_error(const struct bel_store *store)
{
    if (store->err != 0 || store->log == NULL) return store->err;
    return bel__log_error(store->log);
}

void bel__store_explain(const struct bel_store *store, struct bel_why *why)
{
    struct bel_io *io = store->io;
    int err = bel__store_error(store);
    (void)bel__why_say(why, err, "%s", bel__store_damage(store));
    if (err == 0 || io == NULL || why->text[0] != 0) return;
    if (bel__log_error(store->log) != 0) {
        const char *text = io->failure != NULL ? io->failure(io) : "";
        (void)bel__why_say(why, err, "%s",
                           store->log->why.text[0] != 0 ? store->log->why.text : text);
    } else {
        (void)bel__why_say(why, err, "a checkpoint could not write the tree: %s",
                           bel_error_text(err));
    }
}

uint64_t bel__store_reusable_bytes(struct bel_store *store)
{
    struct bel_tree_stats stats;
    if (store->log == NULL) return 0;
    store->tree->stats(store->tree, &stats);
    return stats.free_bytes;
}

/* Returns the free space of the disk plus half of the free pages inside the tree's file, less what
 * the deltas hold: their rows are accepted, and checkpoints will write them. The tree always needs
 * some of its free pages, and those that a reader still sees cannot be reused. Without this share,
 * a store that filled the disk could never accept timers again, since the file does not shrink when
 * they end. */
static uint64_t free_bytes_of(struct bel_store *store)
{
    uint64_t free_bytes;
    uint64_t owed = bel__delta_row_bytes(store->active) + bel__delta_row_bytes(store->frozen);
    if (store->io->free_bytes(store->io, &free_bytes) != 0) return 0;
    if (free_bytes < owed + store->free_bytes_min) {
        free_bytes += bel__store_reusable_bytes(store) / 2;
    }
    return free_bytes > owed ? free_bytes - owed : 0;
}

bool bel__store_ask_disk(struct bel_store *store)
{
    store->is_disk_low = free_bytes_of(store) < store->free_bytes_min;
    if (store->is_disk_low) store->asked_ns = store->io->mono_ns(store->io);
    store->unasked_bytes = 0;
    return !store->is_disk_low;
}

bool bel__store_is_disk_low(const struct bel_store *store)
{
    return store->is_disk_low || store->retry_err == BEL_EFULL;
}

bool bel__store_makes_room(const struct bel_store *store)
{
    bool has_checkpoint = store->is_freeze_due || store->freeze != BEL_FREEZE_NONE;
    return has_checkpoint && store->retry_err == 0 && !store->is_disk_low;
}

/* Relates the log bytes that are not yet in the tree to the capacity of the log. The part that
 * a running checkpoint has done is subtracted. Up to one segment, the normal state, is no
 * pressure. */
unsigned bel__store_pressure(const struct bel_store *store)
{
    if (store->log == NULL) return 0;
    uint64_t segment = bel__log_frame_bytes_max(store->log);
    uint64_t count = store->log->superblock.segment_count;
    uint64_t behind = bel__log_used_bytes(store->log, UINT64_MAX);
    if (store->freeze == BEL_FREEZE_BEGUN) {
        uint64_t done = bel__checkpoint_progress(store->checkpoint);
        uint64_t frozen = bel__log_used_bytes(store->log, store->frozen_epoch);
        behind -= frozen / BEL_CHECKPOINT_PROGRESS_MAX * done;
    }
    if (behind <= segment) return 0;
    uint64_t pressure = (behind - segment) * 1000 / ((count - 2) * segment);
    return pressure < 1000 ? (unsigned)pressure : 1000;
}
