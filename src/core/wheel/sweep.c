/* SPDX-License-Identifier: MIT */

/*
 * A timer that is cancelled or moved to an earlier time leaves a stale entry, which is dropped when
 * its bucket's time comes. That may be years away. So once the stale entries exceed a share of the
 * armed timers (`stale_percent`, default 100 %), every call that ends or moves a timer checks a few
 * entries: bucket by bucket, it takes a chunk from the front of the list and appends the entries
 * that are still valid to its end. Eight entries checked per timer ensure, with the default,
 *
 *     entries <= 3 * armed timers + 16 K
 *
 * at all times. The chunks that become free are reused.
 */
#include "core/wheel/rack.h"

enum {
    BUCKETS_PER_SWEEP = DIGITS, /* empty buckets that one call skips, at most */
};

/* Drops the stale entries of a bucket's first chunk. */
static void sweep_chunk(struct rack *rack, struct node *node, unsigned digit)
{
    struct bucket *bucket = &node->buckets[digit];
    struct entry entries[CHUNK];
    uint32_t count = bel__rack_take(rack, bucket, entries);
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(slot_at(rack->slots, entries[i].slot), 1);
    }
    struct entry last = {0, UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = slot_at(rack->slots, entries[i].slot);
        if (slot_lets_go(slot, entries[i].tick)) continue;
        bool twice = entries[i].slot == last.slot && entries[i].tick == last.tick;
        last = entries[i];
        if (twice) continue; /* its timer left this tick and came back */
        bool kept = rack_append(rack, node, digit, entries[i]);
        assert(kept); /* a chunk has just become free */
        rack->entries++;
    }
}

/* Moves the sweep to the next bucket that has a list. Returns NULL if this call finds none. */
static struct bucket *next_bucket(struct rack *rack)
{
    for (unsigned i = 0; i < BUCKETS_PER_SWEEP; i++) {
        if (++rack->sweep_bucket >= DIGITS) {
            rack->sweep_bucket = 0;
            if (++rack->sweep_node >= rack->nodes.used) rack->sweep_node = 1;
        }
        struct node *node = node_at(rack, rack->sweep_node);
        if (!node->in_use || node->occupied == 0) {
            rack->sweep_bucket = DIGITS;
            continue;
        }
        struct bucket *bucket = &node->buckets[rack->sweep_bucket];
        if (bucket->count == 0) continue;
        rack->sweep_left = bucket->count;
        return bucket;
    }
    rack->sweep_left = 0;
    return NULL;
}

void bel__rack_sweep(struct rack *rack)
{
    struct node *node = node_at(rack, rack->sweep_node);
    struct bucket *bucket = NULL;
    if (rack->sweep_left > 0 && node->in_use) bucket = &node->buckets[rack->sweep_bucket];
    if (bucket == NULL || bucket->count == 0) bucket = next_bucket(rack);
    if (bucket == NULL) return;

    assert(rack->sweep_bucket < DIGITS);
    node = node_at(rack, rack->sweep_node);
    uint32_t before = rack->touched;
    sweep_chunk(rack, node, rack->sweep_bucket);
    uint32_t looked = rack->touched - before;
    rack->sweep_left -= looked < rack->sweep_left ? looked : rack->sweep_left;
    if (bucket->count == 0 && bucket->node == 0) {
        struct place place = {node, bucket, node->level, rack->sweep_bucket, 0};
        bel__rack_emptied(rack, &place);
    }
}
