/* SPDX-License-Identifier: MIT */

/*
 * A timer's way through the wheel:
 *
 *     arm --> slot + entry in the rack --> sorted into a run --> heap --> pop
 *      \                                                         ^
 *       '------ its time has been taken out already -------------'
 *
 * The slot is the truth about a timer; an entry is only a note that the slot must
 * be looked at by then. So cancelling writes the slot alone, and so does moving a
 * timer to a later time, which is what most timeouts live through: when the entry
 * comes up, it is filed again. See slots.h, rack.c and front.c for the parts.
 */
#include "belfry/wheel.h"

#include "core/wheel/wheel.h"

#include <stdlib.h>

enum {
    TIMERS_MAX_DEFAULT = 1 << 28,
    PREFETCH_AHEAD = 16
};

static_assert((int)WORK_MAX == (int)BEL_WHEEL_WORK_MAX, "the front keeps the promised bound");

/* Spreads a seed over the generations. */
static uint32_t first_generation(uint64_t seed)
{
    uint64_t mixed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) & GENERATION_MASK;
}

int bel_wheel_create(const struct bel_wheel_options *options, struct bel_wheel **out)
{
    static const struct bel_wheel_options defaults = {0};
    if (options == NULL) options = &defaults;
    uint32_t max = options->timers_max != 0 ? options->timers_max : TIMERS_MAX_DEFAULT;
    if (max > TIMERS_MAX_DEFAULT || options->now == BEL_NEVER) return BEL_EINVAL;

    struct bel_wheel *wheel = calloc(1, sizeof *wheel);
    if (wheel == NULL) return BEL_ENOMEM;
    wheel->timers_max = max;
    wheel->slots.generation_first =
        first_generation(options->handle_seed != 0 ? options->handle_seed : (uintptr_t)wheel);
    int err =
        bel__slab_init(&wheel->slots.slab, sizeof(struct slot), offsetof(struct slot, user), max);
    if (err) goto fail;
    err = bel__rack_init(&wheel->rack, &wheel->slots, tick_of(options->now), max);
    if (err) goto fail;
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
    int err = bel__slab_prefault(&wheel->slots.slab, timers);
    if (err) return err;
    err = bel__slab_prefault(&wheel->rack.nodes, wheel->rack.nodes.used + 64);
    if (err) return err;
    uint32_t chunks = timers / (CHUNK - 1) + 16 * DIGITS;
    return bel__slab_prefault(&wheel->rack.chunks, chunks);
}

static void begin(struct bel_wheel *wheel)
{
    wheel->rack.touched = 0;
}

static void end(struct bel_wheel *wheel)
{
    assert(wheel->rack.touched <= WORK_MAX);
    if (wheel->rack.touched > wheel->touched_max) wheel->touched_max = wheel->rack.touched;
}

/* Gives an armed slot that is not in the heap its due and its place in the order. */
static int put(struct bel_wheel *wheel, struct slot *slot, uint32_t index, uint64_t due)
{
    struct rack *rack = &wheel->rack;
    uint64_t tick = tick_of(due);
    bool waits = tick > rack->passed;
    bool has_entry = waits && where(slot) == FILED && entry_tick_max(slot) <= tick;
    bool file = waits && !has_entry && bel__rack_room(rack, 1);
    if (!has_entry && !file && !bel__front_room(&wheel->front)) return BEL_ENOMEM;

    assert(wheel->sequence < SEQUENCE_MASK);
    slot->due = due;
    slot->order = (slot->order & ~SEQUENCE_MASK) | wheel->sequence++;
    if (!has_entry && !file) {
        bel__front_add(&wheel->front, slot, index);
        return 0;
    }
    wheel->slots.filed++;
    if (file) {
        set_where(slot, FILED);
        bel__rack_refile(rack, slot, index);
    }
    return 0;
}

int bel_wheel_arm(struct bel_wheel *wheel, uint64_t due, uint8_t priority, uint64_t user,
                  bel_timer_t *out)
{
    struct slots *slots = &wheel->slots;
    if (due == BEL_NEVER) return BEL_ERANGE;
    if (slots->armed >= wheel->timers_max) return BEL_EFULL;
    uint32_t used = slots->slab.used;
    uint32_t index = bel__slab_take(&slots->slab);
    if (index == BEL__SLAB_NONE) return used == slots->slab.max ? BEL_EFULL : BEL_ENOMEM;

    begin(wheel);
    struct slot *slot = slot_at(slots, index);
    if (index == used) slot->tag = slots->generation_first << GENERATION_SHIFT;
    slot->order = (uint64_t)priority << SEQUENCE_BITS;
    slot->tag |= ARMED;
    int err = put(wheel, slot, index, due);
    if (err) {
        slot->tag &= ~(uint32_t)ARMED;
        bel__slab_give(&slots->slab, index);
        return err;
    }
    slot->user = user;
    slots->armed++;
    bel__rack_tidy(&wheel->rack);
    end(wheel);
    *out = handle_of(slot, index);
    return 0;
}

/* Moves a slot that is in the heap: it has to leave its place, and its run. */
static int put_from_heap(struct bel_wheel *wheel, struct slot *slot, uint32_t index, uint64_t due)
{
    if (!bel__front_room(&wheel->front)) return BEL_ENOMEM;
    bel__front_remove(&wheel->front, slot->place);
    int err = put(wheel, slot, index, due);
    assert(err == 0); /* leaving made room */
    return err;
}

static int rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return BEL_ESTALE;
    if (due == BEL_NEVER) return BEL_ERANGE;

    uint32_t index = (uint32_t)timer;
    if (where(slot) == IN_HEAP) return put_from_heap(wheel, slot, index, due);
    wheel->slots.filed--;
    int err = put(wheel, slot, index, due);
    if (err) wheel->slots.filed++;
    return err;
}

int bel_wheel_rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    begin(wheel);
    int err = rearm(wheel, timer, due);
    bel__rack_tidy(&wheel->rack);
    end(wheel);
    return err;
}

size_t bel_wheel_rearm_many(struct bel_wheel *wheel, struct bel_rearm *moves, size_t count)
{
    size_t moved = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            uint32_t index = (uint32_t)moves[i + PREFETCH_AHEAD].timer;
            __builtin_prefetch(slot_at(&wheel->slots, index), 1);
        }
        moves[i].result = bel_wheel_rearm(wheel, moves[i].timer, moves[i].due);
        moved += moves[i].result == 0;
    }
    return moved;
}

bool bel_wheel_cancel(struct bel_wheel *wheel, bel_timer_t timer)
{
    struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return false;
    begin(wheel);
    if (where(slot) == IN_HEAP) bel__front_remove(&wheel->front, slot->place);
    slot_free(&wheel->slots, slot, (uint32_t)timer);
    bel__rack_tidy(&wheel->rack);
    end(wheel);
    return true;
}

static void describe(const struct slot *slot, uint32_t index, struct bel_wheel_timer *out)
{
    *out = (struct bel_wheel_timer){
        .due = slot->due,
        .user = slot->user,
        .timer = handle_of(slot, index),
        .priority = (uint8_t)(slot->order >> SEQUENCE_BITS),
    };
}

bool bel_wheel_find(const struct bel_wheel *wheel, bel_timer_t timer, struct bel_wheel_timer *out)
{
    const struct slot *slot = slot_named(&wheel->slots, timer);
    if (slot == NULL) return false;
    describe(slot, (uint32_t)timer, out);
    return true;
}

/* Pops one timer, if one is due and the call has work left to spend. */
static bool pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    struct front *front = &wheel->front;
    if (tick_of(now) > front->now_tick) front->now_tick = tick_of(now);
    if (!bel__front_settle(front, tick_of(now))) {
        bel__front_follow(front, tick_of(now));
        return false;
    }
    struct key key = *key_at(&front->heap, 0);
    if (key.due > now || wheel->rack.touched > WORK_HALF) return false;

    struct slot *slot = slot_at(&wheel->slots, key.slot);
    assert(is_armed(slot) && slot->order == key.order);
    describe(slot, key.slot, out);
    bel__front_remove(front, 0);
    slot_free(&wheel->slots, slot, key.slot);
    return true;
}

static void prepare(struct bel_wheel *wheel)
{
    wheel->front.prepare_due = false;
    bel__rack_prepare(&wheel->rack, WORK_HALF - 2 * CHUNK);
}

bool bel_wheel_pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    begin(wheel);
    if (wheel->front.prepare_due) prepare(wheel);
    bool popped = pop(wheel, now, out);
    end(wheel);
    return popped;
}

size_t bel_wheel_pop_many(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out,
                          size_t max)
{
    size_t count = 0;
    begin(wheel);
    if (wheel->front.prepare_due) prepare(wheel);
    while (count < max && pop(wheel, now, &out[count])) {
        count++;
    }
    end(wheel);
    return count;
}

uint64_t bel_wheel_next(const struct bel_wheel *wheel)
{
    const struct heap *heap = &wheel->front.heap;
    uint64_t top = heap->count > 0 ? key_at(heap, 0)->due : BEL_NEVER;
    if (top != BEL_NEVER && tick_of(top) <= wheel->rack.passed) return top;

    struct place place;
    if (!bel__rack_first(&wheel->rack, &place)) return top;
    uint64_t start = place.start << TICK_BITS;
    return start < top ? start : top;
}

bool bel_wheel_next_exact(struct bel_wheel *wheel, uint64_t *out)
{
    begin(wheel);
    bool settled = bel__front_settle(&wheel->front, UINT64_MAX - 1);
    end(wheel);
    *out = bel_wheel_next(wheel);
    return settled || wheel->slots.armed == 0;
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
