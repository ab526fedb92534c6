/* SPDX-License-Identifier: MIT */

/*
 * Moves rows from the active delta to the tree.
 *
 *     active ------> due: its log segment is full, it is too large, or the disk is full
 *        |                                       |
 *        v                            commit: freeze, if none is frozen
 *     active (empty)    frozen <-----------------'
 *                          |  work() or a thread: a step at a time into the tree
 *                          v
 *                       applied: its log segments are free
 *                          |  commit: refresh the tree, then drop the delta
 *                          v
 *                        (none)
 *
 * Only a commit freezes, refreshes and drops: values and cursors that the caller holds point into
 * deltas and tree, and a commit invalidates them. Between two commits the frozen delta and the
 * visible tree do not change.
 *
 * A dropped delta keeps as much memory as the active delta uses by then: a busy store will need it
 * again, an idle one frees it.
 *
 * A checkpoint that finds no memory or disk space is retried by time: after 10 ms, then after twice
 * as long each time, up to half a second. bel__store_wait_ns() tells the caller when, so that an
 * idle store recovers, too.
 *
 * A checkpoint begins when every batch of the delta is synced. Its transactions become durable one
 * by one; otherwise a part of a batch could become durable that is not in the log.
 */
#include "store/state.h"

#include <assert.h>

enum {
    LOW_DISK_ROWS = 256,      /* rows that begin a checkpoint while the disk is full */
    LOW_DISK_BYTES = 1 << 20, /* or bytes of them */
    RETRY_NS_MIN = 10 * 1000 * 1000,
    RETRY_NS_MAX = 500 * 1000 * 1000, /* so that a disk with room again is noticed in a second */
};

/* Returns the time; 0 in a store in memory, which has no clock and retries with each call. */
static uint64_t now_ns(const struct bel_store *store)
{
    return store->io == NULL ? 0 : store->io->mono_ns(store->io);
}

/* Returns whether a failed checkpoint is to be retried later. */
static bool must_wait(const struct bel_store *store)
{
    if (store->freeze != BEL_FREEZE_FROZEN || store->retry_at_ns == 0) return false;
    return now_ns(store) < store->retry_at_ns;
}

static void plan_retry(struct bel_store *store, int err)
{
    uint64_t delay = 2 * store->retry_delay_ns;
    if (delay < RETRY_NS_MIN) delay = RETRY_NS_MIN;
    if (delay > RETRY_NS_MAX) delay = RETRY_NS_MAX;
    store->retry_err = err;
    store->retry_delay_ns = delay;
    store->retry_at_ns = store->io == NULL ? 0 : now_ns(store) + delay;
}

static void begin(struct bel_store *store)
{
    if (store->freeze != BEL_FREEZE_FROZEN || bel__store_error(store) != 0) return;
    assert(store->frozen_epoch <= store->batch);
    if (bel__store_synced(store) < store->frozen_epoch) {
        bel__log_ask(store->log);
        return;
    }
    bel__store_trust_tree(store);
    bel__store_pace_begin(store);
    bel__checkpoint_begin(store->checkpoint, store->frozen, store->frozen_epoch);
    store->freeze = BEL_FREEZE_BEGUN;
}

/* Handles the end of a checkpoint. Returns its error, or 0 if it is running or has succeeded. */
static int settle(struct bel_store *store)
{
    if (store->freeze != BEL_FREEZE_BEGUN || !bel__checkpoint_is_done(store->checkpoint)) return 0;
    int err = bel__checkpoint_error(store->checkpoint);
    if (err == 0) {
        store->freeze = BEL_FREEZE_APPLIED;
        bel__store_pace_end(store);
        store->retry_err = 0;
        store->retry_delay_ns = store->retry_at_ns = 0;
        if (store->log != NULL && !bel__store_backup_holds_log(store)) {
            bel__log_release(store->log, store->frozen_epoch);
        }
        return 0;
    }
    store->freeze = BEL_FREEZE_FROZEN;
    if (err == BEL_EFULL || err == BEL_ENOMEM) {
        plan_retry(store, err);
        bel__store_backup_fail(store, err);
    } else {
        store->err = err;
    }
    return err;
}

/* Refreshes the tree, and drops the frozen delta if the tree has all of it. If the refresh fails, a
 * later commit tries again, unless the tree is damaged. */
static void renew(struct bel_store *store)
{
    int err = store->tree->refresh(store->tree);
    if (err == BEL_ECORRUPT && store->err == 0) store->err = err;
    if (err) return;
    if (store->freeze != BEL_FREEZE_APPLIED) return;
    assert(store->tree->epoch(store->tree) == store->frozen_epoch);
    bel__delta_clear(store->frozen, store->log == NULL ? 0 : bel__delta_bytes(store->active));
    store->freeze = BEL_FREEZE_NONE;
}

static void freeze(struct bel_store *store)
{
    struct bel_delta *delta = store->active;
    assert(store->freeze == BEL_FREEZE_NONE && !store->has_rows && !delta->is_whole);
    assert(bel__delta_count(store->frozen) == 0);
    store->active = store->frozen;
    store->frozen = delta;
    store->frozen_epoch = store->batch;
    store->freeze = BEL_FREEZE_FROZEN;
    store->is_freeze_due = false;
    store->retry_at_ns = 0;
}

bool bel__store_shed(struct bel_store *store)
{
    if (store->log != NULL || store->active->is_whole) return false;
    if (bel__delta_count(store->active) > 0) store->is_freeze_due = true;
    return store->is_freeze_due || store->freeze != BEL_FREEZE_NONE;
}

bool bel__store_free_pages(struct bel_store *store)
{
    if (store->log == NULL || bel__store_error(store) != 0) return false;
    if (bel__delta_count(store->active) > 0) store->is_freeze_due = true;
    return store->is_freeze_due || store->freeze != BEL_FREEZE_NONE;
}

void bel__store_checkpoint_work(struct bel_store *store)
{
    assert(!store->has_rows);
    (void)settle(store);
    if (store->freeze != BEL_FREEZE_NONE) renew(store);
    bel__store_backup_on(store);
    if (store->log == NULL && bel__delta_bytes(store->active) > store->delta_bytes_max) {
        store->is_freeze_due = true;
    }
    if (store->is_disk_low && (bel__delta_count(store->active) >= LOW_DISK_ROWS ||
                               bel__delta_row_bytes(store->active) >= LOW_DISK_BYTES)) {
        store->is_freeze_due = true; /* deleted rows free pages in the tree */
    }
    bool may_freeze = store->freeze == BEL_FREEZE_NONE && bel__store_error(store) == 0;
    if (store->is_freeze_due && may_freeze) freeze(store);
    if (!must_wait(store)) begin(store);
}

/* Does a slice of the checkpoint. Returns whether there is more. */
static bool step(struct bel_store *store)
{
    if (settle(store) != 0 || bel__store_error(store) != 0) return false;
    if (store->freeze == BEL_FREEZE_NONE || store->freeze == BEL_FREEZE_APPLIED) return false;
    if (must_wait(store)) return false;
    begin(store);
    if (store->freeze != BEL_FREEZE_BEGUN) return false;
    bool has_more = bel__checkpoint_step(store->checkpoint);
    return settle(store) == 0 && has_more;
}

bool bel__store_work(struct bel_store *store)
{
    if (store->log != NULL) bel__log_step(store->log);
    if (store->is_disk_low && now_ns(store) - store->asked_ns >= RETRY_NS_MAX / 2) {
        (void)bel__store_ask_disk(store);
    }
    bool has_more = step(store);
    return bel__store_backup_step(store) || has_more;
}

uint64_t bel__store_wait_ns(const struct bel_store *store)
{
    uint64_t wait = store->is_disk_low ? RETRY_NS_MAX : UINT64_MAX;
    if (store->io == NULL || bel__store_error(store) != 0) return UINT64_MAX;
    if (store->retry_err == 0) return wait;
    if (store->freeze == BEL_FREEZE_BEGUN) return RETRY_NS_MIN; /* a thread retries: look again */
    uint64_t now = now_ns(store);
    if (store->retry_at_ns < now + RETRY_NS_MIN) return RETRY_NS_MIN;
    return store->retry_at_ns - now < wait ? store->retry_at_ns - now : wait;
}

int bel__store_checkpoint_all(struct bel_store *store)
{
    int err = bel__store_error(store);
    if (err) return err;
    if (store->freeze == BEL_FREEZE_NONE || store->freeze == BEL_FREEZE_APPLIED) return BEL_EFULL;
    if (must_wait(store)) return store->retry_err;
    err = bel__log_wait(store->log);
    if (err) return err;
    begin(store);
    if (store->freeze != BEL_FREEZE_BEGUN) return BEL_EFULL;
    while (bel__checkpoint_step(store->checkpoint)) {}
    bel__checkpoint_wait(store->checkpoint);
    return settle(store);
}
