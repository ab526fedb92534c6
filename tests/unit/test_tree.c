/* SPDX-License-Identifier: MIT */

/* The promises of every tree, in memory and on disk. */
#include "store/tree/tree.h"

#include "store/io/row.h"
#include "store/store.h"

#include "../check.h"
#include "../trees.h"

enum {
    MANY = 5000,
};

static struct fixture fixture;
static struct bel_tree *tree;

static void setup(int kind)
{
    fixture_init(&fixture, kind);
    tree = fixture.tree;
    CHECK_NOTE("the tree is %s", fixture_name(&fixture));
}

static void reopen(void)
{
    fixture_reopen(&fixture);
    tree = fixture.tree;
}

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{number >> 32, number & UINT32_MAX, 0}};
}

static void put(uint64_t number, const char *text)
{
    struct bel_key key = key_of(number);
    CHECK(tree->put(tree, &key, (struct bel_view){text, strlen(text)}) == 0);
}

static void take_out(uint64_t number)
{
    struct bel_key key = key_of(number);
    CHECK(tree->remove(tree, &key) == 0);
}

static void begin(void)
{
    CHECK(tree->begin(tree) == 0);
}

static void commit(uint64_t epoch)
{
    CHECK(tree->commit(tree, epoch) == 0);
    CHECK(tree->refresh(tree) == 0);
}

static bool is(struct bel_view value, const char *text)
{
    return value.bytes == strlen(text) && memcmp(value.data, text, value.bytes) == 0;
}

static bool has(uint64_t number, const char *text)
{
    struct bel_key key = key_of(number);
    struct bel_view value;
    int err = tree->get(tree, &key, &value);
    CHECK(err == 0 || err == BEL_ENOTFOUND);
    return text == NULL ? err == BEL_ENOTFOUND : err == 0 && is(value, text);
}

static struct bel_tree_stats stats(void)
{
    struct bel_tree_stats kept, counted;
    tree->stats(tree, &kept);
    CHECK(bel__tree_check(tree, &counted) == 0);
    CHECK_EQ(counted.rows, kept.rows);
    CHECK_EQ(counted.sum, kept.sum);
    return kept;
}

static void an_empty_tree_has_no_rows_and_no_epoch(void)
{
    struct bel_key key = {{0, 0, 0}};
    struct bel_view value;
    CHECK(tree->get(tree, &key, &value) == BEL_ENOTFOUND);
    CHECK(tree->seek(tree, &key, &value) == BEL_ENOTFOUND);
    CHECK_EQ(tree->epoch(tree), 0);
    CHECK_EQ(stats().rows, 0);
    CHECK_EQ(stats().sum, 0);
}

static void rows_are_met_in_the_order_of_their_keys(void)
{
    static const struct bel_key keys[] = {
        {{0, 0, 0}},
        {{0, 0, 1}},
        {{0, 1, 0}},
        {{0, 1, UINT64_MAX}},
        {{1, 0, 0}},
        {{0x0100, 0, 0}},
        {{0x0100000000000000, 0, 0}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX - 1}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX}},
    };
    enum {
        COUNT = sizeof keys / sizeof keys[0]
    };
    begin();
    for (int i = COUNT - 1; i >= 0; i--) {
        char text[] = {(char)('a' + i)};
        CHECK(tree->put(tree, &keys[i], (struct bel_view){text, 1}) == 0);
    }
    commit(1);
    struct bel_key key = keys[0];
    for (int i = 0; i < COUNT; i++) {
        struct bel_view value;
        CHECK(tree->seek(tree, &key, &value) == 0);
        CHECK(bel__key_compare(&key, &keys[i]) == 0);
        CHECK(value.bytes == 1 && *(const char *)value.data == 'a' + i);
        if (i + 1 < COUNT) {
            for (int word = 2; word >= 0 && ++key.words[word] == 0; word--) {}
        }
    }
    CHECK_EQ(stats().rows, COUNT);
}

static void a_value_may_be_empty_or_as_large_as_a_row_may_be(void)
{
    static char large[BEL_STORE_VALUE_BYTES_MAX];
    struct bel_key key = key_of(1);
    struct bel_view value;
    memset(large, 'x', sizeof large);
    begin();
    CHECK(tree->put(tree, &key, (struct bel_view){large, sizeof large}) == 0);
    key = key_of(2);
    CHECK(tree->put(tree, &key, (struct bel_view){NULL, 0}) == 0);
    commit(1);
    CHECK(has(2, ""));
    key = key_of(1);
    CHECK(tree->get(tree, &key, &value) == 0);
    CHECK(value.bytes == sizeof large && memcmp(value.data, large, sizeof large) == 0);
}

static void a_change_is_seen_after_a_commit_and_a_refresh(void)
{
    begin();
    put(1, "one");
    CHECK(has(1, NULL));
    CHECK(tree->refresh(tree) == 0);
    CHECK(has(1, NULL));
    CHECK(tree->commit(tree, 1) == 0);
    CHECK(has(1, NULL));
    CHECK_EQ(tree->epoch(tree), 0);
    CHECK_EQ(stats().rows, 0);
    CHECK(tree->refresh(tree) == 0);
    CHECK(has(1, "one"));
    CHECK_EQ(tree->epoch(tree), 1);
    CHECK_EQ(stats().rows, 1);
}

static void several_commits_can_come_before_a_refresh(void)
{
    begin();
    put(1, "one");
    put(2, "two");
    CHECK(tree->commit(tree, 1) == 0);
    begin();
    put(1, "uno");
    take_out(2);
    put(3, "tre");
    CHECK(tree->commit(tree, 1) == 0);
    begin();
    take_out(3);
    put(2, "due");
    commit(2);
    CHECK(has(1, "uno"));
    CHECK(has(2, "due"));
    CHECK(has(3, NULL));
    CHECK_EQ(stats().rows, 2);
}

static void what_is_aborted_never_was(void)
{
    begin();
    put(1, "one");
    put(2, "two");
    commit(1);
    uint64_t sum = stats().sum;
    begin();
    put(1, "uno");
    take_out(2);
    put(3, "tre");
    tree->abort(tree);
    begin();
    commit(2);
    CHECK(has(1, "one"));
    CHECK(has(2, "two"));
    CHECK(has(3, NULL));
    CHECK_EQ(stats().sum, sum);
}

static void a_value_is_good_until_the_next_refresh(void)
{
    struct bel_key key = key_of(1);
    struct bel_view value;
    begin();
    put(1, "one");
    commit(1);
    CHECK(tree->get(tree, &key, &value) == 0);
    begin();
    take_out(1);
    for (uint64_t i = 2; i < MANY; i++) {
        put(i, "another");
    }
    CHECK(tree->commit(tree, 1) == 0);
    begin();
    put(1, "uno");
    CHECK(tree->commit(tree, 1) == 0);
    CHECK(is(value, "one"));
    CHECK(has(1, "one"));
    CHECK(tree->refresh(tree) == 0);
    CHECK(has(1, "uno"));
}

static void the_last_change_of_a_transaction_counts(void)
{
    begin();
    take_out(1); /* which is not there */
    put(1, "one");
    put(1, "a longer one");
    put(2, "two");
    take_out(2);
    put(3, "three");
    take_out(3);
    put(3, "3");
    commit(1);
    CHECK(has(1, "a longer one"));
    CHECK(has(2, NULL));
    CHECK(has(3, "3"));
    CHECK_EQ(stats().rows, 2);
    begin();
    take_out(3);
    take_out(3);
    commit(1);
    CHECK(has(3, NULL));
    CHECK_EQ(stats().rows, 1);
}

static void the_sum_depends_on_rows_and_not_on_their_history(void)
{
    begin();
    put(1, "one");
    put(2, "two");
    commit(1);
    uint64_t sum = stats().sum;
    begin();
    put(1, "two");
    put(2, "one");
    commit(2);
    CHECK(stats().sum != sum);
    begin();
    take_out(1);
    put(2, "two");
    commit(3);
    CHECK(stats().sum != sum);
    begin();
    put(1, "one");
    commit(4);
    CHECK_EQ(stats().sum, sum);
}

static void what_was_committed_is_there_when_it_is_opened_again(void)
{
    begin();
    put(1, "one");
    put(2, "two");
    commit(7);
    struct bel_tree_stats before = stats();
    begin();
    put(1, "uno");
    put(3, "tre");
    reopen(); /* in the middle of a transaction */
    CHECK_EQ(tree->epoch(tree), 7);
    CHECK(has(1, "one"));
    CHECK(has(2, "two"));
    CHECK(has(3, NULL));
    CHECK_EQ(stats().rows, before.rows);
    CHECK_EQ(stats().sum, before.sum);
    begin();
    put(3, "three");
    CHECK(tree->commit(tree, 8) == 0);
    reopen(); /* without a refresh */
    CHECK_EQ(tree->epoch(tree), 8);
    CHECK(has(3, "three"));
}

/* Flips a bit of the value, where the tree keeps it. */
static void flip(struct bel_view value)
{
    if (fixture.kind == TREE_MEMORY) {
        *(unsigned char *)(uintptr_t)value.data ^= 1; /* NOLINT(performance-no-int-to-ptr) */
        return;
    }
    off_t offset = fixture_find_file(&fixture, value, 0);
    CHECK(offset >= 0);
    fixture_flip_file(&fixture, offset);
}

static void a_flipped_bit_is_detected(void)
{
    struct bel_key key = key_of(2);
    struct bel_view value;
    struct bel_tree_stats counted;
    begin();
    put(1, "the first of all rows");
    put(2, "a row that will be damaged");
    put(3, "the last of all rows");
    commit(1);
    CHECK(tree->get(tree, &key, &value) == 0);
    flip(value);
    CHECK(tree->get(tree, &key, &value) == BEL_ECORRUPT);
    CHECK(tree->seek(tree, &key, &value) == BEL_ECORRUPT);
    CHECK(bel__key_compare(&key, &(struct bel_key){{0, 2, 0}}) == 0);
    CHECK(bel__tree_check(tree, &counted) == BEL_ECORRUPT);
    CHECK(has(1, "the first of all rows"));
    begin(); /* what replaces it is good */
    put(2, "a new one");
    commit(2);
    CHECK(has(2, "a new one"));
}

static void many_rows_come_and_go(void)
{
    char text[32];
    begin();
    for (uint64_t i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof text, "%" PRIu64, i * 7919 % MANY);
        put(i * 7919 % MANY, text);
    }
    commit(1);
    CHECK_EQ(stats().rows, MANY);
    CHECK(has(4321, "4321"));
    CHECK(stats().bytes > MANY * UINT64_C(8));
    begin();
    for (uint64_t i = 0; i < MANY; i++) {
        if (i != 77) take_out(i);
    }
    commit(2);
    CHECK_EQ(stats().rows, 1);
    CHECK(has(77, "77"));
}

#define RUN_ON_BOTH(test)                                                                          \
    for (int kind = 0; kind < TREE_KINDS; kind++) {                                                \
        setup(kind);                                                                               \
        test();                                                                                    \
        fixture_finish(&fixture);                                                                  \
        printf("ok   %s, %s\n", #test, fixture_name(&fixture));                                    \
    }

int main(void)
{
    RUN_ON_BOTH(an_empty_tree_has_no_rows_and_no_epoch)
    RUN_ON_BOTH(rows_are_met_in_the_order_of_their_keys)
    RUN_ON_BOTH(a_value_may_be_empty_or_as_large_as_a_row_may_be)
    RUN_ON_BOTH(a_change_is_seen_after_a_commit_and_a_refresh)
    RUN_ON_BOTH(several_commits_can_come_before_a_refresh)
    RUN_ON_BOTH(what_is_aborted_never_was)
    RUN_ON_BOTH(a_value_is_good_until_the_next_refresh)
    RUN_ON_BOTH(the_last_change_of_a_transaction_counts)
    RUN_ON_BOTH(the_sum_depends_on_rows_and_not_on_their_history)
    RUN_ON_BOTH(what_was_committed_is_there_when_it_is_opened_again)
    RUN_ON_BOTH(a_flipped_bit_is_detected)
    RUN_ON_BOTH(many_rows_come_and_go)
    return 0;
}
