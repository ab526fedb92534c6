/* SPDX-License-Identifier: MIT */

/* The store in memory, case by case. */
#include "store/state.h"

#include "../check.h"

#include <string.h>

static struct bel_store *store;

static void setup(void)
{
    CHECK(bel__store_open_memory(&store) == 0);
    bel__delta_init(store->active); /* with layers, as on disk */
}

static void teardown(void)
{
    bel__store_close(store);
    store = NULL;
}

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{0, number, 0}};
}

static void put(uint64_t number, const char *value, enum bel_row row)
{
    struct bel_key key = key_of(number);
    struct bel_view view = {value, strlen(value)};
    CHECK(bel__store_reserve(store, 1, view.bytes, BEL_STORE_ADD) == 0);
    bel__store_put(store, &key, view, row);
}

static void take_out(uint64_t number)
{
    struct bel_key key = key_of(number);
    CHECK(bel__store_reserve(store, 1, 0, BEL_STORE_END) == 0);
    bel__store_delete(store, &key);
}

static bool reads(struct bel_view view, const char *value)
{
    return view.bytes == strlen(value) && memcmp(view.data, value, view.bytes) == 0;
}

static bool has(uint64_t number, const char *value)
{
    struct bel_key key = key_of(number);
    struct bel_view view;
    return bel__store_get(store, &key, &view) == 0 && reads(view, value);
}

static bool has_none(uint64_t number)
{
    struct bel_key key = key_of(number);
    struct bel_view view;
    return bel__store_get(store, &key, &view) == BEL_ENOTFOUND;
}

/* Freezes the active delta. */
static void freeze(void)
{
    size_t max = store->delta_bytes_max;
    CHECK(store->freeze == BEL_FREEZE_NONE);
    store->delta_bytes_max = 0;
    (void)bel__store_commit(store);
    store->delta_bytes_max = max;
    CHECK(store->freeze != BEL_FREEZE_NONE);
}

/* Writes the frozen delta to the tree. */
static void apply(void)
{
    while (bel__store_work(store)) {}
    (void)bel__store_commit(store);
    CHECK(store->freeze == BEL_FREEZE_NONE);
}

static void what_was_put_is_found_until_it_is_deleted(void)
{
    setup();
    CHECK(has_none(1));
    put(1, "one", BEL_ROW_NEW);
    put(2, "", BEL_ROW_ANY);
    CHECK(has(1, "one"));
    CHECK(has(2, ""));
    put(1, "another", BEL_ROW_ANY);
    CHECK(has(1, "another"));
    take_out(1);
    take_out(3);
    CHECK(has_none(1));
    CHECK(has_none(3));
    CHECK(has(2, ""));
    teardown();
}

static void batches_are_numbered_and_an_empty_one_is_none(void)
{
    setup();
    CHECK_EQ(bel__store_commit(store), 0);
    put(1, "one", BEL_ROW_NEW);
    CHECK_EQ(bel__store_commit(store), 1);
    CHECK_EQ(bel__store_commit(store), 1);
    take_out(1);
    CHECK_EQ(bel__store_commit(store), 2);
    CHECK_EQ(bel__store_synced(store), 2);
    CHECK(bel__store_error(store) == 0);
    teardown();
}

static void a_row_is_found_in_every_layer(void)
{
    setup();
    put(1, "one", BEL_ROW_NEW);
    put(2, "two", BEL_ROW_NEW);
    freeze();
    CHECK(has(1, "one"));
    put(2, "second", BEL_ROW_ANY);
    CHECK(has(2, "second"));
    apply();
    CHECK(has(1, "one"));
    CHECK(has(2, "second"));
    CHECK_EQ(bel__delta_count(store->active), 1);
    freeze();
    apply();
    CHECK(has(2, "second"));
    CHECK_EQ(bel__delta_count(store->active), 0);
    teardown();
}

static void a_deleted_row_does_not_come_back_from_below(void)
{
    setup();
    put(1, "one", BEL_ROW_NEW);
    put(2, "two", BEL_ROW_NEW);
    freeze();
    take_out(1);
    CHECK(has_none(1));
    apply();
    CHECK(has_none(1));
    take_out(2);
    freeze();
    CHECK(has_none(2));
    put(2, "again", BEL_ROW_NEW);
    take_out(2); /* both leave the active delta, and the tombstone below stays right */
    CHECK(has_none(2));
    apply();
    CHECK(has_none(1));
    CHECK(has_none(2));
    teardown();
}

static void a_new_row_over_a_tombstone_leaves_a_tombstone(void)
{
    setup();
    put(1, "one", BEL_ROW_NEW);
    freeze();
    apply();
    take_out(1);
    put(1, "again", BEL_ROW_NEW);
    CHECK(has(1, "again"));
    take_out(1);
    CHECK(has_none(1));
    freeze();
    apply();
    CHECK(has_none(1));
    teardown();
}

static void a_row_that_comes_and_goes_leaves_no_trace(void)
{
    setup();
    put(1, "one", BEL_ROW_NEW);
    put(1, "more", BEL_ROW_ANY);
    take_out(1);
    CHECK_EQ(bel__delta_count(store->active), 0);
    put(1, "one", BEL_ROW_ANY);
    take_out(1);
    CHECK_EQ(bel__delta_count(store->active), 1);
    teardown();
}

static void values_are_good_until_the_commit(void)
{
    struct bel_key key = key_of(1);
    struct bel_view first, second, third;
    setup();
    put(1, "in the tree", BEL_ROW_NEW);
    freeze();
    CHECK(bel__store_get(store, &key, &first) == 0);
    while (bel__store_work(store)) {}
    put(1, "second", BEL_ROW_ANY);
    CHECK(bel__store_get(store, &key, &second) == 0);
    put(1, "third", BEL_ROW_ANY);
    CHECK(bel__store_get(store, &key, &third) == 0);
    take_out(1);
    CHECK(reads(first, "in the tree"));
    CHECK(reads(second, "second"));
    CHECK(reads(third, "third"));
    teardown();
}

static void a_cursor_visits_all_layers_in_order(void)
{
    struct bel_key from = key_of(0);
    struct bel_store_cursor cursor;
    uint64_t sum = 0;
    int err;
    setup();
    for (uint64_t i = 0; i < 90; i += 3) {
        put(i, "tree", BEL_ROW_NEW);
    }
    freeze();
    apply();
    for (uint64_t i = 1; i < 90; i += 3) {
        put(i, "frozen", BEL_ROW_NEW);
        take_out(i - 1 + (i % 2) * 3); /* some of the tree's */
    }
    freeze();
    for (uint64_t i = 2; i < 90; i += 3) {
        put(i, "active", BEL_ROW_NEW);
    }
    for (err = bel__store_seek(store, &from, &cursor); err == 0;
         err = bel__store_next(store, &cursor)) {
        const char *layers[] = {"tree", "frozen", "active"};
        CHECK(cursor.key.words[1] >= sum / 1000);
        CHECK(reads(cursor.value, layers[cursor.key.words[1] % 3]));
        sum++;
    }
    CHECK(err == BEL_ENOTFOUND);
    CHECK(bel__store_next(store, &cursor) == BEL_ENOTFOUND);
    CHECK(sum >= 60 && sum < 90);
    teardown();
}

static void a_cursor_goes_on_as_the_rows_are_then(void)
{
    struct bel_key from = key_of(0);
    struct bel_store_cursor cursor;
    setup();
    put(1, "one", BEL_ROW_NEW);
    put(3, "three", BEL_ROW_NEW);
    put(5, "five", BEL_ROW_NEW);
    CHECK(bel__store_seek(store, &from, &cursor) == 0);
    CHECK(reads(cursor.value, "one"));
    take_out(1);
    take_out(3);
    put(2, "two", BEL_ROW_NEW);
    CHECK(bel__store_next(store, &cursor) == 0);
    CHECK(reads(cursor.value, "two"));
    put(5, "another five", BEL_ROW_ANY);
    CHECK(bel__store_next(store, &cursor) == 0);
    CHECK(reads(cursor.value, "another five"));
    CHECK(bel__store_next(store, &cursor) == BEL_ENOTFOUND);
    teardown();
}

static void a_cursor_ends_at_the_last_key_of_all(void)
{
    struct bel_key last = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    struct bel_store_cursor cursor;
    setup();
    CHECK(bel__store_seek(store, &last, &cursor) == BEL_ENOTFOUND);
    CHECK(bel__store_reserve(store, 1, 3, BEL_STORE_ADD) == 0);
    bel__store_put(store, &last, BEL_VIEW("end"), BEL_ROW_NEW);
    CHECK(bel__store_seek(store, &last, &cursor) == 0);
    CHECK(bel__store_next(store, &cursor) == BEL_ENOTFOUND);
    teardown();
}

static void memory_does_not_grow_with_rows_that_come_and_go(void)
{
    static const char value[1000];
    setup();
    for (uint64_t i = 0; i < 100000; i++) {
        struct bel_key key = key_of(i);
        CHECK(bel__store_reserve(store, 2, sizeof value, BEL_STORE_ADD) == 0);
        bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_NEW);
        if (i >= 100) {
            key = key_of(i - 100);
            bel__store_delete(store, &key);
        }
        (void)bel__store_commit(store);
        (void)bel__store_work(store);
        CHECK(bel__delta_bytes(store->active) <= store->delta_bytes_max + (1 << 20));
    }
    struct bel_tree_stats stats;
    store->tree->stats(store->tree, &stats);
    CHECK(stats.rows <= 200);
    teardown();
}

static void a_store_in_memory_frees_what_was_replaced_and_deleted(void)
{
    static const char value[1000];
    CHECK(bel__store_open_memory(&store) == 0);
    store->delta_bytes_max = 0; /* would freeze at once */
    for (uint64_t i = 0; i < 20000; i++) {
        struct bel_key key = key_of(i);
        CHECK(bel__store_reserve(store, 3, 2 * sizeof value, BEL_STORE_ADD) == 0);
        bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_NEW);
        bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_ANY);
        key = key_of(i - 100);
        bel__store_delete(store, &key); /* need not exist */
        (void)bel__store_commit(store);
        CHECK(!bel__store_work(store) && !bel__store_shed(store));
        CHECK(bel__delta_bytes(store->active) <= (1 << 18));
    }
    CHECK_EQ(bel__delta_count(store->active), 100);
    CHECK(store->freeze == BEL_FREEZE_NONE);
    teardown();
}

static void values_in_memory_are_good_until_the_commit(void)
{
    struct bel_key first = key_of(1), second = key_of(2);
    struct bel_view one, two;
    CHECK(bel__store_open_memory(&store) == 0);
    put(1, "one", BEL_ROW_NEW);
    put(2, "two", BEL_ROW_NEW);
    (void)bel__store_commit(store);
    CHECK(bel__store_get(store, &first, &one) == 0);
    CHECK(bel__store_get(store, &second, &two) == 0);
    put(1, "another", BEL_ROW_ANY);
    put(1, "last", BEL_ROW_ANY);
    take_out(2);
    put(2, "new", BEL_ROW_NEW);
    CHECK(reads(one, "one") && reads(two, "two"));
    CHECK(has(1, "last") && has(2, "new"));
    (void)bel__store_commit(store);
    CHECK(has(1, "last") && has(2, "new"));
    teardown();
}

int main(void)
{
    RUN(a_store_in_memory_frees_what_was_replaced_and_deleted);
    RUN(values_in_memory_are_good_until_the_commit);
    RUN(what_was_put_is_found_until_it_is_deleted);
    RUN(batches_are_numbered_and_an_empty_one_is_none);
    RUN(a_row_is_found_in_every_layer);
    RUN(a_deleted_row_does_not_come_back_from_below);
    RUN(a_new_row_over_a_tombstone_leaves_a_tombstone);
    RUN(a_row_that_comes_and_goes_leaves_no_trace);
    RUN(values_are_good_until_the_commit);
    RUN(a_cursor_visits_all_layers_in_order);
    RUN(a_cursor_goes_on_as_the_rows_are_then);
    RUN(a_cursor_ends_at_the_last_key_of_all);
    RUN(memory_does_not_grow_with_rows_that_come_and_go);
    return 0;
}
