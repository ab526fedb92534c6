/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SLAB_H
#define BEL_CORE_SLAB_H

/*
 * slab - items of one size, named by small numbers, that never move.
 *
 * A slab reserves address space for all the items it may ever hold and asks for
 * memory region by region as they are taken, so an item is found by one
 * multiplication and growing costs the same at any size. Memory is type-stable:
 * an item that was given back can still be read and holds what it held.
 *
 * Of the items given back, the last few are taken first, because they are in the
 * cache; the others are taken in the order of their addresses, for the same reason.
 *
 * Not for threads: a slab has one owner.
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
    size_t ready_bytes;    /* of memory, from the start of it */
    uint32_t item_bytes;
    uint32_t max;                    /* items the range has room for */
    uint32_t ready;                  /* items that have memory */
    uint32_t used;                   /* items ever taken: below it an index may be read */
    uint32_t stacked;                /* free items on the stack */
    uint32_t stack[BEL__SLAB_STACK]; /* the last given back */
    uint64_t *map;                   /* a bit per free item that is not on the stack */
    uint64_t *summary;               /* a bit per word of the map that is not 0 */
    uint32_t mapped;                 /* free items in the map */
    uint32_t cursor;                 /* the word of the summary to look at next */
    size_t map_bytes;                /* of address space, summary included */
};

/* Reserves room for `max` items. Returns 0 or BEL_ENOMEM. Items start zeroed. */
BEL_CHECKED int bel__slab_init(struct bel__slab *slab, uint32_t item_bytes, uint32_t max);

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

/* How many items have been given back and not taken again. */
static inline uint32_t bel__slab_free_count(const struct bel__slab *slab)
{
    return slab->stacked + slab->mapped;
}

/* How many items can be taken without asking for memory. */
static inline uint32_t bel__slab_spare(const struct bel__slab *slab)
{
    return bel__slab_free_count(slab) + (slab->ready - slab->used);
}

/* The parts of take and give that are rarely needed. */
uint32_t bel__slab_take_more(struct bel__slab *slab);
void bel__slab_unload(struct bel__slab *slab);

/* Takes an item and returns its index, or BEL__SLAB_NONE if none is to be had. */
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
