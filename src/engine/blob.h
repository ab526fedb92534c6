/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_BLOB_H
#define BEL_ENGINE_BLOB_H

/*
 * blob - bytes that are too many for a row.
 */

#include "engine/rows/record.h"

struct bel_engine;

/* Rows that bytes take as chunks. */
size_t bel__blob_rows(uint64_t bytes);
struct bel_blob bel__blob_put(struct bel_engine *engine, struct bel_view bytes, size_t inline_max);
void bel__blob_delete(struct bel_engine *engine, const struct bel_blob *blob);

/* All of it in one piece: in the row, or put together in the memory of the answer. */
BEL_CHECKED int bel__blob_get(struct bel_engine *engine, const struct bel_blob *blob,
                              struct bel_view *out);

#endif
