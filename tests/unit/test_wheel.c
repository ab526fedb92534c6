/* SPDX-License-Identifier: MIT */

/* The promises of belfry/wheel.h, one sentence at a time. Large wheels are in test_wheel_load.c,
 * the borders of its levels in test_wheel_levels.c. */
#include "belfry/wheel.h"

#include "../check.h"

#include <string.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static struct bel_wheel *wheel;

static void setup(uint64_t now)
{
    struct bel_wheel_options options = {.now = now, .handle_seed = 1};
    CHECK(bel_wheel_create(&options, &wheel) == 0);
}

static void teardown(void)
{
    CHECK(bel_wheel_valid(wheel));
    bel_wheel_destroy(wheel);
}

static bel_timer_t arm_with(uint64_t due, uint8_t priority, uint64_t user)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    CHECK(bel_wheel_arm(wheel, due, priority, user, &timer) == 0);
    CHECK(timer != BEL_TIMER_NONE);
    return timer;
}

static bel_timer_t arm(uint64_t due, uint64_t user)
{
    return arm_with(due, BEL_PRIORITY_DEFAULT, user);
}

/* The loop of every owner: a pop that stops early is repeated. */
static bool pop(uint64_t now, struct bel_wheel_timer *out)
{
    do {
        if (bel_wheel_pop(wheel, now, out)) return true;
    } while (bel_wheel_next(wheel) <= now);
    return false;
}

static void check_pops(uint64_t now, uint64_t user)
{
    struct bel_wheel_timer timer;
    CHECK(pop(now, &timer));
    CHECK_EQ(timer.user, user);
    CHECK(timer.due <= now);
}

static void check_pops_nothing(uint64_t now)
{
    struct bel_wheel_timer timer;
    CHECK(!pop(now, &timer));
    CHECK(bel_wheel_next(wheel) > now);
}

static uint64_t exact_next(void)
{
    uint64_t next;
    while (!bel_wheel_next_exact(wheel, &next)) {
        CHECK(next != BEL_NEVER);
    }
    return next;
}

static void check_refused(bel_timer_t timer)
{
    struct bel_wheel_timer found = {.user = 77};
    uint64_t count = bel_wheel_count(wheel);
    CHECK(!bel_wheel_cancel(wheel, timer));
    CHECK(bel_wheel_rearm(wheel, timer, 5) == BEL_ESTALE);
    CHECK(!bel_wheel_find(wheel, timer, &found));
    CHECK_EQ(found.user, 77);
    CHECK_EQ(bel_wheel_count(wheel), count);
}

static void an_empty_wheel_has_nothing_to_do(void)
{
    struct bel_wheel_timer timers[2];
    setup(1000);
    CHECK_EQ(bel_wheel_next(wheel), BEL_NEVER);
    CHECK_EQ(exact_next(), BEL_NEVER);
    CHECK(!bel_wheel_pop(wheel, 5000, timers));
    CHECK_EQ(bel_wheel_pop_many(wheel, BEL_NEVER - 1, timers, 2), 0);
    CHECK_EQ(bel_wheel_count(wheel), 0);
    CHECK_EQ(bel_wheel_next(wheel), BEL_NEVER);
    teardown();
}

static void a_timer_fires_at_its_nanosecond_and_not_before(void)
{
    setup(0);
    arm(4097, 1);
    check_pops_nothing(4096);
    check_pops(4097, 1);
    check_pops_nothing(4097);
    CHECK_EQ(bel_wheel_next(wheel), BEL_NEVER);
    teardown();
}

static void a_popped_timer_tells_all_about_itself(void)
{
    struct bel_wheel_timer timer;
    setup(0);
    bel_timer_t handle = arm_with(3 * SECOND, 9, UINT64_MAX);
    CHECK(pop(7 * SECOND, &timer));
    CHECK_EQ(timer.due, 3 * SECOND);
    CHECK_EQ(timer.user, UINT64_MAX);
    CHECK_EQ(timer.priority, 9);
    CHECK_EQ(timer.timer, handle);
    teardown();
}

static void timers_fire_in_the_order_they_are_due(void)
{
    setup(0);
    arm(150 * MS, 150);
    arm(50 * MS, 50);
    arm(100 * MS, 100);
    check_pops(SECOND, 50);
    check_pops(SECOND, 100);
    check_pops(SECOND, 150);
    check_pops_nothing(SECOND);
    teardown();
}

static void equal_dues_fire_in_the_order_armed(void)
{
    setup(0);
    for (uint64_t i = 0; i < 5; i++) {
        arm(SECOND, i);
    }
    for (uint64_t i = 0; i < 5; i++) {
        check_pops(SECOND, i);
    }
    teardown();
}

static void equal_dues_fire_by_priority_first(void)
{
    static const uint8_t priorities[] = {128, 255, 0, 128, 1, 0};
    static const uint64_t order[] = {2, 5, 4, 0, 3, 1};
    setup(0);
    for (unsigned i = 0; i < 6; i++) {
        arm_with(SECOND, priorities[i], i);
    }
    for (unsigned i = 0; i < 6; i++) {
        check_pops(SECOND, order[i]);
    }
    teardown();
}

static void priority_means_nothing_between_different_dues(void)
{
    setup(0);
    arm_with(SECOND + 1, 0, 2);
    arm_with(SECOND, 255, 1);
    check_pops(SECOND + 1, 1);
    check_pops(SECOND + 1, 2);
    teardown();
}

static void equal_dues_keep_their_order_from_wherever_they_were_armed(void)
{
    setup(0);
    arm(SECOND, 1); /* from far away */
    check_pops_nothing(SECOND - 100 * MS);
    arm(SECOND, 2);
    check_pops_nothing(SECOND - 100); /* from within its tick */
    arm(SECOND, 3);
    CHECK_EQ(exact_next(), SECOND);
    arm(SECOND, 4);
    check_pops(SECOND, 1);
    arm(SECOND, 5); /* while it is being drained */
    check_pops(SECOND, 2);
    check_pops(SECOND, 3);
    check_pops(SECOND, 4);
    check_pops(SECOND, 5);
    teardown();
}

static void what_is_due_in_the_past_fires_at_once_in_its_place(void)
{
    setup(SECOND);
    arm(SECOND, 4);
    arm(500, 3);
    arm(7, 2);
    arm(0, 1);
    CHECK(bel_wheel_next(wheel) <= SECOND);
    check_pops(SECOND, 1);
    check_pops(SECOND, 2);
    arm_with(7, 0, 5); /* goes before all that are left, being due earlier */
    check_pops(SECOND, 5);
    check_pops(SECOND, 3);
    check_pops(SECOND, 4);
    check_pops_nothing(SECOND);
    teardown();
}

static void cancel_is_true_once(void)
{
    setup(0);
    bel_timer_t timer = arm(SECOND, 1);
    CHECK(bel_wheel_cancel(wheel, timer));
    check_refused(timer);
    CHECK_EQ(bel_wheel_count(wheel), 0);
    check_pops_nothing(2 * SECOND);
    check_refused(timer);
    teardown();
}

static void a_cancelled_timer_does_not_fire_wherever_it_was(void)
{
    setup(0);
    bel_timer_t far = arm(3600 * SECOND, 1), near = arm(SECOND + 2, 2);
    arm(SECOND, 3);
    arm(SECOND + 3, 4);
    CHECK_EQ(exact_next(), SECOND);
    bel_timer_t late = arm(SECOND + 1, 5);
    CHECK(bel_wheel_cancel(wheel, near)); /* sorted already */
    CHECK(bel_wheel_cancel(wheel, far));  /* not yet */
    CHECK(bel_wheel_cancel(wheel, late)); /* came too late to be */
    check_pops(3601 * SECOND, 3);
    check_pops(3601 * SECOND, 4);
    check_pops_nothing(3601 * SECOND);
    teardown();
}

static void a_popped_timer_is_armed_no_more(void)
{
    setup(0);
    bel_timer_t timer = arm(SECOND, 1);
    check_pops(SECOND, 1);
    check_refused(timer);
    arm(2 * SECOND, 2); /* in the same memory */
    check_refused(timer);
    CHECK_EQ(bel_wheel_count(wheel), 1);
    teardown();
}

static void a_handle_of_another_wheel_is_refused(void)
{
    struct bel_wheel *other;
    struct bel_wheel_options options = {.handle_seed = 2};
    bel_timer_t theirs[100];
    setup(0);
    CHECK(bel_wheel_create(&options, &other) == 0);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(bel_wheel_arm(other, SECOND, 0, i, &theirs[i]) == 0);
        arm(SECOND, i);
    }
    for (unsigned i = 0; i < 100; i++) {
        check_refused(theirs[i]);
    }
    CHECK_EQ(bel_wheel_count(wheel), 100);
    CHECK_EQ(bel_wheel_count(other), 100);
    bel_wheel_destroy(other);
    teardown();
}

static void a_handle_of_a_wheel_that_is_gone_is_refused(void)
{
    bel_timer_t theirs[10];
    CHECK(bel_wheel_create(NULL, &wheel) == 0);
    for (unsigned i = 0; i < 10; i++) {
        theirs[i] = arm(SECOND, i);
    }
    teardown();
    CHECK(bel_wheel_create(NULL, &wheel) == 0); /* most likely at the same address */
    for (unsigned i = 0; i < 10; i++) {
        arm(SECOND, i);
    }
    for (unsigned i = 0; i < 10; i++) {
        check_refused(theirs[i]);
    }
    teardown();
}

static void what_was_never_a_handle_is_refused(void)
{
    setup(0);
    check_refused(BEL_TIMER_NONE);
    check_refused(UINT64_MAX);
    bel_timer_t filed = arm(SECOND, 1), late = arm(0, 2);
    check_refused(BEL_TIMER_NONE);
    check_refused(UINT64_MAX);
    for (unsigned bit = 0; bit < 64; bit++) {
        bel_timer_t flipped = filed ^ UINT64_C(1) << bit;
        if (flipped != late) check_refused(flipped);
        flipped = late ^ UINT64_C(1) << bit;
        if (flipped != filed) check_refused(flipped);
        check_refused(UINT64_C(1) << bit);
        check_refused((UINT64_C(1) << bit) - 1);
    }
    for (uint64_t state = 1; state < 4; state++) {
        check_refused(filed ^ state << 32);
        check_refused(late ^ state << 32);
    }
    check_refused(filed & UINT32_MAX);
    check_refused(filed >> 32 << 32 | UINT32_MAX);
    check_refused(filed << 32 | filed >> 32);
    check_pops(SECOND, 2);
    check_pops(SECOND, 1);
    teardown();
}

static void a_moved_timer_keeps_handle_priority_and_user_word(void)
{
    struct bel_wheel_timer found;
    static const uint64_t dues[] = {9 * SECOND, 10 * SECOND, 2, 3600 * SECOND, 0, SECOND};
    setup(0);
    bel_timer_t timer = arm_with(SECOND, 3, 42);
    for (unsigned i = 0; i < 6; i++) {
        CHECK(bel_wheel_rearm(wheel, timer, dues[i]) == 0);
        CHECK(bel_wheel_find(wheel, timer, &found));
        CHECK_EQ(found.due, dues[i]);
        CHECK_EQ(found.user, 42);
        CHECK_EQ(found.priority, 3);
        CHECK_EQ(found.timer, timer);
        CHECK_EQ(exact_next(), dues[i]);
    }
    check_pops_nothing(SECOND - 1);
    CHECK(pop(SECOND, &found));
    CHECK_EQ(found.timer, timer);
    CHECK_EQ(found.priority, 3);
    check_pops_nothing(4000 * SECOND);
    teardown();
}

static void a_moved_timer_goes_behind_its_equals(void)
{
    setup(0);
    bel_timer_t first = arm(SECOND, 1), second = arm(2 * SECOND, 2), third = arm(SECOND / 2, 3);
    arm(SECOND, 4);
    CHECK(bel_wheel_rearm(wheel, second, SECOND) == 0); /* earlier */
    CHECK(bel_wheel_rearm(wheel, third, SECOND) == 0);  /* later */
    CHECK(bel_wheel_rearm(wheel, first, SECOND) == 0);  /* to where it is */
    check_pops(SECOND, 4);
    check_pops(SECOND, 2);
    check_pops(SECOND, 3);
    check_pops(SECOND, 1);
    teardown();
}

static void a_timer_can_be_moved_while_its_tick_is_drained(void)
{
    setup(0);
    bel_timer_t timers[4];
    for (uint64_t i = 0; i < 4; i++) {
        timers[i] = arm(SECOND + i, i);
    }
    check_pops(SECOND, 0);
    CHECK(bel_wheel_rearm(wheel, timers[1], SECOND + 9) == 0);
    CHECK(bel_wheel_rearm(wheel, timers[3], SECOND) == 0);
    CHECK(bel_wheel_rearm(wheel, timers[2], 9 * SECOND) == 0);
    check_pops(SECOND, 3);
    check_pops_nothing(SECOND + 8);
    check_pops(SECOND + 9, 1);
    check_pops_nothing(9 * SECOND - 1);
    check_pops(9 * SECOND, 2);
    teardown();
}

static void never_is_no_due(void)
{
    bel_timer_t out = 5;
    struct bel_wheel_timer found;
    setup(0);
    CHECK(bel_wheel_arm(wheel, BEL_NEVER, 0, 1, &out) == BEL_ERANGE);
    CHECK_EQ(out, 5);
    CHECK_EQ(bel_wheel_count(wheel), 0);
    bel_timer_t timer = arm(SECOND, 1);
    CHECK(bel_wheel_rearm(wheel, timer, BEL_NEVER) == BEL_ERANGE);
    CHECK(bel_wheel_find(wheel, timer, &found));
    CHECK_EQ(found.due, SECOND);
    check_pops(SECOND, 1);
    teardown();
}

static void a_full_wheel_refuses_and_stays_usable(void)
{
    struct bel_wheel_options options = {.timers_max = 100, .handle_seed = 1};
    bel_timer_t timers[100], out = 5;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    for (uint64_t i = 0; i < 100; i++) {
        timers[i] = arm(SECOND + i, i);
    }
    CHECK(bel_wheel_arm(wheel, 7, 0, 1, &out) == BEL_EFULL);
    CHECK(bel_wheel_arm(wheel, 7 * SECOND, 0, 1, &out) == BEL_EFULL);
    CHECK_EQ(out, 5);
    CHECK_EQ(bel_wheel_count(wheel), 100);
    CHECK(bel_wheel_rearm(wheel, timers[99], SECOND - 1) == 0);
    check_pops(SECOND, 99);
    arm(2 * SECOND, 100); /* in the place of the popped */
    CHECK(bel_wheel_arm(wheel, 7, 0, 1, &out) == BEL_EFULL);
    CHECK(bel_wheel_cancel(wheel, timers[50]));
    arm(SECOND + 50, 50); /* in the place of the cancelled */
    for (uint64_t i = 0; i <= 100; i++) {
        if (i != 99) check_pops(2 * SECOND, i);
    }
    teardown();
}

static void impossible_options_are_refused(void)
{
    struct bel_wheel *out = NULL;
    struct bel_wheel_options options = {.timers_max = (1 << 28) + 1};
    CHECK(bel_wheel_create(&options, &out) == BEL_EINVAL);
    options = (struct bel_wheel_options){.timers_max = UINT32_MAX};
    CHECK(bel_wheel_create(&options, &out) == BEL_EINVAL);
    options = (struct bel_wheel_options){.now = BEL_NEVER};
    CHECK(bel_wheel_create(&options, &out) == BEL_EINVAL);
    CHECK(out == NULL);
}

static void the_smallest_and_the_largest_wheel_work(void)
{
    struct bel_wheel_options options = {.timers_max = 1};
    bel_timer_t out;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    arm(SECOND, 1);
    CHECK(bel_wheel_arm(wheel, SECOND, 0, 2, &out) == BEL_EFULL);
    check_pops(SECOND, 1);
    arm(SECOND, 3);
    check_pops(SECOND, 3);
    teardown();
    options = (struct bel_wheel_options){.timers_max = 1 << 28, .now = BEL_NEVER - 1};
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    arm(BEL_NEVER - 1, 1);
    check_pops(BEL_NEVER - 1, 1);
    teardown();
}

static void no_options_are_the_defaults(void)
{
    CHECK(bel_wheel_create(NULL, &wheel) == 0);
    arm(1, 1);
    check_pops_nothing(0);
    check_pops(1, 1);
    teardown();
}

static void destroy_takes_nothing_and_wheels_with_timers(void)
{
    bel_wheel_destroy(NULL);
    setup(0);
    for (uint64_t i = 0; i < 10000; i++) {
        arm(i * i, i);
    }
    teardown();
}

static void when_time_goes_back_less_is_due(void)
{
    setup(10 * SECOND);
    arm(20 * SECOND, 20);
    arm(30 * SECOND, 30);
    check_pops(20 * SECOND, 20);
    check_pops_nothing(20 * SECOND);
    arm(5 * SECOND, 5);
    check_pops_nothing(5 * SECOND - 1); /* back to before the start */
    check_pops(5 * SECOND, 5);
    arm(6 * SECOND, 6);
    arm(20 * SECOND, 21);
    check_pops_nothing(6 * SECOND - 1);
    check_pops(6 * SECOND, 6);
    check_pops_nothing(20 * SECOND - 1);
    check_pops(20 * SECOND, 21);
    check_pops_nothing(30 * SECOND - 1);
    check_pops(30 * SECOND, 30);
    teardown();
}

static void next_is_never_late_and_its_exact_twin_is_exact(void)
{
    setup(0);
    for (uint64_t due = UINT64_C(1) << 62, user = 1; due > 0; due /= 3, user++) {
        arm(due, user);
        CHECK(bel_wheel_next(wheel) <= due);
        if (user % 2 == 0) CHECK_EQ(exact_next(), due);
        CHECK(bel_wheel_next(wheel) <= due);
    }
    for (struct bel_wheel_timer timer; bel_wheel_count(wheel) > 0;) {
        uint64_t exact = exact_next();
        CHECK_EQ(bel_wheel_next(wheel), exact);
        check_pops_nothing(exact - 1);
        CHECK(pop(exact, &timer));
        CHECK_EQ(timer.due, exact);
    }
    CHECK_EQ(exact_next(), BEL_NEVER);
    teardown();
}

static void a_wheel_asleep_for_an_hour_learns_of_an_earlier_timer(void)
{
    setup(0);
    arm(3600 * SECOND, 2);
    CHECK_EQ(exact_next(), 3600 * SECOND);
    arm(10 * MS, 1);
    CHECK_EQ(bel_wheel_next(wheel), 10 * MS);
    check_pops(10 * MS, 1);
    check_pops_nothing(3600 * SECOND - 1);
    check_pops(3600 * SECOND, 2);
    teardown();
}

static void pop_many_takes_no_more_than_it_may(void)
{
    struct bel_wheel_timer timers[10];
    setup(0);
    for (uint64_t i = 0; i < 10; i++) {
        arm(SECOND + i, i);
    }
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND - 1, timers, 10), 0);
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND + 9, timers, 0), 0);
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND + 9, timers, 1), 1);
    CHECK_EQ(timers[0].user, 0);
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND + 9, timers, 3), 3);
    CHECK_EQ(timers[0].user, 1);
    CHECK_EQ(timers[2].user, 3);
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND + 7, timers, 10), 4);
    CHECK_EQ(timers[3].due, SECOND + 7);
    CHECK_EQ(bel_wheel_pop_many(wheel, SECOND + 9, timers, 10), 2);
    CHECK_EQ(bel_wheel_count(wheel), 0);
    teardown();
}

static void rearm_many_says_how_each_one_went(void)
{
    struct bel_rearm moves[40];
    setup(0);
    for (uint64_t i = 0; i < 40; i++) {
        moves[i] = (struct bel_rearm){arm(SECOND, i), 2 * SECOND - i, 99};
    }
    CHECK(bel_wheel_cancel(wheel, moves[3].timer));
    moves[5].due = BEL_NEVER;
    moves[7].timer = BEL_TIMER_NONE;
    moves[8].timer = UINT64_MAX;
    moves[9].timer = moves[10].timer; /* moved twice: the last one counts */
    CHECK_EQ(bel_wheel_rearm_many(wheel, moves, 40), 36);
    for (unsigned i = 0; i < 40; i++) {
        bool stale = i == 3 || i == 7 || i == 8;
        int want = stale ? BEL_ESTALE : i == 5 ? BEL_ERANGE : 0;
        CHECK(moves[i].result == want);
    }
    CHECK_EQ(bel_wheel_rearm_many(wheel, NULL, 0), 0);
    for (uint64_t i = 5; i < 10; i++) {
        if (i != 6) check_pops(SECOND, i); /* 5, 7, 8 and 9 stayed */
    }
    check_pops_nothing(SECOND);
    for (uint64_t i = 40; i-- > 0;) {
        if (i != 3 && (i == 6 || i < 5 || i > 9)) check_pops(2 * SECOND, i);
    }
    CHECK_EQ(bel_wheel_count(wheel), 0);
    teardown();
}

static void expecting_takes_any_handle(void)
{
    setup(1000);
    bel_wheel_expect(wheel, 1);
    bel_timer_t timer = arm(5000, 1);
    bel_wheel_expect(wheel, timer);
    bel_wheel_expect(wheel, UINT64_MAX);
    check_pops(5000, 1);
    bel_wheel_expect(wheel, timer);
    check_refused(timer);
    teardown();
}

static void find_looks_and_changes_nothing(void)
{
    struct bel_wheel_timer found;
    setup(0);
    bel_timer_t timers[] = {arm_with(SECOND, 1, 10), arm_with(0, 2, 20)};
    for (unsigned i = 0; i < 2; i++) {
        CHECK(bel_wheel_find(wheel, timers[i], &found));
        CHECK_EQ(found.user, 10 + 10 * i);
        CHECK_EQ(found.priority, 1 + i);
        CHECK_EQ(found.timer, timers[i]);
        CHECK_EQ(found.due, i == 0 ? SECOND : 0);
    }
    check_pops(SECOND, 20);
    check_pops(SECOND, 10);
    teardown();
}

static void count_is_exact(void)
{
    bel_timer_t timers[1000];
    struct bel_wheel_timer popped;
    setup(0);
    for (uint64_t i = 0; i < 1000; i++) {
        timers[i] = arm(i * MS, i);
        CHECK_EQ(bel_wheel_count(wheel), i + 1);
    }
    for (size_t i = 0; i < 500; i++) {
        CHECK(bel_wheel_cancel(wheel, timers[2 * i]));
        CHECK_EQ(bel_wheel_count(wheel), 999 - i);
    }
    for (unsigned i = 0; i < 500; i++) {
        CHECK(pop(SECOND, &popped));
        CHECK_EQ(popped.user, 2 * i + 1);
        CHECK_EQ(bel_wheel_count(wheel), 499 - i);
    }
    teardown();
}

static void a_walk_visits_in_order_and_leaves_the_wheel_alone(void)
{
    struct bel_wheel_walk *walk;
    struct bel_wheel_timer visited, popped;
    setup(0);
    CHECK(bel_wheel_walk_open(wheel, &walk) == 0);
    CHECK(!bel_wheel_walk_next(walk, &visited));
    bel_wheel_walk_close(walk);
    for (uint64_t i = 0; i < 1000; i++) {
        bel_timer_t timer = arm_with(i * i * 7919 % 600 * MS, (uint8_t)(i % 3), i);
        if (i % 5 == 0) CHECK(bel_wheel_cancel(wheel, timer));
    }
    CHECK(pop(100 * MS, &popped)); /* some are sorted now, others not */
    arm(1, 1000);
    uint64_t count = bel_wheel_count(wheel);
    for (unsigned round = 0; round < 2; round++) {
        struct bel_wheel_timer before = {0};
        CHECK(bel_wheel_walk_open(wheel, &walk) == 0);
        for (uint64_t i = 0; i < count; i++) {
            CHECK(bel_wheel_walk_next(walk, &visited));
            CHECK(before.due <= visited.due);
            if (i > 0 && before.due == visited.due) CHECK(before.priority <= visited.priority);
            before = visited;
        }
        CHECK(!bel_wheel_walk_next(walk, &visited));
        bel_wheel_walk_close(walk);
    }
    CHECK(bel_wheel_walk_open(wheel, &walk) == 0);
    bel_wheel_walk_close(walk); /* before its end */
    CHECK_EQ(bel_wheel_count(wheel), count);
    teardown();
}

static void what_a_walk_saw_makes_the_same_wheel_on_another_day(void)
{
    enum {
        COUNT = 500
    };
    static struct bel_wheel_timer saved[COUNT];
    struct bel_wheel_walk *walk;
    setup(SECOND);
    for (uint64_t i = 0; i < COUNT; i++) {
        arm_with(SECOND + i % 13 * MS, (uint8_t)(i % 2), i);
    }
    CHECK(bel_wheel_walk_open(wheel, &walk) == 0);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK(bel_wheel_walk_next(walk, &saved[i]));
    }
    bel_wheel_walk_close(walk);
    for (unsigned i = 0; i < COUNT; i++) {
        check_pops(2 * SECOND, saved[i].user); /* it is the order of popping */
    }
    teardown();
    setup(86400 * SECOND);
    for (unsigned i = 0; i < COUNT; i++) {
        arm_with(saved[i].due - SECOND + 86400 * SECOND, saved[i].priority, saved[i].user);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        check_pops(86401 * SECOND, saved[i].user);
    }
    teardown();
}

static void reserve_makes_room_up_to_the_maximum(void)
{
    struct bel_wheel_options options = {.timers_max = 10000, .handle_seed = 1};
    struct bel_wheel_stats before, after;
    CHECK(bel_wheel_create(&options, &wheel) == 0);
    CHECK(bel_wheel_reserve(wheel, 0) == 0);
    CHECK(bel_wheel_reserve(wheel, 10001) == BEL_EFULL);
    CHECK(bel_wheel_reserve(wheel, UINT32_MAX) == BEL_EFULL);
    CHECK(bel_wheel_reserve(wheel, 10000) == 0);
    bel_wheel_stats(wheel, &before);
    for (uint64_t i = 0; i < 10000; i++) {
        arm(i * MS + MS, i);
    }
    bel_wheel_stats(wheel, &after);
    CHECK_EQ(after.bytes, before.bytes);
    CHECK(bel_wheel_reserve(wheel, 5000) == 0); /* less than there is */
    for (uint64_t i = 0; i < 10000; i++) {
        check_pops(10 * SECOND, i);
    }
    teardown();
}

static void the_far_end_of_time_is_reachable(void)
{
    setup(0);
    arm(BEL_NEVER - 1, 2);
    arm(BEL_NEVER - 2, 1);
    check_pops_nothing(BEL_NEVER - 3);
    check_pops(BEL_NEVER - 2, 1);
    check_pops_nothing(BEL_NEVER - 2);
    check_pops(BEL_NEVER - 1, 2);
    arm(BEL_NEVER - 1, 4);
    arm(0, 3);
    check_pops(BEL_NEVER - 1, 3);
    check_pops(BEL_NEVER - 1, 4);
    teardown();
}

static void a_popped_timer_may_be_armed_again_inside_the_loop(void)
{
    struct bel_wheel_timer timer;
    uint64_t fired = 0;
    setup(0);
    arm(10, 1);
    for (; pop(1000, &timer); fired++) {
        CHECK_EQ(timer.due, 10 * (fired + 1));
        arm(timer.due + 10, timer.user);
    }
    CHECK_EQ(fired, 100);
    teardown();
}

static void ten_thousand_armed_into_the_tick_being_drained_fire_in_order(void)
{
    struct bel_wheel_timer timer;
    setup(0);
    arm(SECOND, 0);
    check_pops(SECOND, 0);
    for (uint64_t i = 0; i < 10000; i++) {
        arm(SECOND + 99 - i % 100, i);
    }
    for (uint64_t due = SECOND, i = 0; due < SECOND + 100; due++) {
        for (i = 0; i < 100; i++) {
            check_pops(due, i * 100 + 99 - (due - SECOND));
        }
        check_pops_nothing(due);
    }
    arm(2 * SECOND, 0);
    for (uint64_t i = 0; i < 10000; i++) { /* each one popped arms the next */
        CHECK(pop(2 * SECOND, &timer));
        CHECK_EQ(timer.user, i);
        arm(2 * SECOND, i + 1);
    }
    teardown();
}

int main(void)
{
    RUN(an_empty_wheel_has_nothing_to_do);
    RUN(a_timer_fires_at_its_nanosecond_and_not_before);
    RUN(a_popped_timer_tells_all_about_itself);
    RUN(timers_fire_in_the_order_they_are_due);
    RUN(equal_dues_fire_in_the_order_armed);
    RUN(equal_dues_fire_by_priority_first);
    RUN(priority_means_nothing_between_different_dues);
    RUN(equal_dues_keep_their_order_from_wherever_they_were_armed);
    RUN(what_is_due_in_the_past_fires_at_once_in_its_place);
    RUN(cancel_is_true_once);
    RUN(a_cancelled_timer_does_not_fire_wherever_it_was);
    RUN(a_popped_timer_is_armed_no_more);
    RUN(a_handle_of_another_wheel_is_refused);
    RUN(a_handle_of_a_wheel_that_is_gone_is_refused);
    RUN(what_was_never_a_handle_is_refused);
    RUN(a_moved_timer_keeps_handle_priority_and_user_word);
    RUN(a_moved_timer_goes_behind_its_equals);
    RUN(a_timer_can_be_moved_while_its_tick_is_drained);
    RUN(never_is_no_due);
    RUN(a_full_wheel_refuses_and_stays_usable);
    RUN(impossible_options_are_refused);
    RUN(the_smallest_and_the_largest_wheel_work);
    RUN(no_options_are_the_defaults);
    RUN(destroy_takes_nothing_and_wheels_with_timers);
    RUN(when_time_goes_back_less_is_due);
    RUN(next_is_never_late_and_its_exact_twin_is_exact);
    RUN(a_wheel_asleep_for_an_hour_learns_of_an_earlier_timer);
    RUN(pop_many_takes_no_more_than_it_may);
    RUN(rearm_many_says_how_each_one_went);
    RUN(expecting_takes_any_handle);
    RUN(find_looks_and_changes_nothing);
    RUN(count_is_exact);
    RUN(a_walk_visits_in_order_and_leaves_the_wheel_alone);
    RUN(what_a_walk_saw_makes_the_same_wheel_on_another_day);
    RUN(reserve_makes_room_up_to_the_maximum);
    RUN(the_far_end_of_time_is_reachable);
    RUN(a_popped_timer_may_be_armed_again_inside_the_loop);
    RUN(ten_thousand_armed_into_the_tick_being_drained_fire_in_order);
    return 0;
}
