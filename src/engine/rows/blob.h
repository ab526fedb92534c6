/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_BLOB_H
#define BEL_ENGINE_ROWS_BLOB_H

/*
 * blob - bytes that are too many for a row.
 */

#include "core/arena.h"
#include "engine/rows/record.h"
#include "engine/rows/rows.h"

/* Returns how many rows a blob takes as chunks. */
size_t bel__blob_rows(uint64_t bytes);

/* Writes bytes as chunks, which must be reserved; up to `inline_max` they stay in the record. */
struct bel_blob bel__blob_put(struct bel_rows *rows, struct bel_view bytes, size_t inline_max);
void bel__blob_delete(struct bel_rows *rows, const struct bel_blob *blob);

/* Sets `*out` to all of a blob in one piece: in the row, or put together in memory of `arena`.
 * Returns 0, BEL_ENOMEM, or what the store returns. */
BEL_CHECKED int bel__blob_get(struct bel_store *store, const struct bel_blob *blob,
                              struct bel_arena *arena, struct bel_view *out);

#endif
