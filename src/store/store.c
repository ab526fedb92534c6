/* SPDX-License-Identifier: MIT */

/*
 * Changing: rows go into the active delta at once, and into the log with the batch.
 *
 *     active ------------------------------> gets too large
 *        |                                       |
 *        v                            commit: freeze, if none is frozen
 *     active (empty)    frozen <-----------------'
 *                          |  work: a slice at a time into the tree
 *                          v
 *                       applied --commit: refresh the tree, then drop the delta
 *
 * Freezing and dropping are done by commit alone, because that is where values and cursors end
 * for which a caller may still hold pointers into delta and tree. Between two commits the
 * frozen delta and what is seen of the tree stand still.
 */
#include "store/state.h"

#include <assert.h>
#include <stdlib.h>

enum {
    MEMORY_DELTA_BYTES_MAX = 8 << 20,
    MEMORY_TRANSACTION_ROWS = 256, /* what a commit may have to make seen at once */
};

int bel__store_reserve(struct bel_store *store, size_t rows, size_t bytes, enum bel_store_use use)
{
    (void)use;
    if (store->err) return store->err;
    return bel__delta_reserve(store->active, rows, bytes);
}

void bel__store_put(struct bel_store *store, const struct bel_key *key, struct bel_view value,
                    enum bel_row row)
{
    assert(value.bytes <= BEL_STORE_VALUE_BYTES_MAX);
    bel__delta_put(store->active, key, value, row == BEL_ROW_NEW);
    store->changes++;
    store->has_rows = true;
}

void bel__store_delete(struct bel_store *store, const struct bel_key *key)
{
    bel__delta_delete(store->active, key);
    store->changes++;
    store->has_rows = true;
}

/* Makes the active delta the frozen one. */
static void freeze(struct bel_store *store)
{
    assert(!store->is_frozen);
    struct bel_delta *delta = store->active;
    store->active = store->frozen;
    store->frozen = delta;
    store->frozen_epoch = store->batch;
    store->is_frozen = true;
    bel__checkpoint_begin(store->checkpoint, store->frozen, store->frozen_epoch);
}

/* Looks at the tree as it is by now, and lets the frozen delta go if all of it is there. What
 * cannot be read anew just now is by a later commit. */
static void renew_tree(struct bel_store *store)
{
    bool is_applied =
        bel__checkpoint_is_done(store->checkpoint) && bel__checkpoint_error(store->checkpoint) == 0;
    if (store->tree->refresh(store->tree) != 0) return;
    if (!is_applied) return;
    bel__delta_finish(store->frozen);
    store->is_frozen = false;
}

uint64_t bel__store_commit(struct bel_store *store)
{
    if (store->has_rows) {
        store->batch++;
        store->has_rows = false;
    }
    store->changes++; /* cursors end */
    if (store->is_frozen) renew_tree(store);
    if (!store->is_frozen && bel__delta_bytes(store->active) > store->delta_bytes_max) {
        freeze(store);
    }
    return store->batch;
}

uint64_t bel__store_synced(const struct bel_store *store)
{
    return store->batch;
}

int bel__store_error(const struct bel_store *store)
{
    return store->err;
}

/* A checkpoint that had no memory or space is begun again, and so is made anew each time. */
bool bel__store_work(struct bel_store *store)
{
    if (!store->is_frozen || store->err != 0) return false;
    if (bel__checkpoint_is_done(store->checkpoint)) {
        if (bel__checkpoint_error(store->checkpoint) == 0) return false;
        bel__checkpoint_begin(store->checkpoint, store->frozen, store->frozen_epoch);
    }
    bool has_more = bel__checkpoint_step(store->checkpoint);
    int err = bel__checkpoint_error(store->checkpoint);
    if (err == BEL_EIO || err == BEL_ECORRUPT) store->err = err;
    return has_more;
}

void bel__store_close(struct bel_store *store)
{
    if (store == NULL) return;
    bel__checkpoint_close(store->checkpoint);
    if (store->tree != NULL) store->tree->close(store->tree);
    bel__delta_finish(&store->deltas[0]);
    bel__delta_finish(&store->deltas[1]);
    free(store);
}

int bel__store_open_memory(struct bel_store **out)
{
    struct bel_store *store = calloc(1, sizeof *store);
    if (store == NULL) return BEL_ENOMEM;
    store->active = &store->deltas[0];
    store->frozen = &store->deltas[1];
    bel__delta_init(store->active);
    bel__delta_init(store->frozen);
    store->delta_bytes_max = MEMORY_DELTA_BYTES_MAX;

    int err = bel__tree_memory_create(&store->tree);
    if (err) goto fail;
    struct bel_checkpoint_options options = {.tree = store->tree,
                                             .transaction_rows = MEMORY_TRANSACTION_ROWS,
                                             .driver = BEL_CHECKPOINT_STEPS};
    err = bel__checkpoint_open(&options, &store->checkpoint);
    if (err) goto fail;

    *out = store;
    return 0;

fail:
    bel__store_close(store); /* takes a half-made one */
    return err;
}
