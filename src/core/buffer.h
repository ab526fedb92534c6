/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_BUFFER_H
#define BEL_CORE_BUFFER_H

/*
 * buffer - a byte queue: bytes are appended at the end and consumed from the front. Used for
 * received input that is not parsed yet, and for output that is not sent yet.
 *
 * A buffer has a maximum size. An append that would exceed it fails with BEL_EFULL and adds
 * nothing, so a fast producer must wait for a slow consumer.
 *
 *     struct bel_buffer out;
 *     bel__buffer_init(&out, 8 << 20);
 *     err = bel__buffer_append_format(&out, "+%u\r\n", count);
 *     ...
 *     ssize_t sent = write(fd, bel__buffer_data(&out), out.count);
 *     if (sent > 0) bel__buffer_consume(&out, (size_t)sent);
 *     ...
 *     bel__buffer_finish(&out);
 *
 * To read directly into the buffer:
 *
 *     err = bel__buffer_reserve(&in, 4096);
 *     ssize_t got = read(fd, bel__buffer_space(&in), 4096);
 *     if (got > 0) bel__buffer_commit(&in, (size_t)got);
 *
 * At most one byte is moved per byte consumed, so any sequence of calls takes time linear in the
 * bytes that pass through. For this the memory may reach twice the maximum, or, above 256 KiB, a
 * quarter more than the most bytes that were in the buffer. Appending may move the
 * bytes, which invalidates pointers into the buffer. A buffer does not interpret its bytes and adds
 * no final 0.
 *
 * Threads: a buffer belongs to one thread.
 */

#include "belfry/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct bel_buffer {
    size_t count;     /* read only: bytes in the buffer */
    size_t count_max; /* read only: the maximum */
    uint8_t *memory;  /* private, as are the next two */
    size_t start, capacity;
};

/* Initialises an empty buffer for up to `count_max` bytes. Allocates nothing. */
void bel__buffer_init(struct bel_buffer *buffer, size_t count_max);

/* Frees the memory. The buffer is empty and can be used again. */
void bel__buffer_finish(struct bel_buffer *buffer);

/* Returns the first byte; the caller may read and write `count` bytes. */
static inline uint8_t *bel__buffer_data(const struct bel_buffer *buffer)
{
    return buffer->memory == NULL ? NULL : buffer->memory + buffer->start;
}

/*
 * Functions that add bytes return 0; or, with nothing added, BEL_EFULL if the maximum would be
 * exceeded, or BEL_ENOMEM.
 */

/* Appends `bytes` bytes, which must not be in the buffer. */
BEL_CHECKED int bel__buffer_append(struct bel_buffer *buffer, const void *data, size_t bytes);

/* Appends formatted text; the arguments must not point into the buffer. Returns BEL_EINVAL also if
 * printf itself fails. */
BEL_CHECKED int bel__buffer_append_format(struct bel_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
BEL_CHECKED int bel__buffer_append_vformat(struct bel_buffer *buffer, const char *format,
                                           va_list args) __attribute__((format(printf, 2, 0)));

/* Moves the bytes or allocates memory to make room for `bytes` more. Private. */
BEL_CHECKED int bel__buffer_make_room(struct bel_buffer *buffer, size_t bytes);

/* Makes room for `bytes` more bytes, so that appending them cannot fail. */
BEL_CHECKED static inline int bel__buffer_reserve(struct bel_buffer *buffer, size_t bytes)
{
    size_t count_max = buffer->count_max, room = buffer->capacity - buffer->start - buffer->count;
    if (bytes <= room && bytes <= count_max - buffer->count) return 0;
    return bel__buffer_make_room(buffer, bytes);
}

/* Returns where the next byte goes. At least one byte must have been reserved. */
static inline uint8_t *bel__buffer_space(const struct bel_buffer *buffer)
{
    assert(buffer->memory != NULL);
    return buffer->memory + buffer->start + buffer->count;
}

/* Appends `bytes` bytes that the caller has written to the space; at most the number reserved. */
static inline void bel__buffer_commit(struct bel_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->capacity - buffer->start - buffer->count);
    buffer->count += bytes;
    assert(buffer->count <= buffer->count_max);
}

/* Appends `bytes` bytes, at least one, which the caller must then write at `*out`. */
BEL_CHECKED static inline int bel__buffer_extend(struct bel_buffer *buffer, size_t bytes,
                                                 uint8_t **out)
{
    assert(bytes > 0);
    int err = bel__buffer_reserve(buffer, bytes);
    if (err) return err;
    *out = buffer->memory + buffer->start + buffer->count;
    buffer->count += bytes;
    return 0;
}

/* Removes `bytes` bytes from the front; at most the number in the buffer. */
static inline void bel__buffer_consume(struct bel_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->count);
    buffer->count -= bytes;
    buffer->start = buffer->count == 0 ? 0 : buffer->start + bytes;
}

/* Frees memory that the bytes do not need, if that is at least half of it and it is more than
 * `kept` bytes; all of it if the buffer is empty. May move the bytes. */
void bel__buffer_trim(struct bel_buffer *buffer, size_t kept);

/* Removes all but the first `count` bytes, to undo appends. */
static inline void bel__buffer_truncate(struct bel_buffer *buffer, size_t count)
{
    assert(count <= buffer->count);
    buffer->count = count;
}

#endif
