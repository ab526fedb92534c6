/* SPDX-License-Identifier: MIT */

/*
 * Failures: what they cost, when the next attempt is, and when there is none.
 */
#include "conformance.h"

#include <string.h>

enum {
    DOOMED = 1050, /* more than a slice of 1,000 */
};

static void fail_adds_an_attempt_and_an_outcome(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s,30s");
    advance(s, SECOND);
    expect_ids(claim(s, "mail", .worker = "w"), "a");
    struct bel_verdict verdict = fail(s, "a", .reason = "refused");
    CHECK(verdict.state == BEL_SCHEDULED && verdict.due.ms == START + 6 * SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_SCHEDULED && timer->due.ms == START + 6 * SECOND);
    CHECK(timer->attempts == 1 && timer->crashes == 0 && timer->worker.bytes == 0);
    CHECK(timer->outcomes_count == 1 && timer->outcomes[0].kind == BEL_OUTCOME_FAILED);
    CHECK(is_text(timer->outcomes[0].reason, "refused"));
    CHECK(timer->outcomes[0].at.ms == START + SECOND && timer->reason.bytes == 0);
    CHECK(fail_error(s, "a", .reason = "again") == BEL_ESTALE);
    advance(s, 5 * SECOND);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, "a");
    CHECK(heard->reply.deliveries.items[0].attempt == 2);
}

static void a_list_of_delays_makes_one_attempt_more(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s,30s");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").due.ms == START + 5 * SECOND);
    advance(s, 5 * SECOND);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").due.ms == START + 35 * SECOND);
    advance(s, 30 * SECOND);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .reason = "for good").state == BEL_DEAD);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_DEAD && timer->attempts == 3);
    CHECK(is_text(timer->reason, "for good") && timer->finished.ms == START + 35 * SECOND);
}

static void attempts_are_counted_in_all(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "exp(1s,2,1h) max(3)");
    for (unsigned i = 0; i < 2; i++) {
        advance(s, MINUTE);
        expect_claim(s, "mail", "a");
        CHECK(fail(s, "a").state == BEL_SCHEDULED);
    }
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").state == BEL_DEAD);
}

static void one_attempt_is_the_least(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "exp(1s,2,1h) max(0)");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a").state == BEL_DEAD);
}

static void exp_grows_up_to_its_cap(struct subject *s)
{
    static const int64_t delays[] = {10, 20, 40, 60, 60};
    configure(s, "mail", "retry", "exp(10s,2,1m)");
    schedule(s, "mail", .id = "a");
    for (size_t i = 0; i < 5; i++) {
        expect_claim(s, "mail", "a");
        int64_t due = s->now.wall.ms + delays[i] * SECOND;
        CHECK(fail(s, "a").due.ms == due);
        advance(s, (uint64_t)(delays[i] * SECOND));
    }
}

static void the_timers_policy_goes_before_the_topics(struct subject *s)
{
    configure(s, "mail", "retry", "1s");
    schedule(s, "mail", .id = "a", .retry = "7s");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    CHECK(fail(s, "a").due.ms == START + 7 * SECOND);
    CHECK(fail(s, "b").due.ms == START + SECOND);
}

static void the_default_policy_waits_about_ten_seconds(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    int64_t delay = fail(s, "a").due.ms - START;
    CHECK(delay >= 9 * SECOND && delay <= 11 * SECOND);
}

static void a_delay_of_fail_replaces_the_policys_delay_only(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .in = MINUTE).due.ms == START + MINUTE);
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .in = MINUTE).state == BEL_DEAD);
}

static void a_retry_that_is_now_is_scheduled_in_the_verdict(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s");
    expect_claim(s, "mail", "a");
    struct bel_verdict verdict = fail(s, "a", .at_once = true);
    CHECK(verdict.state == BEL_SCHEDULED && verdict.due.ms == START);
    expect_state(s, "mail", "a", BEL_READY);
    expect_claim(s, "mail", "a");
}

static void dead_ends_it_whatever_the_policy(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "exp(1s,2,1h)");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .reason = "poison", .dead = true).state == BEL_DEAD);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(is_text(timer->reason, "poison") && timer->attempts == 1 && timer->outcomes_count == 1);
    expect_claim(s, "mail");
}

static void a_resource_failure_spends_an_attempt(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .kind = BEL_FAIL_RESOURCE).due.ms == START + 5 * SECOND);
    CHECK(timer_of(s, "mail", "a")->attempts == 1);
}

static void a_limited_failure_spends_and_notes_nothing(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s");
    expect_claim(s, "mail", "a");
    CHECK(fail(s, "a", .kind = BEL_FAIL_LIMITED).due.ms == START + MINUTE);
    advance(s, MINUTE);
    expect_claim(s, "mail", "a");
    struct bel_verdict verdict = fail(s, "a", .kind = BEL_FAIL_LIMITED, .in = SECOND);
    CHECK(verdict.state == BEL_SCHEDULED && verdict.due.ms == START + MINUTE + SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->attempts == 0 && timer->outcomes_count == 0);
}

static void limited_failures_leave_the_policy_where_it_was(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s,30s");
    for (unsigned i = 0; i < 30; i++) {
        expect_claim(s, "mail", "a");
        CHECK(fail(s, "a", .kind = BEL_FAIL_LIMITED).state == BEL_SCHEDULED);
        advance(s, MINUTE);
    }
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, "a");
    CHECK(heard->reply.deliveries.items[0].attempt == 1);
    CHECK(fail(s, "a").due.ms == START + 30 * MINUTE + 5 * SECOND);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->attempts == 1 && timer->crashes == 0 && timer->outcomes_count == 1);
}

static void a_retry_has_a_new_sequence(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "5s");
    expect_claim(s, "mail", "a");
    schedule(s, "mail", .id = "b", .in = 5 * SECOND);
    (void)fail(s, "a");
    schedule(s, "mail", .id = "c", .in = 5 * SECOND);
    advance(s, 5 * SECOND);
    expect_claim(s, "mail", "b", "a", "c");
}

static void long_reasons_are_cut_off(struct subject *s)
{
    static char reason[BEL_TEXT_BYTES_MAX + 100];
    for (size_t i = 0; i < sizeof reason - 1; i++) {
        reason[i] = 'x';
    }
    schedule(s, "mail", .id = "a");
    expect_ids(claim(s, "mail", .worker = reason), "a");
    CHECK(timer_of(s, "mail", "a")->worker.bytes == BEL_TEXT_BYTES_MAX);
    (void)fail(s, "a", .reason = reason, .dead = true);
    CHECK(timer_of(s, "mail", "a")->reason.bytes == BEL_TEXT_BYTES_MAX);
    CHECK(timer_of(s, "mail", "a")->outcomes[0].reason.bytes == BEL_TEXT_BYTES_MAX);
}

/* Fills a text with `before` letters and then one character, again and again. */
static void fill_with(char *text, size_t bytes, size_t before, const char *character)
{
    size_t at = before;
    memset(text, 'x', before);
    while (at + strlen(character) < bytes) {
        memcpy(text + at, character, strlen(character));
        at += strlen(character);
    }
    text[at] = 0;
}

static bool is_whole(struct bel_view text, size_t before, size_t character_bytes)
{
    return text.bytes <= BEL_TEXT_BYTES_MAX && text.bytes + character_bytes > BEL_TEXT_BYTES_MAX &&
           (text.bytes - before) % character_bytes == 0;
}

/* One that is cut inside a character would make a whole LIST unreadable to who decodes it. */
static void long_texts_are_cut_at_a_character(struct subject *s)
{
    static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x94\x94"};
    static char text[BEL_TEXT_BYTES_MAX + 100];
    schedule(s, "mail", .id = "a", .retry = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0");
    for (size_t i = 0; i < 12; i++) {
        const char *character = characters[i / 4];
        size_t before = i % 4, bytes = strlen(character);
        fill_with(text, sizeof text, before, character);
        expect_ids(claim(s, "mail", .worker = text), "a");
        CHECK(is_whole(timer_of(s, "mail", "a")->worker, before, bytes));
        (void)fail(s, "a", .reason = text);
        const struct bel_timer *timer = timer_of(s, "mail", "a");
        CHECK(is_whole(timer->outcomes[timer->outcomes_count - 1].reason, before, bytes));
    }
    expect_ids(claim(s, "mail"), "a");
    (void)fail(s, "a", .reason = text, .dead = true);
    CHECK(is_whole(timer_of(s, "mail", "a")->reason, 3, 4));
}

static void revive_makes_a_dead_one_due_now(struct subject *s)
{
    configure(s, "mail", "crashes", "1");
    schedule(s, "mail", .id = "a", .retry = "1s");
    expect_claim(s, "mail", "a");
    (void)fail(s, "a", .reason = "one");
    advance(s, SECOND);
    expect_claim(s, "mail", "a");
    advance(s, 30 * SECOND);
    expect_state(s, "mail", "a", BEL_DEAD);
    CHECK(revive(s, "mail", "a") == 1);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_READY && timer->due.ms == START + 31 * SECOND);
    CHECK(timer->attempts == 0 && timer->crashes == 0 && timer->outcomes_count == 2);
    CHECK(timer->reason.bytes == 0 && timer->finished.ms == 0);
    expect_claim(s, "mail", "a");
}

static void revive_of_none_named_is_all_of_the_topic(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    schedule(s, "mail", .id = "c");
    schedule(s, "push", .id = "d");
    expect_claim(s, "mail", "a", "b", "c");
    expect_claim(s, "push", "d");
    (void)fail(s, "c", .dead = true);
    (void)fail(s, "d", .dead = true);
    advance(s, SECOND);
    (void)fail(s, "a", .dead = true);
    CHECK(revive(s, "mail", "b") == 0);
    CHECK(revive(s, "mail", NULL) == 2);
    CHECK(revive(s, "mail", NULL) == 0);
    expect_state(s, "push", "d", BEL_DEAD);
    expect_claim(s, "mail", "c", "a");
}

/* Leases of different lengths, so that timers die in an order other than that of their ids. */
static void schedule_doomed(struct subject *s)
{
    for (unsigned i = 0; i < DOOMED; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "%u", i);
        schedule(s, "mail", .id = id, .lease = (1 + i * 7 % 5) * SECOND);
    }
}

static void revive_of_more_than_a_slice_keeps_the_order_of_the_list(struct subject *s)
{
    const struct heard *dead[2];
    struct bel_command command = {.verb = BEL_VERB_LIST};
    command.list = (struct bel_list_query){
        .topic = view("mail"), .has_state = true, .state = BEL_DEAD, .count = 1000};
    configure(s, "mail", "crashes", "1");
    schedule_doomed(s);
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQ(claim(s, "mail", .count = 1000)->reply.deliveries.count,
                 i == 0 ? 1000 : DOOMED - 1000);
    }
    advance(s, 5 * SECOND);
    for (size_t i = 0; i < 2; i++) {
        dead[i] = ask(s, &command);
        CHECK_EQ(dead[i]->reply.timers.count, i == 0 ? 1000 : DOOMED - 1000);
        command.list.cursor = dead[i]->reply.timers.cursor;
    }
    CHECK_EQ(revive(s, "mail", NULL), DOOMED);
    for (size_t i = 0; i < 2; i++) {
        const struct heard *alive = claim(s, "mail", .count = 1000);
        CHECK_EQ(alive->reply.deliveries.count, dead[i]->reply.timers.count);
        for (size_t k = 0; k < alive->reply.deliveries.count; k++) {
            CHECK(
                heard_same(alive->reply.deliveries.items[k].id, dead[i]->reply.timers.items[k].id));
        }
    }
}

static const struct test tests[] = {
    TEST(fail_adds_an_attempt_and_an_outcome),
    TEST(a_list_of_delays_makes_one_attempt_more),
    TEST(attempts_are_counted_in_all),
    TEST(one_attempt_is_the_least),
    TEST(exp_grows_up_to_its_cap),
    TEST(the_timers_policy_goes_before_the_topics),
    TEST(the_default_policy_waits_about_ten_seconds),
    TEST(a_delay_of_fail_replaces_the_policys_delay_only),
    TEST(a_retry_that_is_now_is_scheduled_in_the_verdict),
    TEST(dead_ends_it_whatever_the_policy),
    TEST(a_resource_failure_spends_an_attempt),
    TEST(a_limited_failure_spends_and_notes_nothing),
    TEST(limited_failures_leave_the_policy_where_it_was),
    TEST(a_retry_has_a_new_sequence),
    TEST(long_reasons_are_cut_off),
    TEST(long_texts_are_cut_at_a_character),
    TEST(revive_makes_a_dead_one_due_now),
    TEST(revive_of_none_named_is_all_of_the_topic),
    TEST(revive_of_more_than_a_slice_keeps_the_order_of_the_list),
};

GROUP(failing, 0, tests);
