/* SPDX-License-Identifier: MIT */

/*
 * Conflicts: scheduling a timer whose id exists.
 */
#include "conformance.h"

static void replace_makes_a_whole_new_record(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "old", .priority = 3,
             .group = if_can(s, CAN_GROUP, "g"));
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .reason = "no", .in = HOUR);
    advance(s, SECOND);
    schedule(s, "mail", .id = "a", .payload = "new");
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->attempts == 0 && timer->outcomes_count == 0 && timer->priority == 128);
    CHECK(timer->group.bytes == 0 && is_text(timer->payload, "new"));
    CHECK(timer->created.ms == START + SECOND);
    expect_claim(s, "mail", "a");
    expect_claim(s, "mail");
}

static void replace_takes_the_lease_away(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "old");
    expect_claim(s, "mail", "a");
    schedule(s, "mail", .id = "a", .payload = "new", .in = HOUR);
    CHECK(ack(s, "a") == 0);
    CHECK(fail_error(s, "a", .reason = "no") == BEL_ESTALE);
    CHECK(release(s, "a") == BEL_ESTALE);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    CHECK(topic(s, "mail")->counts[BEL_LEASED] == 0);
}

static void replace_takes_terminal_ones_too(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .dead = true).state == BEL_DEAD);
    schedule(s, "mail", .id = "a", .in = HOUR);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    CHECK(topic(s, "mail")->counts[BEL_DEAD] == 0);
}

static void keep_changes_nothing_and_answers_with_the_id(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a", .payload = "old", .in = HOUR);
    schedule(s, "mail", .id = "a", .payload = "new", .conflict = BEL_CONFLICT_KEEP);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "old"));
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    CHECK(cancel(s, "mail", "a") == 1);
    schedule(s, "mail", .id = "a", .payload = "new", .conflict = BEL_CONFLICT_KEEP);
    expect_state(s, "mail", "a", BEL_CANCELLED);
}

static void keep_makes_it_if_nothing_is_known(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "old");
    expect_claim(s, "mail", "a");
    CHECK(ack(s, "a") == 1);
    schedule(s, "mail", .id = "a", .payload = "new", .conflict = BEL_CONFLICT_KEEP);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "new"));
}

static void reject_is_an_error_while_the_old_one_is_known(struct subject *s)
{
    configure(s, "mail", "retention", "10s");
    schedule(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT);
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    expect_claim(s, "mail", "a");
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    CHECK(ack(s, "a") == 1);
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    advance(s, 10 * SECOND);
    schedule(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT);
}

static void earliest_keeps_the_one_that_is_due_first(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "1", .in = HOUR);
    schedule(s, "mail", .id = "a", .payload = "2", .at = 2 * HOUR,
             .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "1"));
    schedule(s, "mail", .id = "a", .payload = "3", .at = HOUR, .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "1"));
    schedule(s, "mail", .id = "a", .payload = "4", .at = HOUR - 1,
             .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "4"));
}

static void latest_keeps_the_one_that_is_due_last(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "1", .in = HOUR);
    schedule(s, "mail", .id = "a", .payload = "2", .in = MINUTE, .conflict = BEL_CONFLICT_LATEST);
    schedule(s, "mail", .id = "a", .payload = "3", .at = HOUR, .conflict = BEL_CONFLICT_LATEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "1"));
    schedule(s, "mail", .id = "a", .payload = "4", .at = HOUR + 1, .conflict = BEL_CONFLICT_LATEST);
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "4"));
}

static void earliest_compares_with_a_leased_one(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    advance(s, SECOND);
    expect_claim(s, "mail", "a");
    schedule(s, "mail", .id = "a", .payload = "later", .conflict = BEL_CONFLICT_EARLIEST);
    expect_state(s, "mail", "a", BEL_LEASED);
    schedule(s, "mail", .id = "a", .payload = "later", .conflict = BEL_CONFLICT_LATEST);
    expect_state(s, "mail", "a", BEL_READY);
    CHECK(ack(s, "a") == 0);
}

static void earliest_and_latest_replace_terminal_ones(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b", .in = HOUR);
    CHECK(cancel(s, "mail", "a") == 1 && cancel(s, "mail", "b") == 1);
    schedule(s, "mail", .id = "a", .in = HOUR, .conflict = BEL_CONFLICT_EARLIEST);
    schedule(s, "mail", .id = "b", .conflict = BEL_CONFLICT_LATEST);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    expect_state(s, "mail", "b", BEL_READY);
}

static void earliest_compares_with_the_next_time_of_a_plan(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h");
    schedule(s, "mail", .id = "p", .in = 2 * HOUR, .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "p")->plan.rule, "1h"));
    schedule(s, "mail", .id = "p", .every = "30m", .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(is_text(timer_of(s, "mail", "p")->plan.rule, "30m"));
    schedule(s, "mail", .id = "p", .in = MINUTE, .conflict = BEL_CONFLICT_EARLIEST);
    CHECK(timer_of(s, "mail", "p")->plan.rule.bytes == 0);
}

static void the_id_of_an_occurrence_is_always_a_conflict(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h");
    advance(s, HOUR);
    const char *id = occurrence("p", HOUR);
    expect_state(s, "mail", id, BEL_READY);
    CHECK(schedule_error(s, "mail", .id = id) == BEL_ECONFLICT);
    CHECK(schedule_error(s, "mail", .id = id, .conflict = BEL_CONFLICT_KEEP) == BEL_ECONFLICT);
    CHECK(schedule_error(s, "mail", .id = occurrence("p", 2 * HOUR)) == BEL_EINVAL);
    CHECK(schedule_error(s, "push", .id = id) == BEL_EINVAL);
}

static void a_plan_that_is_replaced_leaves_its_occurrences(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h");
    advance(s, HOUR);
    schedule(s, "mail", .id = "p", .payload = "no plan", .in = HOUR);
    CHECK(topic(s, "mail")->plans == 0);
    expect_claim(s, "mail", occurrence("p", HOUR));
    advance(s, HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR), "p");
}

static void depth_limits_unfinished_timers(struct subject *s)
{
    configure(s, "mail", "depth", "2");
    schedule(s, "mail", .id = "a", .in = HOUR);
    schedule(s, "mail", .id = "b");
    CHECK(schedule_error(s, "mail", .id = "c") == BEL_EFULL);
    expect_gone(s, "mail", "c");
    expect_claim(s, "mail", "b");
    CHECK(schedule_error(s, "mail", .id = "c") == BEL_EFULL);
    CHECK(ack(s, "b") == 1);
    schedule(s, "mail", .id = "c");
    CHECK(schedule_error(s, "mail", .id = "d") == BEL_EFULL);
}

static void depth_does_not_refuse_what_replaces(struct subject *s)
{
    configure(s, "mail", "depth", "1");
    schedule(s, "mail", .id = "dead");
    expect_claim(s, "mail", "dead");
    (void)fail(s, "dead", .dead = true);
    schedule(s, "mail", .id = "a", .payload = "1");
    schedule(s, "mail", .id = "a", .payload = "2");
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "2"));
    CHECK(schedule_error(s, "mail", .id = "dead") == BEL_EFULL);
    expect_state(s, "mail", "dead", BEL_DEAD);
    schedule(s, "mail", .id = "a", .conflict = BEL_CONFLICT_KEEP);
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
}

static void depth_refuses_neither_plans_nor_occurrences(struct subject *s)
{
    configure(s, "mail", "depth", "1");
    schedule(s, "mail", .id = "a", .in = DAY);
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 2 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR));
    CHECK(schedule_error(s, "mail", .id = "b") == BEL_EFULL);
}

static const struct test tests[] = {
    TEST(replace_makes_a_whole_new_record),
    TEST(replace_takes_the_lease_away),
    TEST(replace_takes_terminal_ones_too),
    TEST(keep_changes_nothing_and_answers_with_the_id),
    TEST(keep_makes_it_if_nothing_is_known),
    TEST(reject_is_an_error_while_the_old_one_is_known),
    TEST(earliest_keeps_the_one_that_is_due_first),
    TEST(latest_keeps_the_one_that_is_due_last),
    TEST(earliest_compares_with_a_leased_one),
    TEST(earliest_and_latest_replace_terminal_ones),
    TEST(earliest_compares_with_the_next_time_of_a_plan),
    TEST(the_id_of_an_occurrence_is_always_a_conflict),
    TEST(a_plan_that_is_replaced_leaves_its_occurrences),
    TEST(depth_limits_unfinished_timers),
    TEST(depth_does_not_refuse_what_replaces),
    TEST(depth_refuses_neither_plans_nor_occurrences),
};

GROUP(conflicts, 0, tests);
