/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_HEAP_H
#define BEL_CORE_WHEEL_HEAP_H

/*
 * heap - a small priority queue of the timers that come next.
 *
 * A 4-ary heap. The slot of each timer in it stores its index, so that any timer can be removed. An
 * element may represent a run: it is the first timer of the run, and the next timer of the run
 * replaces it when it leaves.
 */

#include "core/wheel/slots.h"

/* The sort key of a timer, and where it comes from. */
struct key {
    uint64_t due;
    uint64_t order;
    uint32_t slot;
    uint32_t run; /* 0: the timer was armed after its tick had passed in the rack */
};

struct heap {
    struct bel__slab keys; /* an array of struct key */
    uint32_t count;
    struct slots *slots;
};

static inline bool key_before(const struct key *a, const struct key *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static inline struct key *key_at(const struct heap *heap, uint32_t index)
{
    return (struct key *)(void *)heap->keys.base + index;
}

/* Writes a key to an index and stores the index in its slot. */
static inline void heap_set(struct heap *heap, uint32_t index, const struct key *key)
{
    struct slot *slot = slot_at(heap->slots, key->slot);
    *key_at(heap, index) = *key;
    slot->place = index;
    set_where(slot, IN_HEAP);
}

BEL_CHECKED int bel__heap_init(struct heap *heap, struct slots *slots, uint32_t keys_max);
void bel__heap_finish(struct heap *heap);

/* Adds a key. The caller has reserved memory. */
void bel__heap_push(struct heap *heap, struct key key);

/* Replaces a key by another. */
void bel__heap_replace(struct heap *heap, uint32_t index, struct key key);

/* Removes a key. Its slot is not changed. */
void bel__heap_remove(struct heap *heap, uint32_t index);

/* Returns the index of the second smallest key. The heap has at least two. */
uint32_t bel__heap_second(const struct heap *heap);

#endif
