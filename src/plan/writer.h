/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_WRITER_H
#define BEL_PLAN_WRITER_H

/*
 * writer - prints like snprintf: writes what fits, followed by a 0, and counts what is needed.
 */

#include "core/parse.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* A text that is being written. */
struct writer {
    char *out;    /* may be NULL if room is 0 */
    size_t room;  /* bytes, including the final 0 */
    size_t bytes; /* needed so far, without the 0 */
};

static inline void writer_begin(struct writer *writer, char *out, size_t room)
{
    assert(out != NULL || room == 0);
    writer->out = out;
    writer->room = room;
    writer->bytes = 0;
}

static inline void writer_put(struct writer *writer, char byte)
{
    if (writer->bytes + 1 < writer->room) writer->out[writer->bytes] = byte;
    writer->bytes++;
}

static inline void writer_text(struct writer *writer, const char *text)
{
    for (const char *byte = text; *byte != '\0'; byte++) {
        writer_put(writer, *byte);
    }
}

/* Writes a number, padded with leading zeros to `digits` digits. */
static inline void writer_padded(struct writer *writer, uint64_t number, size_t digits)
{
    char text[BEL_PRINT_BYTES_MAX];
    size_t bytes = bel__print_u64(text, number);
    for (size_t i = bytes; i < digits; i++) {
        writer_put(writer, '0');
    }
    for (size_t i = 0; i < bytes; i++) {
        writer_put(writer, text[i]);
    }
}

static inline void writer_number(struct writer *writer, uint64_t number)
{
    writer_padded(writer, number, 1);
}

/* Ends the text. Returns the bytes needed, without the 0. */
static inline size_t writer_end(struct writer *writer)
{
    if (writer->room == 0) return writer->bytes;
    writer->out[writer->bytes < writer->room ? writer->bytes : writer->room - 1] = '\0';
    return writer->bytes;
}

#endif
