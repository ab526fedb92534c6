/* SPDX-License-Identifier: MIT */

/*
 * Checks the invariants between two calls from scratch: every entry is in the right bucket, every
 * entry is counted, every armed timer can be found from exactly one place, and the heap is ordered.
 */
#include "belfry/wheel.h"

#include "core/wheel/wheel.h"

#include <stdlib.h>

struct check {
    const struct bel_wheel *wheel;
    uint8_t *owned; /* per slot: whether its own entry was found */
    uint64_t entries;
    uint64_t nodes;
    bool ok;
};

static void expect(struct check *check, bool truth)
{
    check->ok = check->ok && truth;
}

static void check_entry(struct check *check, const struct entry *entry)
{
    const struct slots *slots = &check->wheel->slots;
    expect(check, entry->slot < slots->slab.used);
    if (!check->ok) return;
    const struct slot *slot = slot_at(slots, entry->slot);
    if (!owns(slot, entry->tick)) return;
    check->owned[entry->slot] = 1;
}

static void check_list(struct check *check, const struct bucket *bucket, unsigned level,
                       uint64_t start)
{
    const struct rack *rack = &check->wheel->rack;
    uint32_t mask = level < FAR_LEVEL ? ~(uint32_t)(bucket_ticks(level) - 1) : 0;
    uint32_t count = 0;
    for (uint32_t chunk = bucket->first; chunk != 0 && check->ok;) {
        uint32_t next = entry_at(rack, chunk * CHUNK)->tick;
        uint32_t end = next != 0 ? (chunk + 1) * CHUNK : bucket->tail;
        for (uint32_t at = chunk * CHUNK + 1; at < end; at++, count++) {
            const struct entry *entry = entry_at(rack, at);
            expect(check, ((entry->tick ^ (uint32_t)start) & mask) == 0);
            check_entry(check, entry);
            check->entries++;
        }
        chunk = next;
    }
    expect(check, count == bucket->count);
}

/* Depth is bounded by LEVELS. NOLINTNEXTLINE(misc-no-recursion) */
static void check_node(struct check *check, const struct node *node, unsigned level, uint64_t start)
{
    check->nodes++;
    expect(check, node->in_use && node->level == level);
    for (unsigned digit = 0; digit < DIGITS && check->ok; digit++) {
        const struct bucket *bucket = &node->buckets[digit];
        uint64_t at = start + ((uint64_t)digit << digit_shift(level));
        bool occupied = node->occupied >> digit & 1;
        expect(check, occupied == (bucket->count > 0 || bucket->node != 0));
        expect(check, (bucket->count > 0) == (bucket->first != 0));
        expect(check, bucket->node == 0 || level > 0);
        if (bucket->count > 0) check_list(check, bucket, level, at);
        if (bucket->node != 0) {
            check_node(check, node_at(&check->wheel->rack, bucket->node), level - 1, at);
        }
    }
}

static void check_path(struct check *check)
{
    const struct rack *rack = &check->wheel->rack;
    for (unsigned level = 0; level < LEVELS; level++) {
        const struct node *node = rack->path[level];
        unsigned digit = digit_of(rack->passed, level);
        uint64_t start = rack->passed & ~(bucket_ticks(level) * DIGITS - 1);
        uint64_t gone = digit == DIGITS - 1 ? UINT64_MAX : (UINT64_C(2) << digit) - 1;
        expect(check, (rack->levels >> level & 1) == (node->occupied != 0));
        expect(check, (node->occupied & gone) == 0);
        check_node(check, node, level, start);
    }
    uint64_t in_use = rack->nodes.used - bel__slab_free_count(&rack->nodes) - 1;
    expect(check, check->nodes == in_use);
}

static void check_run(struct check *check, const struct run *run)
{
    expect(check, run->head <= run->count && run->count <= RUN_MAX);
    for (uint32_t at = run->head; at < run->count && check->ok; at++) {
        check_entry(check, &run->entries[at]);
    }
}

static void check_heap(struct check *check)
{
    const struct front *front = &check->wheel->front;
    uint32_t runs = 0, pending = 0;
    for (uint32_t i = 0; i < front->heap.count && check->ok; i++) {
        const struct key *key = key_at(&front->heap, i);
        const struct slot *slot = slot_at(&check->wheel->slots, key->slot);
        expect(check, where(slot) == IN_HEAP && slot->place == i);
        expect(check, slot->due == key->due && slot->order == key->order);
        expect(check, i == 0 || !key_before(key, key_at(&front->heap, (i - 1) / 4)));
        if (key->run == 0) continue;
        runs++;
        pending += run_at(front, key->run)->count;
        check_run(check, run_at(front, key->run));
    }
    expect(check, runs == front->crowd_runs && pending == front->crowd_pending);
    uint32_t most = front->heap.count + pending + front->run->count;
    expect(check, most <= front->heap.keys.ready || front->heap.keys.ready == front->heap.keys.max);
}

static void check_slots(struct check *check)
{
    const struct slots *slots = &check->wheel->slots;
    uint64_t armed = 0;
    for (uint32_t i = 0; i < slots->slab.used; i++) {
        const struct slot *slot = slot_at(slots, i);
        armed += is_armed(slot);
        expect(check, !has_entry(slot) || check->owned[i]);
    }
    expect(check, armed == slots->armed);
    expect(check, slots->slab.used == armed + bel__slab_free_count(&slots->slab) + slots->retired);
}

bool bel_wheel_valid(const struct bel_wheel *wheel)
{
    uint8_t *owned = calloc(wheel->slots.slab.used + 1, 1);
    if (owned == NULL) return false;
    struct check check = {.wheel = wheel, .owned = owned, .ok = true};
    check_path(&check);
    if (check.ok) check_list(&check, &wheel->front.crowd, 0, wheel->front.crowd_tick);
    if (check.ok) check_run(&check, wheel->front.run);
    if (check.ok) check_heap(&check);
    if (check.ok) check_slots(&check);
    expect(&check, check.entries == wheel->rack.entries);
    free(owned);
    return check.ok;
}
