/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SORTED_H
#define BEL_CORE_SORTED_H

/*
 * sorted - an ordered map in memory, from keys of three 64-bit words to numbers.
 *
 * A B+ tree. Keys are compared word by word, so that a key of up to 24 bytes, read as big-endian
 * words and padded with zeros, sorts like its bytes. Put, find and remove take logarithmic time;
 * removing the first key and appending after the last are cheap and leave full nodes.
 *
 *     bel__sorted_init(&ready);
 *     err = bel__sorted_reserve(&ready, 1);
 *     bel__sorted_put(&ready, key, value);
 *     if (bel__sorted_seek(&ready, from, &place)) ... place.key, place.value
 *
 * Only bel__sorted_reserve() and bel__sorted_provide() allocate memory: a reserved put cannot fail.
 * Nodes that become empty are kept for later puts until bel__sorted_finish().
 *
 * A key takes 33 bytes if keys come in order, about 41 at random, 47 if they come in order within
 * many ranges, and at worst 137, after removals; for the largest number of keys since the memory
 * was last freed. The first 63 keys take 2 KiB.
 *
 * Threads: a map belongs to one thread; while it does not change, many threads may read it.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_SORTED_HEIGHT_MAX = 10, /* for 2^32 nodes: each level has at most a 16th of the level
                                   below, plus one */
};

struct bel_key {
    uint64_t words[3]; /* most significant word first */
};

/* Returns a negative number, 0 or a positive number, like memcmp(). */
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
    struct bel_sorted_node *spare;        /* unused nodes */
    struct bel_sorted_block *blocks;      /* own the memory of all nodes */
    uint32_t spare_count, node_count, block_count;
    unsigned height; /* levels; 0 if the map is empty */
    uint64_t count;
    uint64_t changes; /* puts of new keys and removals so far: a place is valid while it does not
                         change */
};

/* The place of a key. The caller may read the first two fields. */
struct bel_sorted_place {
    struct bel_key key;
    uint64_t value;
    struct bel_sorted_node *leaf; /* private, as are the next two */
    unsigned index;
    uint64_t changes;
};

/* The path from the root to a key, or to where it would be. Private. */
struct bel_sorted_way {
    struct {
        struct bel_sorted_node *node;
        unsigned index;             /* of the entry, or of the next child on the path */
    } steps[BEL_SORTED_HEIGHT_MAX]; /* the first is the leaf, the last used one the root */
    uint64_t changes;
};

/* Initialises an empty map. Allocates nothing. */
void bel__sorted_init(struct bel_sorted *sorted);

/* Frees the memory. The map is empty and can be used again; places in it are invalid. */
void bel__sorted_finish(struct bel_sorted *sorted);

/* Removes all keys and keeps the memory. */
void bel__sorted_clear(struct bel_sorted *sorted);

/* Allocates memory so that the next `puts` puts cannot fail, with any removals between them.
 * Returns 0; or returns BEL_ENOMEM with nothing changed. Takes constant time if there is enough
 * memory. The worst case, which is rare, is one node per put and one for each level above. */
BEL_CHECKED int bel__sorted_reserve(struct bel_sorted *sorted, size_t puts);

/* Allocates memory for `keys` keys in total, 137 bytes per key: as long as there are at most this
 * many keys, any number of puts succeeds. Returns 0; or returns BEL_ENOMEM with nothing changed. */
BEL_CHECKED int bel__sorted_provide(struct bel_sorted *sorted, uint64_t keys);

/* Stores `value` under `key`. Returns true if the key existed, and sets `*out` to its old value
 * unless `out` is NULL. Memory for a new key must have been reserved. */
bool bel__sorted_put(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value,
                     uint64_t *out);

/* Appends a key if it is greater than all others and this needs no memory. Otherwise returns
 * false. */
bool bel__sorted_append(struct bel_sorted *sorted, const struct bel_key *key, uint64_t value);

/* Returns a pointer to the value of `key`, or NULL. The value may be read and changed until the
 * next put or remove. */
uint64_t *bel__sorted_find(const struct bel_sorted *sorted, const struct bel_key *key);

/* Removes a key. Returns false if it does not exist. Sets `*out` to the value unless `out` is
 * NULL. */
bool bel__sorted_remove(struct bel_sorted *sorted, const struct bel_key *key, uint64_t *out);

/* Find, put and remove in two steps, for callers that decide after looking. bel__sorted_look()
 * returns the path too. Then bel__sorted_add() puts a key that does not exist, for which memory
 * must have been reserved, or bel__sorted_drop() removes one that does. The map must not change in
 * between. */
uint64_t *bel__sorted_look(const struct bel_sorted *sorted, const struct bel_key *key,
                           struct bel_sorted_way *out);
void bel__sorted_add(struct bel_sorted *sorted, struct bel_sorted_way *way,
                     const struct bel_key *key, uint64_t value);
void bel__sorted_drop(struct bel_sorted *sorted, struct bel_sorted_way *way);

/* Finds the first key that is not less than `from`. Returns false if there is none. */
bool bel__sorted_seek(const struct bel_sorted *sorted, const struct bel_key *from,
                      struct bel_sorted_place *out);

/* Moves to the key after `place`, whose own key may have been removed. Takes constant time if the
 * map has not changed, otherwise the time of a seek. Returns false if there is none. */
bool bel__sorted_next(const struct bel_sorted *sorted, struct bel_sorted_place *place);

/* Returns the value `count` keys after `place` if it is in the same or the next leaf, otherwise 0;
 * for prefetching. The map must not have changed since the place was found. */
uint64_t bel__sorted_peek(const struct bel_sorted_place *place, unsigned count);

/* Returns the number of keys. */
uint64_t bel__sorted_count(const struct bel_sorted *sorted);

/* Returns the bytes allocated, without the map itself. */
size_t bel__sorted_bytes(const struct bel_sorted *sorted);

/* Returns whether every invariant holds, in time linear in the count. For tests. */
bool bel__sorted_valid(const struct bel_sorted *sorted);

#endif
