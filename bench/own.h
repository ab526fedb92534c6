/* SPDX-License-Identifier: MIT */
#ifndef BENCH_OWN_H
#define BENCH_OWN_H

/*
 * own - shared by our two baseline engines, so that they offer what the wheel offers: a
 * user word per timer, a handle that becomes invalid when its timer ends, memory that
 * grows with the timers, and the exact order (due, order of scheduling). An engine that
 * leaves any of this to its caller would look cheaper than it is.
 */

#include "engine.h"

enum {
    SLOT_BITS = 24, /* of a tag: up to 16 M timers */
};

/* The due time in the upper half; the tag in the lower: sequence number, then slot. A
 * single integer, which the compiler keeps in two registers. */
__extension__ typedef unsigned __int128 entry_t;

struct own_slot {
    uint64_t user;
    uint32_t generation; /* is increased when the timer ends */
    uint32_t place;      /* for the engine's use */
};

static struct own_slot *own_slots;
static uint32_t *own_free; /* a stack */
static uint32_t own_used, own_free_count;
static uint64_t own_sequence;
static uint64_t *own_handles; /* kept by the caller, by id */

static inline entry_t entry_of(uint64_t due, uint64_t tag)
{
    return (entry_t)due << 64 | tag;
}

static inline uint64_t due_of(entry_t entry)
{
    return (uint64_t)(entry >> 64);
}

static inline uint32_t slot_of(entry_t entry)
{
    return (uint32_t)entry & ((1 << SLOT_BITS) - 1);
}

static inline void own_open(uint32_t timers)
{
    if (own_slots == NULL) own_slots = bench_map(timers, sizeof *own_slots);
    if (own_free == NULL) own_free = bench_map(timers, sizeof *own_free);
    own_handles = bench_caller_alloc(timers, sizeof *own_handles);
    own_used = own_free_count = 0;
}

/* Allocates a slot for a timer and stores its handle for the caller. */
static inline uint32_t own_take(uint32_t id)
{
    uint32_t index = own_free_count > 0 ? own_free[--own_free_count] : own_used++;
    own_slots[index].user = id;
    own_handles[id] = (uint64_t)own_slots[index].generation << 32 | index;
    return index;
}

static inline void own_give(uint32_t index)
{
    own_slots[index].generation++;
    own_free[own_free_count++] = index;
}

/* Prefetches the slot of the caller's handle. */
static inline void own_expect(uint32_t id)
{
    __builtin_prefetch(&own_slots[(uint32_t)own_handles[id]], 1);
}

/* Returns the slot of the caller's handle. */
static inline uint32_t own_named(uint32_t id)
{
    uint64_t handle = own_handles[id];
    uint32_t index = (uint32_t)handle;
    if (index >= own_used || own_slots[index].generation != (uint32_t)(handle >> 32)) {
        bench_fail("stale handle");
    }
    return index;
}

#endif
