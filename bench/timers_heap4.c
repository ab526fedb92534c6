/* SPDX-License-Identifier: MIT */

/*
 * The first baseline: an indexed 4-ary heap, as good as we can write it.
 *
 * The heap holds 16-byte entries with the whole sort key, so that comparing touches no
 * timer, and the four children of a node share one cache line: the root is at 3, the
 * children of k from 4k - 8. A timer's slot knows where it is in the heap.
 */
#include "own.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROOT = 3,
};

const struct engine_traits engine_traits = {.name = "heap4", .resolution_ns = 1, .is_exact = true};

static entry_t *heap;
static uint32_t heap_end = ROOT; /* one past the last */

const char *engine_version(void)
{
    return "own";
}

/* Returns 1 or 0 without a branch, which would be unpredictable; entries differ by < 2^127. */
static inline uint32_t is_less(entry_t a, entry_t b)
{
    return (uint32_t)((a - b) >> 127);
}

static inline uint32_t parent_of(uint32_t k)
{
    return k / 4 + 2;
}

static inline uint32_t child_of(uint32_t k)
{
    return 4 * k - 8;
}

static inline void put(uint32_t k, entry_t entry)
{
    heap[k] = entry;
    own_slots[slot_of(entry)].place = k;
}

static void sift_up(uint32_t k, entry_t entry)
{
    while (k > ROOT && entry < heap[parent_of(k)]) {
        put(k, heap[parent_of(k)]);
        k = parent_of(k);
    }
    put(k, entry);
}

/* Returns the smallest of the children from `child` on; at least one must exist. */
static inline uint32_t first_of(uint32_t child)
{
    const entry_t *c = &heap[child];
    if (child + 4 <= heap_end) {
        uint32_t a = is_less(c[1], c[0]), b = 2 + is_less(c[3], c[2]);
        return child + (a ^ ((a ^ b) & -is_less(c[b], c[a])));
    }
    uint32_t first = 0;
    for (uint32_t i = 1; child + i < heap_end; i++) {
        if (c[i] < c[first]) first = i;
    }
    return child + first;
}

static void sift_down(uint32_t k, entry_t entry)
{
    for (uint32_t child; (child = child_of(k)) < heap_end;) {
        const char *below = (const char *)&heap[child_of(child)];
        for (uint32_t line = 0; line < 4; line++)
            __builtin_prefetch(below + (size_t)line * 64);
        uint32_t first = first_of(child);
        if (heap[first] >= entry) break;
        put(k, heap[first]);
        k = first;
    }
    put(k, entry);
}

void engine_open(uint32_t timers)
{
    if (heap == NULL) heap = bench_map((size_t)timers + ROOT, sizeof *heap);
    own_open(timers);
    heap_end = ROOT;
}

void engine_close(void)
{
    free(own_handles);
}

void engine_reserve(uint32_t timers)
{
    memset(heap, 0, ((size_t)timers + ROOT) * sizeof *heap);
    memset(own_slots, 0, timers * sizeof *own_slots);
    memset(own_free, 0, timers * sizeof *own_free);
}

struct engine_objects engine_caller_objects(void)
{
    return (struct engine_objects){(const char *)own_handles, sizeof *own_handles};
}

void engine_schedule(uint32_t id, uint64_t due)
{
    sift_up(heap_end++, entry_of(due, ++own_sequence << SLOT_BITS | own_take(id)));
}

static void move(uint32_t k, entry_t entry)
{
    if (k > ROOT && entry < heap[parent_of(k)]) {
        sift_up(k, entry);
    } else {
        sift_down(k, entry);
    }
}

void engine_cancel(uint32_t id)
{
    uint32_t slot = own_named(id), k = own_slots[slot].place;
    entry_t last = heap[--heap_end];
    own_give(slot);
    if (k != heap_end) move(k, last);
}

void engine_restart(uint32_t id, uint64_t due)
{
    uint32_t slot = own_named(id), k = own_slots[slot].place;
    entry_t entry = entry_of(due, ++own_sequence << SLOT_BITS | slot);
    if (entry < heap[k]) {
        sift_up(k, entry);
    } else {
        sift_down(k, entry);
    }
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

static inline bool pop(void)
{
    if (heap_end == ROOT || due_of(heap[ROOT]) > bench_now) return false;
    entry_t top = heap[ROOT], last = heap[--heap_end];
    uint32_t slot = slot_of(top);
    uint64_t user = own_slots[slot].user;
    own_give(slot);
    if (heap_end > ROOT) sift_down(ROOT, last);
    bench_fired((uint32_t)user, due_of(top));
    return true;
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
    uint64_t due = due_of(heap[ROOT]);
    if (due > bench_now) bench_set_now((due + BENCH_MS - 1) / BENCH_MS * BENCH_MS);
    engine_fire();
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
