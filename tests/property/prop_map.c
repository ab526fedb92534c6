/* SPDX-License-Identifier: MIT */

/*
 * The map compared with an array that has a place for every key. Phases of mostly putting and
 * mostly removing alternate, so that the map grows and shrinks over the same sizes many times. Keys
 * have every length from 0, and some are prefixes of others. In every other history they are words.
 */
#include "core/map.h"
#include "property.h"

#include <string.h>

enum {
    KEYS = 300,
    KEY_BYTES_MAX = 24,
    STEPS = 3000,
    CASES = 100,
};

struct key {
    char bytes[KEY_BYTES_MAX];
    size_t count;
};

static struct key keys[KEYS], copies[KEYS]; /* the map borrows from either */
static uint64_t values[KEYS];
static bool present[KEYS];

/* Extends a key to whole words. */
static void fill_up(struct key *key)
{
    do {
        key->bytes[key->count++] = 'y';
    } while (key->count % 8 != 0);
}

/* Key i is the number i in base 4, with letters as digits, so that all differ. */
static void make_keys(uint64_t *random_state, bool are_words)
{
    for (unsigned i = 0; i < KEYS; i++) {
        struct key *key = &keys[i];
        key->count = 0;
        for (unsigned rest = i; rest > 0; rest = (rest - 1) / 4) {
            key->bytes[key->count++] = (char)('a' + (rest - 1) % 4);
        }
        if (random_below(random_state, 2) == 0) { /* a tail that is not a key */
            memset(key->bytes + key->count, 'z', 10);
            key->count += 10;
        }
        if (are_words) fill_up(key);
        copies[i] = *key;
        present[i] = false;
    }
}

static void check_walk(const struct bel_map *map)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t *found = bel__map_find(map, keys[i].bytes, keys[i].count);
        CHECK(present[i] == (found != NULL));
        if (found != NULL) CHECK_EQ(*found, values[i]);
        count += present[i];
    }
    CHECK_EQ(bel__map_count(map), count);
    uint64_t sum = 0, want = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        if (present[i]) want += values[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += bel__map_at(map, i)->value;
    }
    CHECK_EQ(sum, want);
    CHECK(bel__map_valid(map));
}

static void put(struct bel_map *map, unsigned i, uint64_t *random_state)
{
    const struct key *key = random_below(random_state, 2) == 0 ? &keys[i] : &copies[i];
    values[i] = random_u64(random_state);
    CHECK(bel__map_put(map, key->bytes, key->count, values[i]) == 0);
    present[i] = true;
}

static void run_case(uint64_t seed)
{
    struct bel_map map;
    struct bel_siphash_key secret;
    uint64_t random_state = seed, puts_in_8 = 4;
    random_fill(&random_state, &secret, sizeof secret);
    if (seed % 2 == 0) bel__map_init(&map, secret);
    if (seed % 2 == 1) bel__map_init_words(&map, secret);
    make_keys(&random_state, seed % 2 == 1);
    for (int step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)random_below(&random_state, KEYS);
        uint32_t buckets = map.bucket_count;
        if (random_below(&random_state, 200) == 0) puts_in_8 = random_below(&random_state, 9);
        if (random_below(&random_state, 8) < puts_in_8) {
            put(&map, i, &random_state);
        } else {
            uint64_t value = 0;
            CHECK(bel__map_remove(&map, keys[i].bytes, keys[i].count, &value) == present[i]);
            if (present[i]) CHECK_EQ(value, values[i]);
            present[i] = false;
        }
        CHECK(map.bucket_count <= buckets + 1 && map.bucket_count + 2 >= buckets);
        if (step % 64 == 0) check_walk(&map);
    }
    check_walk(&map);
    bel__map_finish(&map);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
