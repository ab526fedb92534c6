/* SPDX-License-Identifier: MIT */

/* Rows are encoded in the format of the log as they are added. */
#include "store/log/batch.h"

#include "store/io/io.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BYTES = 16 * BEL_IO_BLOCK,
    KEPT_BYTES_MAX = 1 << 20,
};

void bel__batch_init(struct bel_batch *batch)
{
    *batch = (struct bel_batch){.bytes = BEL_FRAME_HEADER_BYTES};
}

void bel__batch_finish(struct bel_batch *batch)
{
    free(batch->memory);
    bel__batch_init(batch);
}

size_t bel__batch_bytes_with(const struct bel_batch *batch, size_t rows, size_t bytes)
{
    size_t more;
    if (__builtin_mul_overflow(rows, (size_t)BEL_FRAME_ROW_BYTES, &more)) return SIZE_MAX;
    if (__builtin_add_overflow(more, bytes, &more)) return SIZE_MAX;
    if (__builtin_add_overflow(more, batch->bytes, &more)) return SIZE_MAX;
    return more;
}

static size_t rounded_up(size_t bytes, size_t block_bytes)
{
    return (bytes + (block_bytes - 1)) / block_bytes * block_bytes;
}

int bel__batch_reserve(struct bel_batch *batch, size_t frame_bytes)
{
    if (frame_bytes > SIZE_MAX / 4) return BEL_ENOMEM;
    size_t need = rounded_up(frame_bytes, BEL_IO_BLOCK);
    if (need <= batch->capacity) return 0;
    size_t capacity = batch->capacity == 0 ? FIRST_BYTES : batch->capacity;
    while (capacity < need) {
        capacity *= 2;
    }
    uint8_t *memory = aligned_alloc(BEL_IO_BLOCK, capacity);
    if (memory == NULL) return BEL_ENOMEM;
    if (batch->memory != NULL) memcpy(memory, batch->memory, batch->bytes);
    free(batch->memory);
    batch->memory = memory;
    batch->capacity = capacity;
    return 0;
}

void bel__batch_add(struct bel_batch *batch, const struct bel_frame_row *row)
{
    assert(batch->bytes + BEL_FRAME_ROW_BYTES + row->value.bytes <= batch->capacity);
    batch->bytes += bel__frame_row_write(batch->memory + batch->bytes, row);
    batch->row_count++;
}

size_t bel__batch_pad(struct bel_batch *batch, size_t block_bytes)
{
    size_t padded = rounded_up(batch->bytes, block_bytes);
    assert(padded <= batch->capacity);
    memset(batch->memory + batch->bytes, 0, padded - batch->bytes);
    return padded;
}

void bel__batch_clear(struct bel_batch *batch)
{
    if (batch->capacity > KEPT_BYTES_MAX) {
        bel__batch_finish(batch);
    } else {
        batch->bytes = BEL_FRAME_HEADER_BYTES;
        batch->row_count = 0;
    }
}
