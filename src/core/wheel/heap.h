/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_HEAP_H
#define BEL_CORE_WHEEL_HEAP_H

/*
 * heap - the few timers that come next, smallest key first.
 *
 * A 4-ary heap. The slot of each timer in it knows its index, so that any of them
 * can be taken out. An element may stand for a run: it is the run's first timer,
 * and the run's next one takes its place when it leaves.
 */

#include "core/wheel/slots.h"

/* A timer's place in the promised order, and where it comes from. */
struct key {
    uint64_t due;
    uint64_t order;
    uint32_t slot;
    uint32_t run; /* 0: it was armed after its time had been taken out of the rack */
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

/* Writes a key to its place and tells its slot. */
static inline void heap_set(struct heap *heap, uint32_t index, const struct key *key)
{
    struct slot *slot = slot_at(heap->slots, key->slot);
    *key_at(heap, index) = *key;
    slot->place = index;
    set_where(slot, IN_HEAP);
}

BEL_CHECKED int bel__heap_init(struct heap *heap, struct slots *slots, uint32_t keys_max);
void bel__heap_finish(struct heap *heap);

/* Adds a key. The caller has made sure of room. */
void bel__heap_push(struct heap *heap, struct key key);

/* Puts a key in the place of another. */
void bel__heap_replace(struct heap *heap, uint32_t index, struct key key);

/* Takes a key out. Its slot is left as it is. */
void bel__heap_remove(struct heap *heap, uint32_t index);

/* The index of the smallest key but one. There are two at least. */
uint32_t bel__heap_second(const struct heap *heap);

#endif
