/* SPDX-License-Identifier: MIT */

/*
 * The path of a timer through the wheel:
 *
 *     arm --> slot + entry in the rack --> sorted into the run --> pop
 *      \                                                           ^
 *       '---> its tick has already passed in the rack --> heap ----'
 *
 * The slot holds the definitive state of a timer; an entry only says that the slot must be checked
 * by then. So cancelling writes only the slot. Moving a timer to a later time, the most common
 * operation on timeouts, also writes only the slot: when the entry comes up, it is filed again. See
 * slots.h, rack.c and front.c for the parts.
 */
#include "belfry/wheel.h"

#include "core/wheel/wheel.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Out of line, so that the fast path saves no registers for it. */
#define RARE __attribute__((noinline))

enum {
    TIMERS_MAX_DEFAULT = 1 << 28,
    BATCH_AHEAD = 32,    /* timers of a batch that are prefetched */
    RETIRED_MAX = 65536, /* spare slots, to replace those whose generations are used up */
    CALLS_PER_SWEEP = 4, /* calls that end or move a timer, per chunk swept */
    POPS_PER_CHORES = 64,
    STALE_PERCENT_MIN = 5, /* the sweep could not keep up with less */
};

static_assert((int)WORK_MAX == (int)BEL_WHEEL_WORK_MAX, "the front keeps the promised bound");

/* Distinguishes wheels that have the same address one after the other. */
static atomic_uint_least32_t wheels_made;

/* Spreads a seed over the bits of a generation. */
static uint32_t disguise_from(uint64_t seed)
{
    uint64_t mixed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return ((uint32_t)(mixed >> 32) & GENERATION_MASK) << GENERATION_SHIFT;
}

int bel_wheel_create(const struct bel_wheel_options *options, struct bel_wheel **out)
{
    static const struct bel_wheel_options defaults = {0};
    if (options == NULL) options = &defaults;
    uint32_t max = options->timers_max != 0 ? options->timers_max : TIMERS_MAX_DEFAULT;
    uint32_t stale = options->stale_percent != 0 ? options->stale_percent : 100;
    if (max > TIMERS_MAX_DEFAULT || options->now == BEL_NEVER) return BEL_EINVAL;
    if (stale < STALE_PERCENT_MIN || stale > 100) return BEL_EINVAL;

    struct bel_wheel *wheel = calloc(1, sizeof *wheel);
    if (wheel == NULL) return BEL_ENOMEM;
    wheel->timers_max = max;
    uint64_t seed = options->handle_seed;
    if (seed == 0) {
        /* Relaxed: the number only has to be different each time. */
        seed = atomic_fetch_add_explicit(&wheels_made, 1, memory_order_relaxed);
        seed = seed << 48 ^ (uintptr_t)wheel;
    }
    wheel->slots.disguise = disguise_from(seed);
    int err = bel__slab_init(&wheel->slots.slab, sizeof(struct slot), max + RETIRED_MAX);
    if (err) goto fail;
    err = bel__rack_init(&wheel->rack, &wheel->slots, tick_of(options->now), max);
    if (err) goto fail;
    wheel->rack.stale_share = stale * 256 / 100;
    err = bel__front_init(&wheel->front, &wheel->rack, max);
    if (err) goto fail;
    *out = wheel;
    return 0;

fail:
    bel_wheel_destroy(wheel);
    return err;
}

void bel_wheel_destroy(struct bel_wheel *wheel)
{
    if (wheel == NULL) return;
    bel__front_finish(&wheel->front);
    bel__rack_finish(&wheel->rack);
    bel__slab_finish(&wheel->slots.slab);
    free(wheel);
}

int bel_wheel_reserve(struct bel_wheel *wheel, uint32_t timers)
{
    if (timers > wheel->timers_max) return BEL_EFULL;
    uint32_t chunks = timers / (CHUNK - 1) + timers / (4 * CHUNK) + 64 * DIGITS;
    uint32_t runs = timers / (64 * RUN_MAX) + 16; /* enough for a crowd of a 64th of the timers */
    uint32_t nodes = timers / 8192 + 256;
    struct {
        struct bel__slab *slab;
        uint32_t count;
    } parts[] = {
        {&wheel->slots.slab, timers + (uint32_t)wheel->slots.retired},
        {&wheel->rack.chunks, chunks},
        {&wheel->rack.nodes, nodes},
        {&wheel->front.runs, runs},
        {&wheel->front.heap.keys, 4 * RUN_MAX},
    };
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint32_t max = parts[i].slab->max;
        int err = bel__slab_prefault(parts[i].slab, parts[i].count < max ? parts[i].count : max);
        if (err) return err;
    }
    /* Late timers wait in the heap: it gets address space for all, but its pages are not
     * touched. */
    uint32_t keys = timers + 2 * RUN_MAX, keys_max = wheel->front.heap.keys.max;
    return bel__slab_grow(&wheel->front.heap.keys, keys < keys_max ? keys : keys_max);
}

/* Starts counting the entries that a call touches. */
static void begin(struct bel_wheel *wheel)
{
    wheel->rack.touched = 0;
}

static void end(struct bel_wheel *wheel)
{
    assert(wheel->rack.touched <= WORK_MAX);
    if (wheel->rack.touched > wheel->touched_max) wheel->touched_max = wheel->rack.touched;
}

/* Sweeps once in CALLS_PER_SWEEP calls that end or move a timer. */
RARE static void sweep(struct bel_wheel *wheel)
{
    if (++wheel->untidy_calls % CALLS_PER_SWEEP != 0) return;
    bel__rack_sweep(&wheel->rack);
    end(wheel);
}

static void tidy(struct bel_wheel *wheel)
{
    if (rack_is_untidy(&wheel->rack)) sweep(wheel);
}

/* Returns whether the slot's entry comes up early enough for this tick. */
static bool keeps_entry(const struct rack *rack, const struct slot *slot, uint64_t tick)
{
    return tick > rack->passed && entry_tick_max(slot) <= tick;
}

/* Sets the due of a slot, after all others armed for the same due and priority. */
static void set_due(struct bel_wheel *wheel, struct slot *slot, uint64_t due)
{
    slot->due = due;
    slot->order = (slot->order & ~SEQUENCE_MASK) | wheel->sequence++;
}

/* Places a slot in the front: its tick has passed, or memory for the rack has run out. */
RARE static int place_in_front(struct bel_wheel *wheel, struct slot *slot, uint32_t index,
                               uint64_t due)
{
    if (!bel__front_room(&wheel->front)) return BEL_ENOMEM;
    set_due(wheel, slot, due);
    bel__front_add(&wheel->front, slot, index);
    end(wheel);
    return 0;
}

/* Places a slot in the rack or the front, wherever it was before. */
static inline int place(struct bel_wheel *wheel, struct slot *slot, uint32_t index, uint64_t due)
{
    uint64_t tick = tick_of(due);
    if (tick <= wheel->rack.passed || !rack_file(&wheel->rack, tick, index)) {
        return place_in_front(wheel, slot, index, due);
    }
    set_due(wheel, slot, due);
    set_where(slot, FILED);
    slot->place = (uint32_t)tick;
    return 0;
}

/* The slow path of bel_wheel_arm(). */
RARE static int arm_slowly(struct bel_wheel *wheel, uint64_t due, uint64_t order, uint64_t user,
                           bel_timer_t *out)
{
    struct slots *slots = &wheel->slots;
    if (due == BEL_NEVER) return BEL_ERANGE;
    if (slots->armed >= wheel->timers_max) return BEL_EFULL;
    uint32_t index = bel__slab_take(&slots->slab);
    if (index == BEL__SLAB_NONE) {
        return slots->slab.used == slots->slab.max ? BEL_EFULL : BEL_ENOMEM;
    }
    begin(wheel);
    struct slot *slot = slot_at(slots, index);
    slot->order = order;
    int err = place(wheel, slot, index, due);
    if (err) {
        bel__slab_give(&slots->slab, index);
        return err;
    }
    slot->user = user;
    slots->armed++;
    *out = handle_of(slots, slot, index);
    return 0;
}

int bel_wheel_arm(struct bel_wheel *wheel, uint64_t due, uint8_t priority, uint64_t user,
                  bel_timer_t *out)
{
    struct slots *slots = &wheel->slots;
    struct bel__slab *slab = &slots->slab;
    uint64_t order = (uint64_t)priority << SEQUENCE_BITS, tick = tick_of(due);
    if (slab->stacked == 0 || due == BEL_NEVER || tick <= wheel->rack.passed ||
        slots->armed >= wheel->timers_max) {
        return arm_slowly(wheel, due, order, user, out);
    }
    uint32_t index = slab->stack[slab->stacked - 1];
    struct slot *slot = slot_at(slots, index);
    if (where(slot) != LEFT_FILED || entry_tick_max(slot) > tick) {
        struct entry entry = {(uint32_t)tick, index};
        if (!rack_file_quickly(&wheel->rack, tick, entry)) {
            return arm_slowly(wheel, due, order, user, out);
        }
        slot->place = entry.tick;
    }
    slab->stacked--;
    set_where(slot, FILED);
    slot->due = due;
    slot->user = user;
    slot->order = order | wheel->sequence++;
    slots->armed++;
    *out = handle_of(slots, slot, index);
    return 0;
}

/* Moves a timer that has no entry, or whose entry comes up too late. */
RARE static int move(struct bel_wheel *wheel, struct slot *slot, uint32_t index, uint64_t due)
{
    if (!bel__front_room(&wheel->front)) return BEL_ENOMEM;
    begin(wheel);
    if (where(slot) == IN_HEAP) bel__front_remove(&wheel->front, slot->place);
    int err = place(wheel, slot, index, due);
    assert(err == 0); /* the heap has room at least */
    tidy(wheel);
    end(wheel);
    return err;
}

static inline int rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return BEL_ESTALE;
    if (due == BEL_NEVER) return BEL_ERANGE;
    if (where(slot) == FILED && keeps_entry(&wheel->rack, slot, tick_of(due))) {
        set_due(wheel, slot, due);
        return 0;
    }
    return move(wheel, slot, (uint32_t)timer, due);
}

int bel_wheel_rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    return rearm(wheel, timer, due);
}

size_t bel_wheel_rearm_many(struct bel_wheel *wheel, struct bel_rearm *moves, size_t count)
{
    size_t moved = 0, ahead = 0;
    for (size_t i = 0; i < count; i++) {
        for (; ahead < count && ahead <= i + BATCH_AHEAD; ahead++) {
            __builtin_prefetch(slot_at(&wheel->slots, (uint32_t)moves[ahead].timer), 1);
        }
        moves[i].result = rearm(wheel, moves[i].timer, moves[i].due);
        moved += moves[i].result == 0;
    }
    return moved;
}

void bel_wheel_expect(const struct bel_wheel *wheel, bel_timer_t timer)
{
    uint32_t index = (uint32_t)timer;
    if (index < wheel->slots.slab.used) __builtin_prefetch(slot_at(&wheel->slots, index), 1);
}

/* Removes a cancelled timer from the heap; timers elsewhere only need their slots freed. */
RARE static void leave_heap(struct bel_wheel *wheel, const struct slot *slot)
{
    bel__front_remove(&wheel->front, slot->place);
    end(wheel);
}

bool bel_wheel_cancel(struct bel_wheel *wheel, bel_timer_t timer)
{
    struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return false;
    begin(wheel);
    if (where(slot) == IN_HEAP) leave_heap(wheel, slot);
    uint32_t state = where(slot) == FILED ? LEFT_FILED : FREE;
    slot_free(&wheel->slots, slot, (uint32_t)timer, state);
    tidy(wheel);
    return true;
}

static inline void describe(const struct slots *slots, const struct slot *slot, uint32_t index,
                            struct bel_wheel_timer *out)
{
    *out = (struct bel_wheel_timer){
        .due = slot->due,
        .user = slot->user,
        .timer = handle_of(slots, slot, index),
        .priority = (uint8_t)(slot->order >> SEQUENCE_BITS),
    };
}

bool bel_wheel_find(const struct bel_wheel *wheel, bel_timer_t timer, struct bel_wheel_timer *out)
{
    const struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return false;
    describe(&wheel->slots, slot, (uint32_t)timer, out);
    return true;
}

/* Returns the first timer of the run, whose entry leads to `slot`. */
static inline void take_first(struct bel_wheel *wheel, struct slot *slot, uint32_t index,
                              struct bel_wheel_timer *out)
{
    struct run *run = wheel->front.run;
    describe(&wheel->slots, slot, index, out);
    run_step(&wheel->front, run);
    if (run->head % POPS_PER_CHORES == 0) wheel->front.chores_due = true;
    slot_free(&wheel->slots, slot, index, FREE);
}

/* Returns the timer on top of the heap. */
static void take_top(struct bel_wheel *wheel, struct bel_wheel_timer *out)
{
    uint32_t index = key_at(&wheel->front.heap, 0)->slot;
    struct slot *slot = slot_at(&wheel->slots, index);
    assert(where(slot) == IN_HEAP);
    describe(&wheel->slots, slot, index, out);
    bel__front_remove(&wheel->front, 0);
    slot_free(&wheel->slots, slot, index, FREE);
    tidy(wheel);
}

static inline bool comes_before(const struct slot *slot, const struct key *key)
{
    return slot->due != key->due ? slot->due < key->due : slot->order < key->order;
}

/* Returns the first timer, of the run or the heap, if it is due. */
static bool take_due(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    const struct run *run = wheel->front.run;
    const struct heap *heap = &wheel->front.heap;
    const struct key *top = heap->count > 0 ? key_at(heap, 0) : NULL;
    if (!run_is_empty(run)) {
        uint32_t index = run->entries[run->head].slot;
        struct slot *slot = slot_at(&wheel->slots, index);
        if (top == NULL || comes_before(slot, top)) {
            if (slot->due > now) return false;
            take_first(wheel, slot, index, out);
            return true;
        }
    }
    assert(top != NULL);
    if (top->due > now) return false;
    take_top(wheel, out);
    return true;
}

/* Sweeps for the pops since the last call, and opens a part of the next large bucket. Returns false
 * if the work limit of the call does not allow it. */
static bool do_chores(struct bel_wheel *wheel)
{
    struct rack *rack = &wheel->rack;
    uint32_t most = WORK_HALF - 2 * CHUNK;
    uint32_t chunks = POPS_PER_CHORES / CALLS_PER_SWEEP;
    if (rack->touched + chunks * CHUNK > most) return false;
    wheel->front.chores_due = false;
    for (uint32_t i = 0; i < chunks && rack_is_untidy(rack); i++) {
        bel__rack_sweep(rack);
    }
    bel__rack_prepare(rack, most - rack->touched);
    return true;
}

/* The slow path of pop(). */
RARE static bool pop_slowly(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    struct front *front = &wheel->front;
    uint64_t tick = tick_of(now);
    front->now_tick = tick;
    if (front->chores_due && !do_chores(wheel)) return false;
    bool settled = bel__front_settle(front, tick);
    if (!settled) bel__front_follow(front, tick);
    bool popped = settled && wheel->rack.touched <= WORK_HALF - CHUNK && take_due(wheel, now, out);
    end(wheel);
    return popped;
}

/* Pops in the common case: the first timer of the run is the first of the wheel. Drops entries
 * whose timers were cancelled. */
static inline bool pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    const struct front *front = &wheel->front;
    struct run *run = front->run;
    while (!run_is_empty(run) && !front->chores_due) {
        struct entry entry = run->entries[run->head];
        struct slot *slot = slot_at(&wheel->slots, entry.slot);
        if (where(slot) != FILED) {
            (void)slot_lets_go(slot, entry.tick);
            run_step(front, run);
            wheel->rack.touched++;
            end(wheel);
            continue;
        }
        bool first = front->heap.count == 0 || comes_before(slot, key_at(&front->heap, 0));
        if (!first || !leads_to(slot, entry, run->limit)) break;
        if (slot->due > now) return false;
        take_first(wheel, slot, entry.slot, out);
        return true;
    }
    return pop_slowly(wheel, now, out);
}

bool bel_wheel_pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    begin(wheel);
    return pop(wheel, now, out);
}

size_t bel_wheel_pop_many(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out,
                          size_t max)
{
    size_t count = 0;
    begin(wheel);
    while (count < max && wheel->rack.touched <= WORK_HALF && pop(wheel, now, &out[count])) {
        wheel->rack.touched++;
        count++;
    }
    end(wheel);
    return count;
}

/* Returns a lower bound of the due of a run's entry that leads to no timer. */
static uint64_t entry_bound(const struct run *run, struct entry entry)
{
    return (run->limit - (uint32_t)((uint32_t)run->limit - entry.tick)) << TICK_BITS;
}

/* The slow path of bel_wheel_next(): the run is empty. */
RARE static uint64_t next_slowly(const struct bel_wheel *wheel, uint64_t top)
{
    uint64_t first = BEL_NEVER;
    struct place place;
    if (wheel->front.crowd.count > 0) {
        first = wheel->front.crowd_tick << TICK_BITS;
    } else if (tick_of(top) > wheel->rack.passed && bel__rack_first(&wheel->rack, &place)) {
        first = place.start << TICK_BITS;
    }
    return first < top ? first : top;
}

uint64_t bel_wheel_next(const struct bel_wheel *wheel)
{
    if (wheel->slots.armed == 0) return BEL_NEVER; /* stale entries do not matter */
    const struct heap *heap = &wheel->front.heap;
    const struct run *run = wheel->front.run;
    uint64_t top = heap->count > 0 ? key_at(heap, 0)->due : BEL_NEVER;
    if (run_is_empty(run)) return next_slowly(wheel, top);
    struct entry entry = run->entries[run->head];
    const struct slot *slot = slot_at(&wheel->slots, entry.slot);
    uint64_t first = leads_to(slot, entry, run->limit) ? slot->due : entry_bound(run, entry);
    return first < top ? first : top;
}

bool bel_wheel_next_exact(struct bel_wheel *wheel, uint64_t *out)
{
    begin(wheel);
    bool settled = bel__front_settle(&wheel->front, UINT64_MAX - 1);
    end(wheel);
    *out = bel_wheel_next(wheel);
    return settled || *out == BEL_NEVER;
}

uint64_t bel_wheel_count(const struct bel_wheel *wheel)
{
    return wheel->slots.armed;
}

void bel_wheel_stats(const struct bel_wheel *wheel, struct bel_wheel_stats *out)
{
    *out = (struct bel_wheel_stats){
        .armed = wheel->slots.armed,
        .entries = wheel->rack.entries,
        .bytes = wheel->slots.slab.ready_bytes + wheel->rack.chunks.ready_bytes +
                 wheel->rack.nodes.ready_bytes + wheel->front.runs.ready_bytes +
                 wheel->front.heap.keys.ready_bytes + sizeof *wheel + sizeof *wheel->front.space,
        .retired = wheel->slots.retired,
        .touched_max = wheel->touched_max,
    };
}
