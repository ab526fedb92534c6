/* SPDX-License-Identifier: MIT */
#include "core/slab.h"

#include "../check.h"
#include "../random.h"

#include <stdbool.h>
#include <string.h>

enum {
    MANY = 100000,
    STACK = BEL__SLAB_STACK,
};

static struct bel__slab slab;
static uint32_t taken[MANY];

static void setup(uint32_t item_bytes, uint32_t max)
{
    CHECK(bel__slab_init(&slab, item_bytes, max) == 0);
}

static void take_many(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = bel__slab_take(&slab);
        CHECK(taken[i] != BEL__SLAB_NONE);
    }
}

static void shuffle(uint32_t count)
{
    uint64_t random = 1;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)random_below(&random, i), swapped = taken[i - 1];
        taken[i - 1] = taken[other];
        taken[other] = swapped;
    }
}

static void items_start_zeroed_and_have_numbers_of_their_own(void)
{
    static bool seen[MANY];
    static const unsigned char zeros[24];
    setup(24, MANY);
    take_many(MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(taken[i] < MANY && !seen[taken[i]]);
        seen[taken[i]] = true;
        CHECK(memcmp(bel__slab_at(&slab, taken[i]), zeros, sizeof zeros) == 0);
        memset(bel__slab_at(&slab, taken[i]), 0xff, sizeof zeros);
    }
    bel__slab_finish(&slab);
}

static void fresh_items_are_taken_from_the_start(void)
{
    setup(8, MANY);
    take_many(1000);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ(taken[i], i);
    }
    bel__slab_finish(&slab);
}

static void growing_moves_nothing(void)
{
    setup(sizeof(uint64_t), MANY);
    uint32_t first = bel__slab_take(&slab);
    uint64_t *item = bel__slab_at(&slab, first);
    *item = 42;
    take_many(MANY - 1);
    CHECK(bel__slab_at(&slab, first) == item);
    CHECK_EQ(*item, 42);
    bel__slab_finish(&slab);
}

static void what_was_given_back_still_holds_what_it_held(void)
{
    setup(sizeof(uint64_t), MANY);
    take_many(MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        *(uint64_t *)bel__slab_at(&slab, taken[i]) = UINT64_C(1000000) + i;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        bel__slab_give(&slab, taken[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_EQ(*(uint64_t *)bel__slab_at(&slab, taken[i]), UINT64_C(1000000) + i);
    }
    bel__slab_finish(&slab);
}

static void the_last_given_back_is_taken_first(void)
{
    setup(8, MANY);
    take_many(MANY);
    for (size_t i = 0; i < STACK / 2; i++) {
        bel__slab_give(&slab, taken[3 * i]);
    }
    for (size_t i = STACK / 2; i-- > 0;) {
        CHECK_EQ(bel__slab_take(&slab), taken[3 * i]);
    }
    bel__slab_finish(&slab);
}

static void of_many_given_back_all_but_the_last_come_by_address(void)
{
    setup(8, MANY);
    take_many(MANY);
    shuffle(MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        bel__slab_give(&slab, taken[i]);
    }
    CHECK_EQ(bel__slab_free_count(&slab), MANY);
    for (uint32_t i = 0; i < STACK / 2; i++) {
        CHECK_EQ(bel__slab_take(&slab), taken[MANY - 1 - i]);
    }
    while (slab.stacked > 0) { /* up to as many again of the last */
        (void)bel__slab_take(&slab);
    }
    uint32_t before = 0, left = bel__slab_free_count(&slab);
    CHECK(left >= MANY - STACK);
    for (uint32_t i = 0; i < left; i++) {
        uint32_t index = bel__slab_take(&slab);
        CHECK(i == 0 || index > before);
        before = index;
    }
    CHECK_EQ(bel__slab_take(&slab), BEL__SLAB_NONE);
    bel__slab_finish(&slab);
}

static void the_maximum_is_kept(void)
{
    static const uint32_t maxima[] = {1, 2, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 8193};
    for (unsigned i = 0; i < sizeof maxima / sizeof maxima[0]; i++) {
        setup(40, maxima[i]);
        take_many(maxima[i]);
        CHECK_EQ(bel__slab_take(&slab), BEL__SLAB_NONE);
        CHECK_EQ(bel__slab_take(&slab), BEL__SLAB_NONE);
        CHECK_EQ(bel__slab_spare(&slab), 0);
        bel__slab_give(&slab, taken[maxima[i] / 2]);
        CHECK_EQ(bel__slab_spare(&slab), 1);
        CHECK_EQ(bel__slab_take(&slab), taken[maxima[i] / 2]);
        CHECK_EQ(bel__slab_take(&slab), BEL__SLAB_NONE);
        bel__slab_finish(&slab);
    }
}

static void items_of_every_size_are_whole(void)
{
    static const uint32_t sizes[] = {1, 8, 24, 32, 256, 1088, 16384, 65535, 65536};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        setup(sizes[i], 100);
        take_many(100);
        for (uint32_t item = 0; item < 100; item++) {
            memset(bel__slab_at(&slab, taken[item]), (int)item + 1, sizes[i]);
        }
        for (uint32_t item = 0; item < 100; item++) {
            const unsigned char *byte = bel__slab_at(&slab, taken[item]);
            CHECK_EQ(byte[0], item + 1);
            CHECK_EQ(byte[sizes[i] - 1], item + 1);
        }
        bel__slab_finish(&slab);
    }
}

static void growing_in_advance_counts_as_spare(void)
{
    setup(100, MANY);
    CHECK_EQ(bel__slab_spare(&slab), 0);
    CHECK(bel__slab_grow(&slab, 0) == 0);
    CHECK_EQ(slab.ready_bytes, 0);
    CHECK(bel__slab_grow(&slab, 1000) == 0);
    CHECK(bel__slab_spare(&slab) >= 1000);
    size_t bytes = slab.ready_bytes;
    CHECK(bel__slab_grow(&slab, 10) == 0); /* never less */
    take_many(1000);
    CHECK_EQ(slab.ready_bytes, bytes);
    CHECK(bel__slab_grow(&slab, MANY + 1) == BEL_EFULL);
    CHECK(bel__slab_grow(&slab, UINT32_MAX) == BEL_EFULL);
    CHECK_EQ(slab.ready_bytes, bytes);
    CHECK(bel__slab_grow(&slab, MANY) == 0);
    CHECK_EQ(bel__slab_spare(&slab), MANY - 1000);
    bel__slab_finish(&slab);
}

static void a_small_slab_takes_little_memory(void)
{
    setup(32, 1 << 28);
    (void)bel__slab_take(&slab);
    CHECK(slab.ready_bytes <= 64 << 10);
    take_many(MANY);
    CHECK(slab.ready_bytes <= 32 * MANY + (4 << 20));
    bel__slab_finish(&slab);
}

static void memory_made_ready_in_advance_keeps_what_it_holds(void)
{
    setup(sizeof(uint64_t), MANY);
    take_many(100);
    for (uint32_t i = 0; i < 100; i++) {
        *(uint64_t *)bel__slab_at(&slab, taken[i]) = i;
    }
    CHECK(bel__slab_prefault(&slab, MANY + 1) == BEL_EFULL);
    CHECK(bel__slab_prefault(&slab, MANY) == 0);
    CHECK(bel__slab_prefault(&slab, 0) == 0);
    CHECK(bel__slab_spare(&slab) >= MANY - 100);
    for (uint32_t i = 0; i < 100; i++) {
        CHECK_EQ(*(uint64_t *)bel__slab_at(&slab, taken[i]), i);
    }
    bel__slab_finish(&slab);
}

static void finish_takes_a_zeroed_slab_and_leaves_one(void)
{
    struct bel__slab zeroed = {0};
    bel__slab_finish(&zeroed);
    setup(8, 1);
    bel__slab_finish(&slab);
    bel__slab_finish(&slab);
    setup(8, 1);
    CHECK_EQ(bel__slab_take(&slab), 0);
    bel__slab_finish(&slab);
}

int main(void)
{
    RUN(items_start_zeroed_and_have_numbers_of_their_own);
    RUN(fresh_items_are_taken_from_the_start);
    RUN(growing_moves_nothing);
    RUN(what_was_given_back_still_holds_what_it_held);
    RUN(the_last_given_back_is_taken_first);
    RUN(of_many_given_back_all_but_the_last_come_by_address);
    RUN(the_maximum_is_kept);
    RUN(items_of_every_size_are_whole);
    RUN(growing_in_advance_counts_as_spare);
    RUN(a_small_slab_takes_little_memory);
    RUN(memory_made_ready_in_advance_keeps_what_it_holds);
    RUN(finish_takes_a_zeroed_slab_and_leaves_one);
    return 0;
}
