/* SPDX-License-Identifier: MIT */

/*
 * Waiting claims: who is served first, and when a wait ends.
 */
#include "conformance.h"

static void a_claim_waits_for_a_timer(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    turn(s);
    CHECK(waiter->heard == NULL);
    CHECK(s->next.wait.ns <= s->now.real.ns + UINT64_C(60000000000));
    schedule(s, "mail", .id = "a");
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "a");
    turn(s);
    /* A backend that waits for others may have to wake up for its connections. */
    CHECK(s->next.wait.ns == BEL_NEVER || s->kind->settle != NULL);
}

static void a_claim_waits_until_one_is_due(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE);
    struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    advance(s, MINUTE - 1);
    CHECK(waiter->heard == NULL);
    advance(s, 1);
    expect_ids(waiter->heard, "a");
}

static void a_wait_is_of_real_time(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    advance(s, DAY);
    CHECK(waiter->heard == NULL);
    wait_real(s, MINUTE - 1);
    CHECK(waiter->heard == NULL);
    wait_real(s, 1);
    expect_no_ids(waiter->heard);
}

static void a_wait_that_is_over_still_gets_what_there_is(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    turn(s);
    schedule(s, "mail", .id = "a", .in = MINUTE);
    s->now.real.ns += UINT64_C(60000000000);
    s->now.boot.ns += UINT64_C(60000000000);
    s->now.wall.ms += MINUTE;
    turn(s);
    expect_ids(waiter->heard, "a");
}

static void first_come_first_served(struct subject *s)
{
    struct waiter *first = submit_claim(s, "mail", .wait = MINUTE);
    struct waiter *second = submit_claim(s, "mail", .wait = MINUTE);
    turn(s);
    struct waiter *third = submit_claim(s, "mail", .wait = MINUTE);
    schedule(s, "mail", .id = "a");
    expect_ids(first->heard, "a");
    CHECK(second->heard == NULL && third->heard == NULL);
    schedule(s, "mail", .id = "b");
    expect_ids(second->heard, "b");
    schedule(s, "mail", .id = "c");
    expect_ids(third->heard, "c");
}

static void a_claim_that_does_not_wait_goes_behind_those_that_do(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    turn(s);
    schedule(s, "mail", .id = "a", .in = SECOND);
    s->now.boot.ns += UINT64_C(1000000000);
    s->now.wall.ms += SECOND;
    expect_claim(s, "mail");
    expect_ids(waiter->heard, "a");
}

static void a_wait_does_not_keep_others_from_other_topics(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    schedule(s, "push", .id = "a");
    expect_claim(s, "push", "a");
    CHECK(waiter->heard == NULL);
}

static void a_wait_ends_with_the_first_delivery(struct subject *s)
{
    struct waiter *waiter =
        submit_claim(s, "mail", .and_topic = "push", .count = 10, .wait = MINUTE);
    turn(s);
    schedule(s, "push", .id = "a");
    expect_ids(waiter->heard, "a");
}

static void a_wait_sees_what_is_given_back(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(release(s, "a") == 0);
    expect_ids(waiter->heard, "a");
    waiter = submit_claim(s, "mail", .wait = HOUR);
    advance(s, 30 * SECOND);
    expect_ids(waiter->heard, "a");
    waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    (void)fail(s, "a", .in = SECOND);
    CHECK(waiter->heard == NULL);
    advance(s, SECOND);
    expect_ids(waiter->heard, "a");
}

static void a_wait_sees_a_topic_that_is_resumed(struct subject *s)
{
    pause_topic(s, "mail");
    schedule(s, "mail", .id = "a");
    struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    resume_topic(s, "mail");
    expect_ids(waiter->heard, "a");
}

static void a_wait_sees_room_under_the_concurrency(struct subject *s)
{
    configure(s, "mail", "concurrency", "1");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c");
    expect_claim(s, "mail", "a");
    struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    CHECK(ack(s, "a") == 1);
    expect_ids(waiter->heard, "b");
    waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    configure(s, "mail", "concurrency", "0");
    expect_ids(waiter->heard, "c");
}

static void a_wait_sees_revived_and_rescheduled_ones(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b", .in = HOUR);
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .dead = true);
    struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(revive(s, "mail", "a") == 1);
    expect_ids(waiter->heard, "a");
    waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(reschedule_at(s, "mail", "b", -1) == 1);
    expect_ids(waiter->heard, "b");
}

static void a_wait_sees_the_occurrences_of_plans(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    struct waiter *waiter = submit_claim(s, "mail", .lease = DAY, .wait = HOUR);
    advance(s, 2 * HOUR);
    expect_ids(waiter->heard, occurrence("p", HOUR));
    waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    expect_ids(waiter->heard, occurrence("p", 2 * HOUR));
}

static void a_claim_that_waits_can_be_taken_back(struct subject *s)
{
    struct waiter *waiter = submit_claim(s, "mail", .wait = MINUTE);
    turn(s);
    CHECK(bel_backend_withdraw(s->backend, &waiter->request));
    schedule(s, "mail", .id = "a");
    CHECK(waiter->heard == NULL);
    wait_real(s, HOUR);
    CHECK(waiter->heard == NULL);
    expect_claim(s, "mail", "a");
}

static void ties_between_waits_are_answered_together(struct subject *s)
{
    struct waiter *one = submit_claim(s, "mail", .wait = MINUTE);
    struct waiter *two = submit_claim(s, "push", .wait = 2 * MINUTE);
    turn(s);
    wait_real(s, 2 * MINUTE);
    expect_no_ids(one->heard);
    expect_no_ids(two->heard);
}

static const struct test tests[] = {
    TEST(a_claim_waits_for_a_timer),
    TEST(a_claim_waits_until_one_is_due),
    TEST(a_wait_is_of_real_time),
    TEST(a_wait_that_is_over_still_gets_what_there_is),
    TEST(first_come_first_served),
    TEST(a_claim_that_does_not_wait_goes_behind_those_that_do),
    TEST(a_wait_does_not_keep_others_from_other_topics),
    TEST(a_wait_ends_with_the_first_delivery),
    TEST(a_wait_sees_what_is_given_back),
    TEST(a_wait_sees_a_topic_that_is_resumed),
    TEST(a_wait_sees_room_under_the_concurrency),
    TEST(a_wait_sees_revived_and_rescheduled_ones),
    TEST(a_wait_sees_the_occurrences_of_plans),
    TEST(a_claim_that_waits_can_be_taken_back),
    TEST(ties_between_waits_are_answered_together),
};

GROUP(waiting, 0, tests);
