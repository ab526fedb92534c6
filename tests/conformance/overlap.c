/* SPDX-License-Identifier: MIT */

/*
 * Overlap: what a plan does while its last occurrence is unfinished.
 */
#include "conformance.h"

static void skip_makes_none_while_one_is_unfinished(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .lease = DAY);
    advance(s, 2 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    expect_claim(s, "mail");
    advance(s, HOUR);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->skipped == 2 && plan->missed == 0);
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    advance(s, HOUR);
    expect_claim(s, "mail", occurrence("p", 4 * HOUR));
}

static void times_left_out_count(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .count = 4, .lease = DAY);
    advance(s, 3 * HOUR);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->skipped == 2 && plan->state == BEL_SCHEDULED);
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    advance(s, HOUR);
    plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 2 && plan->skipped == 2 && plan->state == BEL_DONE);
    expect_claim(s, "mail", occurrence("p", 4 * HOUR));
}

static void allow_makes_them_all(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 3 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR),
                 occurrence("p", 3 * HOUR));
}

static void queue_blocks_them_until_the_one_before_ends(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE, .lease = DAY);
    advance(s, 3 * HOUR);
    expect_state(s, "mail", occurrence("p", 2 * HOUR), BEL_BLOCKED);
    CHECK(topic(s, "mail")->counts[BEL_BLOCKED] == 2);
    expect_claim(s, "mail", occurrence("p", HOUR));
    expect_claim(s, "mail");
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    const struct heard *heard = claim(s, "mail", .count = 5);
    expect_ids(heard, occurrence("p", 2 * HOUR));
    CHECK(heard->reply.deliveries.items[0].due.ms == START + 2 * HOUR);
    (void)fail(s, occurrence("p", 2 * HOUR), .dead = true);
    expect_claim(s, "mail", occurrence("p", 3 * HOUR));
    CHECK(timer_of(s, "mail", "p")->made == 3);
}

static void a_retry_is_not_an_end(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE, .retry = "10s");
    advance(s, 2 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    (void)fail(s, occurrence("p", HOUR));
    expect_claim(s, "mail");
    expect_state(s, "mail", occurrence("p", 2 * HOUR), BEL_BLOCKED);
    advance(s, 10 * SECOND);
    expect_claim(s, "mail", occurrence("p", HOUR));
}

static void cancelling_the_first_lets_the_next_begin(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 3 * HOUR);
    CHECK(cancel(s, "mail", occurrence("p", HOUR)) == 1);
    expect_state(s, "mail", occurrence("p", 2 * HOUR), BEL_READY);
    expect_state(s, "mail", occurrence("p", 3 * HOUR), BEL_BLOCKED);
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    expect_state(s, "mail", occurrence("p", 3 * HOUR), BEL_READY);
}

static void cancelling_one_in_the_queue_lets_none_begin(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 3 * HOUR);
    CHECK(cancel(s, "mail", occurrence("p", 2 * HOUR)) == 1);
    expect_state(s, "mail", occurrence("p", 3 * HOUR), BEL_BLOCKED);
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    expect_claim(s, "mail", occurrence("p", 3 * HOUR));
}

static void a_blocked_one_cannot_be_rescheduled(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 2 * HOUR);
    CHECK(reschedule_in(s, "mail", occurrence("p", 2 * HOUR), SECOND) == 0);
    expect_state(s, "mail", occurrence("p", 2 * HOUR), BEL_BLOCKED);
}

static void a_hundred_are_queued_at_most(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 103 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 101 && plan->skipped == 2);
    CHECK(topic(s, "mail")->counts[BEL_BLOCKED] == 100);
    expect_claim(s, "mail", occurrence("p", MINUTE));
}

static void those_in_the_queue_go_on_without_the_plan(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE, .count = 2);
    advance(s, 2 * HOUR);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR));
}

static void cancel_of_the_plan_takes_the_queue(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 3 * HOUR);
    CHECK(cancel(s, "mail", "p") == 1);
    expect_list(s, "mail");
}

static void one_that_is_known_is_not_made_again(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h");
    advance(s, HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    schedule(s, "mail", .id = "p", .every = "1h", .at = HOUR, .overlap = BEL_OVERLAP_ALLOW);
    turn(s);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 0 && plan->skipped == 1 && plan->due.ms == START + 2 * HOUR);
    expect_state(s, "mail", occurrence("p", HOUR), BEL_DONE);
}

static void a_revived_occurrence_is_unfinished_again(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h");
    advance(s, HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    (void)fail(s, occurrence("p", HOUR), .dead = true);
    CHECK(revive(s, "mail", occurrence("p", HOUR)) == 1);
    advance(s, HOUR);
    CHECK(timer_of(s, "mail", "p")->skipped == 1);
    expect_claim(s, "mail", occurrence("p", HOUR));
    expect_claim(s, "mail");
}

static void a_delay_at_which_none_was_made_is_tried_a_period_later(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY, .lease = DAY);
    advance(s, 10 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(reschedule_in(s, "mail", "p", MINUTE) == 1);
    advance(s, MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->skipped == 1 && plan->has_next && plan->due.ms == START + 21 * MINUTE);
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 21 * MINUTE);
    advance(s, 10 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 21 * MINUTE));
}

static void those_in_the_queue_go_on_under_another_plan(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    schedule(s, "mail", .id = "q", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 2 * HOUR);
    schedule(s, "mail", .id = "p", .every = "1d");
    schedule(s, "mail", .id = "q", .in = DAY);
    CHECK(cancel(s, "mail", occurrence("p", HOUR)) == 1);
    expect_state(s, "mail", occurrence("p", 2 * HOUR), BEL_READY);
    CHECK(cancel(s, "mail", occurrence("q", HOUR)) == 1);
    expect_state(s, "mail", occurrence("q", 2 * HOUR), BEL_READY);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR), occurrence("q", 2 * HOUR));
}

static void a_hundred_are_queued_whatever_else_is_unfinished(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 20 * MINUTE);
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 130 * MINUTE);
    CHECK_EQ(topic(s, "mail")->counts[BEL_READY], 20);
    CHECK_EQ(topic(s, "mail")->counts[BEL_BLOCKED], 100);
    CHECK(timer_of(s, "mail", "p")->made == 100 && timer_of(s, "mail", "p")->skipped == 30);
}

static void the_next_of_the_queue_runs_if_the_one_before_has_expired(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .overlap = BEL_OVERLAP_QUEUE, .expires = 150000);
    advance(s, 3 * MINUTE + 30 * SECOND);
    expect_state(s, "mail", occurrence("p", MINUTE), BEL_EXPIRED);
    expect_state(s, "mail", occurrence("p", 2 * MINUTE), BEL_READY);
    advance(s, 30 * SECOND);
    CHECK(cancel(s, "mail", occurrence("p", 3 * MINUTE)) == 1);
    expect_state(s, "mail", occurrence("p", 4 * MINUTE), BEL_BLOCKED);
    CHECK(cancel(s, "mail", occurrence("p", 2 * MINUTE)) == 1);
    expect_state(s, "mail", occurrence("p", 4 * MINUTE), BEL_READY);
}

static const struct test tests[] = {
    TEST(skip_makes_none_while_one_is_unfinished),
    TEST(times_left_out_count),
    TEST(allow_makes_them_all),
    TEST(queue_blocks_them_until_the_one_before_ends),
    TEST(a_retry_is_not_an_end),
    TEST(cancelling_the_first_lets_the_next_begin),
    TEST(cancelling_one_in_the_queue_lets_none_begin),
    TEST(a_blocked_one_cannot_be_rescheduled),
    TEST(a_hundred_are_queued_at_most),
    TEST(those_in_the_queue_go_on_without_the_plan),
    TEST(cancel_of_the_plan_takes_the_queue),
    TEST(one_that_is_known_is_not_made_again),
    TEST(a_revived_occurrence_is_unfinished_again),
    TEST(a_delay_at_which_none_was_made_is_tried_a_period_later),
    TEST(those_in_the_queue_go_on_under_another_plan),
    TEST(a_hundred_are_queued_whatever_else_is_unfinished),
    TEST(the_next_of_the_queue_runs_if_the_one_before_has_expired),
};

GROUP(overlap, 0, tests);
