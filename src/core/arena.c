/* SPDX-License-Identifier: MIT */

/* A list of blocks. A request that does not fit into the rest of the first block gets a new
 * block. */
#include "core/arena.h"

#include "core/memory_use.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 64 << 10,
    ALIGN = alignof(max_align_t),
};

struct bel_arena_block {
    struct bel_arena_block *next;
    size_t bytes; /* of data */
    alignas(max_align_t) unsigned char data[];
};

static void drop(struct bel_arena_block *block)
{
    while (block != NULL) {
        struct bel_arena_block *next = block->next;
        bel__memory_shrink(sizeof *block + block->bytes);
        free(block);
        block = next;
    }
}

void bel__arena_finish(struct bel_arena *arena)
{
    drop(arena->blocks);
    *arena = (struct bel_arena){0};
}

void bel__arena_reset(struct bel_arena *arena)
{
    struct bel_arena_block *block = arena->blocks;
    arena->used = 0;
    if (block == NULL) return;
    drop(block->next);
    block->next = NULL;
    if (block->bytes > BLOCK_BYTES) bel__arena_finish(arena);
}

static struct bel_arena_block *grow(struct bel_arena *arena, size_t bytes)
{
    size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct bel_arena_block *block = malloc(sizeof *block + room);
    if (block == NULL) return NULL;
    bel__memory_grow(sizeof *block + room);
    *block = (struct bel_arena_block){.next = arena->blocks, .bytes = room};
    arena->blocks = block;
    arena->used = 0;
    return block;
}

void *bel__arena_take(struct bel_arena *arena, size_t bytes)
{
    struct bel_arena_block *block = arena->blocks;
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (block == NULL || block->bytes - arena->used < bytes) block = grow(arena, bytes);
    if (block == NULL) return NULL;
    void *taken = block->data + arena->used;
    arena->used += bytes;
    assert(arena->used <= block->bytes);
    return taken;
}

struct bel_view bel__arena_copy(struct bel_arena *arena, struct bel_view view)
{
    void *copy = bel__arena_take(arena, view.bytes > 0 ? view.bytes : 1);
    if (copy == NULL) return (struct bel_view){0};
    if (view.bytes > 0) memcpy(copy, view.data, view.bytes);
    return (struct bel_view){.data = copy, .bytes = view.bytes};
}
