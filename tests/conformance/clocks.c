/* SPDX-License-Identifier: MIT */

/*
 * Clocks: which timers move when the wall clock is set, and which do not.
 */
#include "conformance.h"

static void a_delay_is_not_moved_by_the_wall_clock(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE);
    step_wall(s, HOUR);
    expect_claim(s, "mail");
    CHECK(timer_of(s, "mail", "a")->due.ms == START + HOUR + MINUTE);
    step_wall(s, -2 * HOUR);
    CHECK(timer_of(s, "mail", "a")->due.ms == START - HOUR + MINUTE);
    advance(s, MINUTE - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", "a");
}

static void an_instant_is_moved_by_the_wall_clock(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = HOUR);
    step_wall(s, HOUR - MINUTE);
    expect_claim(s, "mail");
    CHECK(timer_of(s, "mail", "a")->due.ms == START + HOUR);
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
}

static void an_instant_that_is_put_back_is_scheduled_again(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = HOUR);
    schedule(s, "mail", .id = "b", .in = HOUR);
    advance(s, HOUR);
    expect_state(s, "mail", "a", BEL_READY);
    step_wall(s, -MINUTE);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    expect_state(s, "mail", "b", BEL_READY);
    expect_claim(s, "mail", "b");
    advance(s, MINUTE);
    expect_claim(s, "mail", "b", "a"); /* its lease has expired */
}

static void a_lease_is_not_moved_by_the_wall_clock(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    step_wall(s, DAY);
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 30 * SECOND);
    step_wall(s, -2 * DAY);
    advance(s, 30 * SECOND - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", "a");
}

static void a_retry_is_not_moved_by_the_wall_clock(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "1m");
    expect_claim(s, "mail", "a");
    (void)fail(s, "a");
    step_wall(s, DAY);
    expect_claim(s, "mail");
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
}

static void after_a_step_dues_are_ordered_by_the_new_clocks(struct subject *s)
{
    schedule(s, "mail", .id = "delay", .in = MINUTE);
    schedule(s, "mail", .id = "instant", .at = 90 * SECOND);
    expect_list(s, "mail", "delay", "instant");
    step_wall(s, 40 * SECOND);
    expect_list(s, "mail", "instant", "delay");
    advance(s, MINUTE);
    expect_claim(s, "mail", "instant", "delay");
}

static void a_small_correction_is_no_step(struct subject *s)
{
    schedule(s, "mail", .id = "delay", .in = MINUTE);
    schedule(s, "mail", .id = "instant", .at = MINUTE + 500);
    step_wall(s, SECOND);
    CHECK(timer_of(s, "mail", "delay")->due.ms == START + MINUTE);
    expect_list(s, "mail", "delay", "instant");
    advance(s, MINUTE - 501);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", "instant");
    advance(s, 500);
    expect_claim(s, "mail", "delay");
}

static void a_plan_misses_what_the_wall_clock_jumps_over(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_LAST);
    step_wall(s, 3 * HOUR + 30 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->missed == 2 && plan->due.ms == START + 4 * HOUR);
    expect_claim(s, "mail", occurrence("p", 3 * HOUR));
}

static void a_plan_does_not_ring_twice_when_the_wall_clock_is_put_back(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, HOUR);
    step_wall(s, -30 * MINUTE);
    advance(s, 80 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * HOUR);
    advance(s, 10 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 2);
}

static void conflicts_compare_dues_on_both_timelines(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "delay", .in = HOUR);
    step_wall(s, 10 * HOUR);
    schedule(s, "mail", .id = "a", .payload = "instant", .at = 11 * HOUR + 1,
             .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "delay"));
    schedule(s, "mail", .id = "a", .payload = "instant", .at = 11 * HOUR - 1,
             .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "instant"));
}

static void an_expiry_is_on_the_timeline_of_its_due(struct subject *s)
{
    schedule(s, "mail", .id = "delay", .in = SECOND, .expires = MINUTE);
    schedule(s, "mail", .id = "instant", .at = SECOND, .expires = MINUTE);
    advance(s, SECOND);
    step_wall(s, HOUR);
    expect_state(s, "mail", "delay", BEL_READY);
    expect_state(s, "mail", "instant", BEL_EXPIRED);
}

static void what_has_expired_stays_expired_when_the_clock_is_put_back(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = SECOND, .expires = MINUTE);
    schedule(s, "mail", .id = "b", .at = SECOND, .expires = 3 * MINUTE);
    advance(s, 2 * MINUTE);
    step_wall(s, -90 * SECOND);
    expect_state(s, "mail", "a", BEL_EXPIRED);
    CHECK(timer_of(s, "mail", "a")->finished.ms == START + MINUTE + SECOND);
    advance(s, 150 * SECOND);
    expect_state(s, "mail", "b", BEL_READY);
    advance(s, SECOND);
    expect_state(s, "mail", "b", BEL_EXPIRED);
}

/* The occurrence that unblocks the others has expired, on a clock that is set back then. */
static void a_queue_goes_on_when_the_clock_is_put_back(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_QUEUE, .expires = 100000);
    advance(s, 3 * MINUTE);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 1);
    expect_state(s, "mail", occurrence("p", 2 * MINUTE), BEL_READY);
    step_wall(s, -90 * SECOND);
    expect_state(s, "mail", occurrence("p", 2 * MINUTE), BEL_SCHEDULED);
    expect_state(s, "mail", occurrence("p", 3 * MINUTE), BEL_BLOCKED);
    advance(s, 90 * SECOND + 40 * SECOND);
    expect_state(s, "mail", occurrence("p", 2 * MINUTE), BEL_EXPIRED);
    expect_state(s, "mail", occurrence("p", 3 * MINUTE), BEL_READY);
}

static const struct test tests[] = {
    TEST(a_delay_is_not_moved_by_the_wall_clock),
    TEST(an_instant_is_moved_by_the_wall_clock),
    TEST(an_instant_that_is_put_back_is_scheduled_again),
    TEST(a_lease_is_not_moved_by_the_wall_clock),
    TEST(a_retry_is_not_moved_by_the_wall_clock),
    TEST(after_a_step_dues_are_ordered_by_the_new_clocks),
    TEST(a_small_correction_is_no_step),
    TEST(a_plan_misses_what_the_wall_clock_jumps_over),
    TEST(a_plan_does_not_ring_twice_when_the_wall_clock_is_put_back),
    TEST(conflicts_compare_dues_on_both_timelines),
    TEST(an_expiry_is_on_the_timeline_of_its_due),
    TEST(what_has_expired_stays_expired_when_the_clock_is_put_back),
    TEST(a_queue_goes_on_when_the_clock_is_put_back),
};

GROUP(clocks, CAN_STEP_WALL, tests);
