/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_SLOTS_H
#define BEL_CORE_WHEEL_SLOTS_H

/*
 * slots - the data of each timer, and the handles that name them.
 *
 * A slot is half a cache line. The order of timers is stored elsewhere, in 8-byte entries that
 * refer to slots. A slot has at most one own entry:
 *
 *     FREE        no timer, no entry
 *     FILED       the entry {place, this slot}, in a bucket or a run
 *     IN_HEAP     element `place` of the front's heap
 *     LEFT_FILED  no timer, but an entry: the next timer in this slot can reuse it
 *
 * An entry that is not its slot's own is stale and is dropped when it is reached. A timer may be
 * due later than its entry, never earlier.
 */

#include "core/slab.h"

#include <stdbool.h>

#ifndef BEL_GENERATION_BITS
#    define BEL_GENERATION_BITS 30
#endif

enum {
    TICK_BITS = 10, /* a tick is 1,024 ns, the resolution of entries */
    FREE = 0,
    FILED = 1,
    IN_HEAP = 2,
    LEFT_FILED = 3,
    WHERE_MASK = 3,
    GENERATION_SHIFT = 2,
};

#define GENERATION_MASK ((UINT32_C(1) << BEL_GENERATION_BITS) - 1)
#define SEQUENCE_BITS   56
#define SEQUENCE_MASK   ((UINT64_C(1) << SEQUENCE_BITS) - 1)

struct slot {
    uint64_t due;
    uint64_t user;  /* the caller's word */
    uint64_t order; /* priority, then sequence in the low 56 bits */
    uint32_t place; /* FILED: the low 32 bits of its entry's tick; IN_HEAP: its index */
    uint32_t tag;   /* generation, then one of the four states */
};

static_assert(sizeof(struct slot) == 32, "two slots share a cache line");
static_assert(BEL_GENERATION_BITS + GENERATION_SHIFT <= 32, "a tag is 32 bits");

struct slots {
    struct bel__slab slab;
    uint64_t armed;    /* timers */
    uint64_t retired;  /* slots that have used up their generations */
    uint32_t disguise; /* mixed into handles, so that those of two wheels differ */
};

static inline uint64_t tick_of(uint64_t due)
{
    return due >> TICK_BITS;
}

static inline struct slot *slot_at(const struct slots *slots, uint32_t index)
{
    return (struct slot *)slots->slab.base + index;
}

static inline unsigned where(const struct slot *slot)
{
    return slot->tag & WHERE_MASK;
}

static inline void set_where(struct slot *slot, uint32_t to)
{
    slot->tag = (slot->tag & ~(uint32_t)WHERE_MASK) | to;
}

static inline bool is_armed(const struct slot *slot)
{
    return where(slot) == FILED || where(slot) == IN_HEAP;
}

/* Returns whether the slot has an entry in a bucket or a run. */
static inline bool has_entry(const struct slot *slot)
{
    return where(slot) == FILED || where(slot) == LEFT_FILED;
}

/* Returns whether the entry with this tick is the slot's own. */
static inline bool owns(const struct slot *slot, uint32_t entry_tick)
{
    return has_entry(slot) && slot->place == entry_tick;
}

/* Releases an entry that is about to be dropped. Returns false if the entry is needed, because it
 * is the own entry of an armed timer. */
static inline bool slot_lets_go(struct slot *slot, uint32_t entry_tick)
{
    if (!owns(slot, entry_tick)) return true;
    if (where(slot) == FILED) return false;
    set_where(slot, FREE);
    return true;
}

/* Returns the latest tick that a slot's own entry can have. This is the entry's tick unless the
 * timer was moved by more than 2^32 ticks since it was filed. */
static inline uint64_t entry_tick_max(const struct slot *slot)
{
    uint64_t tick = tick_of(slot->due);
    return tick - (uint32_t)((uint32_t)tick - slot->place);
}

/* A handle is a slot's index and its tag in state FILED, mixed with `disguise`, so that one
 * comparison finds a timer in the most common state. */
static inline uint64_t handle_of(const struct slots *slots, const struct slot *slot, uint32_t index)
{
    uint32_t tag = (slot->tag & ~(uint32_t)WHERE_MASK) | FILED;
    return (uint64_t)(tag ^ slots->disguise) << 32 | index;
}

/* Returns the slot that a handle names, or NULL if it names no armed timer. */
static inline struct slot *slot_named(const struct slots *slots, uint64_t handle)
{
    uint32_t index = (uint32_t)handle, tag = (uint32_t)(handle >> 32) ^ slots->disguise;
    if (index >= slots->slab.used) return NULL;
    struct slot *slot = slot_at(slots, index);
    if (slot->tag == tag) return (tag & WHERE_MASK) == FILED ? slot : NULL;
    return slot->tag == (tag ^ FILED ^ IN_HEAP) && where(slot) == IN_HEAP ? slot : NULL;
}

/* Ends a slot's timer: its handle becomes stale, and the slot is FREE or LEFT_FILED for another
 * timer, unless its generations are used up. */
static inline void slot_free(struct slots *slots, struct slot *slot, uint32_t index, uint32_t state)
{
    assert(is_armed(slot));
    uint32_t generation = ((slot->tag >> GENERATION_SHIFT) + 1) & GENERATION_MASK;
    slot->tag = generation << GENERATION_SHIFT | state;
    slots->armed--;
    if (generation != 0) {
        bel__slab_give(&slots->slab, index);
    } else {
        slots->retired++;
    }
}

#endif
