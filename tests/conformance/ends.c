/* SPDX-License-Identifier: MIT */

/*
 * Ends: what is kept of a finished timer, for how long, and how it is removed.
 */
#include "conformance.h"

static void what_is_done_is_gone_at_once_unless_it_is_kept(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b", .in = HOUR);
    expect_claim(s, "mail", "a");
    CHECK(ack_result(s, "a", "42") == 1);
    CHECK(cancel(s, "mail", "b") == 1);
    expect_gone(s, "mail", "a");
    expect_gone(s, "mail", "b");
    CHECK(topic(s, "mail")->counts[BEL_DONE] == 0);
    CHECK(topic(s, "mail")->counts[BEL_CANCELLED] == 0);
}

static void done_and_cancelled_stay_for_the_retention(struct subject *s)
{
    configure(s, "mail", "retention", "10s");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c");
    expect_claim(s, "mail", "a", "b");
    CHECK(ack(s, "a") == 1);
    (void)fail(s, "b", .dead = true);
    advance(s, 5 * SECOND);
    CHECK(cancel(s, "mail", "c") == 1);
    expect_state(s, "mail", "a", BEL_DONE);
    advance(s, 5 * SECOND - 1);
    expect_state(s, "mail", "a", BEL_DONE);
    advance(s, 1);
    expect_gone(s, "mail", "a");
    expect_state(s, "mail", "b", BEL_DEAD);
    expect_list(s, "mail", "b", "c");
    advance(s, 5 * SECOND);
    expect_list(s, "mail", "b");
}

static void dead_and_expired_stay_for_ever_unless_it_is_set(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b", .expires = SECOND);
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .dead = true);
    advance(s, SECOND);
    expect_state(s, "mail", "b", BEL_EXPIRED);
    advance(s, (uint64_t)400 * DAY);
    expect_list(s, "mail", "a", "b");
}

static void dead_ones_can_have_a_retention_too(struct subject *s)
{
    configure(s, "mail", "retention_dead", "10s");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    (void)fail(s, "a", .dead = true);
    advance(s, 5 * SECOND);
    (void)fail(s, "b", .dead = true);
    expect_list(s, "mail", "a", "b");
    advance(s, 5 * SECOND);
    expect_list(s, "mail", "b");
    CHECK(revive(s, "mail", "a") == 0);
    CHECK(schedule_error(s, "mail", .id = "b", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    schedule(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT);
}

static void purge_takes_what_is_terminal(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c");
    schedule(s, "mail", .id = "d");
    schedule(s, "mail", .id = "e", .in = HOUR);
    expect_claim(s, "mail", "a", "b", "c");
    CHECK(ack(s, "a") == 1);
    (void)fail(s, "b", .dead = true);
    CHECK(purge(s, "mail") == 2);
    CHECK(purge(s, "mail") == 0);
    expect_list(s, "mail", "c", "d", "e");
}

static void purge_takes_the_state_that_is_named(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c", .in = HOUR);
    expect_claim(s, "mail", "a");
    CHECK(ack(s, "a") == 1);
    CHECK(purge_state(s, "mail", BEL_DEAD) == 0);
    CHECK(purge_state(s, "mail", BEL_SCHEDULED) == 1);
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    expect_list(s, "mail", "a");
    CHECK(purge_state(s, "mail", BEL_DONE) == 1);
    expect_list(s, "mail");
}

static void purge_of_leased_or_blocked_is_refused(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_PURGE};
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    command.purge.topic = view("mail");
    command.purge.has_state = true;
    command.purge.state = BEL_LEASED;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    command.purge.state = BEL_BLOCKED;
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    CHECK(ack(s, "a") == 1);
}

static void nothing_purged_is_kept(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    expect_gone(s, "mail", "a");
    expect_claim(s, "mail");
}

static void purge_of_many_takes_them_all(struct subject *s)
{
    for (unsigned i = 0; i < 2500; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%u", i);
        schedule(s, "mail", .id = id, .in = HOUR);
    }
    CHECK_EQ(purge_state(s, "mail", BEL_SCHEDULED), 2500);
    CHECK(topic(s, "mail")->counts[BEL_SCHEDULED] == 0);
    expect_list(s, "mail");
}

static void a_terminal_timer_says_when_it_finished(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a", .in = HOUR);
    CHECK(timer_of(s, "mail", "a")->finished.ms == 0);
    advance(s, MINUTE);
    CHECK(cancel(s, "mail", "a") == 1);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_CANCELLED && timer->finished.ms == START + MINUTE);
    CHECK(timer->reason.bytes == 0);
}

static const struct test tests[] = {
    TEST(what_is_done_is_gone_at_once_unless_it_is_kept),
    TEST(done_and_cancelled_stay_for_the_retention),
    TEST(dead_and_expired_stay_for_ever_unless_it_is_set),
    TEST(dead_ones_can_have_a_retention_too),
    TEST(purge_takes_what_is_terminal),
    TEST(purge_takes_the_state_that_is_named),
    TEST(purge_of_leased_or_blocked_is_refused),
    TEST(nothing_purged_is_kept),
    TEST(purge_of_many_takes_them_all),
    TEST(a_terminal_timer_says_when_it_finished),
};

GROUP(ends, 0, tests);
