/* SPDX-License-Identifier: MIT */

/*
 * If the first bucket of the rack is small enough, it is taken out as a whole and sorted into the
 * run. Usually that is all: a pop then returns the next entry of a sorted array.
 *
 *          rack                   run
 *     [ bucket ] --take, sort--> [ a b c d ] ------------.
 *                                                         the earlier --pop-->
 *      armed too late for the rack --> ( x ) ------------'
 *                                     ( y z )  heap
 *
 * A timer armed for a tick that has passed goes into the heap. The heap handles many thousands, at
 * a logarithmic cost each, but should stay small: if it holds many timers and `passed` is ahead of
 * the time, the run is put back into the rack, `passed` returns to the time, and smaller buckets
 * are taken out for a while.
 *
 * A bucket of a single tick that is too large for a run is a crowd. Its tick passes at once, and
 * its list is sorted run by run over several calls. The first timer of each run is in the heap;
 * when it leaves, the next one of its run replaces it, so the heap merges the runs. No timer of
 * that tick is popped until all are sorted.
 *
 * Nothing here fails for lack of memory: the heap always has room for all entries of runs, so that
 * a timer that cannot be filed again can wait there.
 */
#include "core/wheel/front.h"

#include <stdlib.h>

enum {
    LATE_MAX = 256,    /* timers armed late before the run is put back */
    LATE_SHARE = 32,   /* more than one late timer per this many in the run halves drain_max */
    DRAIN_MIN = 32,    /* lower bound of drain_max */
    COMBINE_MAX = 512, /* small neighbours join a run up to this size */
};

int bel__front_init(struct front *front, struct rack *rack, uint32_t timers_max)
{
    *front = (struct front){.rack = rack, .slots = rack->slots, .drain_max = RUN_MAX};
    uint32_t runs_max = timers_max / (RUN_MAX / 4) + 64;
    front->now_tick = rack->passed;
    int err = bel__heap_init(&front->heap, rack->slots, timers_max + runs_max);
    if (err) return err;
    err = bel__slab_init(&front->runs, sizeof(struct run), runs_max);
    if (err) return err;
    front->space = malloc(sizeof *front->space);
    if (front->space == NULL) return BEL_ENOMEM;
    if (bel__slab_take(&front->runs) == BEL__SLAB_NONE) { /* index 0 means no run */
        return BEL_ENOMEM;
    }
    front->run_index = bel__slab_take(&front->runs);
    if (front->run_index == BEL__SLAB_NONE) return BEL_ENOMEM;
    front->run = run_at(front, front->run_index);
    return 0;
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

/* Handles an entry that does not lead to a timer due at its tick: the entry is stale, or its timer
 * is due later by now. */
static void pass_over(struct front *front, struct entry entry)
{
    struct slot *slot = slot_at(front->slots, entry.slot);
    if (slot_lets_go(slot, entry.tick)) return;
    bool waits = tick_of(slot->due) > front->rack->passed;
    if (waits && rack_refile(front->rack, slot, entry.slot)) return;
    bel__heap_push(&front->heap, key_of(slot, entry.slot));
}

/* Advances a run to an entry that leads to a timer, or to its end. */
static void skip(struct front *front, struct run *run)
{
    uint32_t first = run->head;
    while (!run_is_empty(run)) {
        struct entry entry = run->entries[run->head];
        if (leads_to(slot_at(front->slots, entry.slot), entry, run->limit)) break;
        run_step(front, run);
        pass_over(front, entry);
    }
    front->rack->touched += run->head - first;
}

/* Takes the next timer out of a crowd's run. Returns false at its end. */
static bool next_of_crowd(struct front *front, uint32_t index, struct key *out)
{
    struct run *run = run_at(front, index);
    skip(front, run);
    if (run_is_empty(run)) {
        front->crowd_runs--;
        front->crowd_pending -= run->count;
        bel__slab_give(&front->runs, index);
        return false;
    }
    uint32_t slot = run->entries[run->head].slot;
    *out = key_of(slot_at(front->slots, slot), slot);
    out->run = index;
    run_step(front, run);
    front->rack->touched++;
    return true;
}

void bel__front_remove(struct front *front, uint32_t heap_index)
{
    struct key next;
    uint32_t run = key_at(&front->heap, heap_index)->run;
    if (run != 0 && next_of_crowd(front, run, &next)) {
        bel__heap_replace(&front->heap, heap_index, next);
    } else {
        bel__heap_remove(&front->heap, heap_index);
    }
}

/* Takes the entries of a bucket, as many as fit, and appends them to `count` collected ones. */
static uint32_t collect(struct front *front, struct bucket *bucket, uint32_t count)
{
    while (bucket->count > 0) {
        uint32_t next = bucket->count < CHUNK - 1 ? bucket->count : CHUNK - 1;
        if (count + next > RUN_MAX) break;
        count += bel__rack_take(front->rack, bucket, front->space->entries + count);
    }
    return count;
}

/* Also takes the next buckets of the same node, while the run stays small enough and 32 bits
 * distinguish its ticks. */
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
        count = collect(front, bucket, count);
        bel__rack_emptied(front->rack, place);
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

/* Allocates heap memory for `more` entries of runs. Returns whether there is enough. */
static bool heap_room(struct front *front, uint32_t more)
{
    struct bel__slab *keys = &front->heap.keys;
    uint32_t most = front->heap.count + front->crowd_pending + front->run->count + more;
    if (most > keys->max) most = keys->max;
    return most <= keys->ready || bel__slab_grow(keys, most) == 0;
}

/* Adapts the size up to which a bucket is taken out. A large run is cheap to sort but reaches far
 * ahead, and then many timers are armed too late for the rack. */
static void adapt(struct front *front)
{
    uint32_t most = front->drain_max;
    if (front->late * LATE_SHARE > front->run->count) {
        most /= 2;
    } else {
        most += most / 8;
    }
    most = most > DRAIN_MIN ? most : DRAIN_MIN;
    front->drain_max = most < RUN_MAX ? most : RUN_MAX;
    front->late = 0;
}

/* Turns the first bucket into the run, with its neighbours if it is small. */
static bool drain(struct front *front, struct place place)
{
    if (!heap_room(front, RUN_MAX)) return false;
    adapt(front);
    struct run *run = front->run;
    uint32_t base = (uint32_t)place.start;
    uint32_t count = collect(front, place.bucket, 0);
    assert(run_is_empty(run) && place.bucket->count == 0);
    bel__rack_emptied(front->rack, &place);
    run->count = collect_neighbours(front, &place, count);
    run->head = 0;
    run->limit = place.start + bucket_ticks(place.level) - 1;
    sort_run(front, run, base);
    bel__rack_pass(front->rack, run->limit);
    front->chores_due = true;
    return true;
}

/* Takes a bucket of a single tick out as a crowd, all of it at once. */
static void begin_crowd(struct front *front, const struct place *place)
{
    assert(place->level == 0 && front->crowd.count == 0);
    front->crowd = *place->bucket;
    front->crowd_tick = place->start;
    *place->bucket = (struct bucket){0};
    bel__rack_emptied(front->rack, place);
    bel__rack_pass(front->rack, place->start);
}

/* Pushes entries of the crowd into the heap one by one, because no run is available. */
static void spill(struct front *front, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct entry entry = front->space->entries[i];
        const struct slot *slot = slot_at(front->slots, entry.slot);
        if (leads_to(slot, entry, front->crowd_tick)) {
            bel__heap_push(&front->heap, key_of(slot, entry.slot));
        } else {
            pass_over(front, entry);
        }
    }
}

/* Sorts a part of the crowd into a run of the heap. Returns false if this must wait. */
static bool drain_crowd(struct front *front)
{
    uint32_t most = front->crowd.count < RUN_MAX ? front->crowd.count : RUN_MAX;
    if (front->rack->touched + 2 * most > WORK_MAX) return false;
    if (!heap_room(front, RUN_MAX)) return false;
    uint32_t index = bel__slab_take(&front->runs);
    uint32_t count = collect(front, &front->crowd, 0);
    if (index == BEL__SLAB_NONE) {
        spill(front, count);
        return true;
    }
    struct run *run = run_at(front, index);
    struct key key;
    run->head = 0;
    run->count = count;
    run->limit = front->crowd_tick;
    front->crowd_runs++;
    front->crowd_pending += count;
    sort_run(front, run, (uint32_t)front->crowd_tick);
    if (next_of_crowd(front, index, &key)) bel__heap_push(&front->heap, key);
    return true;
}

/* If all timers of the crowd's run on top of the heap come before the rest of the heap, makes it
 * the current run. This happens if a crowd was armed in order. */
static void promote(struct front *front)
{
    struct heap *heap = &front->heap;
    struct key top = *key_at(heap, 0);
    struct run *run = run_at(front, top.run);
    if (top.run == 0 || run_is_empty(run)) return;
    struct entry entry = run->entries[run->count - 1];
    const struct slot *last = slot_at(front->slots, entry.slot);
    struct key end = key_of(last, entry.slot);
    if (!leads_to(last, entry, run->limit)) return;
    if (heap->count > 1 && key_before(key_at(heap, bel__heap_second(heap)), &end)) return;

    bel__heap_remove(heap, 0);
    run->head--; /* its first timer is no longer in the heap */
    struct slot *first = slot_at(front->slots, top.slot);
    set_where(first, FILED);
    first->place = run->entries[run->head].tick;
    front->crowd_runs--;
    front->crowd_pending -= run->count;
    bel__slab_give(&front->runs, front->run_index);
    front->run = run;
    front->run_index = top.run;
}

/* Takes out or opens the first bucket. Returns false if this must wait. */
static bool advance(struct front *front, const struct place *place)
{
    struct rack *rack = front->rack;
    const struct bucket *bucket = place->bucket;
    if (bucket->count == 0) {
        bel__rack_emptied(rack, place);
        return true;
    }
    bool small = bucket->node == 0 && place->level < FAR_LEVEL && bucket->count <= front->drain_max;
    if (!small && place->level > 0) {
        return bel__rack_open(rack, place, WORK_MAX - 2 * CHUNK - rack->touched);
    }
    if (bucket->count > RUN_MAX) {
        begin_crowd(front, place);
        return true;
    }
    return rack->touched + 2 * bucket->count <= WORK_MAX && drain(front, *place);
}

bool bel__front_settle(struct front *front, uint64_t until)
{
    struct rack *rack = front->rack;
    for (;;) {
        skip(front, front->run);
        if (!run_is_empty(front->run)) return true;
        uint64_t top = UINT64_MAX;
        if (front->heap.count > 0) top = tick_of(key_at(&front->heap, 0)->due);
        if (front->crowd.count > 0 && top >= front->crowd_tick) {
            if (front->crowd_tick > until || !drain_crowd(front)) return false;
            continue;
        }
        if (top <= rack->passed) {
            promote(front);
            return true;
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
    if (!run_is_empty(front->run) || front->crowd.count > 0) return;
    if (bel__rack_first(rack, &place) && place.start <= tick) tick = place.start - 1;
    if (front->heap.count > 0) {
        uint64_t top = tick_of(key_at(&front->heap, 0)->due);
        if (top <= tick) tick = top - 1;
    }
    if (tick > rack->passed) {
        bel__rack_pass(rack, tick);
    } else if (tick < rack->passed && front->heap.count == 0) {
        (void)bel__rack_unpass(rack, tick); /* so that timers armed next are not late */
    }
}

bool bel__front_room(struct front *front)
{
    return heap_room(front, 1);
}

/* Files entries of the run after `tick` in the rack again. */
static void put_back_run(struct front *front, uint64_t tick)
{
    struct run *run = front->run;
    while (!run_is_empty(run)) {
        struct entry entry = run->entries[run->count - 1];
        uint64_t at = run->limit - (uint32_t)((uint32_t)run->limit - entry.tick);
        if (at <= tick) break;
        run->count--;
        front->rack->touched++;
        bool filed = rack_file(front->rack, at, entry.slot);
        assert(filed);
    }
}

/* Files timers of the heap after `tick` in the rack again. */
static void put_back_heap(struct front *front, uint64_t tick)
{
    struct heap *heap = &front->heap;
    uint32_t before = heap->count;
    heap->count = 0;
    for (uint32_t i = 0; i < before; i++) {
        struct key key = *key_at(heap, i);
        front->rack->touched++;
        if (tick_of(key.due) <= tick) {
            bel__heap_push(heap, key);
            continue;
        }
        bool filed = rack_refile(front->rack, slot_at(front->slots, key.slot), key.slot);
        assert(filed);
    }
}

/* Moves `passed` back to the time, if this fits into one call. */
static void put_back(struct front *front)
{
    struct rack *rack = front->rack;
    uint32_t work = front->heap.count + front->run->count - front->run->head;
    if (rack->touched + work > WORK_MAX - CHUNK) return;
    if (!bel__rack_room(rack, work) || !bel__rack_unpass(rack, front->now_tick)) return;
    put_back_run(front, front->now_tick);
    put_back_heap(front, front->now_tick);
}

void bel__front_add(struct front *front, const struct slot *slot, uint32_t index)
{
    bel__heap_push(&front->heap, key_of(slot, index));
    front->late++;
    bool ahead = front->rack->passed > front->now_tick;
    bool crowd = front->crowd_runs > 0 || front->crowd.count > 0;
    if (ahead && front->heap.count > LATE_MAX && !crowd) put_back(front);
}
