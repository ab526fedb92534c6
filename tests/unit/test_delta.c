/* SPDX-License-Identifier: MIT */

/* What a delta returns for a key after puts and deletes, and what it keeps when it is emptied. */
#include "store/delta.h"

#include "../check.h"

#include <string.h>

enum {
    ROWS = 20000,
    VALUE_BYTES = 100,
    LARGE_BYTES = 200000,
};

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{4, number * 7919 % ROWS, number}};
}

static void put(struct bel_delta *delta, const struct bel_key *key, const char *text, bool is_new)
{
    CHECK(bel__delta_reserve(delta, 1, strlen(text)) == 0);
    bel__delta_put(delta, key, (struct bel_view){text, strlen(text)}, is_new);
}

static void drop(struct bel_delta *delta, const struct bel_key *key)
{
    CHECK(bel__delta_reserve(delta, 1, 0) == 0);
    bel__delta_delete(delta, key);
}

static void check_says(const struct bel_delta *delta, const struct bel_key *key, const char *text)
{
    const struct bel_delta_entry *entry = bel__delta_find(delta, key);
    CHECK(entry != NULL && !bel__entry_is_gone(entry));
    struct bel_view value = bel__entry_value(entry);
    CHECK(value.bytes == strlen(text) && memcmp(value.data, text, value.bytes) == 0);
}

static void check_gone(const struct bel_delta *delta, const struct bel_key *key)
{
    const struct bel_delta_entry *entry = bel__delta_find(delta, key);
    CHECK(entry != NULL && bel__entry_is_gone(entry));
}

static void a_new_row_that_is_deleted_leaves_no_trace(void)
{
    struct bel_delta delta;
    struct bel_key key = key_of(1);
    bel__delta_init(&delta);
    put(&delta, &key, "one", true);
    put(&delta, &key, "two", false);
    check_says(&delta, &key, "two");
    drop(&delta, &key);
    CHECK(bel__delta_find(&delta, &key) == NULL);
    CHECK_EQ(bel__delta_count(&delta), 0);
    bel__delta_finish(&delta);
}

static void any_other_row_leaves_a_tombstone(void)
{
    struct bel_delta delta;
    struct bel_key below = key_of(1), put_before = key_of(2);
    bel__delta_init(&delta);
    drop(&delta, &below);
    check_gone(&delta, &below);
    put(&delta, &put_before, "one", false);
    drop(&delta, &put_before);
    check_gone(&delta, &put_before);

    drop(&delta, &below); /* again */
    check_gone(&delta, &below);
    put(&delta, &below, "two", true); /* the key is new, but the tombstone must stay */
    drop(&delta, &below);
    check_gone(&delta, &below);
    CHECK_EQ(bel__delta_count(&delta), 2);
    bel__delta_finish(&delta);
}

static void fill(struct bel_delta *delta, char letter)
{
    char text[VALUE_BYTES + 1] = {0};
    memset(text, letter, VALUE_BYTES);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        put(delta, &key, text, i % 2 == 0);
    }
    for (uint64_t i = 0; i < ROWS; i += 3) {
        struct bel_key key = key_of(i);
        drop(delta, &key);
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        if (i % 3 != 0) {
            check_says(delta, &key, text);
        } else if (i % 2 == 0) {
            CHECK(bel__delta_find(delta, &key) == NULL);
        } else {
            check_gone(delta, &key);
        }
    }
}

/* Returns the memory that an empty delta keeps and uses again. */
static size_t use_kept(struct bel_delta *delta)
{
    static const char large[LARGE_BYTES];
    while (delta->kept != NULL) {
        CHECK(bel__delta_reserve(delta, 1, sizeof large) == 0);
        (void)bel__delta_make(delta, (struct bel_view){large, sizeof large}, 0);
    }
    return bel__delta_bytes(delta);
}

/* Checks what a delta with many rows returns for keys with an entry, with none, and with one that
 * has left no trace. */
static void check_many(const struct bel_delta *delta)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        if (i % 5 == 0) {
            check_gone(delta, &key);
        } else if (i % 5 == 1) {
            CHECK(bel__delta_find(delta, &key) == NULL);
        } else {
            check_says(delta, &key, i % 5 == 2 ? "second" : "first");
        }
        key = key_of(i + ROWS);
        CHECK(bel__delta_find(delta, &key) == NULL);
    }
}

static void miss_many(struct bel_delta *delta)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        bel__delta_miss(delta);
    }
}

static void fill_many(struct bel_delta *delta)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        put(delta, &key, "first", i % 5 == 1);
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        if (i % 5 == 2) put(delta, &key, "second", false);
        if (i % 5 < 2) drop(delta, &key);
    }
}

static void many_rows_are_found_and_others_are_not(void)
{
    struct bel_delta delta;
    bel__delta_init(&delta);
    for (int round = 0; round < 4; round++) { /* with and without a filter */
        struct bel_key key = key_of(3);
        CHECK(delta.filter == NULL && bel__delta_find(&delta, &key) == NULL);
        if (round % 2 == 0) miss_many(&delta);
        fill_many(&delta);
        CHECK((delta.filter != NULL) == (round % 2 == 0));
        check_many(&delta);
        bel__delta_clear(&delta, round < 2 ? 0 : SIZE_MAX);
    }
    bel__delta_finish(&delta);
}

static void tombstones_and_placed_rows_are_found_among_many(void)
{
    struct bel_delta delta;
    bel__delta_init(&delta);
    miss_many(&delta);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        if (i % 2 == 0) {
            drop(&delta, &key);
            continue;
        }
        CHECK(bel__delta_reserve(&delta, 1, 5) == 0);
        bel__delta_place(&delta, &key, bel__delta_make(&delta, BEL_VIEW("first"), 0));
    }
    CHECK(delta.filter != NULL);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        if (i % 2 == 0) check_gone(&delta, &key);
        if (i % 2 == 1) check_says(&delta, &key, "first");
    }
    bel__delta_finish(&delta);
}

static void one_that_is_cleared_keeps_what_it_may(void)
{
    struct bel_delta delta;
    bel__delta_init(&delta);
    fill(&delta, 'a');
    size_t full = bel__delta_bytes(&delta);
    for (size_t eighths = 0; eighths <= 8; eighths++) {
        struct bel_delta_place place;
        size_t bytes_max = full / 8 * eighths;
        bel__delta_clear(&delta, bytes_max);
        CHECK_EQ(bel__delta_count(&delta), 0);
        CHECK(!bel__delta_seek(&delta, &(struct bel_key){{0, 0, 0}}, &place));
        size_t kept = use_kept(&delta);
        CHECK(kept <= bytes_max + bytes_max / 100);
        CHECK(kept >= bytes_max / 4 || bytes_max < 1 << 20);
        bel__delta_clear(&delta, bytes_max);
        fill(&delta, (char)('b' + eighths));
        CHECK(bel__delta_bytes(&delta) <= full + full / 8);
    }
    bel__delta_finish(&delta);
    CHECK_EQ(bel__delta_bytes(&delta), 0);
}

int main(void)
{
    RUN(a_new_row_that_is_deleted_leaves_no_trace);
    RUN(any_other_row_leaves_a_tombstone);
    RUN(many_rows_are_found_and_others_are_not);
    RUN(tombstones_and_placed_rows_are_found_among_many);
    RUN(one_that_is_cleared_keeps_what_it_may);
    return 0;
}
