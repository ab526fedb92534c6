/* SPDX-License-Identifier: MIT */

/*
 * Batches wait a little while a checkpoint is behind, instead of one waiting for all of it.
 *
 *     log     | frozen: being carried ... | active: fills | ... | the last one |
 *                                         '--- fill_max --------'  not for who adds
 *
 * pressure.c says how long. What it must know of time comes through the door to files: nobody else
 * here has a clock.
 */
#include "store/pressure.h"
#include "store/state.h"

enum {
    PAUSE_NS_MAX = 400 * 1000 * 1000, /* of one batch: a client sees it as a slow disk */
    SLICE_NS = 5 * 1000 * 1000,       /* of a pause, after which it may not be needed any more */
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
    if (store->is_frozen) frozen = bel__log_used_bytes(store->log, store->frozen_epoch);
    uint64_t fill = used - frozen;
    uint64_t batch = fill > store->paced_bytes ? fill - store->paced_bytes : 0;
    store->paced_bytes = fill;
    if (!store->is_begun || store->is_applied) return;
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
