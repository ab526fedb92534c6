/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_TEXT_H
#define BEL_PLAN_TEXT_H

/*
 * text - reads a text byte by byte, and reports parse errors.
 */

#include "belfry/error.h"
#include "belfry/text.h"

#include <stdbool.h>

/* A text and the position in it. */
struct reader {
    const char *text;
    size_t bytes;
    size_t at; /* the next byte */
};

static inline bool reader_at_end(const struct reader *reader)
{
    return reader->at == reader->bytes;
}

/* Returns the next byte, 0 at the end. */
static inline char reader_peek(const struct reader *reader)
{
    if (reader_at_end(reader)) return '\0';
    return reader->text[reader->at];
}

/* Skips the next byte if it is `byte`. Returns whether it was. */
static inline bool reader_skip(struct reader *reader, char byte)
{
    if (reader_at_end(reader) || reader->text[reader->at] != byte) return false;
    reader->at++;
    return true;
}

/* Sets the position and the expected phrase, unless `why` is NULL. Returns BEL_EINVAL. */
__attribute__((format(printf, 3, 4))) int
bel__text_refuse(struct bel_text_error *why, size_t position, const char *format, ...);

#endif
