/* SPDX-License-Identifier: MIT */

/*
 * Every border of every level, from every side: dues around each power of two, counted from zero
 * and from the current time, while the current time itself starts around each of them. A timer must
 * be popped at its nanosecond, not before, and in the order of a sorted list.
 */
#include "belfry/wheel.h"

#include "../check.h"

#include <string.h>

enum {
    AROUND = 2, /* nanoseconds to each side of a border */
    DUES_MAX = 2000,
    BORDERS = 9, /* of the levels: 2^(10 + 6 j) */
    TICK_BITS = 10,
    DIGIT_BITS = 6,
};

struct list {
    uint64_t dues[DUES_MAX]; /* a timer's user word is its index here */
    uint32_t sorted[DUES_MAX];
    uint32_t count;
};

static struct list list;

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (list.dues[x] != list.dues[y]) return list.dues[x] < list.dues[y] ? -1 : 1;
    return x < y ? -1 : 1; /* armed earlier */
}

static void add(uint64_t due)
{
    if (due == BEL_NEVER) return;
    CHECK(list.count < DUES_MAX);
    list.sorted[list.count] = list.count;
    list.dues[list.count++] = due;
}

/* Dues around each power of two above `origin`. */
static void add_powers(uint64_t origin)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t border = origin + (UINT64_C(1) << bit);
        for (uint64_t due = border - AROUND; due != border + AROUND + 1; due++) {
            if (due >= origin || origin == 0) add(due);
        }
    }
}

static bool pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out)
{
    do {
        if (bel_wheel_pop(wheel, now, out)) return true;
    } while (bel_wheel_next(wheel) <= now);
    return false;
}

/* Pops all timers of the list, each at its nanosecond or, if that is past, at once. */
static void check_order(struct bel_wheel *wheel, uint64_t start)
{
    struct bel_wheel_timer timer;
    uint64_t now = start;
    for (uint32_t i = 0; i < list.count; i++) {
        uint64_t due = list.dues[list.sorted[i]];
        CHECK(bel_wheel_next(wheel) <= due);
        if (due > now) CHECK(!pop(wheel, due - 1, &timer));
        now = due > now ? due : now;
        CHECK(pop(wheel, now, &timer));
        CHECK_EQ(timer.due, due);
        CHECK_EQ(timer.user, list.sorted[i]);
    }
    CHECK(!pop(wheel, BEL_NEVER - 1, &timer));
}

static void check_start(uint64_t start)
{
    struct bel_wheel *wheel;
    struct bel_wheel_options options = {.now = start, .handle_seed = 1};
    bel_timer_t timer;
    CHECK_NOTE("from %" PRIu64, start);
    list.count = 0;
    add_powers(0);
    if (start > 0) add_powers(start);
    for (uint64_t before = 1; before <= 5; before++) {
        add(BEL_NEVER - before);
    }
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    for (uint32_t i = 0; i < list.count; i++) {
        CHECK(bel_wheel_arm(wheel, list.dues[i], 0, i, &timer) == 0);
    }
    qsort(list.sorted, list.count, sizeof list.sorted[0], compare);
    CHECK(bel_wheel_valid(wheel));
    check_order(wheel, start);
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static void from_the_start_of_time(void)
{
    check_start(0);
    check_start(1);
}

static void from_around_every_power_of_two(void)
{
    for (unsigned bit = 1; bit < 64; bit++) {
        check_start((UINT64_C(1) << bit) - 1);
        check_start(UINT64_C(1) << bit);
    }
}

static void from_around_every_border_of_a_level(void)
{
    for (unsigned level = 0; level < BORDERS; level++) {
        uint64_t border = UINT64_C(1) << (TICK_BITS + DIGIT_BITS * level);
        for (uint64_t start = border - AROUND; start <= border + AROUND; start++) {
            check_start(start);
            if (level + 1 == BORDERS) continue;
            check_start(63 * border + start); /* out of the last bucket of the level */
        }
    }
}

static void from_near_the_end_of_time(void)
{
    check_start(BEL_NEVER - 1);
    check_start(BEL_NEVER - 1025);
    check_start(BEL_NEVER - (UINT64_C(1) << 40));
}

static void moved_there_from_everywhere(void)
{
    struct bel_wheel *wheel;
    bel_timer_t timers[DUES_MAX];
    list.count = 0;
    add_powers(0);
    for (uint32_t from = 0; from < list.count; from += 7) {
        CHECK_NOTE("moved from %" PRIu64, list.dues[from]);
        CHECK(bel_wheel_create(NULL, &wheel) == 0);
        for (uint32_t i = 0; i < list.count; i++) {
            list.sorted[i] = i;
            CHECK(bel_wheel_arm(wheel, list.dues[from], 0, i, &timers[i]) == 0);
        }
        for (uint32_t i = 0; i < list.count; i++) {
            CHECK(bel_wheel_rearm(wheel, timers[i], list.dues[i]) == 0);
        }
        qsort(list.sorted, list.count, sizeof list.sorted[0], compare);
        check_order(wheel, 0);
        CHECK(bel_wheel_valid(wheel));
        bel_wheel_destroy(wheel);
    }
}

int main(void)
{
    RUN(from_the_start_of_time);
    RUN(from_around_every_power_of_two);
    RUN(from_around_every_border_of_a_level);
    RUN(from_near_the_end_of_time);
    RUN(moved_there_from_everywhere);
    return 0;
}
