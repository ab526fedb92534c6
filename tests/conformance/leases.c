/* SPDX-License-Identifier: MIT */

/*
 * Leases: how long they last, what ends them, and what a lost one costs.
 */
#include "conformance.h"

#include <string.h>

static void the_lease_is_the_claims_then_the_timers_then_the_topics(struct subject *s)
{
    configure(s, "mail", "lease", "10s");
    schedule(s, "mail", .id = "a", .lease = 20 * SECOND);
    schedule(s, "mail", .id = "b", .lease = 20 * SECOND);
    schedule(s, "mail", .id = "c");
    CHECK(claim(s, "mail", .lease = 5 * SECOND)->reply.deliveries.items[0].lease_ms == 5 * SECOND);
    CHECK(claim(s, "mail")->reply.deliveries.items[0].lease_ms == 20 * SECOND);
    CHECK(claim(s, "mail")->reply.deliveries.items[0].lease_ms == 10 * SECOND);
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 5 * SECOND);
    CHECK(timer_of(s, "mail", "b")->lease_left_ms == 20 * SECOND);
    CHECK(timer_of(s, "mail", "c")->lease_left_ms == 10 * SECOND);
}

static void a_lease_that_ends_gives_the_timer_back(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_ids(claim(s, "mail", .worker = "w"), "a");
    advance(s, 30 * SECOND - 1);
    expect_claim(s, "mail");
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 1);
    advance(s, 1);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_READY && timer->crashes == 1 && timer->attempts == 0);
    CHECK(timer->worker.bytes == 0 && timer->lease_left_ms == 0);
    CHECK(timer->outcomes_count == 1 && timer->outcomes[0].kind == BEL_OUTCOME_CRASHED);
    CHECK(is_text(timer->outcomes[0].reason, "lease lost"));
    CHECK(timer->outcomes[0].at.ms == START + 30 * SECOND);
    CHECK(ack(s, "a") == 0);
    const struct heard *heard = claim(s, "mail");
    expect_ids(heard, "a");
    CHECK(heard->reply.deliveries.items[0].attempt == 1);
}

static void a_lost_lease_keeps_the_old_place(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a");
    advance(s, 30 * SECOND);
    schedule(s, "mail", .id = "c");
    expect_claim(s, "mail", "a", "b", "c");
}

static void at_the_last_crash_the_timer_is_dead(struct subject *s)
{
    configure(s, "mail", "crashes", "2");
    schedule(s, "mail", .id = "a");
    for (unsigned i = 0; i < 2; i++) {
        expect_claim(s, "mail", "a");
        advance(s, 30 * SECOND);
    }
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_DEAD && timer->crashes == 2 && timer->outcomes_count == 2);
    CHECK(is_text(timer->reason, "lease lost 2 times"));
    CHECK(timer->finished.ms == START + MINUTE);
    expect_claim(s, "mail");
}

static void five_crashes_are_too_many_unless_set(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    for (unsigned i = 0; i < 5; i++) {
        expect_claim(s, "mail", "a");
        advance(s, 30 * SECOND);
    }
    CHECK(is_text(timer_of(s, "mail", "a")->reason, "lease lost 5 times"));
}

static void only_the_last_outcomes_are_kept(struct subject *s)
{
    schedule(s, "mail", .id = "a", .retry = "exp(1s,1,1s)");
    static const char *const reasons[] = {"1", "2", "3", "4", "5", "6", "7"};
    for (size_t i = 0; i < 7; i++) {
        expect_claim(s, "mail", "a");
        (void)fail(s, "a", .reason = reasons[i], .at_once = true);
    }
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->attempts == 7 && timer->outcomes_count == BEL_OUTCOMES_MAX);
    CHECK(is_text(timer->outcomes[0].reason, "3") && is_text(timer->outcomes[4].reason, "7"));
}

static void release_gives_it_back_in_its_old_place(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a");
    CHECK(release(s, "a") == 0);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->attempts == 0 && timer->crashes == 0 && timer->outcomes_count == 0);
    expect_claim(s, "mail", "a", "b");
    CHECK(release(s, "a") == 0);
    CHECK(release(s, "token:nonsense") == BEL_ESTALE);
}

static void release_with_a_delay_gives_a_new_due_and_sequence(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    schedule(s, "mail", .id = "b", .in = SECOND);
    CHECK(release_in(s, "a", SECOND) == 0);
    CHECK(timer_of(s, "mail", "a")->due.ms == START + SECOND);
    expect_state(s, "mail", "a", BEL_SCHEDULED);
    advance(s, SECOND);
    expect_claim(s, "mail", "b", "a");
    CHECK(release_in(s, "b", 0) == 0);
    CHECK(release_in(s, "a", 0) == 0);
    expect_claim(s, "mail", "b", "a");
}

static void extend_sets_the_end_to_now_and_its_duration(struct subject *s)
{
    uint64_t left = 0;
    schedule(s, "mail", .id = "a");
    expect_ids(claim(s, "mail", .lease = 10 * SECOND), "a");
    advance(s, 8 * SECOND);
    CHECK(extend(s, "a", 20 * SECOND, &left) == 0 && left == 20 * SECOND);
    CHECK(timer_of(s, "mail", "a")->lease_left_ms == 20 * SECOND);
    advance(s, 15 * SECOND);
    CHECK(extend(s, "a", 0, &left) == 0 && left == 10 * SECOND);
    CHECK(extend(s, "a", SECOND, &left) == 0 && left == SECOND);
    advance(s, SECOND);
    CHECK(extend(s, "a", SECOND, &left) == BEL_ESTALE);
    expect_claim(s, "mail", "a");
}

static void ack_ends_it(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    CHECK(ack(s, "a") == 1);
    CHECK(ack(s, "a") == 0);
    expect_gone(s, "mail", "a");
    advance(s, HOUR);
    expect_claim(s, "mail");
}

static void ack_counts_the_leases_that_were_live(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    schedule(s, "push", .id = "b");
    expect_claim(s, "mail", "a");
    expect_claim(s, "push", "b");
    struct bel_view tokens[] = {view(s->tokens[0].text), view("nonsense"), view(s->tokens[1].text),
                                view(s->tokens[0].text), view("")};
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){.tokens = tokens, .tokens_count = 5};
    CHECK_EQ(ask(s, &command)->reply.count, 2);
}

static void a_result_is_kept_with_the_timer(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    CHECK(ack_result(s, "a", "42") == 1);
    CHECK(ack(s, "b") == 1);
    const struct bel_timer *timer = timer_of(s, "mail", "a");
    CHECK(timer->state == BEL_DONE && is_text(timer->result, "42"));
    CHECK(timer->finished.ms == START && timer->reason.bytes == 0);
    CHECK(timer_of(s, "mail", "b")->result.bytes == 0);
    CHECK(ack_result(s, "a", "43") == 0);
}

static void a_result_is_of_one_token(struct subject *s)
{
    static char result[BEL_RESULT_BYTES_MAX + 1];
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_claim(s, "mail", "a", "b");
    struct bel_view tokens[] = {view(s->tokens[0].text), view(s->tokens[1].text)};
    struct bel_command command = {.verb = BEL_VERB_ACK};
    command.ack = (struct bel_ack){tokens, 2, true, view("x")};
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    command.ack = (struct bel_ack){tokens, 1, true, {result, sizeof result}};
    CHECK(ask(s, &command)->reply.err == BEL_EINVAL);
    expect_state(s, "mail", "a", BEL_LEASED);
    command.ack.result.bytes--;
    CHECK(ask(s, &command)->reply.count == 1);
}

static void malformed_tokens_are_stale(struct subject *s)
{
    char token[BEL_TOKEN_BYTES_MAX + 10], longest[2 * BEL_TOKEN_BYTES_MAX];
    uint64_t left;
    schedule(s, "mail", .id = "a");
    expect_claim(s, "mail", "a");
    (void)snprintf(token, sizeof token, "%s", token_of(s, "a"));
    size_t last = strlen(token) - 1;
    token[last] = token[last] == '0' ? '1' : '0';
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    memcpy(longest, "token:", 6);
    const char *const wrong[] = {token, "token:", "token:a", "token:\xff@ \n", longest};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(ack(s, wrong[i]) == 0);
        CHECK(fail_error(s, wrong[i]) == BEL_ESTALE);
        CHECK(release(s, wrong[i]) == BEL_ESTALE);
        CHECK(extend(s, wrong[i], 1, &left) == BEL_ESTALE);
    }
    token[last] = 0;
    CHECK(ack(s, token) == 0);
    CHECK(ack(s, "a") == 1);
}

static void leases_end_on_the_way_and_in_their_order(struct subject *s)
{
    configure(s, "mail", "crashes", "1");
    schedule(s, "mail", .id = "a");
    schedule(s, "mail", .id = "b");
    expect_ids(claim(s, "mail", .lease = 20 * SECOND), "a");
    expect_ids(claim(s, "mail", .lease = 10 * SECOND), "b");
    advance(s, HOUR);
    CHECK(timer_of(s, "mail", "b")->finished.ms == START + 10 * SECOND);
    CHECK(timer_of(s, "mail", "a")->finished.ms == START + 20 * SECOND);
    expect_list_state(s, BEL_DEAD, "mail", "b", "a");
}

static const struct test tests[] = {
    TEST(the_lease_is_the_claims_then_the_timers_then_the_topics),
    TEST(a_lease_that_ends_gives_the_timer_back),
    TEST(a_lost_lease_keeps_the_old_place),
    TEST(at_the_last_crash_the_timer_is_dead),
    TEST(five_crashes_are_too_many_unless_set),
    TEST(only_the_last_outcomes_are_kept),
    TEST(release_gives_it_back_in_its_old_place),
    TEST(release_with_a_delay_gives_a_new_due_and_sequence),
    TEST(extend_sets_the_end_to_now_and_its_duration),
    TEST(ack_ends_it),
    TEST(ack_counts_the_leases_that_were_live),
    TEST(a_result_is_kept_with_the_timer),
    TEST(a_result_is_of_one_token),
    TEST(malformed_tokens_are_stale),
    TEST(leases_end_on_the_way_and_in_their_order),
};

GROUP(leases, 0, tests);
