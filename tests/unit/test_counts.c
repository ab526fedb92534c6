/* SPDX-License-Identifier: MIT */

/* Counts by hour in rows of 64, and by group: written, read back, and dropped. */
#include "engine/rows/counts.h"

#include "engine/rows/key.h"

#include "../check.h"

#include <string.h>

static struct bel_store *store;
static struct bel_counts counts;

enum {
    KEPT = 8 << 20,       /* bytes */
    TRIM_MAX = 20 * 1000, /* counts that one call frees */
};

static struct bel_key key_of(enum bel_count_kind kind, uint64_t time)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_COUNTS, .topic = 7, .lane = (uint8_t)kind, .time = time});
}

static void setup(void)
{
    CHECK(bel__store_open_memory(&store) == 0);
    bel__counts_init(&counts, (struct bel_siphash_key){{1, 2, 3}});
}

static void teardown(void)
{
    bel__counts_finish(&counts);
    bel__store_close(store);
}

static struct bel_count *hold(enum bel_count_kind kind, uint64_t time)
{
    struct bel_key key = key_of(kind, time);
    struct bel_count *count = NULL;
    CHECK(bel__count_hold(&counts, store, &key, &count) == 0);
    return count;
}

/* Ends a batch, and drops the cache. */
static void flush_and_forget(void)
{
    size_t bytes = bel__counts_row_bytes(&counts, 0);
    CHECK(bel__store_reserve(store, counts.dirty_count, bytes, BEL_STORE_END) == 0);
    bel__counts_flush(&counts, store);
    (void)bel__store_commit(store);
    bel__counts_finish(&counts);
    bel__counts_init(&counts, (struct bel_siphash_key){{1, 2, 3}});
}

static bool has_row(enum bel_count_kind kind, uint64_t time, struct bel_view *out)
{
    struct bel_key key = key_of(kind, time);
    return bel__store_get(store, &key, out) == 0;
}

static void numbers_come_back(void)
{
    struct bel_view row;
    setup();
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 5), 0, 3);
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 5), 63, INT64_MAX);
    bel__count_add(&counts, hold(BEL_COUNT_GROUP, 5), 0, 200);
    CHECK_EQ(counts.dirty_count, 2);
    flush_and_forget();
    CHECK_EQ(hold(BEL_COUNT_HOURS, 5)->numbers[0], 3);
    CHECK_EQ(hold(BEL_COUNT_HOURS, 5)->numbers[1], 0);
    CHECK_EQ(hold(BEL_COUNT_HOURS, 5)->numbers[63], INT64_MAX);
    CHECK_EQ(hold(BEL_COUNT_GROUP, 5)->numbers[0], 200);
    CHECK(has_row(BEL_COUNT_GROUP, 5, &row));
    CHECK(row.bytes == 3 && memcmp(row.data, "\x01\xc8\x01", 3) == 0);
    teardown();
}

static void what_is_all_zero_has_no_row(void)
{
    struct bel_view row;
    setup();
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 1), 9, 2);
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 1), 10, 1);
    flush_and_forget();
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 1), 9, -2);
    flush_and_forget();
    CHECK(has_row(BEL_COUNT_HOURS, 1, &row));
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 1), 10, -1);
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 2), 10, 1); /* never seen by another reader */
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 2), 10, -1);
    flush_and_forget();
    CHECK(!has_row(BEL_COUNT_HOURS, 1, &row));
    CHECK(!has_row(BEL_COUNT_HOURS, 2, &row));
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 1), 0, 1);
    flush_and_forget();
    CHECK_EQ(hold(BEL_COUNT_HOURS, 1)->numbers[0], 1);
    teardown();
}

/* The reserved size is that of the largest possible row. */
static void the_largest_row_fits(void)
{
    struct bel_view row;
    setup();
    for (unsigned i = 0; i < BEL_COUNT_NUMBERS_MAX; i++) {
        bel__count_add(&counts, hold(BEL_COUNT_HOURS, 0), i, INT64_MAX);
        bel__count_add(&counts, hold(BEL_COUNT_HOURS, 0), i, INT64_MAX);
    }
    CHECK_EQ(bel__counts_row_bytes(&counts, 0), BEL_COUNT_ROW_BYTES_MAX);
    flush_and_forget();
    CHECK(has_row(BEL_COUNT_HOURS, 0, &row));
    CHECK_EQ(row.bytes, BEL_COUNT_ROW_BYTES_MAX);
    CHECK_EQ(hold(BEL_COUNT_HOURS, 0)->numbers[40], UINT64_MAX - 1);
    teardown();
}

static bool can_read(const char *bytes, size_t count, unsigned numbers_count)
{
    uint64_t numbers[BEL_COUNT_NUMBERS_MAX] = {0}, which;
    return bel__count_read((struct bel_view){bytes, count}, numbers_count, numbers, &which);
}

static void what_nobody_writes_is_refused(void)
{
    CHECK(can_read("\x01\x05", 2, 1));
    CHECK(can_read("\x05\x01\x02", 3, 64));
    CHECK(!can_read("\x02\x05", 2, 1));      /* the second number is missing */
    CHECK(!can_read("\x01", 1, 1));          /* the number is missing */
    CHECK(!can_read("\x01\x05\x05", 3, 64)); /* extra bytes */
    CHECK(!can_read("\x01\x00", 2, 64));     /* a count of 0 is never stored */
    CHECK(!can_read("\x81", 1, 64));
}

static void hold_many(uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count; i++) {
        (void)hold(i % 2 == 0 ? BEL_COUNT_HOURS : BEL_COUNT_GROUP, i);
    }
}

/* A turn that finds too much in memory frees what is too much, and not all. */
static void memory_is_bounded_in_bytes(void)
{
    uint64_t held = 0;
    setup();
    for (; counts.bytes <= KEPT; held += 1000) {
        CHECK(held < 1000000);
        hold_many(held, 1000);
    }
    CHECK(held > TRIM_MAX);
    uint32_t before = bel__map_count(&counts.map);
    bel__counts_trim(&counts);
    CHECK(counts.bytes <= KEPT && counts.bytes > KEPT - 1000);
    CHECK(before - bel__map_count(&counts.map) < 1000);
    CHECK(bel__map_valid(&counts.map));
    hold_many(held, TRIM_MAX);
    hold_many(held + TRIM_MAX, TRIM_MAX);
    while (counts.bytes > KEPT) {
        before = bel__map_count(&counts.map);
        bel__counts_trim(&counts);
        CHECK(before - bel__map_count(&counts.map) <= TRIM_MAX);
        CHECK(before > bel__map_count(&counts.map));
    }
    bel__count_add(&counts, hold(BEL_COUNT_HOURS, 3), 1, 1);
    flush_and_forget();
    teardown();
}

int main(void)
{
    RUN(numbers_come_back);
    RUN(what_is_all_zero_has_no_row);
    RUN(the_largest_row_fits);
    RUN(what_nobody_writes_is_refused);
    RUN(memory_is_bounded_in_bytes);
    return 0;
}
