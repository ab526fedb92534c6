/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_BLOB_H
#define BEL_ENGINE_ROWS_BLOB_H

/*
 * blob - byte strings that are too large for a row.
 */

#include "core/arena.h"
#include "engine/rows/record.h"
#include "engine/rows/rows.h"

/* Returns the number of chunk rows that a blob of this size takes. */
size_t bel__blob_rows(uint64_t bytes);

/* Writes bytes as chunks, whose rows must be reserved. Up to `inline_max` bytes stay in the
 * record. */
struct bel_blob bel__blob_put(struct bel_rows *rows, struct bel_view bytes, size_t inline_max);
void bel__blob_delete(struct bel_rows *rows, const struct bel_blob *blob);

/* Sets `*out` to the whole blob as one byte string: in the row, or assembled in memory of `arena`.
 * Returns 0, BEL_ENOMEM, or an error of the store. */
BEL_CHECKED int bel__blob_get(struct bel_store *store, const struct bel_blob *blob,
                              struct bel_arena *arena, struct bel_view *out);

#endif
