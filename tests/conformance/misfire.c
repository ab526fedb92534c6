/* SPDX-License-Identifier: MIT */

/*
 * Misfires: the times of a plan that passed while no turn was taken.
 */
#include "belfry/spread.h"
#include "conformance.h"

static void stepping_through_deadlines_misses_nothing(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 5 * HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 5 && timer_of(s, "mail", "p")->missed == 0);
}

static void skip_makes_up_for_none(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 0 && plan->missed == 5 && plan->skipped == 0);
    CHECK(plan->due.ms == START + 6 * HOUR);
    expect_claim(s, "mail");
}

static void last_makes_up_for_the_newest(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_LAST);
    jump(s, 5 * HOUR + 2 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->missed == 4 && plan->due.ms == START + 6 * HOUR);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, occurrence("p", 5 * HOUR));
    CHECK(heard->reply.deliveries.items[0].due.ms == START + 5 * HOUR);
}

static void all_makes_up_for_all(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 3 * HOUR + 2 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 3 && timer_of(s, "mail", "p")->missed == 0);
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR),
                 occurrence("p", 3 * HOUR));
}

static void all_is_a_thousand_at_most(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 1005 * MINUTE + 90 * SECOND);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1001 && plan->missed == 5); /* one of them is less late */
    expect_claim(s, "mail", occurrence("p", 6 * MINUTE));
}

static void a_time_that_is_late_by_little_is_made(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    jump(s, HOUR + MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 1);
    jump(s, HOUR + 1);
    CHECK(timer_of(s, "mail", "p")->made == 1 && timer_of(s, "mail", "p")->missed == 1);
    jump(s, HOUR - 1 - SECOND);
    CHECK(timer_of(s, "mail", "p")->made == 2 && timer_of(s, "mail", "p")->missed == 1);
}

static void how_late_is_a_setting(struct subject *s)
{
    configure(s, "mail", "misfire_after", "10m");
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 15 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 11 && timer_of(s, "mail", "p")->missed == 4);
}

static void misfires_overlap_too(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_ALL);
    schedule(s, "mail", .id = "q", .every = "1h", .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_QUEUE);
    jump(s, 3 * HOUR + 2 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 1 && timer_of(s, "mail", "p")->skipped == 2);
    CHECK(timer_of(s, "mail", "q")->made == 3 && timer_of(s, "mail", "q")->skipped == 0);
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("q", HOUR));
    expect_claim(s, "mail");
}

static void missed_times_do_not_count(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .count = 2, .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    advance(s, HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 1);
    advance(s, HOUR);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", 6 * HOUR), occurrence("p", 7 * HOUR));
}

static void no_more_are_made_up_for_than_are_left(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .count = 2, .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->state == BEL_DONE && plan->made == 2 && plan->missed == 3);
    expect_claim(s, "mail", occurrence("p", 4 * HOUR), occurrence("p", 5 * HOUR));
}

static void a_spread_is_not_late(struct subject *s)
{
    int64_t offset = (int64_t)bel_spread_offset("p", 1, 30 * MINUTE);
    CHECK(offset > 2 * MINUTE);
    schedule(s, "mail", .id = "p", .every = "1h", .spread = 30 * MINUTE);
    jump(s, (uint64_t)(HOUR + offset + MINUTE));
    CHECK(timer_of(s, "mail", "p")->made == 1);
    jump(s, HOUR + 1);
    CHECK(timer_of(s, "mail", "p")->missed == 1);
}

static void a_delay_that_is_late_is_one_misfire(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .mode = BEL_PLAN_DELAY);
    schedule(s, "mail", .id = "q", .every = "1h", .mode = BEL_PLAN_DELAY,
             .misfire = BEL_MISFIRE_ALL);
    jump(s, 5 * HOUR + 2 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 0 && plan->missed == 1);
    CHECK(plan->has_next && plan->due.ms == START + 6 * HOUR + 2 * MINUTE);
    CHECK(timer_of(s, "mail", "q")->made == 1 && !timer_of(s, "mail", "q")->has_next);
    expect_claim(s, "mail", occurrence("q", HOUR));
}

static void last_makes_up_for_one_each_time(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_LAST,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 2 * HOUR + 2 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 1 && timer_of(s, "mail", "p")->missed == 1);
    jump(s, 2 * HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 2 && timer_of(s, "mail", "p")->missed == 2);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR), occurrence("p", 4 * HOUR));
}

static void a_time_that_was_rescheduled_can_be_missed_too(struct subject *s)
{
    schedule(s, "mail", .id = "p", .cron = "0 6 * * *", .misfire = BEL_MISFIRE_ALL);
    schedule(s, "mail", .id = "q", .cron = "0 6 * * *");
    CHECK(reschedule_at(s, "mail", "p", HOUR) == 1);
    CHECK(reschedule_at(s, "mail", "q", HOUR) == 1);
    jump(s, 2 * HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 1 && timer_of(s, "mail", "p")->missed == 0);
    CHECK(timer_of(s, "mail", "q")->made == 0 && timer_of(s, "mail", "q")->missed == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 6 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
}

static void a_hundred_of_those_missed_are_queued_at_most(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_QUEUE);
    jump(s, 90 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->made == 90);
    jump(s, 60 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 101 && plan->skipped == 49 && plan->missed == 0);
    CHECK(topic(s, "mail")->counts[BEL_BLOCKED] == 100);
    CHECK(cancel(s, "mail", occurrence("p", MINUTE)) == 1);
    jump(s, 50 * MINUTE);
    plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 102 && plan->skipped == 98);
}

static const struct test tests[] = {
    TEST(stepping_through_deadlines_misses_nothing),
    TEST(skip_makes_up_for_none),
    TEST(last_makes_up_for_the_newest),
    TEST(all_makes_up_for_all),
    TEST(all_is_a_thousand_at_most),
    TEST(a_time_that_is_late_by_little_is_made),
    TEST(how_late_is_a_setting),
    TEST(misfires_overlap_too),
    TEST(missed_times_do_not_count),
    TEST(no_more_are_made_up_for_than_are_left),
    TEST(a_spread_is_not_late),
    TEST(a_delay_that_is_late_is_one_misfire),
    TEST(last_makes_up_for_one_each_time),
    TEST(a_time_that_was_rescheduled_can_be_missed_too),
    TEST(a_hundred_of_those_missed_are_queued_at_most),
};

GROUP(misfire, 0, tests);
