/* SPDX-License-Identifier: MIT */

/*
 * A crowd, more timers of one tick than are sorted at once, that is half sorted; and entries that
 * look like another timer's because the 32 bits of their ticks are equal. Each case was a real bug.
 */
#include "belfry/wheel.h"

#include "../check.h"

enum {
    CROWD = 5000,
    CALLS_MAX = 100000, /* more than any of these needs to finish */
};

#define TICK    UINT64_C(1024)
#define MEETING ((64 * 64 * 5 + 77) * TICK)

static struct bel_wheel *make(uint32_t timers_max)
{
    struct bel_wheel_options options = {.timers_max = timers_max, .handle_seed = 1};
    struct bel_wheel *wheel = NULL;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    return wheel;
}

static bel_timer_t arm(struct bel_wheel *wheel, uint64_t due, uint64_t user)
{
    bel_timer_t timer;
    CHECK(bel_wheel_arm(wheel, due, BEL_PRIORITY_DEFAULT, user, &timer) == 0);
    return timer;
}

static void rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due)
{
    CHECK(bel_wheel_rearm(wheel, timer, due) == 0);
}

/* Pops one timer, in as many calls as a loop would make, and returns its user word. */
static uint64_t pop(struct bel_wheel *wheel, uint64_t now)
{
    struct bel_wheel_timer timer = {0};
    unsigned calls = 0;
    while (!bel_wheel_pop(wheel, now, &timer)) {
        CHECK(bel_wheel_next(wheel) <= now);
        CHECK(++calls < CALLS_MAX);
    }
    return timer.user;
}

/* Returns a wheel with a crowd of which `calls` calls have sorted a part. */
static struct bel_wheel *half_sorted(bel_timer_t *timers, unsigned calls)
{
    struct bel_wheel *wheel = make(0);
    for (uint64_t i = 0; i < CROWD; i++) {
        timers[i] = arm(wheel, MEETING, i);
    }
    for (unsigned i = 0; i < calls; i++) {
        uint64_t next;
        CHECK(!bel_wheel_next_exact(wheel, &next));
    }
    CHECK(bel_wheel_valid(wheel));
    return wheel;
}

static bel_timer_t timers[CROWD];

static void a_timer_armed_before_a_half_sorted_crowd_comes_first(void)
{
    for (unsigned calls = 0; calls < 4; calls++) {
        struct bel_wheel *wheel = half_sorted(timers, calls);
        arm(wheel, MEETING - 27 * TICK, CROWD);
        CHECK_EQ(pop(wheel, MEETING - 20 * TICK), CROWD);
        CHECK(bel_wheel_next(wheel) > MEETING - 20 * TICK);
        for (uint64_t i = 0; i < CROWD; i++) {
            CHECK_EQ(pop(wheel, MEETING), i);
        }
        CHECK(bel_wheel_valid(wheel));
        bel_wheel_destroy(wheel);
    }
}

static void a_timer_moved_within_a_half_sorted_crowd_goes_to_its_end(void)
{
    for (unsigned calls = 0; calls < 4; calls++) {
        struct bel_wheel *wheel = half_sorted(timers, calls);
        rearm(wheel, timers[3], MEETING);
        CHECK(bel_wheel_cancel(wheel, timers[4]));
        arm(wheel, MEETING, CROWD); /* in the slot of the one cancelled */
        for (uint64_t i = 0; i < CROWD; i++) {
            if (i != 3 && i != 4) CHECK_EQ(pop(wheel, MEETING), i);
        }
        CHECK_EQ(pop(wheel, MEETING), 3);
        CHECK_EQ(pop(wheel, MEETING), CROWD);
        bel_wheel_destroy(wheel);
    }
}

static void a_few_timers_that_come_and_go_often_are_popped(void)
{
    struct bel_wheel *wheel = make(20);
    for (uint64_t i = 0; i < 20; i++) {
        timers[i] = arm(wheel, MEETING, i);
        for (unsigned j = 0; j < 1500; j++) {
            rearm(wheel, timers[i], 0);
            rearm(wheel, timers[i], MEETING);
        }
    }
    struct bel_wheel_stats stats;
    bel_wheel_stats(wheel, &stats);
    CHECK(stats.entries <= 3 * stats.armed + 16384);
    CHECK(bel_wheel_valid(wheel));
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_EQ(pop(wheel, MEETING), i);
    }
    bel_wheel_destroy(wheel);
}

static void a_wheel_for_one_timer_is_valid_throughout(void)
{
    struct bel_wheel *wheel = make(1);
    bel_timer_t timer = arm(wheel, 4000 * TICK, 0);
    uint64_t next;
    for (uint64_t i = 1; i < 60; i++) {
        rearm(wheel, timer, (4000 - i) * TICK);
        CHECK(bel_wheel_valid(wheel));
    }
    CHECK(bel_wheel_next_exact(wheel, &next));
    CHECK_EQ(next, 3941 * TICK);
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static void an_entry_2_to_the_32_ticks_away_is_not_taken_for_the_timers_own(void)
{
    uint64_t far = (UINT64_C(1) << 36) + 12345, near = far - (UINT64_C(3) << 32);
    struct bel_wheel *wheel = make(0);
    bel_timer_t timer = arm(wheel, far * TICK, 1);
    for (uint64_t i = 0; i < 3000; i++) {
        arm(wheel, (far + i) * TICK, 2);
    }
    rearm(wheel, timer, near * TICK);
    for (uint64_t i = 1; i <= 100; i++) {
        arm(wheel, near * TICK - i, 3);
    }
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(pop(wheel, near * TICK), 3);
    }
    CHECK_EQ(pop(wheel, near * TICK), 1);
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static void a_wheel_whose_timers_have_all_ended_has_no_next(void)
{
    struct bel_wheel *wheel = make(0);
    bel_timer_t timer = arm(wheel, MEETING, 0);
    uint64_t next = 0;
    CHECK(bel_wheel_cancel(wheel, timer)); /* its entry stays */
    CHECK_EQ(bel_wheel_next(wheel), BEL_NEVER);
    CHECK(bel_wheel_next_exact(wheel, &next));
    CHECK_EQ(next, BEL_NEVER);
    bel_wheel_destroy(wheel);
}

int main(void)
{
    RUN(a_timer_armed_before_a_half_sorted_crowd_comes_first);
    RUN(a_timer_moved_within_a_half_sorted_crowd_goes_to_its_end);
    RUN(a_few_timers_that_come_and_go_often_are_popped);
    RUN(a_wheel_for_one_timer_is_valid_throughout);
    RUN(an_entry_2_to_the_32_ticks_away_is_not_taken_for_the_timers_own);
    RUN(a_wheel_whose_timers_have_all_ended_has_no_next);
    return 0;
}
