/* SPDX-License-Identifier: MIT */

/*
 * Element i has the children 4i + 1 to 4i + 4. Every write of a key also stores its index in its
 * slot. Nothing else in the wheel writes the place of a slot that is IN_HEAP.
 */
#include "core/wheel/heap.h"

enum {
    ARITY = 4
};

int bel__heap_init(struct heap *heap, struct slots *slots, uint32_t keys_max)
{
    *heap = (struct heap){.slots = slots};
    return bel__slab_init(&heap->keys, sizeof(struct key), keys_max);
}

void bel__heap_finish(struct heap *heap)
{
    bel__slab_finish(&heap->keys);
}

static void sift_up(struct heap *heap, uint32_t index, const struct key *key)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / ARITY;
        if (!key_before(key, key_at(heap, parent))) break;
        heap_set(heap, index, key_at(heap, parent));
        index = parent;
    }
    heap_set(heap, index, key);
}

static uint32_t smallest_child(const struct heap *heap, uint32_t index)
{
    uint32_t child = ARITY * index + 1;
    uint32_t end = child + ARITY < heap->count ? child + ARITY : heap->count;
    uint32_t smallest = child;
    while (++child < end) {
        if (key_before(key_at(heap, child), key_at(heap, smallest))) smallest = child;
    }
    return smallest;
}

uint32_t bel__heap_second(const struct heap *heap)
{
    assert(heap->count > 1);
    return smallest_child(heap, 0);
}

static void sift_down(struct heap *heap, uint32_t index, const struct key *key)
{
    while (ARITY * index + 1 < heap->count) {
        uint32_t child = smallest_child(heap, index);
        if (!key_before(key_at(heap, child), key)) break;
        heap_set(heap, index, key_at(heap, child));
        index = child;
    }
    heap_set(heap, index, key);
}

void bel__heap_push(struct heap *heap, struct key key)
{
    assert(heap->count < heap->keys.ready);
    sift_up(heap, heap->count++, &key);
}

void bel__heap_replace(struct heap *heap, uint32_t index, struct key key)
{
    assert(index < heap->count);
    if (index > 0 && key_before(&key, key_at(heap, (index - 1) / ARITY))) {
        sift_up(heap, index, &key);
    } else {
        sift_down(heap, index, &key);
    }
}

void bel__heap_remove(struct heap *heap, uint32_t index)
{
    assert(index < heap->count);
    struct key last = *key_at(heap, --heap->count);
    if (index < heap->count) bel__heap_replace(heap, index, last);
}
