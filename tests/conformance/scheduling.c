/* SPDX-License-Identifier: MIT */

/*
 * Scheduling: due times, ids, moving and cancelling.
 */
#include "conformance.h"

#include <string.h>

static void a_timer_without_a_time_is_due_now(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "hello");
    expect_state(s, "mail", "a", BEL_READY);
    CHECK(timer_of(s, "mail", "a")->due.ms == START);
    expect_claim(s, "mail", "a");
}

static void a_timer_is_due_when_now_is_its_due(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = 10 * SECOND);
    schedule(s, "mail", .id = "b", .at = 10 * SECOND);
    advance(s, 10 * SECOND - 1);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    expect_state(s, "mail", "b", BEL_SCHEDULED);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_state(s, "mail", "a", BEL_READY);
    expect_claim(s, "mail", "a", "b");
}

static void a_time_in_the_past_is_due_now(struct subject *s)
{
    schedule(s, "mail", .id = "a", .at = -5 * SECOND);
    expect_claim(s, "mail", "a");
}

static void all_that_was_said_is_told(struct subject *s)
{
    const struct bel_header headers[] = {{BEL_VIEW("content-type"), BEL_VIEW("text/plain")},
                                         {BEL_VIEW("x"), BEL_VIEW("")}};
    const char *group = if_can(s, CAN_GROUP, "g 1");
    const char *resource = if_can(s, CAN_LIMIT, "api/search");
    schedule(s, "mail", .id = "a", .payload = "hello", .in = 5 * SECOND, .group = group,
             .resource = resource, .correlation = "c 1", .retry = "5s,30s", .priority = 7,
             .lease = 9 * SECOND, .expires = HOUR, .headers = headers, .headers_count = 2);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_SCHEDULED && timer->priority == 7);
    CHECK(is_text(timer->payload, "hello") && is_text(timer->group, group));
    CHECK(is_text(timer->resource, resource) && is_text(timer->correlation, "c 1"));
    CHECK(is_text(timer->retry, "5s,30s"));
    CHECK(timer->lease_ms == 9 * SECOND && timer->expires_ms == HOUR);
    CHECK(timer->due.ms == START + 5 * SECOND && timer->created.ms == START);
    CHECK(timer->expires.ms == START + 5 * SECOND + HOUR);
    CHECK(timer->attempts == 0 && timer->crashes == 0 && timer->outcomes_count == 0);
    CHECK(timer->plan.rule.bytes == 0 && timer->plan_id.bytes == 0 && timer->worker.bytes == 0);
    CHECK(timer->headers_count == 2 && is_text(timer->headers[0].value, "text/plain"));
    CHECK(is_text(timer->headers[1].name, "x") && timer->headers[1].value.bytes == 0);
}

static void a_delivery_has_what_was_said(struct subject *s)
{
    const struct bel_header headers[] = {{BEL_VIEW("x"), BEL_VIEW("1")}};
    schedule(s, "mail", .id = "a", .payload = "hello", .correlation = "c", .in = SECOND,
             .headers = headers, .headers_count = 1);
    advance(s, MINUTE);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, "a");
    const struct bel_delivery *delivery = &heard->reply.deliveries.items[0];
    CHECK(is_text(delivery->topic, "mail") && is_text(delivery->payload, "hello"));
    CHECK(is_text(delivery->correlation, "c"));
    CHECK(delivery->due.ms == START + SECOND && delivery->attempt == 1);
    CHECK(delivery->lease_ms == 30 * SECOND);
    CHECK(delivery->headers_count == 1 && is_text(delivery->headers[0].name, "x"));
}

static void a_payload_may_be_empty_or_have_any_bytes(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_SCHEDULE};
    command.schedule.topic = view("mail");
    command.schedule.id = view("a");
    command.schedule.payload = (struct bel_view){"\0\xff\n\0", 4};
    CHECK(ask(s, &command)->reply.err == 0);
    schedule(s, "mail", .id = "b");
    CHECK(heard_same(timer_of(s, "mail", "a")->payload, command.schedule.payload));
    CHECK(timer_of(s, "mail", "b")->payload.bytes == 0);
    expect_claim(s, "mail", "a", "b");
}

static void an_id_is_made_if_none_is_given(struct subject *s)
{
    char early[BEL_ID_BYTES + 1], late[BEL_ID_BYTES + 1], same[BEL_ID_BYTES + 1];
    (void)snprintf(late, sizeof late, "%s", schedule(s, "mail", .in = 2 * HOUR));
    (void)snprintf(early, sizeof early, "%s", schedule(s, "mail", .in = HOUR));
    (void)snprintf(same, sizeof same, "%s", schedule(s, "mail", .in = HOUR));
    CHECK(strlen(early) == 26 && strlen(late) == 26 && strlen(same) == 26);
    CHECK(strspn(early, "0123456789abcdefghijklmnopqrstuv") == 26);
    CHECK(strcmp(early, late) < 0 && strcmp(same, late) < 0 && strcmp(early, same) != 0);
    expect_list(s, "mail", early, same, late);
}

static void a_made_id_can_be_used_like_a_chosen_one(struct subject *s)
{
    char id[BEL_ID_BYTES + 1];
    (void)snprintf(id, sizeof id, "%s", schedule(s, "mail", .in = HOUR));
    CHECK(schedule_error(s, "mail", .id = id, .conflict = BEL_CONFLICT_REJECT) == BEL_ECONFLICT);
    schedule(s, "mail", .id = id, .payload = "again");
    schedule(s, "other", .id = id, .payload = "elsewhere");
    CHECK(is_text(timer_of(s, "mail", id)->payload, "again"));
    CHECK(cancel(s, "mail", id) == 1);
    expect_gone(s, "mail", id);
    expect_claim(s, "other", id);
}

static void the_same_id_in_two_topics_is_two_timers(struct subject *s)
{
    schedule(s, "mail", .id = "a", .payload = "1");
    schedule(s, "push", .id = "a", .payload = "2");
    CHECK(is_text(timer_of(s, "mail", "a")->payload, "1"));
    CHECK(is_text(timer_of(s, "push", "a")->payload, "2"));
    CHECK(cancel(s, "mail", "a") == 1);
    expect_claim(s, "push", "a");
}

static void cancel_counts_what_was_unfinished(struct subject *s)
{
    schedule(s, "mail", .id = "leased");
    expect_claim(s, "mail", "leased");
    schedule(s, "mail", .id = "scheduled", .in = HOUR);
    schedule(s, "mail", .id = "ready");
    struct bel_view ids[] = {view("scheduled"), view("leased"),    view("ready"),
                             view("none"),      view("scheduled"), view("a@1")};
    struct bel_command command = {.verb = BEL_VERB_CANCEL};
    command.cancel = (struct bel_cancel){view("mail"), ids, 6};
    CHECK_EQ(ask(s, &command)->reply.count, 3);
    CHECK_EQ(ask(s, &command)->reply.count, 0);
    CHECK(ack(s, "leased") == 0);
    expect_claim(s, "mail");
    expect_list(s, "mail");
}

static void a_cancelled_timer_is_never_delivered(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = SECOND);
    CHECK(cancel(s, "mail", "a") == 1);
    advance(s, HOUR);
    expect_claim(s, "mail");
}

static void reschedule_moves_what_is_scheduled_or_ready(struct subject *s)
{
    schedule(s, "mail", .id = "a", .in = HOUR);
    schedule(s, "mail", .id = "b");
    CHECK(reschedule_in(s, "mail", "a", SECOND) == 1);
    CHECK(reschedule_at(s, "mail", "b", 2 * SECOND) == 1);
    expect_claim(s, "mail");
    CHECK(timer_of(s, "mail", "a")->due.ms == START + SECOND);
    advance(s, SECOND);
    expect_claim(s, "mail", "a");
    advance(s, SECOND);
    expect_claim(s, "mail", "b");
}

static void reschedule_finds_nothing_else(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    CHECK(reschedule_in(s, "mail", "a", SECOND) == 0);
    CHECK(ack(s, "a") == 1);
    CHECK(reschedule_in(s, "mail", "a", SECOND) == 0);
    CHECK(reschedule_in(s, "mail", "none", SECOND) == 0);
    CHECK(reschedule_in(s, "unknown", "a", SECOND) == 0);
}

static void reschedule_keeps_attempts_and_gives_a_new_sequence(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .in = HOUR);
    schedule(s, "mail", .id = "b", .at = MINUTE);
    schedule(s, "mail", .id = "c", .at = MINUTE);
    CHECK(reschedule_at(s, "mail", "b", MINUTE) == 1);
    CHECK(reschedule_at(s, "mail", "a", MINUTE) == 1);
    CHECK(timer_of(s, "mail", "a")->attempts == 1);
    advance(s, MINUTE);
    expect_claim(s, "mail", "c", "b", "a");
}

static void a_topic_exists_from_the_first_that_names_it(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_TOPICS};
    CHECK_EQ(ask(s, &command)->reply.names.count, 0);
    expect_claim(s, "claimed");
    CHECK(get(s, "got", "a") == NULL && cancel(s, "cancelled", "a") == 0);
    CHECK(revive(s, "revived", NULL) == 0 && purge(s, "purged") == 0);
    expect_list(s, "listed");
    resume_topic(s, "resumed");
    CHECK_EQ(ask(s, &command)->reply.names.count, 0);
    CHECK(target(s, BEL_VERB_TOPIC, "resumed", NULL) == BEL_ENOTFOUND);

    schedule(s, "c", .id = "a");
    configure(s, "b", "lease", "5s");
    pause_topic(s, "a");
    CHECK(schedule_error(s, "d", .id = "no good") == BEL_EINVAL);
    CHECK(configure_error(s, "e", "lease", "no") == BEL_EINVAL);
    const struct heard *heard = ask(s, &command);
    CHECK_EQ(heard->reply.names.count, 3);
    CHECK(is_text(heard->reply.names.items[0], "a") && is_text(heard->reply.names.items[1], "b"));
    CHECK(is_text(heard->reply.names.items[2], "c"));
}

static void topics_are_sorted_by_their_bytes(struct subject *s)
{
    static const char *const names[] = {"b", "a/b", "B", "a", "a.b", "ab", "a-b", "0"};
    static const char *const sorted[] = {"0", "B", "a", "a-b", "a.b", "a/b", "ab", "b"};
    for (size_t i = 0; i < 8; i++) {
        schedule(s, names[i], .id = "a");
    }
    struct bel_command command = {.verb = BEL_VERB_TOPICS};
    const struct heard *heard = ask(s, &command);
    CHECK_EQ(heard->reply.names.count, 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK(is_text(heard->reply.names.items[i], sorted[i]));
    }
}

static void next_says_when_the_first_is_due(struct subject *s)
{
    turn(s);
    CHECK(s->next.due.ns == BEL_NEVER && s->next.wait.ns == BEL_NEVER);
    schedule(s, "mail", .id = "b", .at = HOUR);
    schedule(s, "mail", .id = "a", .in = MINUTE);
    turn(s);
    CHECK(s->next.due.ns <= s->now.boot.ns + UINT64_C(60000000000));
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
    CHECK(ack(s, "a") == 1);
    turn(s);
    CHECK(s->next.due.ns <= s->now.boot.ns + UINT64_C(3540000000000));
}

static const struct test tests[] = {
    TEST(a_timer_without_a_time_is_due_now),
    TEST(a_timer_is_due_when_now_is_its_due),
    TEST(a_time_in_the_past_is_due_now),
    TEST(all_that_was_said_is_told),
    TEST(a_delivery_has_what_was_said),
    TEST(a_payload_may_be_empty_or_have_any_bytes),
    TEST(an_id_is_made_if_none_is_given),
    TEST(a_made_id_can_be_used_like_a_chosen_one),
    TEST(the_same_id_in_two_topics_is_two_timers),
    TEST(cancel_counts_what_was_unfinished),
    TEST(a_cancelled_timer_is_never_delivered),
    TEST(reschedule_moves_what_is_scheduled_or_ready),
    TEST(reschedule_finds_nothing_else),
    TEST(reschedule_keeps_attempts_and_gives_a_new_sequence),
    TEST(a_topic_exists_from_the_first_that_names_it),
    TEST(topics_are_sorted_by_their_bytes),
    TEST(next_says_when_the_first_is_due),
};

GROUP(scheduling, 0, tests);
