/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SLAB_H
#define BEL_CORE_SLAB_H

/*
 * slab - items of one size, named by small numbers, that never move.
 *
 * A slab reserves address space for all the items it may ever hold and asks for
 * memory region by region as they are taken, so an item is found by one
 * multiplication and growing costs the same at any size. Memory is type-stable:
 * an item that was given back can still be read, and holds what it held except
 * for the four bytes at `link_offset`. The item given back last is taken first.
 *
 * Not for threads: a slab has one owner.
 */

#include "belfry/error.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define BEL__SLAB_NONE UINT32_MAX

struct bel__slab {
    unsigned char *base;   /* start of the reserved range */
    size_t reserved_bytes; /* of address space */
    size_t ready_bytes;    /* of memory, from the start of it */
    uint32_t item_bytes;
    uint32_t link_offset; /* where a free item may be written to */
    uint32_t max;         /* items the range has room for */
    uint32_t ready;       /* items that have memory */
    uint32_t used;        /* items ever taken: below it an index may be read */
    uint32_t free;        /* the first free item, or BEL__SLAB_NONE */
    uint32_t free_count;
};

/* Reserves room for `max` items. Returns 0 or BEL_ENOMEM. Items start zeroed. */
BEL_CHECKED int bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t link_offset,
                               uint32_t max);

/* Releases everything; a zeroed slab is allowed. */
void bel__slab_finish(struct bel__slab *slab);

/* Gets memory for at least `count` items in all. Returns 0, BEL_ENOMEM or, beyond
 * the slab's maximum, BEL_EFULL. */
BEL_CHECKED int bel__slab_grow(struct bel__slab *slab, uint32_t count);

/* The same, and touches the memory so that using it later never faults. */
BEL_CHECKED int bel__slab_prefault(struct bel__slab *slab, uint32_t count);

static inline void *bel__slab_at(const struct bel__slab *slab, uint32_t index)
{
    return slab->base + (size_t)index * slab->item_bytes;
}

/* How many items can be taken without asking for memory. */
static inline uint32_t bel__slab_spare(const struct bel__slab *slab)
{
    return slab->free_count + (slab->ready - slab->used);
}

static inline uint32_t *bel__slab_link(const struct bel__slab *slab, uint32_t index)
{
    return (uint32_t *)(void *)((unsigned char *)bel__slab_at(slab, index) + slab->link_offset);
}

/* Takes an item and returns its index, or BEL__SLAB_NONE if none is to be had. */
static inline uint32_t bel__slab_take(struct bel__slab *slab)
{
    uint32_t index = slab->free;
    if (index != BEL__SLAB_NONE) {
        slab->free = *bel__slab_link(slab, index);
        slab->free_count--;
        if (slab->free != BEL__SLAB_NONE) __builtin_prefetch(bel__slab_at(slab, slab->free), 1);
        return index;
    }
    if (slab->used == slab->ready && bel__slab_grow(slab, slab->used + 1) != 0) {
        return BEL__SLAB_NONE;
    }
    return slab->used++;
}

/* Gives an item back. */
static inline void bel__slab_give(struct bel__slab *slab, uint32_t index)
{
    assert(index < slab->used);
    *bel__slab_link(slab, index) = slab->free;
    slab->free = index;
    slab->free_count++;
}

#endif
