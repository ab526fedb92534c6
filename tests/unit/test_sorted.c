/* SPDX-License-Identifier: MIT */

/* The source is compiled in, with memory that can run out. */
#include "../memory.h"

#include "core/sorted.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"

enum {
    MANY = 100000,
};

static const struct bel_key lowest = {{0, 0, 0}};
static const struct bel_key highest = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
static struct bel_sorted sorted;

static void setup(void)
{
    memory_left = UINT64_MAX;
    bel__sorted_init(&sorted);
}

static struct bel_key number(uint64_t i)
{
    return (struct bel_key){{7, i, 0}};
}

static void put(uint64_t i)
{
    struct bel_key key = number(i);
    CHECK(bel__sorted_reserve(&sorted, 1) == 0);
    CHECK(!bel__sorted_put(&sorted, &key, i, NULL));
}

static bool drop(uint64_t i)
{
    struct bel_key key = number(i);
    return bel__sorted_remove(&sorted, &key, NULL);
}

static bool has(uint64_t i)
{
    struct bel_key key = number(i);
    const uint64_t *value = bel__sorted_find(&sorted, &key);
    return value != NULL && *value == i;
}

/* Returns the numbers below `count`, each once, in a scattered order. */
static uint64_t scattered(uint64_t i, uint64_t count)
{
    return i * 7919 % count; /* a prime that divides no count in use */
}

static void an_empty_map_has_nothing(void)
{
    struct bel_sorted_place place;
    setup();
    CHECK_EQ(bel__sorted_count(&sorted), 0);
    CHECK(bel__sorted_find(&sorted, &lowest) == NULL);
    CHECK(!bel__sorted_remove(&sorted, &lowest, NULL));
    CHECK(!bel__sorted_seek(&sorted, &lowest, &place));
    CHECK_EQ(bel__sorted_bytes(&sorted), 0);
    CHECK(bel__sorted_valid(&sorted));
    bel__sorted_finish(&sorted);
}

static void the_first_word_decides_first(void)
{
    const struct bel_key keys[] = {
        lowest, {{0, 0, 1}}, {{0, 0, UINT64_MAX}}, {{0, 1, 0}}, {{1, 0, 0}}, {{1, 0, 1}}, highest};
    enum {
        KEYS = sizeof keys / sizeof keys[0]
    };
    struct bel_sorted_place place;
    setup();
    CHECK(bel__sorted_reserve(&sorted, KEYS) == 0);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t j = i * 3 % KEYS;
        CHECK(!bel__sorted_put(&sorted, &keys[j], j, NULL));
    }
    CHECK(bel__sorted_seek(&sorted, &lowest, &place));
    for (uint64_t i = 0; i < KEYS; i++) {
        CHECK_EQ(place.value, i);
        CHECK(bel__key_compare(&place.key, &keys[i]) == 0);
        CHECK(bel__sorted_next(&sorted, &place) == (i + 1 < KEYS));
    }
    CHECK(bel__sorted_seek(&sorted, &highest, &place));
    CHECK_EQ(place.value, KEYS - 1);
    bel__sorted_finish(&sorted);
}

static void putting_again_replaces_and_gives_the_old_value(void)
{
    struct bel_key key = number(1);
    uint64_t old = 0;
    setup();
    put(1);
    memory_left = 0; /* to replace takes none */
    uint64_t changes = sorted.changes;
    CHECK(bel__sorted_put(&sorted, &key, 20, &old));
    CHECK_EQ(old, 1);
    CHECK(bel__sorted_put(&sorted, &key, 30, NULL));
    CHECK_EQ(*bel__sorted_find(&sorted, &key), 30);
    CHECK_EQ(bel__sorted_count(&sorted), 1);
    CHECK_EQ(sorted.changes, changes);
    bel__sorted_finish(&sorted);
}

static void a_found_value_can_be_changed_in_place(void)
{
    struct bel_key key = number(1);
    uint64_t value = 0;
    setup();
    put(1);
    *bel__sorted_find(&sorted, &key) = 12;
    CHECK(bel__sorted_remove(&sorted, &key, &value));
    CHECK_EQ(value, 12);
    CHECK(!bel__sorted_remove(&sorted, &key, &value));
    bel__sorted_finish(&sorted);
}

static void a_seek_finds_the_key_or_the_next(void)
{
    struct bel_sorted_place place;
    setup();
    for (uint64_t i = 0; i < 1000; i++) {
        put(2 * scattered(i, 1000));
    }
    for (uint64_t i = 0; i < 1999; i++) {
        struct bel_key key = number(i);
        CHECK(bel__sorted_seek(&sorted, &key, &place));
        CHECK_EQ(place.value, (i + 1) / 2 * 2);
    }
    struct bel_key behind = number(1999);
    CHECK(!bel__sorted_seek(&sorted, &behind, &place));
    bel__sorted_finish(&sorted);
}

static void a_place_survives_changes(void)
{
    struct bel_sorted_place place;
    setup();
    for (uint64_t i = 0; i < 1000; i++) {
        put(10 * i);
    }
    struct bel_key from = number(5000);
    CHECK(bel__sorted_seek(&sorted, &from, &place));
    CHECK(drop(5000)); /* its own */
    CHECK(drop(5010)); /* the next */
    put(5015);
    CHECK(bel__sorted_next(&sorted, &place));
    CHECK_EQ(place.value, 5015);
    put(5012); /* after it now */
    CHECK(bel__sorted_next(&sorted, &place));
    CHECK_EQ(place.value, 5020);
    for (uint64_t i = 0; i < 1000; i++) {
        if (i != 999) (void)drop(10 * i);
    }
    CHECK(bel__sorted_next(&sorted, &place));
    CHECK_EQ(place.value, 9990);
    CHECK(drop(9990) && drop(5012) && drop(5015));
    CHECK(!bel__sorted_next(&sorted, &place)); /* of an empty map */
    CHECK(bel__sorted_valid(&sorted));
    bel__sorted_finish(&sorted);
}

static void keys_in_order_leave_full_nodes(void)
{
    setup();
    for (uint64_t i = 0; i < MANY; i++) {
        put(i);
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(bel__sorted_bytes(&sorted) < (size_t)34 * MANY);
    bel__sorted_finish(&sorted);

    setup();
    for (uint64_t i = MANY; i-- > 0;) {
        put(i);
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(bel__sorted_bytes(&sorted) < (size_t)36 * MANY);
    bel__sorted_finish(&sorted);

    setup();
    for (uint64_t i = 0; i < MANY; i++) { /* in order within 100 ranges */
        put(i % 100 * MANY + i / 100);
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(bel__sorted_bytes(&sorted) < (size_t)48 * MANY);
    bel__sorted_finish(&sorted);
}

static void keys_in_no_order_leave_nodes_four_fifths_full(void)
{
    setup();
    for (uint64_t i = 0; i < MANY; i++) {
        put(scattered(i, MANY) * UINT64_C(0x9e3779b97f4a7c15));
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(bel__sorted_bytes(&sorted) < (size_t)43 * MANY);
    bel__sorted_finish(&sorted);
}

static void keys_that_fill_a_gap_backwards_share_nodes(void)
{
    setup();
    for (uint64_t i = 0; i < NODE_MAX; i++) {
        put(i);
    }
    for (uint64_t i = 0; i < MANY; i++) { /* each after a full node and before the rest */
        put(UINT64_C(2) * MANY - i);
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(bel__sorted_bytes(&sorted) < (size_t)68 * MANY);
    bel__sorted_finish(&sorted);
}

static void few_keys_are_in_few_nodes_however_they_were_left(void)
{
    setup();
    for (uint64_t i = 0; i < MANY; i++) {
        put(i);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t key = scattered(i, MANY);
        if (key % 50 != 0) CHECK(drop(key));
    }
    uint32_t used = sorted.node_count - sorted.spare_count;
    uint64_t count = bel__sorted_count(&sorted);
    CHECK(bel__sorted_valid(&sorted));
    CHECK_EQ(count, MANY / 50);
    CHECK(used <= count / 15 + 3);
    bel__sorted_finish(&sorted);
}

static void a_queue_uses_its_nodes_again(void)
{
    struct bel_sorted_place place;
    setup();
    for (uint64_t i = 0; i < 1000; i++) {
        put(i);
    }
    size_t bytes = bel__sorted_bytes(&sorted);
    memory_left = 0;
    for (uint64_t i = 1000; i < MANY; i++) {
        CHECK(bel__sorted_seek(&sorted, &lowest, &place));
        CHECK_EQ(place.value, i - 1000);
        CHECK(bel__sorted_remove(&sorted, &place.key, NULL));
        put(i);
    }
    CHECK_EQ(bel__sorted_bytes(&sorted), bytes);
    CHECK(bel__sorted_valid(&sorted));
    bel__sorted_finish(&sorted);
}

static void a_split_is_not_undone_at_once(void)
{
    setup();
    for (uint64_t i = 0; i < NODE_MAX; i++) {
        put(2 * i);
    }
    CHECK_EQ(sorted.height, 1);
    put(NODE_MAX);
    CHECK_EQ(sorted.height, 2);
    for (uint64_t i = 0; i < 30; i++) {
        CHECK(drop(2 * i));
        CHECK_EQ(sorted.height, 2);
    }
    for (uint64_t i = 30; i < 40; i++) {
        CHECK(drop(2 * i));
    }
    CHECK_EQ(sorted.height, 1);
    for (uint64_t i = 0; i < 30; i++) {
        put(2 * i);
        CHECK_EQ(sorted.height, 1);
    }
    bel__sorted_finish(&sorted);
}

/* Reserves `puts` puts and removes the spare nodes that this did not need. */
static void reserve_barely(size_t puts)
{
    CHECK(bel__sorted_reserve(&sorted, puts) == 0);
    while (sorted.spare_count > nodes_needed(&sorted, puts)) {
        (void)take_node(&sorted);
        sorted.node_count--;
    }
    memory_left = 0;
}

static void what_was_reserved_can_be_put_in_the_worst_case(void)
{
    setup();
    for (uint64_t i = 0; i < MANY; i++) { /* every node full, but the last of a level */
        put(100 * i);
    }
    reserve_barely(1000);
    for (uint64_t i = 0; i < 1000; i++) { /* each in a leaf of its own */
        struct bel_key key = number(100 * (i * 64 + i % 63) + 1);
        CHECK(!bel__sorted_put(&sorted, &key, 0, NULL));
    }
    CHECK(bel__sorted_valid(&sorted));
    bel__sorted_finish(&sorted);
}

static void a_put_that_splits_up_to_the_root_finds_its_nodes(void)
{
    static const unsigned counts[] = {NODE_MAX, NODE_MAX * NODE_MAX,
                                      NODE_MAX * NODE_MAX * NODE_MAX};
    for (unsigned i = 0; i < 3; i++) {
        setup();
        for (uint64_t key = 0; key < counts[i]; key++) { /* every node of every level is full */
            put(2 * key);
        }
        CHECK_EQ(sorted.height, i + 1);
        reserve_barely(1);
        struct bel_key middle = number(counts[i] | 1);
        CHECK(!bel__sorted_put(&sorted, &middle, 0, NULL));
        CHECK_EQ(sorted.height, i + 2);
        CHECK(sorted.spare_count <= 1); /* the bound is tight */
        CHECK(bel__sorted_valid(&sorted));
        bel__sorted_finish(&sorted);
    }
}

static void what_was_provided_for_may_come_and_go(void)
{
    enum {
        KEYS = 2000
    };
    setup();
    CHECK(bel__sorted_provide(&sorted, 0) == 0);
    CHECK_EQ(bel__sorted_bytes(&sorted), 0);
    CHECK(bel__sorted_provide(&sorted, KEYS) == 0);
    CHECK(bel__sorted_bytes(&sorted) <= (size_t)137 * KEYS);
    memory_left = 0;
    CHECK(bel__sorted_provide(&sorted, KEYS) == 0);
    CHECK(bel__sorted_provide(&sorted, (uint64_t)2 * KEYS) == BEL_ENOMEM);
    uint64_t first = 0, next = 0;
    for (uint64_t round = 0; round < 50; round++) { /* sparse, dense, sparse, ... */
        uint64_t step = round % 2 == 0 ? 1 : 7919;
        while (bel__sorted_count(&sorted) < KEYS) {
            struct bel_key key = number(next++ * step % 1000003);
            bel__sorted_put(&sorted, &key, 0, NULL);
        }
        CHECK(bel__sorted_valid(&sorted));
        for (; first < next - round * KEYS / 60; first++) {
            (void)drop(first * step % 1000003);
        }
    }
    CHECK(bel__sorted_valid(&sorted));
    bel__sorted_finish(&sorted);
}

/* One key in a leaf and 31 in the next is the least that the invariant allows. */
static void what_was_provided_for_may_be_as_sparse_as_the_law_allows(void)
{
    enum {
        LEAVES = 200,
        KEYS = LEAVES * PAIR_MIN / 2 + 2 * NODE_MAX
    };
    setup();
    CHECK(bel__sorted_provide(&sorted, KEYS) == 0);
    memory_left = 0;
    for (uint64_t leaf = 0; leaf < LEAVES; leaf++) {
        for (uint64_t i = 0; i < NODE_MAX; i++) {
            struct bel_key key = number(leaf * NODE_MAX + i);
            CHECK(!bel__sorted_put(&sorted, &key, 0, NULL));
            CHECK(bel__sorted_count(&sorted) <= KEYS);
        }
        uint64_t kept = leaf % 2 == 0 ? PAIR_MIN - 1 : 1; /* of the leaf before */
        for (uint64_t i = kept; leaf > 0 && i < NODE_MAX; i++) {
            CHECK(drop((leaf - 1) * NODE_MAX + i));
        }
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK(sorted.node_count - sorted.spare_count > LEAVES);
    CHECK(sorted.spare_count < LEAVES / 10); /* the bound is tight */
    bel__sorted_finish(&sorted);
}

static void without_memory_nothing_changes_and_later_it_works(void)
{
    unsigned failures = 0;
    setup();
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t changes = sorted.changes;
        size_t bytes = bel__sorted_bytes(&sorted);
        memory_left = 0;
        if (bel__sorted_reserve(&sorted, 1) != 0) {
            failures++;
            CHECK(bel__sorted_reserve(&sorted, 1) == BEL_ENOMEM);
            CHECK_EQ(sorted.changes, changes);
            CHECK_EQ(bel__sorted_bytes(&sorted), bytes);
            CHECK(bel__sorted_valid(&sorted));
            memory_left = 1;
        }
        put(scattered(i, 10000));
    }
    CHECK(failures > 5);
    CHECK(bel__sorted_reserve(&sorted, MANY) == BEL_ENOMEM);
    CHECK(bel__sorted_reserve(&sorted, SIZE_MAX) == BEL_ENOMEM);
    for (uint64_t i = 0; i < 10000; i++) {
        CHECK(has(i));
        CHECK(drop(i)); /* to remove takes none */
    }
    CHECK(bel__sorted_valid(&sorted));
    CHECK_EQ(sorted.spare_count, sorted.node_count);
    bel__sorted_finish(&sorted);
}

static void a_few_keys_take_one_node(void)
{
    setup();
    for (uint64_t i = 0; i < NODE_MAX; i++) {
        put(i);
        CHECK_EQ(bel__sorted_bytes(&sorted), 2048);
    }
    put(NODE_MAX);
    CHECK(bel__sorted_bytes(&sorted) > 2048);
    bel__sorted_finish(&sorted);
    CHECK_EQ(bel__sorted_bytes(&sorted), 0);
}

static void reserving_nothing_takes_nothing(void)
{
    setup();
    put(1);
    memory_left = 0;
    CHECK(bel__sorted_reserve(&sorted, 0) == 0);
    CHECK(bel__sorted_reserve(&sorted, NODE_MAX - 1) == 0);
    CHECK(bel__sorted_reserve(&sorted, NODE_MAX) == BEL_ENOMEM);
    bel__sorted_finish(&sorted);
}

int main(void)
{
    RUN(an_empty_map_has_nothing);
    RUN(the_first_word_decides_first);
    RUN(putting_again_replaces_and_gives_the_old_value);
    RUN(a_found_value_can_be_changed_in_place);
    RUN(a_seek_finds_the_key_or_the_next);
    RUN(a_place_survives_changes);
    RUN(keys_in_order_leave_full_nodes);
    RUN(keys_in_no_order_leave_nodes_four_fifths_full);
    RUN(keys_that_fill_a_gap_backwards_share_nodes);
    RUN(few_keys_are_in_few_nodes_however_they_were_left);
    RUN(a_queue_uses_its_nodes_again);
    RUN(a_split_is_not_undone_at_once);
    RUN(what_was_reserved_can_be_put_in_the_worst_case);
    RUN(a_put_that_splits_up_to_the_root_finds_its_nodes);
    RUN(what_was_provided_for_may_come_and_go);
    RUN(what_was_provided_for_may_be_as_sparse_as_the_law_allows);
    RUN(without_memory_nothing_changes_and_later_it_works);
    RUN(a_few_keys_take_one_node);
    RUN(reserving_nothing_takes_nothing);
    return 0;
}
