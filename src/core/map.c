/* SPDX-License-Identifier: MIT */

/*
 * Linear hashing. The entries are a dense array, and each bucket is a chain of entry indices. There
 * are as many buckets as entries. When an entry is added, one bucket is split; not the longest, but
 * the next in order:
 *
 *     5 buckets     hash mod 8, or mod 4 if that bucket does not exist yet
 *
 *     0     1     2     3     4          next: bucket 5 is split off bucket 1, then
 *     mod8  mod4  mod4  mod4  mod8       6 off 2, 7 off 3, and 8 off 0, modulo 16
 *
 * So bucket b, except bucket 0, is always split off from b without its highest bit, and shrinking
 * appends its chain to that bucket again. Growing needs neither a second table nor a moment when
 * everything moves. A bucket that is not split yet has, on average, at most twice its share.
 *
 * Removing an entry moves the last entry into its place and repairs the chain of that entry. So the
 * entries stay dense: a walk counts indices, and memory can be freed from the end.
 *
 * Both arrays consist of blocks, each as large as all before it, so that growing allocates but
 * never copies. New blocks are not cleared: a bucket is initialised when it is split off, an entry
 * when it is put.
 */
#include "core/map.h"

#include "core/memory_use.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BITS = 4, /* the first block holds 16, and the second too */
    BLOCK_FIRST = 1 << BLOCK_BITS,
};

#define NONE UINT32_MAX

__extension__ typedef unsigned __int128 two_words;

static_assert(BLOCK_FIRST << (BEL_MAP_BLOCKS - 1) == BEL_MAP_COUNT_MAX, "blocks hold every entry");
static_assert(sizeof(struct bel_map_entry) == 32, "as the header says");

/* Returns the block that contains element `index`. */
static unsigned block_of(uint32_t index)
{
    return 32 - BLOCK_BITS - (unsigned)__builtin_clz(index | (BLOCK_FIRST - 1));
}

/* Return the first element of a block, and its number of elements. */
static uint32_t block_start(unsigned block)
{
    return block == 0 ? 0 : (uint32_t)BLOCK_FIRST << (block - 1);
}

static uint32_t block_size(unsigned block)
{
    return block == 0 ? BLOCK_FIRST : block_start(block);
}

static struct bel_map_entry *entry_at(const struct bel_map *map, uint32_t index)
{
    unsigned block = block_of(index);
    return &map->entries[block][index - block_start(block)];
}

static uint32_t *bucket_at(const struct bel_map *map, uint32_t index)
{
    unsigned block = block_of(index);
    return &map->buckets[block][index - block_start(block)];
}

static uint32_t highest_bit(uint32_t x)
{
    assert(x > 0);
    return UINT32_C(1) << (31 - __builtin_clz(x));
}

/* Returns the bucket that `bucket` is split off from. */
static uint32_t parent_of(uint32_t bucket)
{
    return bucket - highest_bit(bucket);
}

static uint32_t bucket_of(const struct bel_map *map, uint64_t hash)
{
    assert(map->bucket_count > 0);
    uint32_t mask = 2 * highest_bit(map->bucket_count) - 1;
    uint32_t bucket = (uint32_t)hash & mask;
    return bucket < map->bucket_count ? bucket : parent_of(bucket);
}

static bool has_key(const struct bel_map_entry *entry, const struct bel_map_entry *wanted)
{
    return entry->hash == wanted->hash && entry->key_bytes == wanted->key_bytes &&
           (wanted->key_bytes == 0 || memcmp(entry->key, wanted->key, wanted->key_bytes) == 0);
}

/* Returns the link to the entry with the wanted key, or NULL. */
static uint32_t *find_link(const struct bel_map *map, const struct bel_map_entry *wanted)
{
    if (map->count == 0) return NULL;
    uint32_t *link = bucket_at(map, bucket_of(map, wanted->hash));
    while (*link != NONE) {
        struct bel_map_entry *entry = entry_at(map, *link);
        if (has_key(entry, wanted)) return link;
        link = &entry->next;
    }
    return NULL;
}

/* Multiplies each word by half of the secret and folds the 128-bit product. */
static uint64_t hash_words(struct bel_siphash_key secret, const void *key, size_t key_bytes)
{
    uint64_t parts[2], word;
    const unsigned char *bytes = key;
    assert(key_bytes % sizeof word == 0);
    memcpy(parts, secret.bytes, sizeof parts);
    uint64_t hash = parts[0];
    for (size_t i = 0; i < key_bytes; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        two_words product = (two_words)(hash ^ word) * (parts[1] | 1);
        hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return hash;
}

static struct bel_map_entry new_entry(const struct bel_map *map, const void *key, size_t key_bytes)
{
    assert(key != NULL || key_bytes == 0);
    assert(key_bytes <= UINT32_MAX);
    uint64_t hash = map->is_of_words ? hash_words(map->secret, key, key_bytes)
                                     : bel__siphash(map->secret, key, key_bytes);
    return (struct bel_map_entry){.key = key, .key_bytes = (uint32_t)key_bytes, .hash = hash};
}

/* Adds a bucket and moves the entries that belong into it from its parent. */
static void split(struct bel_map *map)
{
    uint32_t added = map->bucket_count;
    uint32_t mask = added == 0 ? 0 : 2 * highest_bit(added) - 1;
    uint32_t *tail = bucket_at(map, added);
    *tail = NONE;
    map->bucket_count++;
    if (added == 0) return;

    uint32_t *link = bucket_at(map, parent_of(added));
    while (*link != NONE) {
        uint32_t index = *link;
        struct bel_map_entry *entry = entry_at(map, index);
        if (((uint32_t)entry->hash & mask) != added) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        entry->next = NONE;
        *tail = index;
        tail = &entry->next;
    }
}

/* Removes the last bucket and appends its chain to its parent's. */
static void merge(struct bel_map *map)
{
    assert(map->bucket_count > 1);
    uint32_t last = map->bucket_count - 1;
    uint32_t *tail = bucket_at(map, parent_of(last));
    while (*tail != NONE) {
        tail = &entry_at(map, *tail)->next;
    }
    *tail = *bucket_at(map, last);
    map->bucket_count--;
}

static size_t entries_bytes(unsigned block)
{
    return block_size(block) * sizeof(struct bel_map_entry);
}

static size_t buckets_bytes(unsigned block)
{
    return block_size(block) * sizeof(uint32_t);
}

static void free_entries(struct bel_map *map, unsigned block)
{
    if (map->entries[block] == NULL) return;
    bel__memory_shrink(entries_bytes(block));
    free(map->entries[block]);
    map->entries[block] = NULL;
}

static void free_buckets(struct bel_map *map, unsigned block)
{
    if (map->buckets[block] == NULL) return;
    bel__memory_shrink(buckets_bytes(block));
    free(map->buckets[block]);
    map->buckets[block] = NULL;
}

/* Allocates memory for one more entry and the bucket that it needs. */
static int reserve_one(struct bel_map *map)
{
    unsigned block = block_of(map->count);
    if (map->entries[block] == NULL) {
        map->entries[block] = malloc(entries_bytes(block));
        if (map->entries[block] == NULL) return BEL_ENOMEM;
        bel__memory_grow(entries_bytes(block));
    }
    if (map->bucket_count > map->count) return 0;
    block = block_of(map->bucket_count);
    if (map->buckets[block] == NULL) {
        map->buckets[block] = malloc(buckets_bytes(block));
        if (map->buckets[block] == NULL) return BEL_ENOMEM;
        bel__memory_grow(buckets_bytes(block));
    }
    return 0;
}

/* Frees the block after the next one. One spare block is kept, so that a count that alternates
 * around the border of a block does not allocate each time. */
static void release_spare(struct bel_map *map)
{
    unsigned block = block_of(map->count) + 2;
    if (block < BEL_MAP_BLOCKS) free_entries(map, block);
    block = block_of(map->bucket_count) + 2;
    if (block < BEL_MAP_BLOCKS) free_buckets(map, block);
}

void bel__map_init(struct bel_map *map, struct bel_siphash_key secret)
{
    assert(map != NULL);
    *map = (struct bel_map){.secret = secret};
}

void bel__map_init_words(struct bel_map *map, struct bel_siphash_key secret)
{
    bel__map_init(map, secret);
    map->is_of_words = true;
}

void bel__map_finish(struct bel_map *map)
{
    assert(map != NULL);
    for (unsigned block = 0; block < BEL_MAP_BLOCKS; block++) {
        free_entries(map, block);
        free_buckets(map, block);
    }
    *map = (struct bel_map){.secret = map->secret, .is_of_words = map->is_of_words};
}

int bel__map_put(struct bel_map *map, const void *key, size_t key_bytes, uint64_t value)
{
    struct bel_map_entry entry = new_entry(map, key, key_bytes);
    uint32_t *link = find_link(map, &entry);
    entry.value = value;
    if (link != NULL) {
        entry.next = entry_at(map, *link)->next;
        *entry_at(map, *link) = entry;
        return 0;
    }
    if (map->count == BEL_MAP_COUNT_MAX) return BEL_EFULL;
    int err = reserve_one(map);
    if (err) return err;

    if (map->bucket_count <= map->count) split(map);
    uint32_t *bucket = bucket_at(map, bucket_of(map, entry.hash));
    entry.next = *bucket;
    *entry_at(map, map->count) = entry;
    *bucket = map->count++;
    assert(map->bucket_count >= map->count);
    return 0;
}

uint64_t *bel__map_find(const struct bel_map *map, const void *key, size_t key_bytes)
{
    if (map->count == 0) return NULL; /* without computing a hash */
    struct bel_map_entry wanted = new_entry(map, key, key_bytes);
    uint32_t *link = find_link(map, &wanted);
    return link == NULL ? NULL : &entry_at(map, *link)->value;
}

/* Moves the last entry to `index`, which is free, and repairs its chain. */
static void fill_hole(struct bel_map *map, uint32_t index)
{
    uint32_t last = map->count;
    assert(index <= last);
    if (index == last) return;
    uint32_t *link = bucket_at(map, bucket_of(map, entry_at(map, last)->hash));
    while (*link != last) {
        link = &entry_at(map, *link)->next;
    }
    *link = index;
    *entry_at(map, index) = *entry_at(map, last);
}

bool bel__map_remove(struct bel_map *map, const void *key, size_t key_bytes, uint64_t *out)
{
    struct bel_map_entry wanted = new_entry(map, key, key_bytes);
    uint32_t *link = find_link(map, &wanted);
    if (link == NULL) return false;

    uint32_t index = *link;
    if (out != NULL) *out = entry_at(map, index)->value;
    *link = entry_at(map, index)->next;
    map->count--;
    fill_hole(map, index);
    for (int i = 0; i < 2 && map->bucket_count / 2 > map->count; i++) {
        merge(map); /* two, so that a map that only shrinks keeps no excess buckets */
    }
    release_spare(map);
    return true;
}

uint32_t bel__map_count(const struct bel_map *map)
{
    assert(map->count <= BEL_MAP_COUNT_MAX);
    return map->count;
}

const struct bel_map_entry *bel__map_at(const struct bel_map *map, uint32_t index)
{
    assert(index < map->count);
    return entry_at(map, index);
}

size_t bel__map_bytes(const struct bel_map *map)
{
    size_t bytes = 0;
    assert(map != NULL);
    for (unsigned block = 0; block < BEL_MAP_BLOCKS; block++) {
        if (map->entries[block] != NULL) bytes += block_size(block) * sizeof(struct bel_map_entry);
        if (map->buckets[block] != NULL) bytes += block_size(block) * sizeof(uint32_t);
    }
    return bytes;
}

/* Returns the length of a chain, or the count + 1 if the chain is cyclic or has an invalid
 * index. */
static uint32_t chain_length(const struct bel_map *map, uint32_t bucket)
{
    uint32_t length = 0;
    for (uint32_t i = *bucket_at(map, bucket); i != NONE; i = entry_at(map, i)->next) {
        if (i >= map->count || ++length > map->count) return map->count + 1;
    }
    return length;
}

uint32_t bel__map_chain_max(const struct bel_map *map)
{
    uint32_t longest = 0;
    for (uint32_t bucket = 0; bucket < map->bucket_count; bucket++) {
        uint32_t length = chain_length(map, bucket);
        assert(length <= map->count);
        if (length > longest) longest = length;
    }
    return longest;
}

bool bel__map_valid(const struct bel_map *map)
{
    uint64_t chained = 0;
    if (map->count > BEL_MAP_COUNT_MAX || map->bucket_count < map->count) return false;
    if (map->bucket_count / 2 > map->count) return false;
    for (uint32_t bucket = 0; bucket < map->bucket_count; bucket++) {
        uint32_t length = chain_length(map, bucket);
        if (length > map->count) return false;
        chained += length;
        for (uint32_t i = *bucket_at(map, bucket); i != NONE; i = entry_at(map, i)->next) {
            const struct bel_map_entry *entry = entry_at(map, i);
            if (bucket_of(map, entry->hash) != bucket) return false;
            if (entry->hash != new_entry(map, entry->key, entry->key_bytes).hash) return false;
        }
    }
    return chained == map->count;
}
