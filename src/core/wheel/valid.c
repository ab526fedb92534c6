/* SPDX-License-Identifier: MIT */

/*
 * What must hold between two calls, checked from scratch: every bucket is where
 * its entries belong, every entry is counted, every armed timer can be found from
 * exactly one place, and the heap is a heap.
 */
#include "belfry/wheel.h"

#include "core/wheel/wheel.h"

#include <stdlib.h>

struct census {
    const struct bel_wheel *wheel;
    uint8_t *owned; /* per slot: an own entry was met */
    uint64_t entries;
    uint64_t nodes;
    bool ok;
};

static void expect(struct census *census, bool truth)
{
    census->ok = census->ok && truth;
}

static void check_entry(struct census *census, const struct entry *entry)
{
    const struct slots *slots = &census->wheel->slots;
    expect(census, entry->slot < slots->slab.used);
    if (!census->ok) return;
    const struct slot *slot = slot_at(slots, entry->slot);
    if (!owns(slot, entry->tick)) return;
    census->owned[entry->slot] = 1;
}

static void check_list(struct census *census, const struct bucket *bucket, unsigned level,
                       uint64_t start)
{
    const struct rack *rack = &census->wheel->rack;
    uint32_t mask = level < FAR_LEVEL ? ~(uint32_t)(bucket_ticks(level) - 1) : 0;
    uint32_t count = 0;
    for (uint32_t chunk = bucket->first; chunk != 0 && census->ok;) {
        uint32_t next = entry_at(rack, chunk * CHUNK)->tick;
        uint32_t end = next != 0 ? (chunk + 1) * CHUNK : bucket->tail;
        for (uint32_t at = chunk * CHUNK + 1; at < end; at++, count++) {
            const struct entry *entry = entry_at(rack, at);
            expect(census, ((entry->tick ^ (uint32_t)start) & mask) == 0);
            check_entry(census, entry);
            census->entries++;
        }
        chunk = next;
    }
    expect(census, count == bucket->count);
}

/* Depth is bounded by LEVELS. NOLINTNEXTLINE(misc-no-recursion) */
static void check_node(struct census *census, const struct node *node, unsigned level,
                       uint64_t start)
{
    census->nodes++;
    expect(census, node->in_use && node->level == level);
    for (unsigned digit = 0; digit < DIGITS && census->ok; digit++) {
        const struct bucket *bucket = &node->buckets[digit];
        uint64_t at = start + ((uint64_t)digit << digit_shift(level));
        bool occupied = node->occupied >> digit & 1;
        expect(census, occupied == (bucket->count > 0 || bucket->node != 0));
        expect(census, (bucket->count > 0) == (bucket->first != 0));
        expect(census, bucket->node == 0 || level > 0);
        if (bucket->count > 0) check_list(census, bucket, level, at);
        if (bucket->node != 0) {
            check_node(census, node_at(&census->wheel->rack, bucket->node), level - 1, at);
        }
    }
}

static void check_path(struct census *census)
{
    const struct rack *rack = &census->wheel->rack;
    for (unsigned level = 0; level < LEVELS; level++) {
        const struct node *node = rack->path[level];
        unsigned digit = digit_of(rack->passed, level);
        uint64_t start = rack->passed & ~(bucket_ticks(level) * DIGITS - 1);
        uint64_t gone = digit == DIGITS - 1 ? UINT64_MAX : (UINT64_C(2) << digit) - 1;
        expect(census, (rack->levels >> level & 1) == (node->occupied != 0));
        expect(census, (node->occupied & gone) == 0);
        check_node(census, node, level, start);
    }
    uint64_t in_use = rack->nodes.used - bel__slab_free_count(&rack->nodes) - 1;
    expect(census, census->nodes == in_use);
}

static void check_run(struct census *census, const struct run *run)
{
    expect(census, run->head <= run->count && run->count <= RUN_MAX);
    for (uint32_t at = run->head; at < run->count && census->ok; at++) {
        check_entry(census, &run->entries[at]);
    }
}

static void check_heap(struct census *census)
{
    const struct front *front = &census->wheel->front;
    uint32_t runs = 0, pending = 0;
    for (uint32_t i = 0; i < front->heap.count && census->ok; i++) {
        const struct key *key = key_at(&front->heap, i);
        const struct slot *slot = slot_at(&census->wheel->slots, key->slot);
        expect(census, where(slot) == IN_HEAP && slot->place == i);
        expect(census, slot->due == key->due && slot->order == key->order);
        expect(census, i == 0 || !key_before(key, key_at(&front->heap, (i - 1) / 4)));
        if (key->run == 0) continue;
        runs++;
        pending += run_at(front, key->run)->count;
        check_run(census, run_at(front, key->run));
    }
    expect(census, runs == front->crowd_runs && pending == front->crowd_pending);
    uint32_t most = front->heap.count + pending + front->run->count;
    expect(census,
           most <= front->heap.keys.ready || front->heap.keys.ready == front->heap.keys.max);
}

static void check_slots(struct census *census)
{
    const struct slots *slots = &census->wheel->slots;
    uint64_t armed = 0;
    for (uint32_t i = 0; i < slots->slab.used; i++) {
        const struct slot *slot = slot_at(slots, i);
        armed += is_armed(slot);
        expect(census, !has_entry(slot) || census->owned[i]);
    }
    expect(census, armed == slots->armed);
    expect(census, slots->slab.used == armed + bel__slab_free_count(&slots->slab) + slots->retired);
}

bool bel_wheel_valid(const struct bel_wheel *wheel)
{
    uint8_t *owned = calloc(wheel->slots.slab.used + 1, 1);
    if (owned == NULL) return false;
    struct census census = {.wheel = wheel, .owned = owned, .ok = true};
    check_path(&census);
    if (census.ok) check_list(&census, &wheel->front.crowd, 0, wheel->front.crowd_tick);
    if (census.ok) check_run(&census, wheel->front.run);
    if (census.ok) check_heap(&census);
    if (census.ok) check_slots(&census);
    expect(&census, census.entries == wheel->rack.entries);
    free(owned);
    return census.ok;
}
