/* SPDX-License-Identifier: MIT */

/* What is known about damage of the tree, and whether its pages have been checked. */
#include "store/state.h"
#include "store/tree/map_fault.h"

const char *bel__store_damage(const struct bel_store *store)
{
    return store->tree == NULL || store->tree->damage == NULL ? ""
                                                              : store->tree->damage(store->tree);
}

int bel__store_watch_faults(void (*name)(uint64_t page))
{
    return bel__map_fault_install(name);
}

void bel__store_trust(struct bel_store *store)
{
    store->is_trust_due = true;
    bel__store_trust_tree(store);
}

/* A checkpoint may run in a thread, which uses the check of the writer. */
void bel__store_trust_tree(struct bel_store *store)
{
    if (!store->is_trust_due || store->freeze == BEL_FREEZE_BEGUN) return;
    store->is_trust_due = false;
    if (store->tree->trust != NULL) store->tree->trust(store->tree);
}
