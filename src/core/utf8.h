/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_UTF8_H
#define BEL_CORE_UTF8_H

/*
 * utf8 - checks bytes from outside before they are shown as text, and shortens them.
 */

#include "belfry/view.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the UTF-8 character that `bytes` bytes start with, 1 to 4; 0 if they start
 * with none: an invalid byte, an overlong form, a surrogate, or a number above U+10FFFF. */
static inline size_t bel__utf8_bytes(const unsigned char *text, size_t bytes)
{
    assert(bytes > 0);
    if (text[0] < 0x80) return 1;
    size_t wanted = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4 || bytes < wanted) return 0;
    for (size_t i = 1; i < wanted; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    bool is_overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool is_beyond = text[0] == 0xf4 && text[1] > 0x8f;
    bool is_surrogate = text[0] == 0xed && text[1] > 0x9f;
    return is_overlong || is_beyond || is_surrogate ? 0 : wanted;
}

/* Returns whether a character of this length is a control character: C0, DEL or C1. */
static inline bool bel__utf8_is_control(const unsigned char *text, size_t bytes)
{
    if (bytes == 1) return text[0] < ' ' || text[0] == 0x7f;
    return bytes == 2 && text[0] == 0xc2 && text[1] < 0xa0;
}

/* Returns the first `bytes_max` bytes of a text, or all if it is shorter. If the end is inside a
 * character, the character is left out. */
static inline struct bel_view bel__utf8_head(struct bel_view view, size_t bytes_max)
{
    const unsigned char *text = view.data;
    if (view.bytes <= bytes_max) return view;
    for (size_t back = 1; back <= 3 && back <= bytes_max; back++) {
        size_t start = bytes_max - back;
        if (bel__utf8_bytes(text + start, view.bytes - start) > back) bytes_max = start;
        if ((text[start] & 0xc0) != 0x80) break;
    }
    return (struct bel_view){text, bytes_max};
}

/* Returns a text without the start of a character at its end, which earlier versions left when they
 * shortened a text. */
static inline struct bel_view bel__utf8_whole(struct bel_view view)
{
    const unsigned char *text = view.data;
    for (size_t back = 1; back <= 3 && back <= view.bytes; back++) {
        unsigned char byte = text[view.bytes - back];
        size_t wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
        if (byte <= 0xf4 && wanted > back) view.bytes -= back;
        if ((byte & 0xc0) != 0x80) break;
    }
    return view;
}

/* Returns whether all of the bytes are UTF-8. */
static inline bool bel__utf8_is_text(struct bel_view view)
{
    const unsigned char *text = view.data;
    for (size_t at = 0, bytes; at < view.bytes; at += bytes) {
        bytes = bel__utf8_bytes(text + at, view.bytes - at);
        if (bytes == 0) return false;
    }
    return true;
}

#endif
