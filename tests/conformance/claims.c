/* SPDX-License-Identifier: MIT */

/*
 * Claims: the order of deliveries, the topics they come from, and their number.
 */
#include "conformance.h"

#include <string.h>

static void timers_come_by_due_then_priority_then_sequence(struct subject *s)
{
    schedule(s, "mail", .id = "late", .at = 2 * SECOND, .priority = LOWEST_PRIORITY);
    schedule(s, "mail", .id = "b", .at = SECOND);
    schedule(s, "mail", .id = "c", .at = SECOND);
    schedule(s, "mail", .id = "a", .at = SECOND, .priority = 127);
    schedule(s, "mail", .id = "d", .in = SECOND, .priority = 255);
    schedule(s, "mail", .id = "first", .in = SECOND - 1, .priority = 255);
    advance(s, MINUTE);
    expect_claim(s, "mail", "first", "a", "b", "c", "d", "late");
}

static void a_claim_gets_one_unless_it_says(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_ids(claim(s, "mail"), "a");
    expect_ids(claim(s, "mail", .count = 10), "b");
    expect_no_ids(claim(s, "mail", .count = 10));
}

static void a_leased_timer_is_nobody_elses(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_ids(claim(s, "mail", .worker = "w 1"), "a");
    expect_claim(s, "mail");
    expect_state(s, "mail", "a", BEL_LEASED);
    CHECK(is_text(timer_of(s, "mail", "a")->worker, "w 1"));
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 30 * SECOND);
}

static void topics_take_turns(struct subject *s)
{
    schedule(s, "a", .id = "a1");
    schedule(s, "a", .id = "a2");
    schedule(s, "a", .id = "a3");
    schedule(s, "b", .id = "b1");
    schedule(s, "c", .id = "c1");
    schedule(s, "c", .id = "c2");
    expect_ids(claim(s, "a", .and_topic = "b", .and_third = "c", .count = 10), "a1", "b1", "c1",
               "a2", "c2", "a3");
}

static void turns_go_on_behind_the_one_served_last(struct subject *s)
{
    for (char id[] = "1"; id[0] <= '5'; id[0]++) {
        schedule(s, "a", .id = id);
        schedule(s, "b", .id = id);
        schedule(s, "c", .id = id);
    }
    const struct heard *heard = claim(s, "a", .and_topic = "b", .and_third = "c");
    CHECK(is_text(heard->reply.deliveries.items[0].topic, "a"));
    heard = claim(s, "a", .and_topic = "b", .and_third = "c");
    CHECK(is_text(heard->reply.deliveries.items[0].topic, "b"));
    (void)claim(s, "a"); /* any claim counts */
    heard = claim(s, "a", .and_topic = "b", .and_third = "c");
    CHECK(is_text(heard->reply.deliveries.items[0].topic, "b"));
    heard = claim(s, "c", .and_topic = "b", .and_third = "a");
    CHECK(is_text(heard->reply.deliveries.items[0].topic, "a"));
    heard = claim(s, "c", .and_topic = "b");
    CHECK(is_text(heard->reply.deliveries.items[0].topic, "c"));
}

static void a_topic_that_has_nothing_is_passed_over(struct subject *s)
{
    schedule(s, "a", .id = "a1");
    schedule(s, "c", .id = "c1");
    schedule(s, "c", .id = "c2");
    expect_ids(claim(s, "a", .and_topic = "unknown", .and_third = "c", .count = 9), "a1", "c1",
               "c2");
}

static void a_topic_listed_twice_is_listed_once(struct subject *s)
{
    schedule(s, "a", .id = "a1");
    schedule(s, "a", .id = "a2");
    schedule(s, "b", .id = "b1");
    schedule(s, "b", .id = "b2");
    expect_ids(claim(s, "a", .and_topic = "a", .and_third = "b", .count = 4), "a1", "b1", "a2",
               "b2");
}

static void a_paused_topic_delivers_nothing(struct subject *s)
{
    pause_topic(s, "mail");
    schedule(s, "mail", .id = "a");
    schedule(s, "push", .id = "b");
    expect_claim(s, "mail");
    expect_ids(claim(s, "mail", .and_topic = "push", .count = 5), "b");
    CHECK(topic(s, "mail")->paused && !topic(s, "push")->paused);
    resume_topic(s, "mail");
    expect_claim(s, "mail", "a");
}

static void what_is_leased_can_be_done_while_paused(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    pause_topic(s, "mail");
    CHECK(ack(s, "a") == 1);
    CHECK(release(s, "b") == 0);
    expect_claim(s, "mail");
}

static void a_claim_stops_when_payloads_exceed_1_mib(struct subject *s)
{
    enum {
        PAYLOAD = 1 << 18,
    };
    char *payload = malloc(PAYLOAD + 1);
    CHECK(payload != NULL);
    memset(payload, 'x', PAYLOAD);
    payload[PAYLOAD] = 0;
    for (char id[] = "a"; id[0] <= 'l'; id[0]++) {
        schedule(s, "mail", .id = id, .payload = payload);
    }
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 5);
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 5);
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 2);
    free(payload);
}

static void headers_count_for_the_bytes_of_a_claim(struct subject *s)
{
    static char value[60000];
    const struct bel_header headers[] = {{{"x", 1}, {value, sizeof value}}};
    memset(value, 'x', sizeof value);
    for (char id[] = "a"; id[0] <= 'z'; id[0]++) {
        schedule(s, "mail", .id = id, .headers = headers, .headers_count = 1);
    }
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 18);
    CHECK_EQ(claim(s, "mail", .count = 100)->reply.deliveries.count, 8);
}

static void a_timer_larger_than_the_bytes_of_a_claim_is_delivered(struct subject *s)
{
    enum {
        PAYLOAD = 1 << 20,
    };
    char *payload = malloc(PAYLOAD + 1);
    CHECK(payload != NULL);
    memset(payload, 'x', PAYLOAD);
    payload[PAYLOAD] = 0;
    const struct bel_header headers[] = {{{"x", 1}, {"y", 1}}};
    schedule(s, "mail", .id = "a", .payload = payload, .headers = headers, .headers_count = 1);
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a");
    expect_claim(s, "mail", "b");
    free(payload);
}

static void a_token_is_made_of_few_characters(struct subject *s)
{
    char first[BEL_TOKEN_BYTES_MAX + 10];
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    (void)snprintf(first, sizeof first, "%s", token_of(s, "a"));
    const char *token = first + strlen("token:");
    CHECK(strlen(token) <= BEL_TOKEN_BYTES_MAX);
    for (size_t i = 0; token[i] != 0; i++) {
        bool is_letter =
            (token[i] >= 'a' && token[i] <= 'z') || (token[i] >= 'A' && token[i] <= 'Z');
        bool is_digit = token[i] >= '0' && token[i] <= '9';
        CHECK(is_letter || is_digit || token[i] == '-' || token[i] == '_');
    }
    CHECK(release(s, "a") == 0);
    expect_claim(s, "mail", "a");
    CHECK(strcmp(first, token_of(s, "a")) != 0);
}

static void requests_of_one_turn_are_applied_in_their_order(struct subject *s)
{
    struct bel_command make = {.verb = BEL_VERB_SCHEDULE};
    make.schedule.topic = view("mail");
    make.schedule.id = view("a");
    struct waiter *before = submit_claim(s, "mail");
    struct waiter *made = submit(s, &make);
    struct waiter *after = submit_claim(s, "mail");
    CHECK(before->heard == NULL && made->heard == NULL && after->heard == NULL);
    turn(s);
    expect_no_ids(before->heard);
    CHECK(made->heard != NULL && made->heard->reply.err == 0);
    expect_ids(after->heard, "a");
}

static void a_request_can_be_taken_back_before_a_turn(struct subject *s)
{
    struct bel_command make = {.verb = BEL_VERB_SCHEDULE};
    make.schedule.topic = view("mail");
    make.schedule.id = view("a");
    struct waiter *made = submit(s, &make);
    CHECK(bel_backend_withdraw(s->backend, &made->request));
    turn(s);
    CHECK(made->heard == NULL);
    expect_gone(s, "mail", "a");
}

static const struct test tests[] = {
    TEST(timers_come_by_due_then_priority_then_sequence),
    TEST(a_claim_gets_one_unless_it_says),
    TEST(a_leased_timer_is_nobody_elses),
    TEST(topics_take_turns),
    TEST(turns_go_on_behind_the_one_served_last),
    TEST(a_topic_that_has_nothing_is_passed_over),
    TEST(a_topic_listed_twice_is_listed_once),
    TEST(a_paused_topic_delivers_nothing),
    TEST(what_is_leased_can_be_done_while_paused),
    TEST(a_claim_stops_when_payloads_exceed_1_mib),
    TEST(headers_count_for_the_bytes_of_a_claim),
    TEST(a_timer_larger_than_the_bytes_of_a_claim_is_delivered),
    TEST(a_token_is_made_of_few_characters),
    TEST(requests_of_one_turn_are_applied_in_their_order),
    TEST(a_request_can_be_taken_back_before_a_turn),
};

GROUP(claims, 0, tests);
