/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_SIM_TREE_H
#define BEL_TESTS_SIM_TREE_H

/*
 * tree - a tree in memory that lasts, behind a door that breaks with the disk: a commit is one of
 * the disk's operations, at which the power can fail, before or after; and it can find no space.
 */

#include "disk.h"
#include "store/tree/tree.h"

struct sim_tree {
    struct bel_tree tree; /* first */
    struct bel_tree *inner;
    struct disk *disk;
    bool is_full; /* there is no space for a transaction */
};

/* Makes it, empty, beside a disk, which is borrowed. */
void sim_tree_create(struct sim_tree *tree, struct disk *disk);
void sim_tree_destroy(struct sim_tree *tree);

#endif
