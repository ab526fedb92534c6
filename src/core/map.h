/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_MAP_H
#define BEL_CORE_MAP_H

/*
 * map - finds a number by a name, without a pause when it grows.
 *
 * The map grows by one bucket a call and shrinks by at most two, so no call does work
 * in proportion to what is in it: a put looks at two short chains, a remove at six. How
 * short is up to the hash, which is SipHash with the caller's secret, so that nobody
 * can choose keys that collide. Keys that users have little say in, of whole words, can
 * do with a multiplication a word, which is a tenth of the work.
 *
 * Keys are borrowed: the map remembers where they are and how long, and the bytes must
 * stay as they are until the entry is removed or put again. They are mostly part of
 * what the value stands for, and so need no memory of their own. Values are 64-bit
 * numbers, because what we look up are places in slabs and handles; a pointer fits in
 * one through uintptr_t.
 *
 *     bel__map_init(&topics, secret);
 *     err = bel__map_put(&topics, topic->name, topic->name_bytes, (uintptr_t)topic);
 *     uint64_t *value = bel__map_find(&topics, name, name_bytes);
 *
 * An entry costs 32 bytes and 4 to 8 for its bucket, in blocks that double in size and
 * never move. Blocks that stay empty are given back, one kept to spare.
 *
 * Threads: a map belongs to one thread.
 */

#include "belfry/error.h"
#include "core/siphash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_MAP_BLOCKS = 27, /* 16 in the first two, then doubling */
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

/* Makes an empty map, which has no memory yet. */
void bel__map_init(struct bel_map *map, struct bel_siphash_key secret);

/* The same for keys of one or more 64-bit words that the program makes itself. */
void bel__map_init_words(struct bel_map *map, struct bel_siphash_key secret);

/* Releases the memory; neither keys nor what values stand for. The map is empty. */
void bel__map_finish(struct bel_map *map);

/* Puts `value` under `key`, in place of the value and the key that were there. Returns
 * 0; or BEL_ENOMEM, or BEL_EFULL at BEL_MAP_COUNT_MAX, and nothing has changed. */
BEL_CHECKED int bel__map_put(struct bel_map *map, const void *key, size_t key_bytes,
                             uint64_t value);

/* The value under `key`, to read or to change until the next put or remove; NULL if
 * there is none. */
uint64_t *bel__map_find(const struct bel_map *map, const void *key, size_t key_bytes);

/* Removes what is under `key`; `key` may be the entry's own. Returns false if there is
 * nothing. The value goes to `*out`, which may be NULL. */
bool bel__map_remove(struct bel_map *map, const void *key, size_t key_bytes, uint64_t *out);

/*
 * Entries have the numbers from 0 to below the count, in no order that means anything.
 * Removing one gives its number to the last, so a walk that removes goes backwards:
 *
 *     for (uint32_t i = bel__map_count(map); i-- > 0;) {
 *         const struct bel_map_entry *entry = bel__map_at(map, i);
 *         if (is_old(entry->value)) bel__map_remove(map, entry->key, entry->key_bytes, NULL);
 *     }
 */
uint32_t bel__map_count(const struct bel_map *map);
const struct bel_map_entry *bel__map_at(const struct bel_map *map, uint32_t index);

/* Memory held, in bytes, besides the map itself. */
size_t bel__map_bytes(const struct bel_map *map);

/* The longest chain there is: the most entries that a find may have to look at. Takes
 * time linear in the map, as does the next. */
uint32_t bel__map_chain_max(const struct bel_map *map);

/* Checks every invariant. For tests. */
bool bel__map_valid(const struct bel_map *map);

#endif
