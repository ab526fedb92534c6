/* SPDX-License-Identifier: MIT */

/*
 * The rack is a tree on the digits of ticks in base 64, which exists only where it is needed. A
 * bucket of level k covers 64^k ticks. It holds its entries in a plain list until its time is near.
 * Then, if there are too many to sort at once, it is opened: it gets a node of 64 buckets of level
 * k - 1, and the list moves into the node, a part at a time. A bucket that is being opened has both
 * a list and a node, and new entries go to the node. So no call ever moves a whole large bucket.
 *
 * The path is the nodes whose range contains `passed`, one on each level. A tick is filed by the
 * highest digit in which it differs from `passed`:
 *
 *     passed  =  2 . 16 . 63
 *     tick    =  2 . 17 . 40        level 1, bucket 17 of path[1]
 *
 * So the buckets of a path node that are before `passed` or contain it are empty, a lower level
 * comes before a higher one, and two bit scans find the first occupied bucket. When `passed` moves
 * into an opened bucket, the node of that bucket joins the path.
 *
 * An entry has the low 32 bits of its tick. Below FAR_LEVEL these contain the digit, and entries
 * are moved without reading their slots, which would cost a cache miss each. But if many entries
 * are stale, or their timers are due later by now, reading the slots pays: such entries are dropped
 * or filed again at once instead of being moved along.
 */
#include "core/wheel/rack.h"

#include <string.h>

enum {
    SAMPLE = CHUNK - 1,    /* entries sampled to decide how a bucket is opened */
    SAMPLE_MOVED_MAX = 23, /* up to this many moved ones, entries are moved without reading slots */
    LOOK_MAX = 512,        /* slots read in one go: each may cost a cache miss */
    SPARSE_MAX = 65536,    /* spare chunks and nodes for a sparse rack */
    PREPARE_MIN = 1024,    /* a smaller bucket can be opened when its time comes */
    PREPARE_DIGIT = 48,    /* prepare a bucket in the last quarter of the one before it */
};

static uint32_t node_take(struct rack *rack, unsigned level)
{
    uint32_t index = bel__slab_take(&rack->nodes);
    if (index == BEL__SLAB_NONE) return 0;
    struct node *node = node_at(rack, index);
    memset(node, 0, sizeof *node);
    node->level = level;
    node->in_use = 1;
    return index;
}

static uint32_t node_index(const struct rack *rack, const struct node *node)
{
    return (uint32_t)(((size_t)((const unsigned char *)node - rack->nodes.base)) / sizeof *node);
}

static void node_give(struct rack *rack, struct node *node)
{
    assert(node->in_use && node->occupied == 0);
    node->in_use = 0;
    bel__slab_give(&rack->nodes, node_index(rack, node));
}

int bel__rack_init(struct rack *rack, struct slots *slots, uint64_t passed, uint32_t entries_max)
{
    *rack = (struct rack){.passed = passed, .slots = slots, .stale_share = 256, .sweep_node = 1};
    uint32_t chunks_max = entries_max / 8 + SPARSE_MAX;
    int err = bel__slab_init(&rack->chunks, CHUNK * sizeof(struct entry), chunks_max);
    if (err) return err;
    err = bel__slab_init(&rack->nodes, sizeof(struct node), chunks_max / 16 + SPARSE_MAX);
    if (err) return err;

    /* Index 0 means none, in both slabs. */
    if (bel__slab_take(&rack->chunks) == BEL__SLAB_NONE) return BEL_ENOMEM;
    if (bel__slab_take(&rack->nodes) == BEL__SLAB_NONE) return BEL_ENOMEM;
    for (unsigned level = 0; level < LEVELS; level++) {
        uint32_t index = node_take(rack, level);
        if (index == 0) return BEL_ENOMEM;
        rack->path[level] = node_at(rack, index);
    }
    return 0;
}

void bel__rack_finish(struct rack *rack)
{
    bel__slab_finish(&rack->chunks);
    bel__slab_finish(&rack->nodes);
}

bool bel__rack_room(struct rack *rack, uint32_t chunks)
{
    struct bel__slab *slab = &rack->chunks;
    if (bel__slab_spare(slab) >= chunks) return true;
    return bel__slab_grow(slab, slab->used + chunks) == 0;
}

/* Adds a chunk to the end of a bucket. */
bool bel__rack_add_chunk(struct rack *rack, struct bucket *bucket)
{
    uint32_t chunk = bel__slab_take(&rack->chunks);
    if (chunk == BEL__SLAB_NONE) return false;
    entry_at(rack, chunk * CHUNK)->tick = 0;
    if (bucket->first == 0) {
        bucket->first = chunk;
    } else {
        entry_at(rack, (bucket->tail - 1) & ~(uint32_t)(CHUNK - 1))->tick = chunk;
    }
    bucket->tail = chunk * CHUNK + 1;
    return true;
}

/* Prefetches the four cache lines of a chunk. */
static void prefetch_chunk(const struct rack *rack, uint32_t chunk)
{
    for (uint32_t i = 0; i < CHUNK; i += 8) {
        __builtin_prefetch(entry_at(rack, chunk * CHUNK + i));
    }
}

uint32_t bel__rack_take(struct rack *rack, struct bucket *bucket, struct entry *out)
{
    assert(bucket->first != 0);
    uint32_t chunk = bucket->first;
    const struct entry *from = entry_at(rack, chunk * CHUNK);
    uint32_t next = from->tick;
    uint32_t count = next != 0 ? CHUNK - 1 : bucket->tail - chunk * CHUNK - 1;
    prefetch_chunk(rack, next);
    memcpy(out, from + 1, (CHUNK - 1) * sizeof *out);
    bucket->first = next;
    bucket->count -= count;
    if (next == 0) bucket->tail = 0;
    assert((bucket->count == 0) == (next == 0));
    bel__slab_give(&rack->chunks, chunk);
    rack->touched += count;
    rack->entries -= count;
    return count;
}

void bel__rack_emptied(struct rack *rack, const struct place *place)
{
    struct bucket *bucket = place->bucket;
    assert(bucket->count == 0);
    if (bucket->node != 0) {
        node_give(rack, node_at(rack, bucket->node));
        bucket->node = 0;
    }
    struct node *node = place->node;
    node->occupied &= ~(UINT64_C(1) << place->digit);
    if (node->occupied == 0 && rack->path[node->level] == node) {
        rack->levels &= ~(UINT32_C(1) << node->level);
    }
}

/* Reads the slot of an entry: files its timer where it is due now, or drops a stale entry. The
 * caller has reserved a chunk. */
static void reconsider(struct rack *rack, struct entry entry)
{
    struct slot *slot = slot_at(rack->slots, entry.slot);
    if (slot_lets_go(slot, entry.tick)) return;
    /* The timer's own entry is in the front; this one differs by a multiple of 2^32 ticks. */
    if (tick_of(slot->due) <= rack->passed) return;
    bool filed = rack_refile(rack, slot, entry.slot);
    assert(filed);
}

/* Prefetches the slots of a bucket's first chunk, if there is one, and the chunk after it. */
static void prefetch_slots(const struct rack *rack, const struct bucket *bucket)
{
    const struct entry *entries = entry_at(rack, bucket->first * CHUNK) + 1;
    uint32_t count = bucket->count < CHUNK - 1 ? bucket->count : CHUNK - 1;
    prefetch_chunk(rack, entries[-1].tick);
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(slot_at(rack->slots, entries[i].slot), 1);
    }
}

/* Returns whether so many of a bucket's entries are stale or moved that reading their slots
 * pays. */
static bool is_worth_looking(struct rack *rack, const struct bucket *bucket)
{
    if (bucket->count < SAMPLE) return false;
    const struct entry *sample = entry_at(rack, bucket->first * CHUNK) + 1;
    unsigned moved = 0;
    prefetch_slots(rack, bucket);
    for (unsigned i = 0; i < SAMPLE; i++) {
        const struct slot *slot = slot_at(rack->slots, sample[i].slot);
        bool stays = owns(slot, sample[i].tick) && is_armed(slot) &&
                     (uint32_t)tick_of(slot->due) == sample[i].tick;
        moved += !stays;
    }
    rack->touched += SAMPLE;
    return moved > SAMPLE_MOVED_MAX;
}

/* Gives a bucket a node. If a sample of its entries agrees in further digits, the bucket of that
 * digit gets a node too, so that clustered entries are not moved level by level. */
static bool add_nodes(struct rack *rack, struct bucket *bucket, unsigned level, bool look)
{
    const struct entry *sample = entry_at(rack, bucket->first * CHUNK) + 1;
    uint32_t count = bucket->count < SAMPLE ? bucket->count : SAMPLE, differ = 0;
    for (uint32_t i = 1; i < count; i++) {
        differ |= sample[i].tick ^ sample[0].tick;
    }
    bucket->node = node_take(rack, --level);
    if (bucket->node == 0) return false;
    struct node *node = node_at(rack, bucket->node);
    while (!look && level > 0 && differ >> digit_shift(level) == 0) {
        unsigned digit = digit_of(sample[0].tick, level);
        uint32_t index = node_take(rack, --level);
        if (index == 0) break;
        node->buckets[digit].node = index;
        node->occupied = UINT64_C(1) << digit;
        node = node_at(rack, index);
    }
    return true;
}

/* Moves an entry into a node, or further down if its bucket has a node. */
static void move_down(struct rack *rack, struct node *node, struct entry entry)
{
    unsigned level = node->level, digit = digit_of(entry.tick, level);
    while (node->buckets[digit].node != 0) {
        node = node_at(rack, node->buckets[digit].node);
        digit = digit_of(entry.tick, --level);
    }
    bool filed = rack_append(rack, node, digit, entry);
    assert(filed); /* the caller has reserved memory */
    rack->entries++;
}

bool bel__rack_open(struct rack *rack, const struct place *place, uint32_t budget)
{
    struct bucket *bucket = place->bucket;
    assert(place->level > 0 && bucket->count > 0);
    bool look = place->level >= FAR_LEVEL || is_worth_looking(rack, bucket);
    if (bucket->node == 0 && !add_nodes(rack, bucket, place->level, look)) return false;

    struct node *node = node_at(rack, bucket->node);
    if (look && budget > LOOK_MAX) budget = LOOK_MAX;
    uint32_t end = rack->touched + budget;
    if (look) prefetch_slots(rack, bucket);
    while (bucket->count > 0 && rack->touched < end) {
        struct entry entries[CHUNK];
        if (!bel__rack_room(rack, CHUNK)) return false;
        uint32_t count = bel__rack_take(rack, bucket, entries);
        if (look) prefetch_slots(rack, bucket);
        for (uint32_t i = 0; i < count; i++) {
            if (look) {
                reconsider(rack, entries[i]);
            } else {
                move_down(rack, node, entries[i]);
            }
        }
    }
    if (bucket->count == 0 && node->occupied == 0) bel__rack_emptied(rack, place);
    return true;
}

/* Returns the first bucket, at or below a node, that has a list, or neither a list nor an occupied
 * node. */
static struct place first_below(const struct rack *rack, struct node *node, unsigned level,
                                uint64_t start)
{
    for (;; level--) {
        unsigned digit = (unsigned)__builtin_ctzll(node->occupied);
        struct bucket *bucket = &node->buckets[digit];
        start += (uint64_t)digit << digit_shift(level);
        struct node *below = node_at(rack, bucket->node);
        if (bucket->node == 0 || bucket->count > 0 || below->occupied == 0) {
            return (struct place){node, bucket, level, digit, start};
        }
        node = below;
    }
}

bool bel__rack_first(const struct rack *rack, struct place *out)
{
    if (rack->levels == 0) return false;
    unsigned level = (unsigned)__builtin_ctz(rack->levels);
    uint64_t start = rack->passed & ~(bucket_ticks(level) * DIGITS - 1);
    *out = first_below(rack, rack->path[level], level, start);
    return true;
}

void bel__rack_prepare(struct rack *rack, uint32_t budget)
{
    uint32_t end = rack->touched + budget;
    for (unsigned level = 1; level < LEVELS && rack->touched < end; level++) {
        if (!(rack->levels >> level & 1)) continue;
        if (digit_of(rack->passed, level - 1) < PREPARE_DIGIT) continue;
        struct place place = first_below(rack, rack->path[level], level, 0);
        bool begun = place.bucket->node != 0 && place.bucket->count > 0;
        if (place.level == 0 || (!begun && place.bucket->count < PREPARE_MIN)) continue;
        if (!bel__rack_open(rack, &place, end - rack->touched)) return;
    }
}

void bel__rack_pass(struct rack *rack, uint64_t tick)
{
    assert(tick >= rack->passed);
    if (tick == rack->passed) return;
    unsigned top = level_between(tick, rack->passed);
    for (unsigned level = top; level > 0; level--) {
        struct node *node = rack->path[level];
        struct bucket *bucket = &node->buckets[digit_of(tick, level)];
        assert(bucket->count == 0);
        assert(rack->path[level - 1]->occupied == 0);
        if (bucket->node == 0) break;

        node_give(rack, rack->path[level - 1]);
        rack->path[level - 1] = node_at(rack, bucket->node);
        bucket->node = 0;
        node->occupied &= ~(UINT64_C(1) << digit_of(tick, level));
        rack->levels |= UINT32_C(1) << (level - 1);
        if (rack->path[level - 1]->occupied == 0) rack->levels &= ~(UINT32_C(1) << (level - 1));
        if (node->occupied == 0) rack->levels &= ~(UINT32_C(1) << level);
    }
    rack->passed = tick;
}

/* Moves a node that leaves the path into its bucket of the node above. */
static void hang(struct rack *rack, unsigned level, const struct node *below)
{
    unsigned digit = digit_of(rack->passed, level);
    struct node *node = rack->path[level];
    assert(node->buckets[digit].node == 0 && node->buckets[digit].count == 0);
    node->buckets[digit].node = node_index(rack, below);
    node->occupied |= UINT64_C(1) << digit;
    rack->levels |= UINT32_C(1) << level;
}

bool bel__rack_unpass(struct rack *rack, uint64_t tick)
{
    assert(tick < rack->passed);
    unsigned top = level_between(tick, rack->passed);
    struct bel__slab *slab = &rack->nodes;
    if (bel__slab_spare(slab) < LEVELS && bel__slab_grow(slab, slab->used + LEVELS) != 0) {
        return false;
    }
    const struct node *below = NULL;
    for (unsigned level = 0; level < top; level++) {
        struct node *node = rack->path[level];
        if (below != NULL) hang(rack, level, below);
        below = node->occupied != 0 ? node : NULL;
        if (below == NULL) continue;
        rack->path[level] = node_at(rack, node_take(rack, level));
        rack->levels &= ~(UINT32_C(1) << level);
    }
    if (below != NULL) hang(rack, top, below);
    rack->passed = tick;
    return true;
}
