/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_CURSOR_H
#define BEL_REDIS_CURSOR_H

/*
 * cursor - writes and reads big-endian numbers and texts, as struct.pack() of Lua does.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *bel__put_number(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        *at++ = (uint8_t)(value >> (8 * i));
    }
    return at;
}

static inline uint8_t *bel__put_view(uint8_t *at, struct bel_view view)
{
    if (view.bytes > 0) memcpy(at, view.data, view.bytes);
    return at + view.bytes;
}

/* Bytes that may be too few: then everything that is read is 0 or empty, and `is_bad` is set. */
struct bel_cursor {
    const uint8_t *at;
    size_t left;
    bool is_bad;
};

static inline struct bel_cursor bel__cursor_of(struct bel_view view)
{
    return (struct bel_cursor){.at = view.data, .left = view.bytes};
}

static inline struct bel_view bel__take(struct bel_cursor *cursor, size_t bytes)
{
    if (cursor->is_bad || bytes > cursor->left) {
        cursor->is_bad = true;
        return (struct bel_view){NULL, 0};
    }
    struct bel_view view = {cursor->at, bytes};
    cursor->at += bytes;
    cursor->left -= bytes;
    return view;
}

static inline uint64_t bel__take_number(struct bel_cursor *cursor, unsigned bytes)
{
    struct bel_view view = bel__take(cursor, bytes);
    const uint8_t *data = view.data;
    uint64_t value = 0;
    for (size_t i = 0; i < view.bytes; i++) {
        value = value << 8 | data[i];
    }
    return value;
}

/* Reads a time of seven bytes, with its sign. */
static inline int64_t bel__take_time(struct bel_cursor *cursor)
{
    return (int64_t)(bel__take_number(cursor, 7) << 8) >> 8;
}

#endif
