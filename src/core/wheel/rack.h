/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_WHEEL_RACK_H
#define BEL_CORE_WHEEL_RACK_H

/*
 * rack - where entries wait until their time is near; rack.c has the idea.
 *
 * Entries are filed under their tick, in no order within a bucket. The owner asks
 * for the first bucket, takes it out or opens it, and says how far time has been
 * taken out: every tick up to `passed` is the front's business, every later one
 * the rack's.
 */

#include "core/wheel/slots.h"

enum {
    DIGIT_BITS = 6,
    DIGITS = 1 << DIGIT_BITS, /* buckets in a node: one word says which are occupied */
    LEVELS = 9,               /* 9 digits and the 10 bits of a tick: any 64-bit due */
    FAR_LEVEL = 6,            /* from here an entry's 32 bits do not tell the next digit */
    CHUNK = 32,               /* entries' room in a chunk; the first is its header */
    ENTRIES_SLACK = 8192,     /* stale entries that are never worth a sweep */
};

/* What a bucket holds for a timer. */
struct entry {
    uint32_t tick; /* low 32 bits */
    uint32_t slot;
};

/* A list of chunks; or a node one level down; or, while it is being opened, both. */
struct bucket {
    uint32_t first; /* first chunk, 0 if there is none */
    uint32_t tail;  /* where the next entry goes; a multiple of CHUNK: in a new chunk */
    uint32_t count; /* entries in the list */
    uint32_t node;  /* 0 if it has not been opened */
};

struct node {
    uint64_t occupied; /* a bit per bucket that has entries or a node */
    uint32_t level;
    uint32_t in_use;
    uint32_t unused[12];
    struct bucket buckets[DIGITS];
};

static_assert(sizeof(struct node) == 64 + DIGITS * sizeof(struct bucket), "lines up");

struct rack {
    uint64_t passed;           /* every tick up to here has been taken out */
    uint32_t levels;           /* a bit per level whose node on the path is occupied */
    struct node *path[LEVELS]; /* the nodes whose range has `passed` in it */
    struct slots *slots;
    struct bel__slab chunks; /* of struct entry[CHUNK] */
    struct bel__slab nodes;
    uint64_t entries;     /* in buckets */
    uint32_t stale_share; /* of the armed, in 1/256: more stale entries than that are swept */
    uint32_t touched;     /* entries touched by the current call */
    uint32_t sweep_node;  /* the next bucket to be swept */
    uint32_t sweep_bucket;
    uint32_t sweep_left; /* entries of it still to be looked at */
};

/* A bucket that was found, and the ticks it stands for. */
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

/* Whether `chunks` more can be taken for sure. */
bool bel__rack_room(struct rack *rack, uint32_t chunks);

/* Finds the first bucket with a list: false if nothing is filed. */
bool bel__rack_first(const struct rack *rack, struct place *out);

/* Takes the first chunk out of a bucket: copies its entries, at most CHUNK - 1, and
 * returns how many. */
uint32_t bel__rack_take(struct rack *rack, struct bucket *bucket, struct entry *out);

/* Marks a bucket that has just been emptied. */
void bel__rack_emptied(struct rack *rack, const struct place *place);

/* Moves up to about `budget` entries of a bucket one level down. False if there is
 * no memory for it; nothing is lost then. */
bool bel__rack_open(struct rack *rack, const struct place *place, uint32_t budget);

/* Opens a part of the bucket that comes next on a higher level, if it is large and the
 * one before it nearly used up, so that it need not be done all at once. */
void bel__rack_prepare(struct rack *rack, uint32_t budget);

/* Moves `passed` forward: nothing filed is at or before `tick`. */
void bel__rack_pass(struct rack *rack, uint64_t tick);

/* Moves `passed` back. False if there is no memory for it; then it stays. */
bool bel__rack_unpass(struct rack *rack, uint64_t tick);

/* Looks at a chunk of entries and drops the stale ones. */
void bel__rack_sweep(struct rack *rack);

/* Whether it is time to sweep; to be asked whenever an entry may have become stale. */
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

/* The ticks that a bucket of a level stands for. */
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

/* The level of the highest digit in which two ticks differ. */
static inline unsigned level_between(uint64_t a, uint64_t b)
{
    assert(a != b);
    return (63 - (unsigned)__builtin_clzll(a ^ b)) / DIGIT_BITS;
}

/* Gives a bucket one more chunk at its end. False if there is no memory. */
bool bel__rack_add_chunk(struct rack *rack, struct bucket *bucket);

/* Puts an entry into a bucket of a node. False if there is no memory. */
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

/* Files an entry for `slot` at `tick`, which has not passed. False if there is no
 * memory. */
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

/* Does the same if it is just a matter of writing the entry behind another. */
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
