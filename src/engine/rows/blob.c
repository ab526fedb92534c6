/* SPDX-License-Identifier: MIT */

/*
 * Large byte strings are stored as chunks under a number of their own:
 *
 *     CHUNKS | number | 0, 1, 2 ...
 *
 * A record refers to them by number, so a record can move without its chunks.
 */
#include "engine/rows/blob.h"

#include <assert.h>
#include <string.h>

size_t bel__blob_rows(uint64_t bytes)
{
    return (size_t)((bytes + BEL_CHUNK_BYTES - 1) / BEL_CHUNK_BYTES);
}

static struct bel_key chunk_key(uint64_t number, size_t index)
{
    return bel__key_of(
        &(struct bel_place){.table = BEL_TABLE_CHUNKS, .time = number, .sequence = index});
}

struct bel_blob bel__blob_put(struct bel_rows *rows, struct bel_view bytes, size_t inline_max)
{
    if (bytes.bytes <= inline_max) return (struct bel_blob){.bytes = bytes.bytes, .here = bytes};
    struct bel_blob blob = {.number = bel__rows_sequence(rows), .bytes = bytes.bytes};
    const uint8_t *data = bytes.data;
    for (size_t i = 0, at = 0; at < bytes.bytes; i++, at += BEL_CHUNK_BYTES) {
        size_t left = bytes.bytes - at;
        struct bel_key key = chunk_key(blob.number, i);
        struct bel_view chunk = {data + at, left < BEL_CHUNK_BYTES ? left : BEL_CHUNK_BYTES};
        bel__rows_put(rows, &key, chunk, BEL_ROW_NEW);
    }
    assert(blob.number > 0 && blob.bytes > 0);
    return blob;
}

void bel__blob_delete(struct bel_rows *rows, const struct bel_blob *blob)
{
    if (blob->number == 0) return;
    for (size_t i = 0; i < bel__blob_rows(blob->bytes); i++) {
        struct bel_key key = chunk_key(blob->number, i);
        bel__rows_delete(rows, &key);
    }
}

int bel__blob_get(struct bel_store *store, const struct bel_blob *blob, struct bel_arena *arena,
                  struct bel_view *out)
{
    if (blob->number == 0) {
        *out = blob->here;
        return 0;
    }
    if (blob->bytes > 2 * (uint64_t)BEL_PAYLOAD_BYTES_MAX) return BEL_ECORRUPT;
    uint8_t *bytes = bel__arena_take(arena, (size_t)blob->bytes);
    if (bytes == NULL) return BEL_ENOMEM;
    for (size_t i = 0, at = 0; at < blob->bytes; i++, at += BEL_CHUNK_BYTES) {
        struct bel_key key = chunk_key(blob->number, i);
        struct bel_view chunk;
        size_t left = (size_t)blob->bytes - at;
        int err = bel__store_get(store, &key, &chunk);
        if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        if (chunk.bytes != (left < BEL_CHUNK_BYTES ? left : BEL_CHUNK_BYTES)) return BEL_ECORRUPT;
        memcpy(bytes + at, chunk.data, chunk.bytes);
    }
    *out = (struct bel_view){.data = bytes, .bytes = (size_t)blob->bytes};
    return 0;
}
