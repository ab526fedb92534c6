/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_ENCODING_H
#define BEL_ENGINE_ROWS_ENCODING_H

/*
 * encoding - numbers and byte strings in rows. A number takes seven bits a byte, low bits first,
 * with the high bit set in all bytes but the last. A byte string follows its length. A writer must
 * have enough room. A reader that reaches the end, or an encoding that no writer makes, is bad from
 * then on and reads zeros.
 */

#include "belfry/view.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    BEL_ENCODED_NUMBER_BYTES_MAX = 10
};

struct bel_row_writer {
    uint8_t *at;
    const uint8_t *end;
};

struct bel_row_reader {
    const uint8_t *at, *end;
    bool bad;
};

static inline void bel__write_number(struct bel_row_writer *writer, uint64_t number)
{
    assert(writer->end - writer->at >= BEL_ENCODED_NUMBER_BYTES_MAX);
    for (; number >= 0x80; number >>= 7) {
        *writer->at++ = (uint8_t)(number | 0x80);
    }
    *writer->at++ = (uint8_t)number;
}

static inline void bel__write_raw(struct bel_row_writer *writer, const void *data, size_t bytes)
{
    assert((size_t)(writer->end - writer->at) >= bytes);
    if (bytes > 0) memcpy(writer->at, data, bytes);
    writer->at += bytes;
}

static inline void bel__write_view(struct bel_row_writer *writer, struct bel_view view)
{
    bel__write_number(writer, view.bytes);
    bel__write_raw(writer, view.data, view.bytes);
}

static inline uint64_t bel__read_large_number(struct bel_row_reader *reader)
{
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end) break;
        uint8_t byte = *reader->at++;
        if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) break;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return number;
    }
    reader->bad = true;
    reader->at = reader->end;
    return 0;
}

static inline uint64_t bel__read_number(struct bel_row_reader *reader)
{
    if (reader->at < reader->end && *reader->at < 0x80) return *reader->at++; /* one byte */
    return bel__read_large_number(reader);
}

/* Returns a view of the next `bytes` bytes. */
static inline struct bel_view bel__read_raw(struct bel_row_reader *reader, uint64_t bytes)
{
    if (bytes > (uint64_t)(reader->end - reader->at)) {
        reader->bad = true;
        reader->at = reader->end;
        return (struct bel_view){0};
    }
    struct bel_view view = {.data = reader->at, .bytes = (size_t)bytes};
    reader->at += bytes;
    return view;
}

static inline struct bel_view bel__read_view(struct bel_row_reader *reader)
{
    uint64_t bytes = bel__read_number(reader);
    return bel__read_raw(reader, bytes);
}

static inline struct bel_row_reader bel__reader_of(struct bel_view view)
{
    static const uint8_t nothing[1];
    const uint8_t *data = view.bytes > 0 ? view.data : nothing;
    return (struct bel_row_reader){.at = data, .end = data + view.bytes};
}

#endif
