/* SPDX-License-Identifier: MIT */

/*
 * Allocates and closes a store, and opens a store in memory. That has no log, and its rows stay in
 * the active delta, which is whole: a tree below would be one more map to change and to search for
 * each row. The tree stays empty. Tests replace the whole delta by one with layers.
 */
#include "store/state.h"

#include <stdlib.h>

enum {
    MEMORY_DELTA_BYTES_MAX = 8 << 20,
    MEMORY_TRANSACTION_ROWS = 256, /* bounds the work of one commit */
};

struct bel_store *bel__store_make(void)
{
    struct bel_store *store = calloc(1, sizeof *store);
    if (store == NULL) return NULL;
    store->active = &store->deltas[0];
    store->frozen = &store->deltas[1];
    bel__delta_init(store->active);
    bel__delta_init(store->frozen);
    bel__batch_init(&store->next);
    return store;
}

void bel__store_close(struct bel_store *store)
{
    if (store == NULL) return;
    bel__store_backup_end(store);
    bel__checkpoint_close(store->checkpoint);
    bel__log_close(store->log);
    if (store->tree != NULL) store->tree->close(store->tree);
    bel__batch_finish(&store->next);
    bel__delta_finish(&store->deltas[0]);
    bel__delta_finish(&store->deltas[1]);
    if (store->is_marked && !store->err) (void)!store->io->remove(store->io, BEL_OPEN_MARK);
    if (store->is_locked) store->io->unlock(store->io);
    if (store->own_io != NULL) store->own_io->destroy(store->own_io);
    free(store);
}

int bel__store_open_memory(struct bel_store **out)
{
    struct bel_store *store = bel__store_make();
    if (store == NULL) return BEL_ENOMEM;
    store->delta_bytes_max = MEMORY_DELTA_BYTES_MAX;
    bel__delta_init_whole(store->active);
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
    bel__store_close(store); /* accepts a partly opened store */
    return err;
}
