/* SPDX-License-Identifier: MIT */

/*
 * A handle names only one timer, however often its slot is reused. With three bits for a generation
 * (meson option generation_bits) a slot is used up after eight timers, which tests what otherwise
 * happens after 2^30.
 */
#include "belfry/wheel.h"

#include "../check.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

enum {
    USES = 2000,
    MANY_USES = 200000,
    SLOT_BYTES = 32,
    GROWTH_STEP = 2 << 20, /* memory is asked for in steps of this at most */
};

#define GENERATIONS (UINT64_C(1) << BEL_GENERATION_BITS)

static struct bel_wheel *wheel;
static bel_timer_t handles[MANY_USES];
static uint64_t now;

static void setup(void)
{
    struct bel_wheel_options options = {.handle_seed = 1};
    now = 0;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
}

static void teardown(void)
{
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static bel_timer_t arm(uint64_t due)
{
    bel_timer_t timer;
    CHECK(bel_wheel_arm(wheel, due, 0, 0, &timer) == 0);
    return timer;
}

/* Pops the only timer that is due. */
static void check_pops(bel_timer_t timer)
{
    struct bel_wheel_timer popped;
    while (!bel_wheel_pop(wheel, now, &popped)) {
        CHECK(bel_wheel_next(wheel) <= now);
    }
    CHECK_EQ(popped.timer, timer);
}

static void check_refused(uint64_t uses)
{
    struct bel_wheel_timer found;
    for (uint64_t i = 0; i < uses; i++) {
        CHECK(!bel_wheel_find(wheel, handles[i], &found));
        CHECK(!bel_wheel_cancel(wheel, handles[i]));
        CHECK(bel_wheel_rearm(wheel, handles[i], 7) == BEL_ESTALE);
    }
}

static int compare(const void *a, const void *b)
{
    bel_timer_t x = *(const bel_timer_t *)a, y = *(const bel_timer_t *)b;
    return (x > y) - (x < y);
}

static void check_unique(uint64_t uses)
{
    qsort(handles, uses, sizeof handles[0], compare);
    for (uint64_t i = 1; i < uses; i++) {
        CHECK(handles[i - 1] != handles[i]);
    }
}

/* One timer at a time uses up slot after slot. */
static void check_retired(uint64_t uses)
{
    struct bel_wheel_stats stats;
    bel_wheel_stats(wheel, &stats);
    CHECK_EQ(stats.retired, uses / GENERATIONS);
}

static void a_cancelled_handle_is_never_accepted_again(void)
{
    setup();
    for (uint64_t i = 0; i < USES; i++) {
        handles[i] = arm(i % 2 ? HOUR : 0);
        check_refused(i);
        CHECK(bel_wheel_cancel(wheel, handles[i]));
        check_retired(i + 1);
    }
    check_unique(USES);
    teardown();
}

static void a_popped_handle_is_never_accepted_again(void)
{
    setup();
    for (uint64_t i = 0; i < USES; i++, now += SECOND) {
        handles[i] = arm(now);
        check_refused(i);
        check_pops(handles[i]);
        check_retired(i + 1);
    }
    check_unique(USES);
    teardown();
}

static void a_moved_timer_uses_no_generation(void)
{
    setup();
    bel_timer_t timer = arm(HOUR);
    for (uint64_t i = 0; i < USES; i++) {
        CHECK(bel_wheel_rearm(wheel, timer, i % 3 * HOUR) == 0);
    }
    CHECK(bel_wheel_cancel(wheel, timer));
    check_retired(1);
    teardown();
}

static void a_slot_used_up_costs_its_own_memory_and_no_more(void)
{
    struct bel_wheel_stats before, after;
    setup();
    CHECK(bel_wheel_cancel(wheel, arm(HOUR)));
    bel_wheel_stats(wheel, &before);
    for (uint64_t i = 0; i < MANY_USES; i++, now++) {
        handles[i] = arm(i % 2 ? HOUR + i * SECOND : now);
        if (i % 2) {
            CHECK(bel_wheel_cancel(wheel, handles[i]));
        } else {
            check_pops(handles[i]);
        }
    }
    check_retired(MANY_USES + 1);
    bel_wheel_stats(wheel, &after);
    uint64_t lost = after.retired * SLOT_BYTES;
    CHECK(after.bytes <= before.bytes + lost + GROWTH_STEP);
    CHECK(after.entries <= 3 * after.armed + 16384);
    check_unique(MANY_USES);
    teardown();
}

static void slots_that_are_used_up_hide_no_timer(void)
{
    enum {
        ARMED = 1000
    };
    setup();
    for (uint64_t round = 0; round < 40; round++) {
        for (uint64_t i = 0; i < ARMED; i++) {
            handles[i] = arm(now + HOUR + i);
        }
        for (uint64_t i = 0; i < ARMED; i += 2) {
            CHECK(bel_wheel_cancel(wheel, handles[i])); /* leaves its entry */
        }
        CHECK_EQ(bel_wheel_count(wheel), ARMED / 2);
        CHECK(bel_wheel_valid(wheel));
        now += 2 * HOUR;
        for (uint64_t i = 1; i < ARMED; i += 2) {
            check_pops(handles[i]);
        }
        CHECK_EQ(bel_wheel_next(wheel), BEL_NEVER);
    }
    teardown();
}

static void a_full_wheel_is_full_of_timers_not_of_used_up_slots(void)
{
    struct bel_wheel_options options = {.timers_max = 4, .handle_seed = 1};
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    for (uint64_t i = 0; i < USES; i++) {
        CHECK(bel_wheel_cancel(wheel, arm(HOUR)));
    }
    teardown();
}

int main(void)
{
    RUN(a_cancelled_handle_is_never_accepted_again);
    RUN(a_popped_handle_is_never_accepted_again);
    RUN(a_moved_timer_uses_no_generation);
    RUN(a_slot_used_up_costs_its_own_memory_and_no_more);
    RUN(slots_that_are_used_up_hide_no_timer);
    RUN(a_full_wheel_is_full_of_timers_not_of_used_up_slots);
    return 0;
}
