/* SPDX-License-Identifier: MIT */

/*
 * Pressure: what adds is refused while a limit is nearly reached, and nothing else is.
 */
#include "conformance.h"

/* A sample in which so many thousandths of the memory are used. */
static void press(struct subject *s, uint64_t used)
{
    s->kind->press(s, &(struct bel_pressure_sample){.memory = {.used = used, .limit = 1000}});
}

static void timers_are_added_up_to_95_percent(struct subject *s)
{
    static const uint64_t fine[] = {0, 500, 501, 700, 701, 850, 851, 950};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        press(s, fine[i]);
        CHECK(schedule_error(s, "mail") == 0);
    }
    press(s, 951);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    CHECK(topic(s, "mail")->counts[BEL_READY] == 8);
}

static void a_critical_level_ends_at_90_percent(struct subject *s)
{
    press(s, 951);
    press(s, 950);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    press(s, 901);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    press(s, 900);
    CHECK(schedule_error(s, "mail") == 0);
    press(s, 950);
    CHECK(schedule_error(s, "mail") == 0);
}

static void a_refused_topic_does_not_come_to_be(struct subject *s)
{
    press(s, 1000);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    CHECK(target(s, BEL_VERB_TOPIC, "mail", NULL) == BEL_ENOTFOUND);
}

static void all_that_does_not_add_works(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c", .in = MINUTE);
    schedule(s, "mail", .id = "d", .in = MINUTE);
    press(s, 1000);
    expect_claim(s, "mail", "a", "b");
    CHECK(ack(s, "a") == 1);
    CHECK(fail(s, "b", .dead = true).state == BEL_DEAD);
    CHECK(cancel(s, "mail", "c") == 1);
    CHECK(reschedule_in(s, "mail", "d", 2 * MINUTE) == 1);
    CHECK(revive(s, "mail", "b") == 1);
    expect_state(s, "mail", "b", BEL_READY);
    expect_claim(s, "mail", "b");
    CHECK(release(s, "b") == 0);
    configure(s, "mail", "lease", "5s");
    expect_list(s, "mail", "b", "d");
}

static void a_claim_that_waits_is_served(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = MINUTE);
    press(s, 1000);
    const struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    advance(s, MINUTE);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "a");
}

static void an_id_that_is_kept_is_answered(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    press(s, 1000);
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_KEEP) == 0);
    CHECK(schedule_error(s, "mail", .id = "a", .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    CHECK(schedule_error(s, "mail", .id = "a") == BEL_EFULL);
}

static void plans_go_on(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1m");
    press(s, 1000);
    CHECK(schedule_error(s, "mail", .id = "q", .every = "1m") == BEL_EFULL);
    advance(s, MINUTE);
    expect_claim(s, "mail", occurrence("p", MINUTE));
}

static void what_cannot_be_measured_is_critical(struct subject *s)
{
    s->kind->press(s, &(struct bel_pressure_sample){.disk = {.is_unreadable = true}});
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    s->kind->press(s, &(struct bel_pressure_sample){.disk = {.used = 1, .limit = 2}});
    CHECK(schedule_error(s, "mail") == 0);
}

static void slow_commits_refuse_nothing(struct subject *s)
{
    s->kind->press(s, &(struct bel_pressure_sample){.commit = {.used = 5000, .limit = 1000}});
    CHECK(schedule_error(s, "mail") == 0);
}

static void a_topic_near_its_depth_stops_itself_alone(struct subject *s)
{
    configure(s, "mail", "depth", "40");
    configure(s, "push", "depth", "40");
    for (int i = 0; i < 38; i++) {
        schedule(s, "mail");
    }
    press(s, 0);
    CHECK(schedule_error(s, "mail", .id = "last") == 0); /* 38 of 40 are 95 % */
    press(s, 0);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    CHECK(schedule_error(s, "mail", .id = "last", .in = MINUTE) == 0); /* replaces one */
    CHECK(schedule_error(s, "mail", .id = "plan", .every = "1h") == 0);
    CHECK(schedule_error(s, "push") == 0);
    CHECK(schedule_error(s, "plain") == 0);
    CHECK(cancel(s, "mail", "last") == 1);
    press(s, 0);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    (void)claim(s, "mail", .count = 2);
    CHECK(purge_state(s, "mail", BEL_READY) == 36);
    CHECK(schedule_error(s, "mail") == 0);
}

static void a_timer_that_ends_makes_room_at_once(struct subject *s)
{
    configure(s, "mail", "depth", "5");
    for (int i = 0; i < 5; i++) {
        schedule(s, "mail");
    }
    press(s, 0);
    CHECK(schedule_error(s, "mail") == BEL_EFULL);
    const struct heard *heard = claim(s, "mail");
    char token[BEL_TOKEN_BYTES_MAX + 8];
    struct bel_view text = heard->reply.deliveries.items[0].token;
    (void)snprintf(token, sizeof token, "token:%.*s", (int)text.bytes, (const char *)text.data);
    CHECK(ack(s, token) == 1);
    CHECK(schedule_error(s, "mail") == 0);
}

static void a_depth_that_is_raised_makes_room(struct subject *s)
{
    configure(s, "mail", "depth", "2");
    schedule(s, "mail");
    schedule(s, "mail");
    press(s, 0);
    configure(s, "mail", "depth", "0");
    CHECK(schedule_error(s, "mail") == 0);
    press(s, 0);
    CHECK(schedule_error(s, "mail") == 0);
}

static const struct test tests[] = {
    TEST(timers_are_added_up_to_95_percent),
    TEST(a_critical_level_ends_at_90_percent),
    TEST(a_refused_topic_does_not_come_to_be),
    TEST(all_that_does_not_add_works),
    TEST(a_claim_that_waits_is_served),
    TEST(an_id_that_is_kept_is_answered),
    TEST(plans_go_on),
    TEST(what_cannot_be_measured_is_critical),
    TEST(slow_commits_refuse_nothing),
    TEST(a_topic_near_its_depth_stops_itself_alone),
    TEST(a_timer_that_ends_makes_room_at_once),
    TEST(a_depth_that_is_raised_makes_room),
};

GROUP(pressure, CAN_PRESS, tests);
