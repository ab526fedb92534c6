/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PAGES_H
#define BEL_STORE_TREE_PAGES_H

/*
 * tree_pages - the pages of a tree on LMDB, looked at without the library, which trusts them.
 *
 * A number that is wrong in a list of free pages lets the library write over rows, or beyond its
 * own memory; nobody who reads rows notices before.
 */

#include "core/why.h"

/* Checks that every page of the tree in a folder is used once: by a table, or as one that is free.
 * Nobody may have it open to write. Returns 0; BEL_ECORRUPT, and says why; BEL_ENOTFOUND, BEL_EIO,
 * BEL_ENOMEM. */
BEL_CHECKED int bel__tree_pages_check(const char *path, struct bel_why *why);

#endif
