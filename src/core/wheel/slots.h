/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_SLOTS_H
#define BEL_CORE_WHEEL_SLOTS_H

/*
 * slots - what the wheel knows of each timer, and who may name it.
 *
 * A slot is half a cache line. The order of timers lives elsewhere, as 8-byte
 * entries that point here; a slot knows at most one entry as its own:
 *
 *     NOWHERE   no entry is its own
 *     FILED     the entry {place, this slot}, in a bucket or a run
 *     IN_HEAP   element `place` of the front's heap
 *
 * An entry that is not its slot's own is stale and dropped when it is met. A slot
 * that is free may still be FILED: the next timer to use it can take the entry
 * over. A FILED timer may be due later than its entry says, never earlier.
 */

#include "core/slab.h"

#include <stdbool.h>

#ifndef BEL_GENERATION_BITS
#    define BEL_GENERATION_BITS 29
#endif

enum {
    TICK_BITS = 10, /* a tick is 1,024 ns: what an entry knows of a due */
    NOWHERE = 0,
    FILED = 1,
    IN_HEAP = 2,
    WHERE_MASK = 3,
    ARMED = 4,
    GENERATION_SHIFT = 3,
};

#define GENERATION_MASK ((UINT32_C(1) << BEL_GENERATION_BITS) - 1)
#define SEQUENCE_BITS   56
#define SEQUENCE_MASK   ((UINT64_C(1) << SEQUENCE_BITS) - 1)

struct slot {
    uint64_t due;
    uint64_t user;  /* while free: the slab's link */
    uint64_t order; /* priority, then sequence in the low 56 bits */
    uint32_t place; /* FILED: the low 32 bits of its entry's tick; IN_HEAP: its index */
    uint32_t tag;   /* generation, ARMED, where */
};

static_assert(sizeof(struct slot) == 32, "two slots share a cache line");
static_assert(BEL_GENERATION_BITS + GENERATION_SHIFT <= 32, "a tag is 32 bits");

struct slots {
    struct bel__slab slab;
    uint64_t armed;            /* timers */
    uint64_t filed;            /* of them FILED: the entries that are needed */
    uint64_t retired;          /* slots that have had every generation */
    uint32_t generation_first; /* where each slot's generations start, and end */
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
    return slot->tag & ARMED;
}

/* Whether the entry with this tick is the slot's own. */
static inline bool owns(const struct slot *slot, uint32_t entry_tick)
{
    return where(slot) == FILED && slot->place == entry_tick;
}

/* The latest tick that a FILED slot's entry can have. It is the entry's own unless
 * the timer was moved by more than 2^32 ticks since it was filed. */
static inline uint64_t entry_tick_max(const struct slot *slot)
{
    uint64_t tick = tick_of(slot->due);
    uint64_t back = (uint32_t)((uint32_t)tick - slot->place);
    return tick >= back ? tick - back : 0;
}

static inline uint64_t handle_of(const struct slot *slot, uint32_t index)
{
    return (uint64_t)(slot->tag & ~(uint32_t)WHERE_MASK) << 32 | index;
}

/* The slot that a handle names, or NULL if it names no armed timer. */
static inline struct slot *slot_named(const struct slots *slots, uint64_t handle)
{
    uint32_t index = (uint32_t)handle;
    if (index >= slots->slab.used) return NULL;
    struct slot *slot = slot_at(slots, index);
    uint32_t tag = (uint32_t)(handle >> 32);
    if ((slot->tag & ~(uint32_t)WHERE_MASK) != tag || !(tag & ARMED)) return NULL;
    return slot;
}

/* Ends a slot's timer: its handle is stale from here on, and the slot is free for
 * another, unless it has no generation left. */
static inline void slot_free(struct slots *slots, struct slot *slot, uint32_t index)
{
    assert(is_armed(slot));
    uint32_t generation = (slot->tag >> GENERATION_SHIFT) + 1;
    generation &= GENERATION_MASK;
    slot->tag = generation << GENERATION_SHIFT | (slot->tag & WHERE_MASK);
    slots->armed--;
    if (where(slot) == FILED) slots->filed--;
    if (generation != slots->generation_first) {
        bel__slab_give(&slots->slab, index);
    } else {
        slots->retired++;
    }
}

#endif
