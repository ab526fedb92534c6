/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_BUFFER_H
#define BEL_CORE_BUFFER_H

/*
 * buffer - bytes that come in at the end and go out at the front, such as what a
 * connection has read and not yet understood, or has to say and not yet said.
 *
 * A buffer has a maximum. What would go over it is refused with BEL_EFULL, whole, so
 * the side that makes bytes faster than the other takes them is told to wait.
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
 * Or to read straight into it:
 *
 *     err = bel__buffer_reserve(&in, 4096);
 *     ssize_t got = read(fd, bel__buffer_space(&in), 4096);
 *     if (got > 0) bel__buffer_commit(&in, (size_t)got);
 *
 * Bytes are moved at most once for each byte consumed, so any sequence of calls takes
 * time linear in the bytes that pass through; that is why memory may reach twice the
 * maximum. Appending may move the bytes: pointers into a buffer are good until then.
 * Bytes mean nothing to a buffer, and there is no end mark.
 *
 * Threads: a buffer belongs to one thread.
 */

#include "belfry/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct bel_buffer {
    size_t count;     /* read only: the bytes in it */
    size_t count_max; /* read only: never more */
    uint8_t *memory;  /* private, as are the next two */
    size_t start, capacity;
};

/* Makes an empty buffer for up to `count_max` bytes, which has no memory yet. */
void bel__buffer_init(struct bel_buffer *buffer, size_t count_max);

/* Releases the memory. The buffer is empty and can be used again. */
void bel__buffer_finish(struct bel_buffer *buffer);

/* The first byte; `count` of them may be read and written. */
static inline uint8_t *bel__buffer_data(const struct bel_buffer *buffer)
{
    return buffer->memory == NULL ? NULL : buffer->memory + buffer->start;
}

/*
 * What adds bytes returns 0; or BEL_EFULL if they would go over the maximum, or
 * BEL_ENOMEM, and then no byte is added and none is lost.
 */

/* Adds `bytes` bytes, which are not the buffer's own. */
BEL_CHECKED int bel__buffer_append(struct bel_buffer *buffer, const void *data, size_t bytes);

/* Adds text as printf prints it, from arguments that are not the buffer's own. Also
 * BEL_EINVAL if printf itself fails. */
BEL_CHECKED int bel__buffer_append_format(struct bel_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
BEL_CHECKED int bel__buffer_append_vformat(struct bel_buffer *buffer, const char *format,
                                           va_list args) __attribute__((format(printf, 2, 0)));

/* Moves the bytes, or takes more memory, until there is room for `bytes` more. Private. */
BEL_CHECKED int bel__buffer_make_room(struct bel_buffer *buffer, size_t bytes);

/* Makes room for `bytes` more, so that appending up to there does not fail. */
BEL_CHECKED static inline int bel__buffer_reserve(struct bel_buffer *buffer, size_t bytes)
{
    size_t count_max = buffer->count_max, room = buffer->capacity - buffer->start - buffer->count;
    if (bytes <= room && bytes <= count_max - buffer->count) return 0;
    return bel__buffer_make_room(buffer, bytes);
}

/* Where the next byte goes, if one at least was reserved, with the room behind it. */
static inline uint8_t *bel__buffer_space(const struct bel_buffer *buffer)
{
    assert(buffer->memory != NULL);
    return buffer->memory + buffer->start + buffer->count;
}

/* Adds `bytes` bytes that were written to the space, no more than were reserved. */
static inline void bel__buffer_commit(struct bel_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->capacity - buffer->start - buffer->count);
    buffer->count += bytes;
    assert(buffer->count <= buffer->count_max);
}

/* Adds `bytes` bytes, one at least, which are to be written at `*out` at once. */
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

/* Drops `bytes` bytes, no more than there are, from the front. */
static inline void bel__buffer_consume(struct bel_buffer *buffer, size_t bytes)
{
    assert(bytes <= buffer->count);
    buffer->count -= bytes;
    buffer->start = buffer->count == 0 ? 0 : buffer->start + bytes;
}

/* Drops all but the first `count`, no more than there are: to take back what was
 * appended since. */
static inline void bel__buffer_truncate(struct bel_buffer *buffer, size_t count)
{
    assert(count <= buffer->count);
    buffer->count = count;
}

#endif
