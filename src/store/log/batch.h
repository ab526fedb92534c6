/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_BATCH_H
#define BEL_STORE_LOG_BATCH_H

/*
 * batch - the frame that the next commit writes, as it grows row by row.
 *
 *     |<------- bytes ------->|
 *     | header | row row row  | zeros up to a block |
 *     ^ aligned, as direct writes need it
 *
 * Threads: a batch belongs to one thread.
 */

#include "store/log/format.h"

struct bel_batch {
    uint8_t *memory;
    size_t bytes; /* so far, header included */
    size_t capacity;
    uint32_t row_count;
};

/* Makes an empty batch, which has no memory yet. */
void bel__batch_init(struct bel_batch *batch);

/* Releases the memory. The batch is empty and can be used again. */
void bel__batch_finish(struct bel_batch *batch);

/* The bytes of the frame if `rows` more came, with `bytes` bytes of values; SIZE_MAX if they
 * are too many to count. */
size_t bel__batch_bytes_with(const struct bel_batch *batch, size_t rows, size_t bytes);

/* Makes room for a frame of `frame_bytes` bytes and the zeros behind it. Returns 0 or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__batch_reserve(struct bel_batch *batch, size_t frame_bytes);

/* Adds a row, for which there is room. */
void bel__batch_add(struct bel_batch *batch, const struct bel_frame_row *row);

/* Puts zeros behind it, up to a multiple of `block_bytes`. Returns the bytes in all. */
size_t bel__batch_pad(struct bel_batch *batch, size_t block_bytes);

/* Empties it. Memory that is far more than usual is given back. */
void bel__batch_clear(struct bel_batch *batch);

#endif
