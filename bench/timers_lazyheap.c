/* SPDX-License-Identifier: MIT */

/*
 * The second baseline: a binary heap with lazy deletion, as good as we can write it.
 *
 * A cancel only marks the entry of the timer as stale. The entry stays until it is on
 * top, or until more than half of the heap is stale; then the heap is filtered and
 * rebuilt in linear time. A restart leaves a stale entry and pushes a new one.
 *
 * Entries are 16 bytes with the whole sort key. The children of k are 2k and 2k + 1, so
 * the pair never straddles a cache line and the four grandchildren fill one.
 */
#include "own.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROOT = 1,
    STALE_MIN = 1024, /* no compaction with fewer stale entries */
};

const struct engine_traits engine_traits = {
    .name = "lazyheap", .resolution_ns = 1, .is_exact = true, .garbage = ENGINE_GARBAGE_BY_COUNT};

static entry_t *heap;
static uint32_t heap_end = ROOT; /* one past the last */
static uint32_t live_count;
static uint64_t *live_tags; /* of a timer's entry, by slot; 0: not pending */

const char *engine_version(void)
{
    return "own";
}

static void sift_up(uint32_t k, entry_t entry)
{
    for (; k > ROOT && (entry < heap[k / 2]); k /= 2)
        heap[k] = heap[k / 2];
    heap[k] = entry;
}

static void sift_down(uint32_t k, entry_t entry)
{
    while (2 * k + 1 < heap_end) {
        __builtin_prefetch(&heap[(size_t)8 * k]);
        __builtin_prefetch(&heap[(size_t)8 * k + 4]);
        uint32_t child = 2 * k + (heap[2 * k + 1] < heap[2 * k]);
        if (heap[child] >= entry) break;
        heap[k] = heap[child];
        k = child;
    }
    if (2 * k + 1 == heap_end && (heap[2 * k] < entry)) {
        heap[k] = heap[2 * k];
        k = 2 * k;
    }
    heap[k] = entry;
}

static void compact(void)
{
    uint32_t kept = ROOT;
    for (uint32_t k = ROOT; k < heap_end; k++) {
        entry_t entry = heap[k];
        heap[kept] = entry;
        kept += live_tags[slot_of(entry)] == (uint64_t)entry;
    }
    heap_end = kept;
    for (uint32_t k = heap_end / 2; k >= ROOT; k--)
        sift_down(k, heap[k]);
}

static inline void compact_if_stale(void)
{
    uint32_t stale = heap_end - ROOT - live_count;
    if (stale > live_count + STALE_MIN) compact();
}

static inline void push(uint32_t slot, uint64_t due)
{
    uint64_t tag = ++own_sequence << SLOT_BITS | slot;
    live_tags[slot] = tag;
    sift_up(heap_end++, entry_of(due, tag));
}

/* Returns the largest number of entries: live ones, as many stale ones, and STALE_MIN. */
static size_t heap_room(uint32_t timers)
{
    return ROOT + (size_t)timers * 2 + STALE_MIN + 2;
}

void engine_open(uint32_t timers)
{
    if (heap == NULL) heap = bench_map(heap_room(timers), sizeof *heap);
    if (live_tags == NULL) live_tags = bench_map(timers, sizeof *live_tags);
    own_open(timers);
    heap_end = ROOT;
    live_count = 0;
}

void engine_close(void)
{
    free(own_handles);
}

void engine_reserve(uint32_t timers)
{
    memset(heap, 0, heap_room(timers) * sizeof *heap);
    memset(live_tags, 0, timers * sizeof *live_tags);
    memset(own_slots, 0, timers * sizeof *own_slots);
    memset(own_free, 0, timers * sizeof *own_free);
}

struct engine_objects engine_caller_objects(void)
{
    return (struct engine_objects){(const char *)own_handles, sizeof *own_handles};
}

void engine_schedule(uint32_t id, uint64_t due)
{
    live_count++;
    push(own_take(id), due);
}

void engine_cancel(uint32_t id)
{
    uint32_t slot = own_named(id);
    live_tags[slot] = 0;
    live_count--;
    own_give(slot);
    compact_if_stale();
}

void engine_restart(uint32_t id, uint64_t due)
{
    push(own_named(id), due);
    compact_if_stale();
}

void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        engine_restart(ids[i], dues[i]);
}

void engine_expect(uint32_t id)
{
    own_expect(id);
}

static inline void drop_top(void)
{
    entry_t last = heap[--heap_end];
    if (heap_end > ROOT) sift_down(ROOT, last);
}

/* Pops the first live timer that is due, and the stale entries before it. */
static inline bool pop(void)
{
    while (heap_end > ROOT && due_of(heap[ROOT]) <= bench_now) {
        entry_t top = heap[ROOT];
        uint32_t slot = slot_of(top);
        drop_top();
        if (live_tags[slot] != (uint64_t)top) continue;
        live_tags[slot] = 0;
        live_count--;
        uint64_t user = own_slots[slot].user;
        own_give(slot);
        bench_fired((uint32_t)user, due_of(top));
        return true;
    }
    return false;
}

bool engine_poll(void)
{
    return pop();
}

void engine_fire(void)
{
    while (pop()) {}
}

void engine_fire_next(void)
{
    while (live_tags[slot_of(heap[ROOT])] != (uint64_t)heap[ROOT])
        drop_top();
    uint64_t due = due_of(heap[ROOT]);
    if (due > bench_now) bench_set_now((due + BENCH_MS - 1) / BENCH_MS * BENCH_MS);
    engine_fire();
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
