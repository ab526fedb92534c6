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
    PAUSE_NS_MAX = 20 * 1000 * 1000, /* of one batch: a client sees it as a slow disk */
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
    uint64_t delay_ns = bel__pressure_delay_ns(&pressure);
    if (delay_ns > PAUSE_NS_MAX) delay_ns = PAUSE_NS_MAX;
    if (delay_ns > 0) store->io->pause(store->io, delay_ns);
}
