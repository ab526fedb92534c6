/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_MAP_H
#define BEL_CORE_MAP_H

/*
 * map - a hash map from byte strings to 64-bit numbers that grows without pauses.
 *
 * The map grows by one bucket per call and shrinks by at most two, so no call does work
 * proportional to its size: a put visits two short chains, a remove six. The hash is SipHash with a
 * secret of the caller, so that users cannot choose keys that collide. For keys of whole words that
 * users hardly influence, a faster hash multiplies once per word, a tenth of the work.
 *
 * Keys are borrowed: the map stores a pointer and a length, and the bytes must not change until the
 * entry is removed or put again. Usually a key is part of the object that its value refers to.
 * Values are 64-bit numbers, such as slab indices and handles; a pointer can be stored through
 * uintptr_t.
 *
 *     bel__map_init(&topics, secret);
 *     err = bel__map_put(&topics, topic->name, topic->name_bytes, (uintptr_t)topic);
 *     uint64_t *value = bel__map_find(&topics, name, name_bytes);
 *
 * An entry takes 32 bytes plus 4 to 8 for its bucket, in blocks that double in size and never move.
 * Empty blocks are freed, except one spare block.
 *
 * Threads: a map belongs to one thread.
 */

#include "belfry/error.h"
#include "core/siphash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_MAP_BLOCKS = 27, /* 16 entries in the first two, then doubling */
    BEL_MAP_COUNT_MAX = 1 << 30,
};

struct bel_map_entry {
    const void *key; /* borrowed */
    uint64_t value;
    uint64_t hash; /* private */
    uint32_t key_bytes;
    uint32_t next; /* private */
};

/* A map. The fields are private. */
struct bel_map {
    struct bel_siphash_key secret;
    bool is_of_words;
    uint32_t count, bucket_count;
    struct bel_map_entry *entries[BEL_MAP_BLOCKS];
    uint32_t *buckets[BEL_MAP_BLOCKS];
};

/* Initialises an empty map. Allocates nothing. */
void bel__map_init(struct bel_map *map, struct bel_siphash_key secret);

/* Like bel__map_init(), with the faster hash, for keys of one or more 64-bit words that the program
 * generates. */
void bel__map_init_words(struct bel_map *map, struct bel_siphash_key secret);

/* Frees the memory of the map, but neither keys nor values. The map is then empty. */
void bel__map_finish(struct bel_map *map);

/* Stores `value` under `key`, replacing an existing entry and its key. Returns 0; or, with nothing
 * changed, BEL_ENOMEM, or BEL_EFULL at BEL_MAP_COUNT_MAX. */
BEL_CHECKED int bel__map_put(struct bel_map *map, const void *key, size_t key_bytes,
                             uint64_t value);

/* Returns a pointer to the value of `key`, or NULL if there is none. The value may be read and
 * changed until the next put or remove. */
uint64_t *bel__map_find(const struct bel_map *map, const void *key, size_t key_bytes);

/* Removes the entry of `key`, which may point to the entry's own key. Returns false if there is
 * none. Sets `*out` to the value, unless `out` is NULL. */
bool bel__map_remove(struct bel_map *map, const void *key, size_t key_bytes, uint64_t *out);

/*
 * Entries have the indices from 0 to below the count, in no particular order. Removing one moves
 * the last entry to its index, so a walk that removes goes backwards:
 *
 *     for (uint32_t i = bel__map_count(map); i-- > 0;) {
 *         const struct bel_map_entry *entry = bel__map_at(map, i);
 *         if (is_old(entry->value)) bel__map_remove(map, entry->key, entry->key_bytes, NULL);
 *     }
 */
uint32_t bel__map_count(const struct bel_map *map);
const struct bel_map_entry *bel__map_at(const struct bel_map *map, uint32_t index);

/* Returns the bytes allocated, without the map itself. */
size_t bel__map_bytes(const struct bel_map *map);

/* Returns the length of the longest chain: the most entries that a find may visit. Takes time
 * linear in the size of the map, as does bel__map_valid(). */
uint32_t bel__map_chain_max(const struct bel_map *map);

/* Returns whether every invariant holds. For tests. */
bool bel__map_valid(const struct bel_map *map);

#endif
