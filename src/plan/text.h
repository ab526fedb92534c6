/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_TEXT_H
#define BEL_PLAN_TEXT_H

/*
 * text - reading a text byte by byte, and saying what is wrong with it.
 */

#include "belfry/error.h"
#include "belfry/text.h"

#include <stdbool.h>

/* A text that is being read. */
struct reader {
    const char *text;
    size_t bytes;
    size_t at; /* the next byte */
};

static inline bool reader_at_end(const struct reader *reader)
{
    return reader->at == reader->bytes;
}

/* The next byte, 0 at the end. */
static inline char reader_peek(const struct reader *reader)
{
    if (reader_at_end(reader)) return '\0';
    return reader->text[reader->at];
}

/* Goes past the next byte if it is this one. */
static inline bool reader_skip(struct reader *reader, char byte)
{
    if (reader_at_end(reader) || reader->text[reader->at] != byte) return false;
    reader->at++;
    return true;
}

/* Says what was expected at a position. Returns BEL_EINVAL; `why` may be NULL. */
__attribute__((format(printf, 3, 4))) int
bel__text_refuse(struct bel_text_error *why, size_t position, const char *format, ...);

#endif
