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

static void expect_numbers(struct subject *s, const char *id, uint64_t made, uint64_t missed,
                           enum bel_state state)
{
    const struct bel_timer *plan = timer_of(s, "mail", id);
    CHECK_EQ(plan->used, made + plan->skipped + missed);
    CHECK_EQ(plan->made, made);
    CHECK_EQ(plan->missed, missed);
    CHECK(plan->state == state);
}

static void missed_times_count(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .count = 6, .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    expect_numbers(s, "p", 0, 5, BEL_SCHEDULED);
    advance(s, HOUR);
    expect_numbers(s, "p", 1, 5, BEL_DONE);
    expect_claim(s, "mail", occurrence("p", 6 * HOUR));
}

static void a_count_is_of_the_first_times_of_the_rule(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .count = 2, .overlap = BEL_OVERLAP_ALLOW);
    schedule(s, "mail", .id = "q", .every = "1h", .count = 2, .misfire = BEL_MISFIRE_LAST);
    schedule(s, "mail", .id = "r", .every = "1h", .count = 2, .misfire = BEL_MISFIRE_ALL,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    expect_numbers(s, "p", 0, 2, BEL_DONE);
    expect_numbers(s, "q", 1, 1, BEL_DONE);
    expect_numbers(s, "r", 2, 0, BEL_DONE);
    expect_claim(s, "mail", occurrence("r", HOUR), occurrence("q", 2 * HOUR),
                 occurrence("r", 2 * HOUR));
}

static void a_count_goes_on_after_misfires(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .cron = "0 * * * *", .count = 7, .misfire = BEL_MISFIRE_LAST,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 5 * HOUR + 2 * MINUTE);
    expect_numbers(s, "p", 2, 4, BEL_SCHEDULED); /* START is one of its times */
    advance(s, HOUR);
    expect_numbers(s, "p", 3, 4, BEL_DONE);
    expect_claim(s, "mail", occurrence("p", 0), occurrence("p", 5 * HOUR),
                 occurrence("p", 6 * HOUR));
}

/* More times than are visited in one turn; advance() takes turns until nothing is due. */
static void a_count_is_exact_beyond_ten_thousand(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    configure(s, "mail", "misfire_after", "0s");
    schedule(s, "mail", .id = "p", .cron = "* * * * * *", .count = 35001,
             .misfire = BEL_MISFIRE_ALL, .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 30000 * SECOND + 1);
    advance(s, 0);
    expect_numbers(s, "p", 1001, 29000, BEL_SCHEDULED);
    jump(s, 4998 * SECOND);
    advance(s, 0);
    expect_numbers(s, "p", 2001, 32998, BEL_SCHEDULED);
    jump(s, DAY);
    advance(s, 0);
    expect_numbers(s, "p", 2003, 32998, BEL_DONE);
    schedule(s, "mail", .id = "p", .every = "1ms", .count = 200001, .misfire = BEL_MISFIRE_LAST,
             .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 100000);
    advance(s, 0);
    expect_numbers(s, "p", 2, 99998, BEL_SCHEDULED); /* the last is not late */
    jump(s, 30 * DAY);
    advance(s, 0);
    expect_numbers(s, "p", 3, 199998, BEL_DONE);
}

static void until_ends_a_count(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .until = 4 * HOUR, .count = 100,
             .misfire = BEL_MISFIRE_LAST, .overlap = BEL_OVERLAP_ALLOW);
    jump(s, 9 * HOUR);
    expect_numbers(s, "p", 1, 3, BEL_DONE); /* UNTIL is a time of the plan */
    expect_claim(s, "mail", occurrence("p", 4 * HOUR));
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
    TEST(missed_times_count),
    TEST(a_count_is_of_the_first_times_of_the_rule),
    TEST(a_count_goes_on_after_misfires),
    TEST(a_count_is_exact_beyond_ten_thousand),
    TEST(until_ends_a_count),
    TEST(a_spread_is_not_late),
    TEST(a_delay_that_is_late_is_one_misfire),
    TEST(last_makes_up_for_one_each_time),
    TEST(a_time_that_was_rescheduled_can_be_missed_too),
    TEST(a_hundred_of_those_missed_are_queued_at_most),
};

GROUP(misfire, 0, tests);
