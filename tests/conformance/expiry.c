/* SPDX-License-Identifier: MIT */

/*
 * Expiry: timers that no worker claimed in time end when that time has come.
 */
#include "conformance.h"

static void a_timer_expires_a_while_after_its_due(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE, .expires = 10 * SECOND);
    schedule(s, "mail", .id = "b", .in = MINUTE, .expires = 10 * SECOND);
    advance(s, MINUTE + 10 * SECOND - 1);
    expect_state(s, "mail", "a", BEL_READY);
    advance(s, 1);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_EXPIRED && is_text(timer->reason, "expired"));
    CHECK(timer->finished.ms == START + 70 * SECOND);
    expect_claim(s, "mail");
    expect_state(s, "mail", "b", BEL_EXPIRED);
}

static void an_expired_timer_is_passed_over_by_a_claim(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c", .expires = 5 * SECOND);
    advance(s, 2 * SECOND);
    expect_claim(s, "mail", "b", "c");
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 1);
}

static void it_has_finished_when_it_expired(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    schedule(s, "mail", .id = "b", .in = SECOND, .expires = SECOND);
    schedule(s, "mail", .id = "c", .at = SECOND, .expires = 2 * SECOND);
    advance(s, MINUTE);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 3);
    CHECK(timer_of(s, "mail", "a")->finished.ms == START + SECOND);
    CHECK(timer_of(s, "mail", "b")->finished.ms == START + 2 * SECOND);
    CHECK(timer_of(s, "mail", "c")->finished.ms == START + 3 * SECOND);
}

static void a_late_turn_ends_what_has_expired(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    jump(s, MINUTE);
    CHECK(timer_of(s, "mail", "a")->finished.ms == START + MINUTE);
    schedule(s, "mail", .id = "b", .at = SECOND, .expires = SECOND);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 2);
}

/* Returns how many timers AGENDA counts from now on, in one step. */
static uint64_t due_within(struct subject *s, uint64_t ms)
{
    struct bel_command command = {.verb = BEL_VERB_AGENDA};
    command.agenda = (struct bel_agenda){.has_to = true, .step_ms = ms};
    command.agenda.to.ms = s->now.wall.ms + (int64_t)ms;
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0 && heard->reply.steps.count >= 1);
    return heard->reply.steps.items[0].count;
}

/* The new due of a timer that was given back may be after its expiry. */
static void it_expires_before_a_later_due(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = 10 * SECOND);
    schedule(s, "mail", .id = "b", .expires = 10 * SECOND);
    schedule(s, "mail", .id = "c", .expires = 10 * SECOND);
    expect_claim(s, "mail", "a", "b", "c");
    CHECK(release_in(s, "a", MINUTE) == 0);
    CHECK(release_in(s, "b", MINUTE) == 0);
    CHECK(fail(s, "c", .kind = BEL_FAIL_LIMITED).state == BEL_SCHEDULED);
    CHECK_EQ(due_within(s, HOUR), 3);
    advance(s, 20 * SECOND);
    CHECK_EQ(due_within(s, HOUR), 0);
    CHECK_EQ(due_within(s, 10 * MINUTE), 0);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 3);
    CHECK(purge(s, "mail") == 3);
    expect_gone(s, "mail", "a");
}

static void an_expired_timer_does_not_count_for_depth(struct subject *s)
{
    configure(s, "mail", "depth", "2");
    schedule(s, "mail", .id = "a", .expires = SECOND);
    schedule(s, "mail", .id = "b", .in = HOUR);
    CHECK(schedule_error(s, "mail", .id = "c") == BEL_EFULL);
    advance(s, SECOND);
    schedule(s, "mail", .id = "c");
    CHECK(schedule_error(s, "mail", .id = "d") == BEL_EFULL);
}

static void a_delay_goes_on_after_an_occurrence_has_expired(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m", .mode = BEL_PLAN_DELAY, .expires = 10 * SECOND);
    advance(s, 2 * MINUTE + 30 * SECOND);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 2 && plan->has_next && plan->due.ms == START + 3 * MINUTE + 20 * SECOND);
    expect_state(s, "mail", occurrence("p", 2 * MINUTE + 10 * SECOND), BEL_EXPIRED);
}

/* The end of each occurrence unblocks the next one, which has expired, too. */
static void a_queue_that_has_expired_ends_at_once(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10s", .count = 4, .expires = MINUTE,
             .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 45 * SECOND);
    expect_claim(s, "mail", occurrence("p", 10 * SECOND));
    jump(s, 3 * MINUTE);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 4 && topic(s, "mail")->counts[BEL_BLOCKED] == 0);
    CHECK(timer_of(s, "mail", occurrence("p", 10 * SECOND))->crashes == 1);
}

static void a_purge_leaves_what_was_blocked(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10s", .expires = 15 * SECOND,
             .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 24 * SECOND);
    jump(s, 2 * SECOND); /* the first occurrence expires, the second is unblocked */
    CHECK(purge(s, "mail") == 1);
    expect_state(s, "mail", occurrence("p", 20 * SECOND), BEL_READY);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 0);
}

static void an_expired_timer_is_finished_for_every_verb(struct subject *s)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        schedule(s, "mail", .id = ids[i], .expires = SECOND);
    }
    advance(s, SECOND);
    CHECK(cancel(s, "mail", "a") == 0);
    CHECK(reschedule_in(s, "mail", "b", MINUTE) == 0);
    schedule(s, "mail", .id = "c", .payload = "new", .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "c")->payload, "new"));
    expect_list(s, "mail", "c", "a", "b", "d");
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    CHECK(purge_state(s, "mail", BEL_EXPIRED) == 3);
}

static void a_leased_timer_does_not_expire(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = 10 * SECOND);
    schedule(s, "mail", .id = "b", .expires = 10 * SECOND);
    schedule(s, "mail", .id = "c", .expires = 10 * SECOND);
    expect_claim(s, "mail", "a", "b", "c");
    advance(s, 20 * SECOND);
    expect_state(s, "mail", "a", BEL_LEASED);
    CHECK(ack(s, "a") == 1);
    CHECK(release(s, "b") == 0);
    expect_state(s, "mail", "b", BEL_EXPIRED);
    advance(s, 10 * SECOND);
    expect_state(s, "mail", "c", BEL_EXPIRED);
    CHECK(timer_of(s, "mail", "c")->crashes == 1);
}

static void a_retry_that_is_not_before_the_expiry_is_expired(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "10s", .expires = 10 * SECOND);
    schedule(s, "mail", .id = "b", .retry = "9999ms", .expires = 10 * SECOND);
    expect_claim(s, "mail", "a", "b");
    CHECK(fail(s, "a", .reason = "no").state == BEL_EXPIRED);
    CHECK(fail(s, "b", .reason = "no").state == BEL_SCHEDULED);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_EXPIRED && is_text(timer->reason, "expired"));
    CHECK(timer->attempts == 1 && timer->outcomes_count == 1 && timer->finished.ms == START);
}

static void a_retry_does_not_move_the_expiry(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s,4s", .expires = 10 * SECOND);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").state == BEL_SCHEDULED);
    CHECK(timer_of(s, "mail", "a")->expires.ms == START + 10 * SECOND);
    advance(s, 10 * SECOND);
    expect_state(s, "mail", "a", BEL_EXPIRED);
}

static void reschedule_moves_the_expiry(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = 10 * SECOND);
    CHECK(reschedule_in(s, "mail", "a", HOUR) == 1);
    CHECK(timer_of(s, "mail", "a")->expires.ms == START + HOUR + 10 * SECOND);
    advance(s, HOUR);
    expect_claim(s, "mail", "a");
}

static void revive_moves_the_expiry(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = 10 * SECOND);
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .dead = true);
    advance(s, HOUR);
    CHECK(revive(s, "mail", "a") == 1);
    advance(s, 10 * SECOND - 1);
    expect_state(s, "mail", "a", BEL_READY);
    advance(s, 1);
    expect_state(s, "mail", "a", BEL_EXPIRED);
}

static void a_due_in_the_past_is_what_the_expiry_counts_from(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = -5 * SECOND, .expires = 10 * SECOND);
    schedule(s, "mail", .id = "b", .at = -10 * SECOND, .expires = 10 * SECOND);
    CHECK(timer_of(s, "mail", "a")->expires.ms == START + 5 * SECOND);
    expect_state(s, "mail", "b", BEL_EXPIRED);
    advance(s, 5 * SECOND - 1);
    expect_state(s, "mail", "a", BEL_READY);
    advance(s, 1);
    expect_state(s, "mail", "a", BEL_EXPIRED);
    schedule(s, "mail", .id = "c", .in = HOUR, .expires = 10 * SECOND);
    CHECK(reschedule_at(s, "mail", "c", -5 * SECOND) == 1);
    expect_state(s, "mail", "c", BEL_EXPIRED);
}

static void an_occurrence_expires_from_its_nominal_time(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .expires = MINUTE);
    advance(s, HOUR + MINUTE - 1);
    expect_state(s, "mail", occurrence("p", HOUR), BEL_READY);
    advance(s, 1);
    expect_state(s, "mail", occurrence("p", HOUR), BEL_EXPIRED);
    expect_state(s, "mail", "p", BEL_SCHEDULED);
}

static void an_expired_occurrence_is_in_nobodys_way(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .expires = MINUTE);
    advance(s, 3 * HOUR);
    expect_claim(s, "mail", occurrence("p", 3 * HOUR));
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 3 && plan->skipped == 0);
}

static void an_expired_timer_cannot_be_revived(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    advance(s, SECOND);
    CHECK(revive(s, "mail", "a") == 0);
    expect_state(s, "mail", "a", BEL_EXPIRED);
}

static void several_occurrences_of_a_plan_can_have_expired(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10s", .count = 3, .expires = MINUTE,
             .overlap = BEL_OVERLAP_ALLOW);
    schedule(s, "mail", .id = "q", .every = "10s", .count = 3, .expires = MINUTE,
             .overlap = BEL_OVERLAP_QUEUE);
    advance(s, 5 * MINUTE);
    CHECK(cancel(s, "mail", occurrence("p", 10 * SECOND)) == 0);
    expect_state(s, "mail", occurrence("p", 20 * SECOND), BEL_EXPIRED);
    expect_state(s, "mail", occurrence("p", 30 * SECOND), BEL_EXPIRED);
    expect_state(s, "mail", occurrence("q", 10 * SECOND), BEL_EXPIRED);
    expect_claim(s, "mail");
    expect_state(s, "mail", occurrence("q", 30 * SECOND), BEL_EXPIRED);
}

static const struct test tests[] = {
    TEST(a_timer_expires_a_while_after_its_due),
    TEST(an_expired_timer_is_passed_over_by_a_claim),
    TEST(it_has_finished_when_it_expired),
    TEST(a_late_turn_ends_what_has_expired),
    TEST(it_expires_before_a_later_due),
    TEST(an_expired_timer_does_not_count_for_depth),
    TEST(a_delay_goes_on_after_an_occurrence_has_expired),
    TEST(a_queue_that_has_expired_ends_at_once),
    TEST(a_purge_leaves_what_was_blocked),
    TEST(an_expired_timer_is_finished_for_every_verb),
    TEST(a_leased_timer_does_not_expire),
    TEST(a_retry_that_is_not_before_the_expiry_is_expired),
    TEST(a_retry_does_not_move_the_expiry),
    TEST(reschedule_moves_the_expiry),
    TEST(revive_moves_the_expiry),
    TEST(a_due_in_the_past_is_what_the_expiry_counts_from),
    TEST(an_occurrence_expires_from_its_nominal_time),
    TEST(an_expired_occurrence_is_in_nobodys_way),
    TEST(an_expired_timer_cannot_be_revived),
    TEST(several_occurrences_of_a_plan_can_have_expired),
};

GROUP(expiry, 0, tests);
