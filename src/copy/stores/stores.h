/* SPDX-License-Identifier: MIT */
#ifndef BEL_COPY_STORES_STORES_H
#define BEL_COPY_STORES_STORES_H

/*
 * stores - the stores that belfry copy can name, opened so that their clocks stand still.
 *
 *     embedded:DIR       a data directory that no server uses, or a BACKUP
 *     redis://... etc.   servers of Redis or Valkey, as src/redis/link/url.h describes them
 */

#include "copy/copy.h"

#include "core/why.h"

/* Copies between two stores. Of the options, `source`, `target`, `source_name` and `thaw` are set
 * here; `context` is passed to `progress`. Returns what bel__copy() does; or BEL_EINVAL for a store
 * that cannot be named so, BEL_ENOTFOUND if the source does not exist, BEL_EBUSY if a server uses a
 * store, BEL_ECLOSED if a server of Redis cannot be reached, or an error of opening. */
BEL_CHECKED int bel__copy_between(const char *from, const char *to,
                                  const struct bel_copy_options *options,
                                  struct bel_copy_counts *out, struct bel_why *why);

#endif
