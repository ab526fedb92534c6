/* SPDX-License-Identifier: MIT */

/*
 * When the first bucket of the rack is small enough, all of it is taken out and
 * sorted: a run. The run's first timer is in the heap; when it leaves, the next
 * one replaces it. Mostly that is all there is, a heap of one element on top of a
 * sorted array, and popping a timer is reading the next entry.
 *
 *          rack                    runs                  heap
 *     [ bucket ] --take, sort--> [ . a b c d ] --next--> ( x )  --pop-->
 *                                                       ( y z )
 *                                 armed too late for the rack ^
 *
 * What is armed for a tick that has passed goes straight into the heap. So do many
 * thousands at a cost that grows with their logarithm, but it should not be the
 * rule: when they are many and `passed` is ahead of the time, the run is put back,
 * `passed` returns to the time, and smaller buckets are taken out for a while.
 *
 * A bucket of a single tick that is too large for a run becomes several. They are
 * in the heap with their first timers before the tick has passed, and nobody is
 * popped from there until it has. The heap then merges them.
 *
 * Nothing here fails for lack of memory: the heap always has room for all pending
 * entries, so that one which cannot be filed again can wait there.
 */
#include "core/wheel/front.h"

#include <stdlib.h>

enum {
    LATE_MAX = 256,     /* timers armed late before the run is put back */
    DRAIN_MIN = 64,     /* what drain_max falls to */
    COMBINE_MAX = 1024, /* small neighbours join a run up to here */
    PREPARE_EVERY = 256,
    PREPARE_BUDGET = 2048,
    PREFETCH_AHEAD = 8,
};

int bel__front_init(struct front *front, struct rack *rack, uint32_t timers_max)
{
    *front = (struct front){.rack = rack, .slots = rack->slots, .drain_max = RUN_MAX};
    uint32_t runs_max = timers_max / (RUN_MAX / 4) + 16;
    front->now_tick = rack->passed;
    int err = bel__heap_init(&front->heap, rack->slots, timers_max + runs_max);
    if (err) return err;
    err = bel__slab_init(&front->runs, sizeof(struct run), offsetof(struct run, head), runs_max);
    if (err) return err;
    if (bel__slab_take(&front->runs) == BEL__SLAB_NONE) return BEL_ENOMEM; /* 0 is no run */
    front->space = malloc(sizeof *front->space);
    return front->space == NULL ? BEL_ENOMEM : 0;
}

void bel__front_finish(struct front *front)
{
    bel__heap_finish(&front->heap);
    bel__slab_finish(&front->runs);
    free(front->space);
}

static struct key key_of(const struct slot *slot, uint32_t index)
{
    return (struct key){.due = slot->due, .order = slot->order, .slot = index};
}

/* Deals with an entry whose timer is due later than the entry says. */
static void put_later(struct front *front, struct slot *slot, uint32_t index)
{
    if (tick_of(slot->due) > front->rack->passed && bel__rack_room(front->rack, 1)) {
        bel__rack_refile(front->rack, slot, index);
        return;
    }
    front->slots->filed--;
    bel__heap_push(&front->heap, key_of(slot, index));
}

/* The next timer of a run that is really due then; false at the run's end. */
static bool next_of_run(struct front *front, struct run *run, struct key *out)
{
    while (run->head < run->count) {
        struct entry entry = run->entries[run->head++];
        if (run->head + PREFETCH_AHEAD < run->count) {
            uint32_t ahead = run->entries[run->head + PREFETCH_AHEAD].slot;
            __builtin_prefetch(slot_at(front->slots, ahead), 1);
        }
        front->pending--;
        front->rack->entries--;
        front->rack->touched++;
        struct slot *slot = slot_at(front->slots, entry.slot);
        if (!owns(slot, entry.tick)) continue;
        if (!is_armed(slot)) {
            set_where(slot, NOWHERE);
            continue;
        }
        uint64_t tick = tick_of(slot->due);
        if ((uint32_t)tick != entry.tick || tick > run->limit) {
            put_later(front, slot, entry.slot);
            continue;
        }
        front->slots->filed--;
        *out = key_of(slot, entry.slot);
        return true;
    }
    return false;
}

static void run_give(struct front *front, uint32_t index)
{
    front->run_count--;
    bel__slab_give(&front->runs, index);
}

void bel__front_remove(struct front *front, uint32_t heap_index)
{
    struct key key = *key_at(&front->heap, heap_index), next;
    set_where(slot_at(front->slots, key.slot), NOWHERE);
    if (key.run == 0) {
        bel__heap_remove(&front->heap, heap_index);
        return;
    }
    struct run *run = run_at(front, key.run);
    if (run->head % PREPARE_EVERY == 0) front->prepare_due = true;
    if (next_of_run(front, run, &next)) {
        next.run = key.run;
        bel__heap_replace(&front->heap, heap_index, next);
    } else {
        run_give(front, key.run);
        bel__heap_remove(&front->heap, heap_index);
    }
}

/* Takes a bucket's list out, as much as fits, behind what is there already. */
static uint32_t collect(struct front *front, const struct place *place, uint32_t count)
{
    struct bucket *bucket = place->bucket;
    while (bucket->count > 0) {
        uint32_t next = bucket->count < CHUNK - 1 ? bucket->count : CHUNK - 1;
        if (count + next > RUN_MAX) break;
        count += bel__rack_take(front->rack, bucket, front->space->entries + count);
    }
    if (bucket->count == 0) bel__rack_emptied(front->rack, place);
    return count;
}

/* Takes out the next buckets of the same node as well, while that makes a run of a
 * decent size and its ticks can be told apart by 32 bits. */
static uint32_t collect_neighbours(struct front *front, struct place *place, uint32_t count)
{
    uint64_t start = place->start, ticks = bucket_ticks(place->level);
    uint32_t most = front->drain_max < COMBINE_MAX ? front->drain_max : COMBINE_MAX;
    while (place->node->occupied != 0) {
        unsigned digit = (unsigned)__builtin_ctzll(place->node->occupied);
        struct bucket *bucket = &place->node->buckets[digit];
        uint64_t end = place->start + (uint64_t)(digit - place->digit + 1) * ticks;
        if (bucket->node != 0 || bucket->count + count > most) break;
        if (end - start > UINT32_MAX) break;
        *place = (struct place){place->node, bucket, place->level, digit, end - ticks};
        count = collect(front, place, count);
    }
    return count;
}

static void sort_run(struct front *front, struct run *run, uint32_t base)
{
    bel__order_ticks(front->space, run->count, base, run->entries);
    for (uint32_t i = 0, end; i < run->count; i = end) {
        for (end = i + 1; end < run->count && run->entries[end].tick == run->entries[i].tick;) {
            end++;
        }
        if (end - i < 2) continue;
        bel__order_ties(front->space, front->slots, run->entries + i, end - i);
    }
}

/* Makes the first bucket, or as much of it as fits, a run. */
static bool drain(struct front *front, struct place place)
{
    struct bel__slab *keys = &front->heap.keys;
    uint32_t most = front->heap.count + front->pending + RUN_MAX + 1;
    if (most > keys->ready && bel__slab_grow(keys, most < keys->max ? most : keys->max) != 0) {
        return false;
    }
    uint32_t index = bel__slab_take(&front->runs);
    if (index == BEL__SLAB_NONE) return false;

    struct run *run = run_at(front, index);
    uint32_t base = (uint32_t)place.start;
    uint32_t count = collect(front, &place, 0);
    bool whole = place.bucket->count == 0;
    if (whole) count = collect_neighbours(front, &place, count);
    run->head = 0;
    run->count = count;
    run->limit = place.start + bucket_ticks(place.level) - 1;
    front->run_count++;
    front->pending += count;
    sort_run(front, run, base);
    if (whole) bel__rack_pass(front->rack, run->limit);
    if (front->drain_max < RUN_MAX) front->drain_max += front->drain_max / 8;
    if (front->drain_max > RUN_MAX) front->drain_max = RUN_MAX;

    struct key key;
    if (next_of_run(front, run, &key)) {
        key.run = index;
        bel__heap_push(&front->heap, key);
    } else {
        run_give(front, index);
    }
    return true;
}

/* Brings the first bucket closer to being sorted. False if that has to wait. */
static bool advance(struct front *front, const struct place *place)
{
    struct rack *rack = front->rack;
    const struct bucket *bucket = place->bucket;
    if (bucket->count == 0) {
        bel__rack_emptied(rack, place);
        return true;
    }
    bool small = bucket->node == 0 && place->level < FAR_LEVEL && bucket->count <= front->drain_max;
    if (small || place->level == 0) {
        uint32_t count = bucket->count < RUN_MAX ? bucket->count : RUN_MAX;
        if (rack->touched + 2 * count > WORK_MAX) return false;
        return drain(front, *place);
    }
    return bel__rack_open(rack, place, WORK_MAX - 2 * CHUNK - rack->touched);
}

bool bel__front_settle(struct front *front, uint64_t until)
{
    struct rack *rack = front->rack;
    for (;;) {
        uint64_t top = UINT64_MAX;
        if (front->heap.count > 0) {
            top = tick_of(key_at(&front->heap, 0)->due);
            if (top <= rack->passed) return true;
        }
        struct place place = {.start = UINT64_MAX};
        bool filed = bel__rack_first(rack, &place);
        if (top > until && place.start > until) return false;
        if (top < place.start) {
            bel__rack_pass(rack, top);
            return true;
        }
        if (!filed || rack->touched > WORK_HALF || !advance(front, &place)) return false;
    }
}

void bel__front_follow(struct front *front, uint64_t tick)
{
    struct rack *rack = front->rack;
    struct place place;
    if (bel__rack_first(rack, &place) && place.start <= tick) tick = place.start - 1;
    if (front->heap.count > 0) {
        uint64_t top = tick_of(key_at(&front->heap, 0)->due);
        if (top <= tick) tick = top - 1;
    }
    if (tick > rack->passed) bel__rack_pass(rack, tick);
}

bool bel__front_room(struct front *front)
{
    struct bel__slab *keys = &front->heap.keys;
    uint32_t most = front->heap.count + front->pending + 1;
    return most <= keys->ready || bel__slab_grow(keys, most) == 0;
}

/* Files again what a run holds after `tick`. */
static void put_back_run(struct front *front, struct run *run, uint64_t tick)
{
    while (run->count > run->head) {
        struct entry entry = run->entries[run->count - 1];
        uint64_t at = run->limit - (uint32_t)((uint32_t)run->limit - entry.tick);
        if (at <= tick) break;
        run->count--;
        front->pending--;
        front->rack->entries--;
        front->rack->touched++;
        bel__rack_file(front->rack, at, entry.slot);
    }
}

/* Lets `passed` return to the time and puts back what is later. */
static void put_back(struct front *front)
{
    struct heap *heap = &front->heap;
    struct rack *rack = front->rack;
    uint64_t tick = front->now_tick;
    if (!bel__rack_room(rack, heap->count + front->pending)) return;
    if (!bel__rack_unpass(rack, tick)) return;

    uint32_t before = heap->count;
    heap->count = 0;
    for (uint32_t i = 0; i < before; i++) {
        struct key key = *key_at(heap, i);
        struct slot *slot = slot_at(front->slots, key.slot);
        if (key.run != 0) put_back_run(front, run_at(front, key.run), tick);
        rack->touched++;
        if (tick_of(key.due) <= tick) {
            bel__heap_push(heap, key);
            continue;
        }
        if (key.run != 0) run_give(front, key.run);
        set_where(slot, FILED);
        front->slots->filed++;
        bel__rack_refile(rack, slot, key.slot);
    }
    front->drain_max = front->drain_max / 2 > DRAIN_MIN ? front->drain_max / 2 : DRAIN_MIN;
}

void bel__front_add(struct front *front, const struct slot *slot, uint32_t index)
{
    struct rack *rack = front->rack;
    bel__heap_push(&front->heap, key_of(slot, index));
    if (front->heap.count - front->run_count <= LATE_MAX) return;
    uint32_t work = front->heap.count + front->pending;
    if (rack->passed > front->now_tick && rack->touched + work <= WORK_MAX - CHUNK) {
        put_back(front);
    }
}
