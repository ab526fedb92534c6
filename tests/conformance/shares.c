/* SPDX-License-Identifier: MIT */

/*
 * Shares: how the groups of a topic are served side by side.
 */
#include "conformance.h"

#include <string.h>

/* Schedules `count` timers of a group, named by it and a number. */
static void fill(struct subject *s, const char *group, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%s%u", group[0] != 0 ? group : "n", i);
        schedule(s, "mail", .id = id, .group = group);
    }
}

static void the_group_with_the_fewest_leases_is_next(struct subject *s)
{
    fill(s, "a", 4);
    fill(s, "b", 2);
    fill(s, "", 2);
    expect_claim(s, "mail", "a1", "b1", "n1", "a2", "b2", "n2", "a3", "a4");
}

static void one_group_is_served_in_order(struct subject *s)
{
    schedule(s, "mail", .id = "b", .group = "g", .priority = 200);
    schedule(s, "mail", .id = "a", .group = "g", .priority = 100);
    schedule(s, "mail", .id = "c", .group = "g", .priority = 200);
    expect_claim(s, "mail", "a", "b", "c");
}

static void ties_go_by_the_heads(struct subject *s)
{
    schedule(s, "mail", .id = "b", .group = "x", .at = 2 * SECOND);
    schedule(s, "mail", .id = "a", .group = "y", .at = SECOND);
    schedule(s, "mail", .id = "d", .group = "z", .at = 2 * SECOND, .priority = 130);
    schedule(s, "mail", .id = "c", .group = "w", .at = 2 * SECOND);
    advance(s, MINUTE);
    expect_claim(s, "mail", "a", "b", "c", "d");
}

static void a_lease_that_ends_counts_no_more(struct subject *s)
{
    fill(s, "a", 3);
    fill(s, "b", 3);
    expect_claim(s, "mail", "a1", "b1", "a2");
    CHECK(ack(s, "a1") == 1 && ack(s, "a2") == 1);
    expect_claim(s, "mail", "a3", "b2");
    CHECK(release(s, "b1") == 0);
    expect_claim(s, "mail", "b1");
}

static void concurrency_caps_the_leases_of_a_topic(struct subject *s)
{
    configure(s, "mail", "concurrency", "2");
    fill(s, "", 4);
    expect_ids(claim(s, "mail", .count = 10), "n1", "n2");
    expect_claim(s, "mail");
    CHECK(ack(s, "n1") == 1);
    expect_ids(claim(s, "mail", .count = 10), "n3");
    (void)fail(s, "n2");
    expect_ids(claim(s, "mail", .count = 10), "n4");
}

static void a_lost_lease_makes_room(struct subject *s)
{
    configure(s, "mail", "concurrency", "1");
    fill(s, "", 2);
    expect_claim(s, "mail", "n1");
    expect_claim(s, "mail");
    advance(s, 30 * SECOND);
    expect_claim(s, "mail", "n1");
}

static void shares_below_their_fair_one_go_by_their_heads(struct subject *s)
{
    configure(s, "mail", "concurrency", "4");
    fill(s, "a", 3);
    fill(s, "b", 3);
    expect_ids(claim(s, "mail", .count = 10), "a1", "a2", "b1", "b2");
}

static void few_slots_go_to_different_groups(struct subject *s)
{
    configure(s, "mail", "concurrency", "2");
    fill(s, "a", 2);
    fill(s, "b", 2);
    fill(s, "c", 2);
    fill(s, "d", 2);
    fill(s, "e", 2);
    expect_ids(claim(s, "mail", .count = 10), "a1", "b1");
}

static void equal_groups_take_turns(struct subject *s)
{
    configure(s, "mail", "concurrency", "1");
    fill(s, "a", 3);
    fill(s, "b", 3);
    fill(s, "", 2);
    static const char *const order[] = {"a1", "b1", "n1", "a2", "b2", "n2", "a3", "b3"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        expect_claim(s, "mail", order[i]);
        CHECK(ack(s, order[i]) == 1);
    }
    expect_claim(s, "mail");
}

static void without_concurrency_groups_take_turns_too(struct subject *s)
{
    fill(s, "a", 3);
    fill(s, "b", 3);
    static const char *const order[] = {"a1", "b1", "a2", "b2", "a3", "b3"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        expect_claim(s, "mail", order[i]);
        CHECK(ack(s, order[i]) == 1);
    }
}

static void a_group_that_was_never_served_is_next(struct subject *s)
{
    fill(s, "a", 3);
    fill(s, "b", 1);
    expect_claim(s, "mail", "a1", "b1");
    CHECK(ack(s, "a1") == 1 && ack(s, "b1") == 1);
    fill(s, "c", 1);
    expect_claim(s, "mail", "c1");
    CHECK(ack(s, "c1") == 1);
    schedule(s, "mail", .id = "b2", .group = "b", .at = 0); /* first by due, but served later */
    expect_claim(s, "mail", "a2");
    CHECK(ack(s, "a2") == 1);
    expect_claim(s, "mail", "b2");
}

static void claim_one_by_one(struct subject *s, const char *const *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_claim(s, "mail", order[i]);
        CHECK(ack(s, order[i]) == 1);
    }
}

static void a_turn_is_the_fair_part_of_the_slots(struct subject *s)
{
    configure(s, "mail", "concurrency", "4");
    fill(s, "a", 5);
    fill(s, "b", 3);
    static const char *const order[] = {"a1", "a2", "b1", "b2", "a3", "a4", "b3", "a5"};
    claim_one_by_one(s, order, sizeof order / sizeof order[0]);
}

static void slots_for_all_groups_leave_none_waiting(struct subject *s)
{
    configure(s, "mail", "concurrency", "3");
    fill(s, "a", 5);
    fill(s, "b", 2); /* due later than all of a: fair is 1.5, a turn 2 */
    static const char *const order[] = {"a1", "a2", "b1", "b2", "a3", "a4", "a5"};
    claim_one_by_one(s, order, sizeof order / sizeof order[0]);
}

static void a_turn_is_interrupted_by_those_below_their_share(struct subject *s)
{
    configure(s, "mail", "concurrency", "6");
    fill(s, "a", 9);
    schedule(s, "mail", .id = "b1", .group = "b", .in = SECOND);
    schedule(s, "mail", .id = "b2", .group = "b", .in = SECOND);
    schedule(s, "mail", .id = "b3", .group = "b", .in = SECOND);
    expect_claim(s, "mail", "a1", "a2", "a3", "a4"); /* a turn of three, and one more */
    advance(s, SECOND);
    expect_claim(s, "mail", "b1", "b2");
    CHECK(ack(s, "a1") == 1 && ack(s, "a2") == 1 && ack(s, "b1") == 1);
    expect_claim(s, "mail", "b3", "a5", "a6"); /* b ends its turn */
}

static void ten_slots_for_three_groups(struct subject *s)
{
    configure(s, "mail", "concurrency", "10");
    fill(s, "a", 9);
    fill(s, "b", 9);
    fill(s, "c", 9);
    expect_ids(claim(s, "mail", .count = 20), "a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4", "c1",
               "c2");
}

static void one_group_may_have_all_the_slots(struct subject *s)
{
    configure(s, "mail", "concurrency", "10");
    fill(s, "a", 12);
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 10);
}

static void a_group_at_twice_its_share_is_passed_over(struct subject *s)
{
    configure(s, "mail", "concurrency", "4");
    fill(s, "a", 9);
    schedule(s, "mail", .id = "b", .group = "b", .in = HOUR);
    schedule(s, "mail", .id = "c", .group = "c", .in = HOUR);
    expect_ids(claim(s, "mail", .count = 10), "a1", "a2"); /* fair is 4 / 3 */
    expect_claim(s, "mail");
    CHECK(cancel(s, "mail", "b") == 1 && cancel(s, "mail", "c") == 1);
    expect_ids(claim(s, "mail", .count = 10), "a3", "a4");
}

static void those_above_their_share_wait_for_those_below(struct subject *s)
{
    configure(s, "mail", "concurrency", "4");
    fill(s, "a", 9);
    schedule(s, "mail", .id = "b1", .group = "b", .in = SECOND);
    schedule(s, "mail", .id = "b2", .group = "b", .in = SECOND);
    expect_claim(s, "mail", "a1", "a2", "a3"); /* fair is 2: a3 has a penalty, but no other group
                                                  is ready */
    advance(s, SECOND);
    expect_claim(s, "mail", "b1");
    expect_claim(s, "mail");
    CHECK(ack(s, "a1") == 1);
    expect_claim(s, "mail", "b2");
}

static void groups_are_any_bytes(struct subject *s)
{
    struct bel_command make = {.verb = BEL_VERB_SCHEDULE};
    make.schedule.topic = view("mail");
    static const char *const ids[] = {"a", "b", "c", "d"};
    static const struct bel_view groups[] = {{"\0x", 2}, {"\0x", 2}, {"\0y", 2}, {"\0", 1}};
    for (size_t i = 0; i < 4; i++) {
        make.schedule.id = view(ids[i]);
        make.schedule.group = groups[i];
        CHECK(ask(s, &make)->reply.err == 0);
    }
    expect_claim(s, "mail", "a", "c", "d", "b");
    CHECK(heard_same(timer_of(s, "mail", "c")->group, groups[2]));
}

static const struct test tests[] = {
    TEST(the_group_with_the_fewest_leases_is_next),
    TEST(one_group_is_served_in_order),
    TEST(ties_go_by_the_heads),
    TEST(a_lease_that_ends_counts_no_more),
    TEST(concurrency_caps_the_leases_of_a_topic),
    TEST(a_lost_lease_makes_room),
    TEST(shares_below_their_fair_one_go_by_their_heads),
    TEST(few_slots_go_to_different_groups),
    TEST(equal_groups_take_turns),
    TEST(without_concurrency_groups_take_turns_too),
    TEST(a_group_that_was_never_served_is_next),
    TEST(a_turn_is_the_fair_part_of_the_slots),
    TEST(slots_for_all_groups_leave_none_waiting),
    TEST(a_turn_is_interrupted_by_those_below_their_share),
    TEST(ten_slots_for_three_groups),
    TEST(one_group_may_have_all_the_slots),
    TEST(a_group_at_twice_its_share_is_passed_over),
    TEST(those_above_their_share_wait_for_those_below),
    TEST(groups_are_any_bytes),
};

GROUP(shares, CAN_GROUP, tests);
