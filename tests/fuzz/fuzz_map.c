/* SPDX-License-Identifier: MIT */

/*
 * The first 16 bytes are the secret. Then each byte is an operation: its top bit selects
 * put or remove, the rest is the length of the key that follows. Keys are in blocks of
 * their exact size, so that reading past the end is noticed.
 */
#include "core/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PUTS_MAX = 4096,
};

static uint8_t *copies[PUTS_MAX]; /* a value is the index of its key's copy */
static uint64_t copy_count;

static void put(struct bel_map *map, const uint8_t *key, size_t key_bytes)
{
    const uint64_t *old = bel__map_find(map, key, key_bytes);
    uint64_t value = copy_count, old_value = old == NULL ? value : *old;
    if (copy_count == PUTS_MAX) return;
    copies[value] = malloc(key_bytes > 0 ? key_bytes : 1);
    if (copies[value] == NULL) return;
    memcpy(copies[value], key, key_bytes);
    if (bel__map_put(map, copies[value], key_bytes, value) != 0) {
        free(copies[value]);
        return;
    }
    if (old_value != value) free(copies[old_value]);
    copy_count++;
    assert(*bel__map_find(map, key, key_bytes) == value);
}

/* Removes a key. `key` may point into the copy, which is freed last. */
static void take_out(struct bel_map *map, const uint8_t *key, size_t key_bytes)
{
    uint64_t value;
    uint32_t count = bel__map_count(map);
    if (!bel__map_remove(map, key, key_bytes, &value)) return;
    assert(bel__map_count(map) == count - 1);
    assert(bel__map_find(map, key, key_bytes) == NULL);
    free(copies[value]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_map map;
    struct bel_siphash_key secret;
    if (size < sizeof secret) return 0;
    copy_count = 0;
    memcpy(&secret, data, sizeof secret);
    bel__map_init(&map, secret);
    for (size_t i = sizeof secret; i < size;) {
        uint8_t operation = data[i++];
        size_t key_bytes = operation & 0x7f;
        if (key_bytes > size - i) key_bytes = size - i;
        if (operation >> 7) {
            take_out(&map, data + i, key_bytes);
        } else {
            put(&map, data + i, key_bytes);
        }
        i += key_bytes;
    }
    assert(bel__map_valid(&map));
    for (uint32_t i = bel__map_count(&map); i-- > 0;) {
        const struct bel_map_entry *entry = bel__map_at(&map, i);
        take_out(&map, entry->key, entry->key_bytes);
    }
    assert(bel__map_count(&map) == 0);
    bel__map_finish(&map);
    return 0;
}
