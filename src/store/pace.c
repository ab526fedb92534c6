/* SPDX-License-Identifier: MIT */

/*
 * Delays each batch a little while a checkpoint is behind, so that no single batch has to wait for
 * the whole checkpoint.
 *
 *     log     | frozen: in checkpoint ... | active: fills | ... | last segment |
 *                                         '--- fill_max --------'  not for BEL_STORE_ADD
 *
 * pressure.c computes the delay. The time comes from the file interface (struct bel_io), the only
 * clock in the store.
 */
#include "store/pressure.h"
#include "store/state.h"

enum {
    PAUSE_NS_MAX = 400 * 1000 * 1000, /* longest delay of a batch; to a client, a slow disk */
    SLICE_NS = 5 * 1000 * 1000,       /* after each slice the end of the checkpoint is checked */
};

static uint64_t now(const struct bel_store *store)
{
    return store->io->mono_ns(store->io);
}

void bel__store_pace_begin(struct bel_store *store)
{
    if (store->has_thread && store->io != NULL) store->begun_ns = now(store);
}

void bel__store_pace_end(struct bel_store *store)
{
    if (store->has_thread && store->io != NULL) store->expected_ns = now(store) - store->begun_ns;
}

static void wait(struct bel_store *store, uint64_t ns)
{
    if (ns > PAUSE_NS_MAX) ns = PAUSE_NS_MAX;
    while (ns > 0 && !bel__checkpoint_is_done(store->checkpoint)) {
        uint64_t slice = ns < SLICE_NS ? ns : SLICE_NS;
        store->io->pause(store->io, slice);
        ns -= slice;
    }
}

void bel__store_pace(struct bel_store *store)
{
    if (!store->has_thread || store->log == NULL) return;
    uint64_t frozen = 0, used = bel__log_used_bytes(store->log, UINT64_MAX);
    if (store->freeze != BEL_FREEZE_NONE) {
        frozen = bel__log_used_bytes(store->log, store->frozen_epoch);
    }
    uint64_t fill = used - frozen;
    uint64_t batch = fill > store->paced_bytes ? fill - store->paced_bytes : 0;
    store->paced_bytes = fill;
    if (store->freeze != BEL_FREEZE_BEGUN) return;
    uint64_t segment = bel__log_frame_bytes_max(store->log);
    uint64_t count = store->log->superblock.segment_count - 1;
    struct bel_pressure pressure = {
        .fill = fill,
        .fill_max = count * segment > frozen ? count * segment - frozen : segment,
        .batch = batch,
        .progress = bel__checkpoint_progress(store->checkpoint),
        .elapsed_ns = now(store) - store->begun_ns,
        .expected_ns = store->expected_ns,
    };
    wait(store, bel__pressure_delay_ns(&pressure));
}
