/* SPDX-License-Identifier: MIT */

/*
 *     memory       start             start + count        capacity
 *       |  consumed  |  bytes in the buffer |  space          |
 *
 * Consuming moves the start. If the space is too small, there are two ways to make room:
 *
 *   - If at least as many bytes were consumed as are in the buffer, its bytes move to the front.
 *     This costs one byte moved per byte consumed, and each byte is consumed only once.
 *   - Otherwise the memory doubles, or above GROW_FAST_MAX grows by a quarter, or grows to the size
 *     needed, and the bytes move to the front of the new memory.
 *
 * The memory never exceeds twice the maximum. If that is too small for count + bytes, both within
 * the maximum, then start is at least the maximum, and the first way applies.
 *
 * The common case, in which the space is large enough, is inline in the header.
 */
#include "core/buffer.h"

#include "core/memory_use.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_MIN = 64,
    GROW_FAST_MAX = 256 << 10,
};

static bool is_sound(const struct bel_buffer *buffer)
{
    return buffer->count <= buffer->count_max && buffer->start <= buffer->capacity &&
           buffer->count <= buffer->capacity - buffer->start;
}

void bel__buffer_init(struct bel_buffer *buffer, size_t count_max)
{
    assert(count_max <= SIZE_MAX / 4); /* so that the sum of two sizes does not overflow */
    *buffer = (struct bel_buffer){.count_max = count_max};
}

void bel__buffer_finish(struct bel_buffer *buffer)
{
    assert(is_sound(buffer));
    bel__memory_shrink(buffer->capacity);
    free(buffer->memory);
    bel__buffer_init(buffer, buffer->count_max);
}

static void move_to_front(struct bel_buffer *buffer)
{
    assert(buffer->start >= buffer->count);
    memcpy(buffer->memory, buffer->memory + buffer->start, buffer->count);
    buffer->start = 0;
}

/* Allocates a new block instead of calling realloc(), which would also copy the consumed bytes. */
static int grow(struct bel_buffer *buffer, size_t needed)
{
    size_t more = buffer->capacity < GROW_FAST_MAX ? buffer->capacity : buffer->capacity / 4;
    size_t capacity = buffer->capacity + more;
    size_t capacity_max = 2 * buffer->count_max;
    assert(needed <= buffer->count_max);
    if (capacity < CAPACITY_MIN) capacity = CAPACITY_MIN;
    if (capacity > capacity_max) capacity = capacity_max;
    if (capacity < needed) capacity = needed;
    uint8_t *memory = malloc(capacity + 1); /* + 1 for the final 0 that vsnprintf() writes */
    if (memory == NULL) return BEL_ENOMEM;
    if (buffer->count > 0) memcpy(memory, bel__buffer_data(buffer), buffer->count);
    free(buffer->memory);
    bel__memory_grow(capacity - buffer->capacity);
    buffer->memory = memory;
    buffer->capacity = capacity;
    buffer->start = 0;
    return 0;
}

void bel__buffer_trim(struct bel_buffer *buffer, size_t kept)
{
    assert(is_sound(buffer));
    if (buffer->capacity <= kept || buffer->count > buffer->capacity / 2) return;
    if (buffer->count == 0) {
        bel__buffer_finish(buffer);
        return;
    }
    uint8_t *memory = malloc(buffer->count + 1); /* as in grow() */
    if (memory == NULL) return;
    memcpy(memory, bel__buffer_data(buffer), buffer->count);
    free(buffer->memory);
    bel__memory_shrink(buffer->capacity - buffer->count);
    buffer->memory = memory;
    buffer->capacity = buffer->count;
    buffer->start = 0;
}

int bel__buffer_make_room(struct bel_buffer *buffer, size_t bytes)
{
    assert(is_sound(buffer));
    if (bytes > buffer->count_max - buffer->count) return BEL_EFULL;
    size_t needed = buffer->count + bytes;
    if (needed <= buffer->capacity - buffer->start) return 0;
    if (needed <= buffer->capacity && buffer->start >= buffer->count) {
        move_to_front(buffer);
        return 0;
    }
    return grow(buffer, needed);
}

int bel__buffer_append(struct bel_buffer *buffer, const void *data, size_t bytes)
{
    assert(data != NULL || bytes == 0);
    int err = bel__buffer_reserve(buffer, bytes);
    if (err || bytes == 0) return err;
    memcpy(bel__buffer_space(buffer), data, bytes);
    bel__buffer_commit(buffer, bytes);
    return 0;
}

/* Prints directly into the space. If the text does not fit, this first call has measured it, and a
 * second call prints it after the buffer has grown. */
int bel__buffer_append_vformat(struct bel_buffer *buffer, const char *format, va_list args)
{
    assert(is_sound(buffer));
    size_t room = buffer->capacity - buffer->start - buffer->count;
    char *space = room > 0 ? (char *)bel__buffer_space(buffer) : NULL;
    va_list again;
    va_copy(again, args);
    int printed = vsnprintf(space, room + (room > 0), format, args);
    int err = printed < 0 ? BEL_EINVAL : bel__buffer_reserve(buffer, (size_t)printed);
    if (err == 0 && (size_t)printed > room) {
        (void)vsnprintf((char *)bel__buffer_space(buffer), (size_t)printed + 1, format, again);
    }
    va_end(again);
    if (err) return err;
    bel__buffer_commit(buffer, (size_t)printed);
    return 0;
}

int bel__buffer_append_format(struct bel_buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int err = bel__buffer_append_vformat(buffer, format, args);
    va_end(args);
    return err;
}
