/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SORTED_H
#define BEL_CORE_SORTED_H

/*
 * sorted - an ordered map in memory, from keys of three 64-bit words to numbers.
 *
 * A B+ tree. Keys are compared word by word, so that a key of up to 24 bytes, read as
 * big-endian words and filled up with zeros, sorts as its bytes do. Putting, finding and
 * removing take time logarithmic in the count; taking the first, and appending behind the
 * last, are cheap and leave full nodes.
 *
 *     bel__sorted_init(&ready);
 *     err = bel__sorted_reserve(&ready, 1);
 *     bel__sorted_put(&ready, key, value);
 *     if (bel__sorted_seek(&ready, from, &place)) ... place.key, place.value
 *
 * Memory is asked for by bel__sorted_reserve() and bel__sorted_provide() alone: what was
 * reserved can be put without fail. Nodes that become empty are kept for the next put until
 * bel__sorted_finish().
 *
 * A key costs 33 bytes if keys come in order, some 41 at random, 47 if they come in order within
 * many ranges, and 137 at worst, after removals; counted for the most keys that there were
 * since the memory was last released. The first 63 keys take 2 KiB.
 *
 * Threads: a map belongs to one thread; one that is not changed can be read by many.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_SORTED_HEIGHT_MAX = 10, /* of 2^32 nodes: each level has a 16th of the one below, and one */
};

struct bel_key {
    uint64_t words[3]; /* the first decides first */
};

/* Negative, 0 or positive, as memcmp(). */
static inline int bel__key_compare(const struct bel_key *a, const struct bel_key *b)
{
    for (int i = 0; i < 3; i++) {
        if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
    }
    return 0;
}

struct bel_sorted_node; /* private, as is the next */
struct bel_sorted_block;

/* A map. The fields are private. */
struct bel_sorted {
    struct bel_sorted_node *root;
    struct bel_sorted_node *first, *last; /* leaves */
    struct bel_sorted_node *spare;        /* nodes that wait for use */
    struct bel_sorted_block *blocks;      /* where all the nodes are */
    uint32_t spare_count, node_count, block_count;
    unsigned height; /* levels; 0 if it is empty */
    uint64_t count;
    uint64_t changes; /* puts of new keys and removals so far: a place is good while it stands */
};

/* Where a key is; the first two can be read. */
struct bel_sorted_place {
    struct bel_key key;
    uint64_t value;
    struct bel_sorted_node *leaf; /* private, as are the next two */
    unsigned index;
    uint64_t changes;
};

/* Where a key is, or would be. Private. */
struct bel_sorted_way {
    struct {
        struct bel_sorted_node *node;
        unsigned index;             /* of the entry, or of the child that the way goes on with */
    } steps[BEL_SORTED_HEIGHT_MAX]; /* the first is the leaf, the last used one the root */
    uint64_t changes;
};

/* Makes an empty map, which has no memory yet. */
void bel__sorted_init(struct bel_sorted *sorted);

/* Releases the memory. The map is empty and can be used again; places into it have ended. */
void bel__sorted_finish(struct bel_sorted *sorted);

/* Removes all keys, and keeps the memory. */
void bel__sorted_clear(struct bel_sorted *sorted);

/* Makes room, so that the next `puts` puts need no memory, whatever is removed between them.
 * Returns 0; or BEL_ENOMEM, and nothing has changed. Takes constant time if there is room. The
 * worst case, which is rare, is a node a put, and one for each level above. */
BEL_CHECKED int bel__sorted_reserve(struct bel_sorted *sorted, size_t puts);

/* Makes room for `keys` keys in all: as long as there are no more, no put needs memory, however
 * many there are. Takes 137 bytes a key. Returns 0; or BEL_ENOMEM, and nothing has changed. */
BEL_CHECKED int bel__sorted_provide(struct bel_sorted *sorted, uint64_t keys);

/* Puts `value` under `key`. True if the key was there, and the old value goes to `*out`,
 * which may be NULL. Room for a new key must have been reserved. */
bool bel__sorted_put(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value,
                     uint64_t *out);

/* Puts a key behind all others, if it belongs there and that needs no memory; else false. */
bool bel__sorted_append(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value);

/* The value under `key`, to read or to change until the next put or remove; or NULL. */
uint64_t *bel__sorted_find(const struct bel_sorted *sorted, const struct bel_key *key);

/* Removes a key. False if it is not there. The value goes to `*out`, which may be NULL. */
bool bel__sorted_remove(struct bel_sorted *sorted, const struct bel_key *key, uint64_t *out);

/* The same, with the way there, for who has to look before it knows what to do. The two that
 * follow go it: one puts a key that is not there, for which room must have been reserved, the
 * other removes one that is. Nothing may be put or removed in between. */
uint64_t *bel__sorted_look(const struct bel_sorted *sorted, const struct bel_key *key,
                           struct bel_sorted_way *out);
void bel__sorted_add(struct bel_sorted *sorted, struct bel_sorted_way *way,
                     const struct bel_key *key, uint64_t value);
void bel__sorted_drop(struct bel_sorted *sorted, struct bel_sorted_way *way);

/* The first key that is not before `from`. False if there is none. */
bool bel__sorted_seek(const struct bel_sorted *sorted, const struct bel_key *from,
                      struct bel_sorted_place *out);

/* The key after `place`, whose own may have been removed: constant time if the map has not
 * changed since, otherwise as a seek. False if there is none. */
bool bel__sorted_next(const struct bel_sorted *sorted, struct bel_sorted_place *place);

/* The value `count` keys behind `place`, if that is near, for who wants to have fetched what it
 * stands for; else 0. The map has not changed since the place was found. */
uint64_t bel__sorted_peek(const struct bel_sorted_place *place, unsigned count);

/* How many keys there are. */
uint64_t bel__sorted_count(const struct bel_sorted *sorted);

/* Memory held, in bytes, besides the map itself. */
size_t bel__sorted_bytes(const struct bel_sorted *sorted);

/* Checks every invariant, in time linear in the count. For tests. */
bool bel__sorted_valid(const struct bel_sorted *sorted);

#endif
