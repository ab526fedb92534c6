/* SPDX-License-Identifier: MIT */

/*
 * Holds back commands while a checkpoint is behind, so that none of them has to wait for the whole
 * checkpoint.
 *
 *     log     | frozen: in checkpoint ... | active: fills | ... | last segment |
 *                                         '--- fill_max --------'--- reserve --'
 *                                           BEL_STORE_ADD          BEL_STORE_END
 *
 * After a batch, commands that add are held back for the batch's share of the remaining time;
 * pressure.c computes it. Commands that end timers are not: they use the log up to its last
 * segment, and are held back in the same way once that segment fills. When the reserve is nearly
 * used up, they wait for the end of the checkpoint.
 *
 * Nothing sleeps here: the caller asks how long a command must wait. The time comes from the file
 * interface (struct bel_io), the only clock in the store.
 */
#include "store/pressure.h"
#include "store/state.h"

#include <assert.h>

enum {
    HOLD_NS_MAX = 400 * 1000 * 1000, /* longest delay of a batch; to a client, a slow disk */
    RECHECK_NS = 10 * 1000 * 1000,   /* how soon to ask again while the reserve is used up */
    LAST_SHARE = 16,                 /* of the reserve, for changes that nobody asked for */
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
    store->held_ns[BEL_STORE_ADD] = store->held_ns[BEL_STORE_END] = 0;
}

/* Holds back commands of this use for `ns` nanoseconds from now, unless they are held longer. */
static void hold(struct bel_store *store, enum bel_store_use use, uint64_t ns)
{
    if (ns == 0) return;
    uint64_t until = now(store) + (ns < HOLD_NS_MAX ? ns : HOLD_NS_MAX);
    if (until > store->held_ns[use]) store->held_ns[use] = until;
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
    if (store->freeze != BEL_FREEZE_BEGUN || batch == 0) return;
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
    hold(store, BEL_STORE_ADD, bel__pressure_delay_ns(&pressure));
    if (fill <= pressure.fill_max) return;
    pressure.fill -= pressure.fill_max;
    pressure.fill_max = segment;
    if (pressure.batch > pressure.fill) pressure.batch = pressure.fill;
    hold(store, BEL_STORE_END, bel__pressure_delay_ns(&pressure));
}

/* Returns whether the reserve is nearly used up, so that a larger batch would have to wait for the
 * checkpoint. */
static bool is_used_up(const struct bel_store *store)
{
    size_t last = bel__log_frame_bytes_max(store->log) / LAST_SHARE;
    return bel__log_free_count(store->log) == 0 && !bel__log_has_room(store->log, last);
}

uint64_t bel__store_hold_ns(struct bel_store *store, enum bel_store_use use)
{
    if (!store->has_thread || store->log == NULL) return 0;
    if (bel__log_is_full(store->log)) return RECHECK_NS; /* or sooner: the end of a sync wakes */
    if (store->freeze != BEL_FREEZE_BEGUN || bel__checkpoint_is_done(store->checkpoint)) return 0;
    if (is_used_up(store)) return RECHECK_NS;
    if (store->held_ns[use] == 0) return 0;
    uint64_t time = now(store);
    if (store->held_ns[use] > time) return store->held_ns[use] - time;
    store->held_ns[use] = 0;
    return 0;
}
