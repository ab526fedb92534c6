/* SPDX-License-Identifier: MIT */

/*
 * One byte is the size of the pieces, and the rest is the output of a server. Read at once or in
 * pieces, it must give the same replies and the same end, and their texts must lie inside the
 * input.
 */
#include "resp/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES_MAX = 1 << 16,
    VALUES_MAX = 1000,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    uint64_t hash, replies;
    int err;
};

static void mix(struct digest *digest, uint64_t word)
{
    digest->hash = (digest->hash ^ word) * UINT64_C(1099511628211);
}

/* Checks and hashes the values, which are in one array: the items of a list come after it. */
static void look(struct digest *digest, const struct bel_reader *reader,
                 const struct bel_value *value, const uint8_t *data)
{
    for (size_t i = 0; i < reader->values; i++, value++) {
        const uint8_t *text = value->text.data;
        mix(digest, value->type);
        mix(digest, (uint64_t)value->number);
        mix(digest, value->count);
        assert(value->items == NULL || value->items > value);
        if (value->text.bytes == 0) continue;
        assert(text > data && value->text.bytes < reader->bytes - (size_t)(text - data));
        for (size_t k = 0; k < value->text.bytes; k++) {
            mix(digest, text[k]);
        }
    }
}

/* Reads all replies from a copy of the exact size, so that a sanitizer notices overruns. */
static struct digest read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct bel_reader reader;
    struct digest digest = {0};
    size_t start = 0, end = 0;
    bel__reader_init(&reader, BYTES_MAX, VALUES_MAX);
    while (digest.err == 0 && end < size) {
        end = size - end > piece ? end + piece : size;
        uint8_t *copy = malloc(end - start);
        assert(copy != NULL);
        memcpy(copy, data + start, end - start);
        size_t used = 0;
        while ((digest.err = bel__reader_scan(&reader, copy + used, end - start - used)) == 0) {
            const struct bel_value *value;
            int err = bel__reader_build(&reader, copy + used, &value);
            assert(err == 0);
            (void)err;
            look(&digest, &reader, value, copy + used);
            digest.replies++;
            used += reader.bytes;
            bel__reader_reset(&reader);
        }
        free(copy);
        start += used;
        if (digest.err == BEL_EBUSY) digest.err = 0;
    }
    bel__reader_finish(&reader);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > BYTES_MAX) return 0;
    struct digest whole = read_all(data + 1, size - 1, size);
    struct digest pieces = read_all(data + 1, size - 1, 1 + data[0] % 16);
    assert(whole.replies == pieces.replies);
    assert(whole.hash == pieces.hash);
    assert(whole.err == pieces.err);
    return 0;
}
