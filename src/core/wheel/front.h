/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_FRONT_H
#define BEL_CORE_WHEEL_FRONT_H

/*
 * front - the timers that come next, in exact order; front.c explains the design.
 *
 * Every timer whose tick has passed in the rack is here: in the run, as sorted entries that are
 * checked when they are reached, or in the heap. If bel__front_settle() returns true, the first
 * timer of the wheel is the earlier of the first of the run and the top of the heap.
 */

#include "core/wheel/heap.h"
#include "core/wheel/rack.h"

enum {
    PREFETCH_AHEAD = 16, /* entries whose slots are prefetched */
    RUN_MAX = 1006,      /* entries in a run: with these and its header it fills 8 KiB */
    WORK_MAX = 2048,
    WORK_HALF = WORK_MAX / 2, /* a call that has touched more begins nothing new */
};

/* Sorted entries; the remaining ones start at `head`. */
struct run {
    uint64_t limit; /* no entry has a later tick */
    uint32_t head;
    uint32_t count;
    struct entry entries[RUN_MAX + PREFETCH_AHEAD];
};

struct workspace;

struct front {
    struct run *run; /* the current run, one of `runs`, and its index */
    uint32_t run_index;
    struct heap heap;
    struct rack *rack;
    struct slots *slots;
    struct bel__slab runs;
    struct workspace *space; /* for sorting */
    uint64_t now_tick;       /* the time of the owner's last call */
    struct bucket crowd;     /* entries not sorted yet of a tick that is too large for a run */
    uint64_t crowd_tick;     /* that tick, while `crowd` is not empty */
    uint32_t crowd_runs;     /* runs whose first timers are in the heap */
    uint32_t crowd_pending;  /* entries in these runs, at most */
    uint32_t late;           /* timers armed too late for the rack since the run was made */
    uint32_t drain_max;      /* buckets up to this size are taken out, larger ones opened */
    bool chores_due;         /* the periodic work of pop_slowly() is due */
};

BEL_CHECKED int bel__front_init(struct front *front, struct rack *rack, uint32_t timers_max);
void bel__front_finish(struct front *front);

/* Returns true if the first timer of the wheel is the first of the run or the top of the heap; the
 * run, if it is not empty, then starts with a timer. Returns false if nothing is due up to tick
 * `until`, or the work limit of the call is reached. */
bool bel__front_settle(struct front *front, uint64_t until);

/* Moves `passed` to the time while nothing is due. */
void bel__front_follow(struct front *front, uint64_t tick);

/* Returns whether bel__front_add() has memory for one more timer. */
bool bel__front_room(struct front *front);

/* Adds a timer whose tick has passed, or that fits nowhere else. */
void bel__front_add(struct front *front, const struct slot *slot, uint32_t index);

/* Removes a timer from the heap. The caller then frees or places its slot. */
void bel__front_remove(struct front *front, uint32_t heap_index);

static inline struct run *run_at(const struct front *front, uint32_t index)
{
    return (struct run *)bel__slab_at(&front->runs, index);
}

static inline bool run_is_empty(const struct run *run)
{
    return run->head == run->count;
}

/* Returns whether an entry leads to a timer that is due at the entry's tick. */
static inline bool leads_to(const struct slot *slot, struct entry entry, uint64_t limit)
{
    uint64_t tick = tick_of(slot->due);
    return where(slot) == FILED && slot->place == entry.tick && (uint32_t)tick == entry.tick &&
           tick <= limit;
}

/* Advances a run to its next entry. */
static inline void run_step(const struct front *front, struct run *run)
{
    uint32_t ahead = run->entries[run->head++ + PREFETCH_AHEAD].slot;
    __builtin_prefetch(slot_at(front->slots, ahead), 1);
}

/* Sorts the entries of `space` by tick, counted from `base`, into `out`; order.c. */
void bel__order_ticks(struct workspace *space, uint32_t count, uint32_t base, struct entry *out);

/* Sorts entries of one tick by the exact order of their slots; order.c. */
void bel__order_ties(struct workspace *space, const struct slots *slots, struct entry *entries,
                     uint32_t count);

/* Room for a run, plus one chunk, and the same again for sorting. */
struct workspace {
    struct entry entries[RUN_MAX + CHUNK];
    struct entry other[RUN_MAX + CHUNK];
    struct key keys[2][RUN_MAX];
};

#endif
