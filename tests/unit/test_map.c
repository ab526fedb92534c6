/* SPDX-License-Identifier: MIT */

/* The source is compiled in, with memory that can run out. */
#include "../memory.h"

#include "core/map.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

enum {
    MANY = 100000,
};

static const struct bel_siphash_key secret = {"a secret of ours"};
static struct bel_map map;
static uint32_t numbers[MANY]; /* keys: each number's bytes */

static void setup(void)
{
    memory_left = UINT64_MAX;
    bel__map_init(&map, secret);
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[i] = i;
    }
}

static bool has(const char *key, uint64_t value)
{
    const uint64_t *found = bel__map_find(&map, key, strlen(key));
    return found != NULL && *found == value;
}

static void put(const char *key, uint64_t value)
{
    CHECK(bel__map_put(&map, key, strlen(key), value) == 0);
}

static void put_number(uint32_t i)
{
    CHECK(bel__map_put(&map, &numbers[i], sizeof numbers[i], i) == 0);
}

static bool remove_number(uint32_t i)
{
    return bel__map_remove(&map, &numbers[i], sizeof numbers[i], NULL);
}

static void an_empty_map_finds_and_removes_nothing(void)
{
    setup();
    CHECK_EQ(bel__map_count(&map), 0);
    CHECK(bel__map_find(&map, "noon", 4) == NULL);
    CHECK(!bel__map_remove(&map, "noon", 4, NULL));
    CHECK_EQ(bel__map_bytes(&map), 0);
    bel__map_finish(&map);
}

static void what_was_put_is_found_until_it_is_removed(void)
{
    uint64_t value = 0;
    setup();
    put("noon", 12);
    put("midnight", 0);
    CHECK(has("noon", 12));
    CHECK(has("midnight", 0));
    CHECK(bel__map_remove(&map, "noon", 4, &value));
    CHECK_EQ(value, 12);
    CHECK(bel__map_find(&map, "noon", 4) == NULL);
    CHECK(has("midnight", 0));
    bel__map_finish(&map);
}

static void keys_are_bytes_and_may_be_none_at_all(void)
{
    setup();
    CHECK(bel__map_put(&map, NULL, 0, 1) == 0);
    CHECK(bel__map_put(&map, "\0", 1, 2) == 0);
    CHECK(bel__map_put(&map, "\0\0", 2, 3) == 0);
    CHECK_EQ(*bel__map_find(&map, "", 0), 1);
    CHECK_EQ(*bel__map_find(&map, "\0", 1), 2);
    CHECK_EQ(*bel__map_find(&map, "\0\0", 2), 3);
    bel__map_finish(&map);
}

static void putting_again_replaces_value_and_key(void)
{
    char first[] = "noon", second[] = "noon";
    setup();
    put(first, 12);
    put(second, 24);
    first[0] = 'm'; /* the map does not use it any more */
    CHECK(has("noon", 24));
    CHECK_EQ(bel__map_count(&map), 1);
    CHECK(bel__map_at(&map, 0)->key == second);
    bel__map_finish(&map);
}

static void a_found_value_can_be_changed_in_place(void)
{
    setup();
    put("noon", 12);
    *bel__map_find(&map, "noon", 4) = 13;
    CHECK(has("noon", 13));
    bel__map_finish(&map);
}

static void a_put_adds_one_bucket_and_chains_stay_short(void)
{
    setup();
    for (uint32_t i = 0; i < MANY; i++) {
        put_number(i);
        CHECK_EQ(map.bucket_count, i + 1);
    }
    CHECK(bel__map_valid(&map));
    CHECK(bel__map_chain_max(&map) <= 12);
    bel__map_finish(&map);
}

static void a_remove_takes_two_buckets_at_most_and_leaves_none_behind(void)
{
    setup();
    for (uint32_t i = 0; i < MANY; i++) {
        put_number(i);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t before = map.bucket_count;
        CHECK(remove_number(i));
        CHECK(map.bucket_count + 2 >= before);
        CHECK(map.bucket_count <= 2 * map.count + 1);
    }
    CHECK(bel__map_valid(&map));
    bel__map_finish(&map);
}

static void memory_follows_the_count_down(void)
{
    setup();
    for (uint32_t i = 0; i < MANY; i++) {
        put_number(i);
    }
    size_t full = bel__map_bytes(&map);
    for (uint32_t i = 0; i < MANY - 100; i++) {
        CHECK(remove_number(i));
    }
    CHECK(bel__map_bytes(&map) < full / 100);
    for (uint32_t i = MANY - 100; i < MANY; i++) {
        CHECK(bel__map_find(&map, &numbers[i], sizeof numbers[i]) != NULL);
    }
    bel__map_finish(&map);
}

static void going_to_and_fro_over_a_size_takes_no_memory(void)
{
    setup();
    put_number(0);
    for (uint32_t i = 1; i < 1000; i++) {
        memory_left = UINT64_MAX;
        put_number(i);
        memory_left = 0;
        CHECK(remove_number(i));
        CHECK(remove_number(i - 1)); /* two, to reach the previous block */
        put_number(i - 1);
        put_number(i);
    }
    bel__map_finish(&map);
}

static void a_walk_backwards_may_remove_what_it_visits(void)
{
    uint64_t sum = 0;
    setup();
    for (uint32_t i = 0; i < 1000; i++) {
        put_number(i);
    }
    for (uint32_t i = bel__map_count(&map); i-- > 0;) {
        const struct bel_map_entry *entry = bel__map_at(&map, i);
        sum += entry->value;
        if (entry->value % 3 != 0) continue;
        CHECK(bel__map_remove(&map, entry->key, entry->key_bytes, NULL));
    }
    CHECK_EQ(sum, 999 * 1000 / 2);
    CHECK_EQ(bel__map_count(&map), 666);
    CHECK(bel__map_valid(&map));
    bel__map_finish(&map);
}

static void without_memory_nothing_changes_and_later_it_works(void)
{
    setup();
    uint32_t failures = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        memory_left = 0;
        uint32_t buckets = map.bucket_count;
        int err = bel__map_put(&map, &numbers[i], sizeof numbers[i], i);
        if (err == 0) continue;
        failures++;
        CHECK(err == BEL_ENOMEM);
        CHECK_EQ(bel__map_count(&map), i);
        CHECK_EQ(map.bucket_count, buckets);
        CHECK(bel__map_find(&map, &numbers[i], sizeof numbers[i]) == NULL);
        CHECK(bel__map_valid(&map));
        memory_left = 1; /* enough for the entry but not for its bucket */
        CHECK(bel__map_put(&map, &numbers[i], sizeof numbers[i], i) == BEL_ENOMEM);
        CHECK_EQ(bel__map_count(&map), i);
        memory_left = 1;
        put_number(i);
    }
    CHECK_EQ(failures, 7); /* one per block */
    memory_left = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        put_number(i); /* replacing takes no memory */
        CHECK(remove_number(i));
    }
    bel__map_finish(&map);
}

static void the_secret_decides_where_keys_go(void)
{
    struct bel_map other;
    unsigned differ = 0;
    setup();
    bel__map_init(&other, (struct bel_siphash_key){"another secret!"});
    for (uint32_t i = 0; i < 100; i++) {
        put_number(i);
        CHECK(bel__map_put(&other, &numbers[i], sizeof numbers[i], i) == 0);
        differ += bel__map_at(&map, i)->hash != bel__map_at(&other, i)->hash;
    }
    CHECK_EQ(differ, 100);
    bel__map_finish(&map);
    bel__map_finish(&other);
}

int main(void)
{
    RUN(an_empty_map_finds_and_removes_nothing);
    RUN(what_was_put_is_found_until_it_is_removed);
    RUN(keys_are_bytes_and_may_be_none_at_all);
    RUN(putting_again_replaces_value_and_key);
    RUN(a_found_value_can_be_changed_in_place);
    RUN(a_put_adds_one_bucket_and_chains_stay_short);
    RUN(a_remove_takes_two_buckets_at_most_and_leaves_none_behind);
    RUN(memory_follows_the_count_down);
    RUN(going_to_and_fro_over_a_size_takes_no_memory);
    RUN(a_walk_backwards_may_remove_what_it_visits);
    RUN(without_memory_nothing_changes_and_later_it_works);
    RUN(the_secret_decides_where_keys_go);
    return 0;
}
