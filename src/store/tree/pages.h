/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_PAGES_H
#define BEL_STORE_TREE_PAGES_H

/*
 * pages - checks the pages of an LMDB file without LMDB, which does not validate them.
 *
 * A wrong number in a list of free pages makes LMDB overwrite rows, or write beyond its memory.
 * Reading all rows would not notice that in time.
 */

#include "core/why.h"

/* Checks that every page of the tree in a folder is used exactly once: by a table, or as a free
 * page. No process may have it open for writing. Returns 0; BEL_ECORRUPT or BEL_EUNSUPPORTED, and
 * sets `*why`; or BEL_ENOTFOUND, BEL_EIO, BEL_ENOMEM. */
BEL_CHECKED int bel__tree_pages_check(const char *path, struct bel_why *why);

#endif
