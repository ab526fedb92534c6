/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_RACK_H
#define BEL_CORE_WHEEL_RACK_H

/*
 * rack - stores entries until their time is near; rack.c explains the design.
 *
 * Entries are filed under their tick, unordered within a bucket. The owner finds the first bucket,
 * takes it out or opens it, and sets `passed`: entries of ticks up to `passed` are in the front,
 * entries of later ticks in the rack.
 */

#include "core/wheel/slots.h"

enum {
    DIGIT_BITS = 6,
    DIGITS = 1 << DIGIT_BITS, /* buckets in a node: one word tells which are occupied */
    LEVELS = 9,               /* 9 digits and the 10 bits of a tick cover any 64-bit due */
    FAR_LEVEL = 6,            /* from here on the 32 bits of an entry do not contain the next
                                 digit */
    CHUNK = 32,               /* entries in a chunk; the first is its header */
    ENTRIES_SLACK = 8192,     /* stale entries that are not worth a sweep */
};

/* What a bucket stores for a timer. */
struct entry {
    uint32_t tick; /* low 32 bits */
    uint32_t slot;
};

/* A list of chunks; or a node one level down; or both while it is being opened. */
struct bucket {
    uint32_t first; /* first chunk, 0 if there is none */
    uint32_t tail;  /* where the next entry goes; a multiple of CHUNK: into a new chunk */
    uint32_t count; /* entries in the list */
    uint32_t node;  /* 0 if it has not been opened */
};

struct node {
    uint64_t occupied; /* one bit per bucket that has entries or a node */
    uint32_t level;
    uint32_t in_use;
    uint32_t unused[12];
    struct bucket buckets[DIGITS];
};

static_assert(sizeof(struct node) == 64 + DIGITS * sizeof(struct bucket), "lines up");

struct rack {
    uint64_t passed;           /* every tick up to this one has been taken out */
    uint32_t levels;           /* one bit per level whose path node is occupied */
    struct node *path[LEVELS]; /* the nodes whose range contains `passed` */
    struct slots *slots;
    struct bel__slab chunks; /* of struct entry[CHUNK] */
    struct bel__slab nodes;
    uint64_t entries;     /* in buckets */
    uint32_t stale_share; /* in 1/256 of the armed timers: more stale entries are swept */
    uint32_t touched;     /* entries touched by the current call */
    uint32_t sweep_node;  /* the next bucket to sweep */
    uint32_t sweep_bucket;
    uint32_t sweep_left; /* entries of it that are still to be checked */
};

/* A bucket that was found, and its first tick. */
struct place {
    struct node *node;
    struct bucket *bucket;
    unsigned level;
    unsigned digit;
    uint64_t start;
};

BEL_CHECKED int bel__rack_init(struct rack *rack, struct slots *slots, uint64_t passed,
                               uint32_t entries_max);
void bel__rack_finish(struct rack *rack);

/* Allocates memory for `chunks` more chunks. Returns whether there is enough. */
bool bel__rack_room(struct rack *rack, uint32_t chunks);

/* Finds the first bucket with a list. Returns false if the rack is empty. */
bool bel__rack_first(const struct rack *rack, struct place *out);

/* Removes the first chunk of a bucket: copies its entries, at most CHUNK - 1, and returns their
 * number. */
uint32_t bel__rack_take(struct rack *rack, struct bucket *bucket, struct entry *out);

/* Marks a bucket as empty after its last entry was taken. */
void bel__rack_emptied(struct rack *rack, const struct place *place);

/* Moves up to about `budget` entries of a bucket one level down. Returns false if memory has run
 * out; no entry is lost. */
bool bel__rack_open(struct rack *rack, const struct place *place, uint32_t budget);

/* Opens a part of the next bucket of a higher level, if it is large and the one before it nearly
 * used up, so that the work is spread over many calls. */
void bel__rack_prepare(struct rack *rack, uint32_t budget);

/* Moves `passed` forward; no entry at or before `tick` may be in the rack. */
void bel__rack_pass(struct rack *rack, uint64_t tick);

/* Moves `passed` back. Returns false, with nothing changed, if memory has run out. */
bool bel__rack_unpass(struct rack *rack, uint64_t tick);

/* Checks a chunk of entries and drops the stale ones. */
void bel__rack_sweep(struct rack *rack);

/* Returns whether a sweep is due. To be called whenever an entry may have become stale. */
static inline bool rack_is_untidy(const struct rack *rack)
{
    uint64_t armed = rack->slots->armed;
    return rack->entries > armed + (armed * rack->stale_share >> 8) + ENTRIES_SLACK;
}

static inline unsigned digit_shift(unsigned level)
{
    return level * DIGIT_BITS;
}

static inline unsigned digit_of(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> digit_shift(level)) & (DIGITS - 1);
}

/* Returns the number of ticks that a bucket of a level covers. */
static inline uint64_t bucket_ticks(unsigned level)
{
    return UINT64_C(1) << digit_shift(level);
}

static inline struct entry *entry_at(const struct rack *rack, uint32_t index)
{
    return (struct entry *)(void *)rack->chunks.base + index;
}

static inline struct node *node_at(const struct rack *rack, uint32_t index)
{
    return (struct node *)bel__slab_at(&rack->nodes, index);
}

/* Returns the level of the highest digit in which two ticks differ. */
static inline unsigned level_between(uint64_t a, uint64_t b)
{
    assert(a != b);
    return (63 - (unsigned)__builtin_clzll(a ^ b)) / DIGIT_BITS;
}

/* Adds a chunk to the end of a bucket. Returns false if memory has run out. */
bool bel__rack_add_chunk(struct rack *rack, struct bucket *bucket);

/* Appends an entry to a bucket of a node. Returns false if memory has run out. */
static inline bool rack_append(struct rack *rack, struct node *node, unsigned digit,
                               struct entry entry)
{
    struct bucket *bucket = &node->buckets[digit];
    if (bucket->tail % CHUNK == 0 && !bel__rack_add_chunk(rack, bucket)) return false;
    *entry_at(rack, bucket->tail++) = entry;
    bucket->count++;
    node->occupied |= UINT64_C(1) << digit;
    return true;
}

/* Files an entry for `slot` at `tick`, which has not passed. Returns false if memory has run
 * out. */
static inline bool rack_file(struct rack *rack, uint64_t tick, uint32_t slot)
{
    assert(tick > rack->passed);
    unsigned level = level_between(tick, rack->passed);
    struct node *node = rack->path[level];
    uint32_t top = UINT32_C(1) << level;
    unsigned digit = digit_of(tick, level);
    while (node->buckets[digit].node != 0) {
        node = node_at(rack, node->buckets[digit].node);
        digit = digit_of(tick, --level);
    }
    if (!rack_append(rack, node, digit, (struct entry){(uint32_t)tick, slot})) return false;
    rack->levels |= top;
    rack->entries++;
    return true;
}

/* Like rack_file(), but only if the bucket has room and no node; otherwise returns false. */
static inline bool rack_file_quickly(struct rack *rack, uint64_t tick, struct entry entry)
{
    unsigned level = (63 - (unsigned)__builtin_clzll(tick ^ rack->passed)) / DIGIT_BITS;
    struct bucket *bucket = &rack->path[level]->buckets[digit_of(tick, level)];
    if (bucket->node != 0 || bucket->tail % CHUNK == 0) return false;
    *entry_at(rack, bucket->tail++) = entry;
    bucket->count++;
    rack->entries++;
    return true;
}

/* Files a slot where it is due now, and makes the entry its own. */
static inline bool rack_refile(struct rack *rack, struct slot *slot, uint32_t index)
{
    uint64_t tick = tick_of(slot->due);
    if (!rack_file(rack, tick, index)) return false;
    slot->place = (uint32_t)tick;
    set_where(slot, FILED);
    return true;
}

#endif
