/* SPDX-License-Identifier: MIT */

/*
 * Reopening: what is kept while a backend is closed, and how time counts meanwhile.
 */
#include "conformance.h"

#include "core/units.h"

#include <string.h>

static void what_expires_while_closed_has_expired(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    schedule(s, "mail", .id = "b", .expires = HOUR);
    schedule(s, "mail", .id = "c", .expires = SECOND);
    expect_claim(s, "mail", "a");
    reopen(s, MINUTE);
    CHECK(topic(s, "mail")->counts[BEL_EXPIRED] == 1);
    CHECK(timer_of(s, "mail", "c")->finished.ms == START + MINUTE);
    advance(s, 30 * SECOND); /* the lease of `a` */
    expect_state(s, "mail", "a", BEL_EXPIRED);
    advance(s, HOUR);
    CHECK(timer_of(s, "mail", "b")->finished.ms == START + HOUR);
}

static void everything_is_still_there(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    configure(s, "mail", "lease", "7s");
    pause_topic(s, "push");
    schedule(s, "mail", .id = "done");
    const char *group = if_can(s, CAN_GROUP, "g");
    schedule(s, "mail", .id = "dead", .payload = "x", .group = group);
    expect_claim(s, "mail", "done", "dead");
    CHECK(ack_result(s, "done", "42") == 1);
    (void)fail(s, "dead", .reason = "why", .dead = true);
    schedule(s, "mail", .id = "later", .in = HOUR, .priority = 3);
    schedule(s, "mail", .id = "plan", .every = "1h");
    reopen(s, SECOND);
    CHECK(is_text(timer_of(s, "mail", "done")->result, "42"));
    const struct bel_timer *dead = timer_of(s, "mail", "dead");
    CHECK(is_text(dead->reason, "why") && dead->attempts == 1 && dead->outcomes_count == 1);
    CHECK(is_text(dead->payload, "x") && is_text(dead->group, group));
    CHECK(timer_of(s, "mail", "later")->priority == 3);
    CHECK(timer_of(s, "mail", "plan")->has_next);
    CHECK(strcmp(setting(s, "mail", "lease"), "7s") == 0);
    CHECK(topic(s, "push")->paused);
    CHECK(topic(s, "mail")->counts[BEL_SCHEDULED] == 2 && topic(s, "mail")->plans == 1);
}

static void delays_go_on_while_it_is_closed(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = HOUR);
    schedule(s, "mail", .id = "b", .at = HOUR);
    reopen(s, HOUR - MINUTE);
    expect_claim(s, "mail");
    advance(s, MINUTE);
    expect_claim(s, "mail", "a", "b");
}

static void engine_time_does_not_go_back_with_the_wall_clock(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = HOUR);
    s->now.wall.ms -= DAY;
    reopen(s, 0);
    advance(s, HOUR - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", "a");
}

static void a_lease_does_not_run_while_it_is_closed(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_ids(claim(s, "mail", .worker = "w"), "a");
    advance(s, 10 * SECOND);
    schedule(s, "mail", .id = "b", .in = DAY);
    reopen(s, HOUR);
    expect_state(s, "mail", "a", BEL_LEASED);
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 20 * SECOND);
    CHECK(is_text(timer_of(s, "mail", "a")->worker, "w"));
    CHECK(ack(s, "a") == 1);
}

static void a_lease_that_ends_soon_after_the_open_is_no_crash(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    advance(s, 10 * SECOND);
    schedule(s, "mail", .id = "b", .in = DAY);
    reopen(s, HOUR);
    advance(s, 20 * SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_READY && timer->crashes == 0 && timer->outcomes_count == 0);
    expect_claim(s, "mail", "a");
    advance(s, 30 * SECOND);
    CHECK(timer_of(s, "mail", "a")->crashes == 1);
}

static void a_lease_that_has_all_of_its_time_at_the_open_is_no_crash(struct subject *s)
{
    uint64_t left;
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    CHECK(extend(s, "b", 30 * SECOND + 1, &left) == 0);
    reopen(s, 0);
    advance(s, 30 * SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_READY && timer->crashes == 0 && timer->outcomes_count == 0);
    advance(s, 1); /* the other lease should have more time left */
    CHECK(timer_of(s, "mail", "b")->crashes == 1);
    expect_claim(s, "mail", "a");
    advance(s, 30 * SECOND);
    CHECK(timer_of(s, "mail", "a")->crashes == 1);
}

/* A lease of this open engine begins no earlier, and has its full time. */
static void a_lease_of_the_first_turn_is_a_crash_if_it_is_lost(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    reopen(s, HOUR);
    expect_claim(s, "mail", "a");
    advance(s, 30 * SECOND);
    CHECK(timer_of(s, "mail", "a")->crashes == 1);
}

static void a_retry_keeps_its_due(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "1m,1h");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").due.ms == START + MINUTE);
    reopen(s, 20 * SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_SCHEDULED && timer->due.ms == START + MINUTE);
    CHECK(timer->attempts == 1);
    advance(s, 40 * SECOND - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").due.ms == START + MINUTE + HOUR);
}

static void leases_count_for_their_groups_as_before(struct subject *s)
{
    configure(s, "mail", "concurrency", "4");
    for (unsigned i = 1; i <= 3; i++) {
        char a[8], b[8];
        (void)snprintf(a, sizeof a, "a%u", i);
        (void)snprintf(b, sizeof b, "b%u", i);
        schedule(s, "mail", .id = a, .group = "a");
        schedule(s, "mail", .id = b, .group = "b", .in = SECOND);
    }
    expect_claim(s, "mail", "a1", "a2");
    advance(s, SECOND);
    expect_claim(s, "mail", "b1");
    reopen(s, SECOND);
    expect_ids(claim(s, "mail", .count = 10), "b2");
    expect_claim(s, "mail");
}

static void the_order_is_the_same(struct subject *s)
{
    schedule(s, "mail", .id = "c", .in = SECOND);
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "b");
    CHECK(release(s, "b") == 0);
    reopen(s, MINUTE);
    schedule(s, "mail", .id = "d", .at = -1);
    expect_claim(s, "mail", "d", "b", "a", "c");
}

static void turns_of_topics_begin_anew(struct subject *s)
{
    schedule(s, "x", .id = "x1");
    schedule(s, "x", .id = "x2");
    schedule(s, "y", .id = "y1");
    expect_ids(claim(s, "x", .and_topic = "y"), "x1");
    reopen(s, SECOND);
    expect_ids(claim(s, "x", .and_topic = "y"), "x2");
}

static void a_plan_misses_what_passed_while_it_was_closed(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .misfire = BEL_MISFIRE_LAST);
    reopen(s, 3 * HOUR + 30 * MINUTE);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->missed == 2 && plan->due.ms == START + 4 * HOUR);
    expect_claim(s, "mail", occurrence("p", 3 * HOUR));
}

static void a_plan_in_a_zone_misses_by_the_clocks_of_the_zone(struct subject *s)
{
    jump(s, FORWARD - 2 * DAY + 12 * HOUR);
    schedule(s, "mail", .id = "nine", .cron = "0 9 * * *", .zone = "Europe/Berlin",
             .misfire = BEL_MISFIRE_LAST);
    schedule(s, "mail", .id = "next", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .misfire = BEL_MISFIRE_LAST);
    schedule(s, "mail", .id = "skip", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .misfire = BEL_MISFIRE_LAST, .gap = BEL_GAP_SKIP);
    reopen(s, 2 * DAY);
    const struct bel_timer *nine = timer_of(s, "mail", "nine");
    CHECK(nine->made == 1 && nine->missed == 1);
    CHECK(nine->due.ms == START + FORWARD + DAY + 7 * HOUR);
    CHECK(timer_of(s, "mail", "next")->missed == 1 && timer_of(s, "mail", "skip")->missed == 0);
    expect_ids(claim(s, "mail", .count = 10), occurrence("skip", FORWARD - DAY + 90 * MINUTE),
               occurrence("next", FORWARD + HOUR), occurrence("nine", FORWARD + 7 * HOUR));
}

static void a_plan_is_followed_as_it_was_said(struct subject *s)
{
    jump(s, BACK - HOUR);
    schedule(s, "mail", .id = "first", .cron = "30 2 * * *", .zone = "Europe/Berlin");
    schedule(s, "mail", .id = "second", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .fold = BEL_FOLD_SECOND);
    schedule(s, "mail", .id = "both", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .fold = BEL_FOLD_BOTH, .overlap = BEL_OVERLAP_ALLOW);
    reopen(s, HOUR);
    advance(s, 45 * MINUTE);
    expect_ids(claim(s, "mail", .count = 10), occurrence("first", BACK + 30 * MINUTE),
               occurrence("both", BACK + 30 * MINUTE));
    CHECK(ack(s, occurrence("first", BACK + 30 * MINUTE)) == 1);
    CHECK(ack(s, occurrence("both", BACK + 30 * MINUTE)) == 1);
    reopen(s, SECOND);
    advance(s, 12 * HOUR);
    expect_ids(claim(s, "mail", .count = 10), occurrence("second", BACK + 90 * MINUTE),
               occurrence("both", BACK + 90 * MINUTE));
}

static void those_in_a_queue_still_wait(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_QUEUE, .lease = DAY);
    advance(s, 3 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    reopen(s, SECOND);
    expect_claim(s, "mail");
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR));
    expect_claim(s, "mail");
}

static void cursors_and_made_ids_are_still_good(struct subject *s)
{
    char id[BEL_ID_BYTES + 1];
    (void)snprintf(id, sizeof id, "%s", schedule(s, "mail", .in = HOUR));
    schedule(s, "mail", .id = "z", .in = 2 * HOUR);
    const struct heard *page = list(s, "mail", .count = 1);
    reopen(s, SECOND);
    struct bel_command command = {.verb = BEL_VERB_LIST};
    command.list.topic = view("mail");
    command.list.cursor = page->reply.timers.cursor;
    expect_ids(ask(s, &command), "z");
    CHECK(schedule_error(s, "mail", .id = id, .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    CHECK(strcmp(schedule(s, "mail", .in = HOUR), id) != 0);
}

/* Time passes on both clocks, whose milliseconds begin at different points. */
static void pass_ns(struct subject *s, uint64_t ns)
{
    uint64_t rest_ns = s->now.wall_rest_ns + ns;
    s->now.boot.ns += ns;
    s->now.wall.ms += (int64_t)(rest_ns / NS_PER_MS);
    s->now.wall_rest_ns = (uint32_t)(rest_ns % NS_PER_MS);
    turn(s);
}

/* Whatever the fractions of a millisecond are at the start: a timer that is ready was due before
 * now, by at most the part of a millisecond that engine time does not have. */
static void what_is_ready_is_not_due_later(struct subject *s)
{
    static const uint32_t rests[] = {0, 1, 250000, 499999, 500000, 750001, 999999};
    enum {
        RESTS = sizeof rests / sizeof rests[0]
    };
    for (unsigned i = 0; i < RESTS * RESTS; i++) {
        CHECK_NOTE("boot rest %u, wall rest %u", rests[i / RESTS], rests[i % RESTS]);
        s->now.wall.ms += HOUR; /* engine time is not ahead */
        s->now.boot.ns = (1 + i) * NS_PER_MS + rests[i / RESTS];
        s->now.wall_rest_ns = rests[i % RESTS];
        s->kind->reopen(s);
        turn(s);
        for (unsigned j = 0; j < 8; j++) {
            schedule(s, "mail", .id = "a");
            const struct bel_timer *timer = timer_of(s, "mail", "a");
            CHECK(timer->state == BEL_READY && timer->created.ms == s->now.wall.ms);
            CHECK(timer->due.ms <= timer->created.ms && timer->due.ms >= timer->created.ms - 1);
            pass_ns(s, 333333);
        }
        step_wall(s, i % 2 == 0 ? 2 * HOUR : -HOUR); /* the same after the clock is set */
        schedule(s, "mail", .id = "a");
        CHECK(timer_of(s, "mail", "a")->due.ms <= s->now.wall.ms);
    }
}

/* Sets a limit of a resource. */
static const struct bel_limit_state *limit(struct subject *s, struct bel_limit what)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = what;
    command.limit.action = BEL_LIMIT_SET;
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    return &heard->reply.limits.items[0];
}

static void limits_hold_after_reopening(struct subject *s)
{
    configure(s, "mail", "lease", "2d");
    limit(s, (struct bel_limit){.resource = BEL_VIEW("api"), .has_until = true, .until_ms = HOUR});
    limit(s, (struct bel_limit){
                 .resource = BEL_VIEW("db"), .has_concurrency = true, .concurrency = 1});
    limit(s, (struct bel_limit){.resource = BEL_VIEW("slow"),
                                .has_rate = true,
                                .rate_count = 1,
                                .rate_ms = 10 * MINUTE});
    schedule(s, "mail", .id = "a", .resource = "api/search");
    schedule(s, "mail", .id = "b", .resource = "db");
    schedule(s, "mail", .id = "c", .resource = "db");
    schedule(s, "mail", .id = "d", .resource = "slow");
    schedule(s, "mail", .id = "e", .resource = "slow");
    expect_ids(claim(s, "mail", .count = 9), "b", "d");
    reopen(s, 9 * MINUTE);
    expect_claim(s, "mail");
    CHECK(limit(s, (struct bel_limit){.resource = BEL_VIEW("db")})->running == 1);
    CHECK(ack(s, "b") == 1);
    expect_ids(claim(s, "mail", .count = 9), "c");
    advance(s, MINUTE); /* time while closed counts */
    expect_ids(claim(s, "mail", .count = 9), "e");
    advance(s, HOUR - 10 * MINUTE - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_ids(claim(s, "mail", .count = 9), "a");
}

static void breakers_are_as_before_reopening(struct subject *s)
{
    struct bel_limit api = {.resource = BEL_VIEW("api")};
    configure(s, "mail", "retry", "fixed(1ms)");
    configure(s, "mail", "lease", "2d");
    schedule(s, "mail", .id = "a", .resource = "api");
    schedule(s, "mail", .id = "b", .resource = "api");
    for (int i = 0; i < 5; i++) {
        const char *id = i % 2 == 0 ? "a" : "b";
        expect_claim(s, "mail", id);
        (void)fail(s, id, .kind = BEL_FAIL_RESOURCE, .at_once = true);
        if (i == 2) reopen(s, 0);
    }
    reopen(s, SECOND);
    CHECK(limit(s, api)->breaker == BEL_BREAKER_OPEN);
    advance(s, 29 * SECOND);
    expect_ids(claim(s, "mail", .count = 9), "b");
    reopen(s, SECOND); /* the probe is still the probe */
    expect_claim(s, "mail");
    CHECK(limit(s, api)->breaker == BEL_BREAKER_HALF_OPEN);
    CHECK(ack(s, "b") == 1);
    CHECK(limit(s, api)->breaker == BEL_BREAKER_CLOSED);
    expect_ids(claim(s, "mail", .count = 9), "a");
}

static const struct test tests[] = {
    TEST(what_is_ready_is_not_due_later),
    TEST(everything_is_still_there),
    TEST(what_expires_while_closed_has_expired),
    TEST(delays_go_on_while_it_is_closed),
    TEST(engine_time_does_not_go_back_with_the_wall_clock),
    TEST(a_lease_does_not_run_while_it_is_closed),
    TEST(a_lease_that_ends_soon_after_the_open_is_no_crash),
    TEST(a_lease_that_has_all_of_its_time_at_the_open_is_no_crash),
    TEST(a_lease_of_the_first_turn_is_a_crash_if_it_is_lost),
    TEST(a_retry_keeps_its_due),
    TEST(leases_count_for_their_groups_as_before),
    TEST(the_order_is_the_same),
    TEST(turns_of_topics_begin_anew),
    TEST(a_plan_misses_what_passed_while_it_was_closed),
    TEST(a_plan_in_a_zone_misses_by_the_clocks_of_the_zone),
    TEST(a_plan_is_followed_as_it_was_said),
    TEST(those_in_a_queue_still_wait),
    TEST(cursors_and_made_ids_are_still_good),
    TEST(limits_hold_after_reopening),
    TEST(breakers_are_as_before_reopening),
};

GROUP(reopening, CAN_REOPEN, tests);
