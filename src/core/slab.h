/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SLAB_H
#define BEL_CORE_SLAB_H

/*
 * slab - an array of items of one size, addressed by index, that never move.
 *
 * A slab reserves address space for all the items it may ever hold and allocates memory step by
 * step. So an item is found by one multiplication, and growing costs the same at any size. Memory
 * is type-stable: an item that was given back can still be read and keeps its contents until it is
 * taken again.
 *
 * Items given back most recently are taken first, because they are in the cache; the others are
 * taken in the order of their addresses, for the same reason.
 *
 * Threads: a slab belongs to one thread.
 */

#include "belfry/error.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define BEL__SLAB_NONE UINT32_MAX

enum {
    BEL__SLAB_STACK = 512
};

struct bel__slab {
    unsigned char *base;   /* start of the reserved range */
    size_t reserved_bytes; /* of address space */
    size_t ready_bytes;    /* of memory, from the start of the range */
    uint32_t item_bytes;
    uint32_t max;                    /* items the range has room for */
    uint32_t ready;                  /* items that have memory */
    uint32_t used;                   /* items ever taken: an index below it may be read */
    uint32_t stacked;                /* free items on the stack */
    uint32_t stack[BEL__SLAB_STACK]; /* the items given back last */
    uint64_t *map;                   /* one bit per free item that is not on the stack */
    uint64_t *summary;               /* one bit per word of the map that is not 0 */
    uint32_t mapped;                 /* free items in the map */
    uint32_t cursor;                 /* the next word of the summary to search */
    size_t map_bytes;                /* address space of map and summary */
};

/* Reserves address space for `max` items, which are zeroed. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max);

/* Frees everything; a zeroed slab is allowed. */
void bel__slab_finish(struct bel__slab *slab);

/* Allocates memory for at least `count` items in total. Returns 0, BEL_ENOMEM, or BEL_EFULL if
 * `count` exceeds the maximum. */
BEL_CHECKED int bel__slab_grow(struct bel__slab *slab, uint32_t count);

/* Like bel__slab_grow(), and faults the memory in, so that later use causes no page fault. */
BEL_CHECKED int bel__slab_prefault(struct bel__slab *slab, uint32_t count);

static inline void *bel__slab_at(const struct bel__slab *slab, uint32_t index)
{
    return slab->base + (size_t)index * slab->item_bytes;
}

/* Returns the number of items given back and not taken again. */
static inline uint32_t bel__slab_free_count(const struct bel__slab *slab)
{
    return slab->stacked + slab->mapped;
}

/* Returns the number of items that can be taken without allocating memory. */
static inline uint32_t bel__slab_spare(const struct bel__slab *slab)
{
    return bel__slab_free_count(slab) + (slab->ready - slab->used);
}

/* The slow paths of take and give. */
uint32_t bel__slab_take_more(struct bel__slab *slab);
void bel__slab_unload(struct bel__slab *slab);

/* Takes an item and returns its index, or BEL__SLAB_NONE if memory has run out or all are taken. */
static inline uint32_t bel__slab_take(struct bel__slab *slab)
{
    if (slab->stacked == 0) return bel__slab_take_more(slab);
    return slab->stack[--slab->stacked];
}

/* Gives an item back. */
static inline void bel__slab_give(struct bel__slab *slab, uint32_t index)
{
    assert(index < slab->used);
    if (slab->stacked == BEL__SLAB_STACK) bel__slab_unload(slab);
    slab->stack[slab->stacked++] = index;
}

#endif
