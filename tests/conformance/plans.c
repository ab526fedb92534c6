/* SPDX-License-Identifier: MIT */

/*
 * Plans: when they ring, what their occurrences contain, and how they are moved and ended.
 */
#include "belfry/rrule.h"
#include "belfry/spread.h"
#include "conformance.h"

#include <string.h>

static void every_first_rings_after_a_period(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .payload = "x");
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->state == BEL_SCHEDULED && plan->has_next && plan->due.ms == START + HOUR);
    CHECK(plan->plan.kind == BEL_PLAN_EVERY && is_text(plan->plan.rule, "1h"));
    CHECK(plan->made == 0 && plan->plan_id.bytes == 0);
    advance(s, HOUR - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 1);
}

static void a_plan_itself_is_never_claimed(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .count = 2);
    advance(s, HOUR);
    expect_ids(claim(s, "mail", .count = 10), occurrence("p", HOUR));
    CHECK(ack(s, occurrence("p", HOUR)) == 1);
    advance(s, HOUR);
    expect_ids(claim(s, "mail", .count = 10), occurrence("p", 2 * HOUR));
}

static void an_occurrence_has_what_the_plan_has(struct subject *s)
{
    const struct bel_header headers[] = {{BEL_VIEW("x"), BEL_VIEW("1")}};
    const char *group = if_can(s, CAN_GROUP, "g"), *resource = if_can(s, CAN_LIMIT, "r");
    schedule(s, "mail", .id = "p", .every = "1h", .payload = "x", .group = group,
             .resource = resource, .correlation = "c", .retry = "5s", .lease = 7 * SECOND,
             .priority = 9, .expires = DAY, .headers = headers, .headers_count = 1);
    advance(s, HOUR);
    const struct bel_timer *timer = timer_of(s, "mail", occurrence("p", HOUR));
    CHECK(is_text(timer->payload, "x") && is_text(timer->group, group));
    CHECK(is_text(timer->resource, resource) && is_text(timer->correlation, "c"));
    CHECK(is_text(timer->retry, "5s") && timer->lease_ms == 7 * SECOND && timer->priority == 9);
    CHECK(timer->expires_ms == DAY && timer->expires.ms == START + HOUR + DAY);
    CHECK(is_text(timer->plan_id, "p") && timer->nominal.ms == START + HOUR);
    CHECK(timer->due.ms == START + HOUR && timer->created.ms == START + HOUR);
    CHECK(timer->plan.rule.bytes == 0);
}

static const char *header_of(const struct bel_delivery *delivery, const char *name)
{
    static char value[BEL_ID_BYTES + 1];
    for (size_t i = 0; i < delivery->headers_count; i++) {
        const struct bel_header *header = &delivery->headers[i];
        if (!is_text(header->name, name)) continue;
        CHECK(header->value.bytes < sizeof value);
        memset(value, 0, sizeof value);
        memcpy(value, header->value.data, header->value.bytes);
        return value;
    }
    return "";
}

static void a_delivery_names_the_plan_and_the_nominal_time(struct subject *s)
{
    const struct bel_header headers[] = {{BEL_VIEW("x"), BEL_VIEW("1")}};
    schedule(s, "mail", .id = "p", .every = "1h", .headers = headers, .headers_count = 1);
    advance(s, HOUR + MINUTE);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, occurrence("p", HOUR));
    const struct bel_delivery *delivery = &heard->reply.deliveries.items[0];
    CHECK(delivery->headers_count == 3 && delivery->due.ms == START + HOUR);
    CHECK(strcmp(header_of(delivery, "x"), "1") == 0);
    CHECK(strcmp(header_of(delivery, "belfry-plan"), "p") == 0);
    CHECK(strcmp(header_of(delivery, "belfry-nominal"), "1767229200000") == 0);
}

static void at_or_in_is_the_first_nominal_time(struct subject *s)
{
    schedule(s, "mail", .id = "a", .every = "1h", .at = 10 * MINUTE);
    schedule(s, "mail", .id = "b", .every = "1h", .in = 20 * MINUTE);
    schedule(s, "mail", .id = "c", .cron = "0 12 * * *", .in = 30 * MINUTE);
    CHECK(timer_of(s, "mail", "a")->due.ms == START + 10 * MINUTE);
    CHECK(timer_of(s, "mail", "b")->due.ms == START + 20 * MINUTE);
    CHECK(timer_of(s, "mail", "c")->due.ms == START + 30 * MINUTE);
    advance(s, 30 * MINUTE);
    CHECK(timer_of(s, "mail", "a")->due.ms == START + 70 * MINUTE);
    CHECK(timer_of(s, "mail", "b")->due.ms == START + 80 * MINUTE);
    CHECK(timer_of(s, "mail", "c")->due.ms == START + 12 * HOUR);
}

static void times_before_it_was_scheduled_are_not_made_up_for(struct subject *s)
{
    schedule(s, "mail", .id = "a", .every = "1h", .at = -90 * MINUTE, .misfire = BEL_MISFIRE_ALL);
    const struct bel_timer *plan = timer_of(s, "mail", "a");
    CHECK(plan->due.ms == START + 30 * MINUTE && plan->made == 0 && plan->missed == 0);
    schedule(s, "mail", .id = "b", .every = "1h", .at = -2 * HOUR);
    turn(s);
    expect_state(s, "mail", occurrence("b", 0), BEL_READY);
    CHECK(timer_of(s, "mail", "b")->made == 1);
}

static void a_plan_that_starts_now_rings_in_the_same_turn(struct subject *s)
{
    struct bel_command make = {.verb = BEL_VERB_SCHEDULE};
    make.schedule.topic = view("mail");
    make.schedule.id = view("p");
    make.schedule.when = BEL_WHEN_AT;
    make.schedule.at.ms = START;
    make.schedule.plan.kind = BEL_PLAN_EVERY;
    make.schedule.plan.rule = view("1h");
    struct waiter *made = submit(s, &make);
    struct waiter *claimed = submit_claim(s, "mail");
    turn(s);
    CHECK(made->heard != NULL && made->heard->reply.err == 0);
    expect_ids(claimed->heard, occurrence("p", 0));
}

static void cron_without_a_zone_rings_in_utc(struct subject *s)
{
    schedule(s, "mail", .id = "p", .cron = "30 6 * * *");
    advance(s, DAY);
    expect_claim(s, "mail", occurrence("p", 6 * HOUR + 30 * MINUTE));
    CHECK(timer_of(s, "mail", "p")->due.ms == START + DAY + 6 * HOUR + 30 * MINUTE);
}

static void cron_rings_in_its_zone(struct subject *s)
{
    schedule(s, "mail", .id = "p", .cron = "0 9 * * *", .zone = "Asia/Bangkok",
             .overlap = BEL_OVERLAP_ALLOW);
    CHECK(is_text(timer_of(s, "mail", "p")->plan.zone, "Asia/Bangkok"));
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * HOUR);
    advance(s, 2 * HOUR - 1);
    expect_claim(s, "mail");
    advance(s, DAY + 1);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR), occurrence("p", DAY + 2 * HOUR));
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * DAY + 2 * HOUR);
}

static void a_time_in_a_gap_rings_at_its_end_or_not_at_all(struct subject *s)
{
    jump(s, FORWARD - 12 * HOUR);
    schedule(s, "mail", .id = "next", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .overlap = BEL_OVERLAP_ALLOW);
    schedule(s, "mail", .id = "skip", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .gap = BEL_GAP_SKIP, .overlap = BEL_OVERLAP_ALLOW);
    CHECK(timer_of(s, "mail", "next")->due.ms == START + FORWARD + HOUR);
    CHECK(timer_of(s, "mail", "skip")->due.ms == START + FORWARD + DAY + 30 * MINUTE);
    advance(s, DAY + 12 * HOUR);
    expect_claim(s, "mail", occurrence("next", FORWARD + HOUR));
    CHECK(ack(s, occurrence("next", FORWARD + HOUR)) == 1);
    advance(s, HOUR);
    expect_claim(s, "mail", occurrence("next", FORWARD + DAY + 30 * MINUTE),
                 occurrence("skip", FORWARD + DAY + 30 * MINUTE));
    CHECK(timer_of(s, "mail", "next")->made == 2 && timer_of(s, "mail", "skip")->made == 1);
}

static void times_that_a_gap_moves_onto_one_ring_once(struct subject *s)
{
    jump(s, FORWARD - 12 * HOUR);
    schedule(s, "mail", .id = "p", .cron = "0,30 2 * * *", .zone = "Europe/Berlin",
             .overlap = BEL_OVERLAP_ALLOW);
    advance(s, DAY);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->made == 1 && plan->skipped == 0 && plan->due.ms == START + FORWARD + DAY);
    advance(s, DAY);
    expect_ids(claim(s, "mail", .count = 10), occurrence("p", FORWARD + HOUR),
               occurrence("p", FORWARD + DAY), occurrence("p", FORWARD + DAY + 30 * MINUTE));
}

static void a_time_that_comes_twice_rings_first_second_or_both(struct subject *s)
{
    jump(s, BACK - 12 * HOUR);
    schedule(s, "mail", .id = "first", .cron = "30 2 * * *", .zone = "Europe/Berlin");
    schedule(s, "mail", .id = "second", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .fold = BEL_FOLD_SECOND);
    schedule(s, "mail", .id = "both", .cron = "30 2 * * *", .zone = "Europe/Berlin",
             .fold = BEL_FOLD_BOTH, .overlap = BEL_OVERLAP_ALLOW);
    advance(s, DAY);
    expect_ids(claim(s, "mail", .count = 10), occurrence("first", BACK + 30 * MINUTE),
               occurrence("both", BACK + 30 * MINUTE), occurrence("second", BACK + 90 * MINUTE),
               occurrence("both", BACK + 90 * MINUTE));
    static const char *const plans[] = {"first", "second", "both"};
    for (size_t i = 0; i < 3; i++) {
        CHECK(timer_of(s, "mail", plans[i])->due.ms == START + BACK + DAY + 90 * MINUTE);
    }
}

static void a_recurrence_rule_makes_its_times_and_is_gone(struct subject *s)
{
    if (!bel_rrule_is_supported()) return;
    schedule(s, "mail", .id = "p", .rrule = "FREQ=DAILY;COUNT=2", .overlap = BEL_OVERLAP_ALLOW);
    schedule(s, "push", .id = "p", .rrule = "FREQ=DAILY;COUNT=2", .in = HOUR,
             .overlap = BEL_OVERLAP_ALLOW);
    CHECK(timer_of(s, "mail", "p")->plan.kind == BEL_PLAN_RRULE);
    CHECK(timer_of(s, "push", "p")->due.ms == START + HOUR);
    advance(s, DAY);
    expect_gone(s, "mail", "p");
    CHECK(timer_of(s, "push", "p")->due.ms == START + DAY + HOUR);
    advance(s, 3 * DAY);
    expect_gone(s, "push", "p");
    expect_ids(claim(s, "mail", .count = 10), occurrence("p", 0), occurrence("p", DAY));
    expect_ids(claim(s, "push", .count = 10), occurrence("p", HOUR), occurrence("p", DAY + HOUR));
}

static void a_recurrence_rule_keeps_the_hour_of_its_zone(struct subject *s)
{
    if (!bel_rrule_is_supported()) return;
    jump(s, FORWARD - DAY + 8 * HOUR);
    schedule(s, "mail", .id = "p", .rrule = "FREQ=DAILY", .zone = "Europe/Berlin",
             .overlap = BEL_OVERLAP_ALLOW);
    advance(s, DAY);
    expect_ids(claim(s, "mail", .count = 10), occurrence("p", FORWARD - DAY + 8 * HOUR),
               occurrence("p", FORWARD + 7 * HOUR));
}

static void a_plan_ends_after_its_count(struct subject *s)
{
    configure(s, "mail", "retention", "1d");
    schedule(s, "mail", .id = "p", .every = "1h", .count = 2, .overlap = BEL_OVERLAP_ALLOW);
    advance(s, HOUR);
    expect_state(s, "mail", "p", BEL_SCHEDULED);
    advance(s, HOUR);
    const struct bel_timer *plan = timer_of(s, "mail", "p");
    CHECK(plan->state == BEL_DONE && plan->made == 2 && !plan->has_next);
    CHECK(plan->finished.ms == START + 2 * HOUR);
    advance(s, DAY / 2);
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR));
}

static void a_plan_ends_at_its_until(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .until = 2 * HOUR, .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 2 * HOUR - 1);
    expect_state(s, "mail", "p", BEL_SCHEDULED);
    advance(s, 1);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR));
}

static void a_plan_without_any_time_is_refused(struct subject *s)
{
    CHECK(schedule_error(s, "mail", .id = "p", .every = "1h", .until = MINUTE) == BEL_EINVAL);
    CHECK(schedule_error(s, "mail", .id = "p", .cron = "0 0 30 2 *") == BEL_EINVAL);
}

static void the_id_is_the_place_in_the_spread_window(struct subject *s)
{
    int64_t offset = (int64_t)bel_spread_offset("p", 1, 30 * MINUTE);
    CHECK(offset > 0);
    schedule(s, "mail", .id = "p", .every = "1h", .spread = 30 * MINUTE);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + HOUR);
    advance(s, (uint64_t)(HOUR + offset - 1));
    expect_claim(s, "mail");
    advance(s, 1);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, occurrence("p", HOUR));
    CHECK(heard->reply.deliveries.items[0].due.ms == START + HOUR + offset);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * HOUR);
}

static void an_interval_that_is_a_delay_counts_from_the_end(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY);
    advance(s, 10 * MINUTE);
    CHECK(!timer_of(s, "mail", "p")->has_next);
    expect_state(s, "mail", "p", BEL_SCHEDULED);
    advance(s, 50 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    advance(s, 20 * SECOND);
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    CHECK(timer_of(s, "mail", "p")->has_next);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 70 * MINUTE + 20 * SECOND);
    advance(s, 10 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 70 * MINUTE + 20 * SECOND));
}

static void a_delay_counts_from_every_kind_of_end(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY, .expires = 5 * MINUTE);
    int64_t at = 10 * MINUTE;
    advance(s, 10 * MINUTE);
    CHECK(cancel(s, "mail", occurrence("p", at)) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + at + 10 * MINUTE);
    advance(s, 10 * MINUTE);
    at += 10 * MINUTE;
    expect_claim(s, "mail", occurrence("p", at));
    (void)fail(s, occurrence("p", at), .dead = true);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + at + 10 * MINUTE);
    advance(s, 10 * MINUTE);
    at += 10 * MINUTE;
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + at + 10 * MINUTE);
    advance(s, 10 * MINUTE + 6 * MINUTE);
    at += 10 * MINUTE;
    expect_state(s, "mail", occurrence("p", at), BEL_EXPIRED);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + at + 15 * MINUTE);
}

static void a_delay_with_a_count_ends_with_the_last_it_makes(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY, .count = 1);
    advance(s, 10 * MINUTE);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    expect_list(s, "mail");
}

static void what_becomes_of_an_occurrence_leaves_a_rate_alone(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    advance(s, HOUR);
    CHECK(cancel(s, "mail", occurrence("p", HOUR)) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 2 * HOUR);
    advance(s, HOUR + 5 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 2 * HOUR));
    (void)fail(s, occurrence("p", 2 * HOUR), .dead = true);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 3 * HOUR);
}

static void cancel_of_a_plan_takes_its_occurrences(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    schedule(s, "mail", .id = "pp", .every = "90m");
    advance(s, 2 * HOUR);
    expect_claim(s, "mail", occurrence("p", HOUR));
    CHECK(cancel(s, "mail", "p") == 1);
    CHECK(ack(s, occurrence("p", HOUR)) == 0);
    expect_claim(s, "mail", occurrence("pp", 90 * MINUTE));
    expect_claim(s, "mail");
    advance(s, HOUR);
    expect_list_state(s, BEL_READY, "mail", occurrence("pp", 90 * MINUTE));
}

static void reschedule_sets_the_next_time_and_a_rate_goes_on_from_it(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    CHECK(reschedule_in(s, "mail", "p", 10 * MINUTE) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 10 * MINUTE);
    advance(s, 10 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 70 * MINUTE);
    CHECK(reschedule_at(s, "mail", "p", MINUTE) == 1); /* past: now */
    turn(s);
    CHECK(timer_of(s, "mail", "p")->made == 1); /* which already has one */
    CHECK(timer_of(s, "mail", "p")->skipped == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 70 * MINUTE);
}

static void reschedule_of_a_cron_plan_moves_one_time(struct subject *s)
{
    schedule(s, "mail", .id = "p", .cron = "0 6 * * *", .overlap = BEL_OVERLAP_ALLOW);
    CHECK(reschedule_at(s, "mail", "p", 90 * MINUTE) == 1);
    advance(s, 6 * HOUR);
    expect_claim(s, "mail", occurrence("p", 90 * MINUTE), occurrence("p", 6 * HOUR));
}

static void reschedule_finds_a_plan_that_has_no_next_time(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY,
             .overlap = BEL_OVERLAP_ALLOW);
    advance(s, 10 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(reschedule_in(s, "mail", "p", HOUR) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 70 * MINUTE);
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    CHECK(timer_of(s, "mail", "p")->due.ms == START + 70 * MINUTE);
}

static void purge_of_scheduled_takes_plans_and_leaves_occurrences(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h");
    schedule(s, "mail", .id = "a", .in = DAY);
    advance(s, HOUR);
    CHECK(purge_state(s, "mail", BEL_SCHEDULED) == 2);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", HOUR));
    advance(s, DAY);
    CHECK(topic(s, "mail")->plans == 0);
}

static void plans_count_as_scheduled(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY);
    schedule(s, "mail", .id = "q", .every = "1h");
    CHECK(topic(s, "mail")->plans == 2 && topic(s, "mail")->counts[BEL_SCHEDULED] == 2);
    advance(s, 10 * MINUTE);
    CHECK(topic(s, "mail")->plans == 2 && topic(s, "mail")->counts[BEL_SCHEDULED] == 2);
    CHECK(topic(s, "mail")->counts[BEL_READY] == 1);
}

static void a_plan_of_a_paused_topic_rings(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "1h", .overlap = BEL_OVERLAP_ALLOW);
    pause_topic(s, "mail");
    advance(s, 2 * HOUR);
    CHECK(timer_of(s, "mail", "p")->made == 2);
    resume_topic(s, "mail");
    expect_claim(s, "mail", occurrence("p", HOUR), occurrence("p", 2 * HOUR));
}

static void a_delay_that_would_lead_past_its_until_ends(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY, .until = 25 * MINUTE);
    schedule(s, "mail", .id = "q", .every = "10m", .mode = BEL_PLAN_DELAY, .until = 25 * MINUTE);
    advance(s, 20 * MINUTE);
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    expect_gone(s, "mail", "p");
    CHECK(purge_state(s, "mail", BEL_READY) == 1);
    expect_gone(s, "mail", "q");
}

static void purge_of_scheduled_takes_plans_without_a_next_time(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY);
    advance(s, 10 * MINUTE);
    CHECK(purge_state(s, "mail", BEL_SCHEDULED) == 1);
    expect_gone(s, "mail", "p");
    expect_claim(s, "mail", occurrence("p", 10 * MINUTE));
    CHECK(ack(s, occurrence("p", 10 * MINUTE)) == 1);
    expect_list(s, "mail");
}

static void purge_of_scheduled_takes_a_plan_and_what_it_waits_for(struct subject *s)
{
    schedule(s, "mail", .id = "p", .every = "10m", .mode = BEL_PLAN_DELAY);
    advance(s, 10 * MINUTE);
    CHECK(reschedule_at(s, "mail", occurrence("p", 10 * MINUTE), HOUR) == 1);
    CHECK(purge_state(s, "mail", BEL_SCHEDULED) == 2);
    expect_list(s, "mail");
}

static const struct test tests[] = {
    TEST(every_first_rings_after_a_period),
    TEST(a_plan_itself_is_never_claimed),
    TEST(an_occurrence_has_what_the_plan_has),
    TEST(a_delivery_names_the_plan_and_the_nominal_time),
    TEST(at_or_in_is_the_first_nominal_time),
    TEST(times_before_it_was_scheduled_are_not_made_up_for),
    TEST(a_plan_that_starts_now_rings_in_the_same_turn),
    TEST(cron_without_a_zone_rings_in_utc),
    TEST(cron_rings_in_its_zone),
    TEST(a_time_in_a_gap_rings_at_its_end_or_not_at_all),
    TEST(times_that_a_gap_moves_onto_one_ring_once),
    TEST(a_time_that_comes_twice_rings_first_second_or_both),
    TEST(a_recurrence_rule_makes_its_times_and_is_gone),
    TEST(a_recurrence_rule_keeps_the_hour_of_its_zone),
    TEST(a_plan_ends_after_its_count),
    TEST(a_plan_ends_at_its_until),
    TEST(a_plan_without_any_time_is_refused),
    TEST(the_id_is_the_place_in_the_spread_window),
    TEST(an_interval_that_is_a_delay_counts_from_the_end),
    TEST(a_delay_counts_from_every_kind_of_end),
    TEST(a_delay_with_a_count_ends_with_the_last_it_makes),
    TEST(what_becomes_of_an_occurrence_leaves_a_rate_alone),
    TEST(cancel_of_a_plan_takes_its_occurrences),
    TEST(reschedule_sets_the_next_time_and_a_rate_goes_on_from_it),
    TEST(reschedule_of_a_cron_plan_moves_one_time),
    TEST(reschedule_finds_a_plan_that_has_no_next_time),
    TEST(purge_of_scheduled_takes_plans_and_leaves_occurrences),
    TEST(plans_count_as_scheduled),
    TEST(a_plan_of_a_paused_topic_rings),
    TEST(a_delay_that_would_lead_past_its_until_ends),
    TEST(purge_of_scheduled_takes_plans_without_a_next_time),
    TEST(purge_of_scheduled_takes_a_plan_and_what_it_waits_for),
};

GROUP(plans, 0, tests);
