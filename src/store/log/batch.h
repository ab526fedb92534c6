/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_BATCH_H
#define BEL_STORE_LOG_BATCH_H

/*
 * batch - a buffer for the frame that the next commit writes. Rows are appended as they are put.
 *
 *     |<------- bytes ------->|
 *     | header | row row row  | zeros up to a block |
 *     ^ aligned for direct writes
 *
 * Threads: a batch belongs to one thread.
 */

#include "store/log/format.h"

struct bel_batch {
    uint8_t *memory;
    size_t bytes; /* length so far, header included */
    size_t capacity;
    uint32_t row_count;
};

/* Initializes an empty batch. Allocates nothing. */
void bel__batch_init(struct bel_batch *batch);

/* Frees the memory. The batch is empty and can be used again. */
void bel__batch_finish(struct bel_batch *batch);

/* Returns the length of the frame with `rows` more rows and `bytes` more bytes of values; SIZE_MAX
 * on overflow. */
size_t bel__batch_bytes_with(const struct bel_batch *batch, size_t rows, size_t bytes);

/* Allocates memory for a frame of `frame_bytes` bytes and its padding. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__batch_reserve(struct bel_batch *batch, size_t frame_bytes);

/* Appends a row. The memory must have been reserved. */
void bel__batch_add(struct bel_batch *batch, const struct bel_frame_row *row);

/* Pads the frame with zeros to a multiple of `block_bytes`. Returns the padded length. */
size_t bel__batch_pad(struct bel_batch *batch, size_t block_bytes);

/* Empties the batch. Frees its memory if that is above 1 MiB. */
void bel__batch_clear(struct bel_batch *batch);

#endif
