/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: there is an explanation for every timer. Its text is for people and not checked.
 */
#include "conformance.h"

static void expect_lines(struct subject *s, const char *topic, const char *id)
{
    struct bel_command command = {.verb = BEL_VERB_EXPLAIN};
    command.target = (struct bel_target){view(topic), view(id)};
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0 && heard->reply.names.count > 0);
    for (size_t i = 0; i < heard->reply.names.count; i++) {
        CHECK(heard->reply.names.items[i].bytes > 0);
    }
}

static void every_timer_is_explained(struct subject *s)
{
    configure(s, "mail", "retention", "1h");
    schedule(s, "mail", .id = "leased");
    schedule(s, "mail", .id = "dead");
    schedule(s, "mail", .id = "done");
    expect_claim(s, "mail", "leased", "dead", "done");
    (void)fail(s, "dead", .dead = true);
    CHECK(ack(s, "done") == 1);
    schedule(s, "mail", .id = "ready");
    schedule(s, "mail", .id = "scheduled", .in = HOUR);
    schedule(s, "mail", .id = "plan", .every = "1h", .overlap = BEL_OVERLAP_QUEUE);
    static const char *const ids[] = {"leased", "dead", "done", "ready", "scheduled", "plan"};
    for (size_t i = 0; i < 6; i++) {
        expect_lines(s, "mail", ids[i]);
    }
    pause_topic(s, "mail");
    expect_lines(s, "mail", "ready");
    advance(s, 2 * HOUR);
    expect_lines(s, "mail", occurrence("plan", HOUR));
    expect_lines(s, "mail", occurrence("plan", 2 * HOUR));
}

static void what_is_not_there_is_not_explained(struct subject *s)
{
    CHECK(target(s, BEL_VERB_EXPLAIN, "mail", "a") == BEL_ENOTFOUND);
    schedule(s, "mail", .id = "a");
    CHECK(target(s, BEL_VERB_EXPLAIN, "mail", "b") == BEL_ENOTFOUND);
    CHECK(target(s, BEL_VERB_EXPLAIN, "mail", "a b") == BEL_ENOTFOUND);
    CHECK(target(s, BEL_VERB_EXPLAIN, "no good", "a") == BEL_EINVAL);
}

static void explaining_notices_an_expiry(struct subject *s)
{
    schedule(s, "mail", .id = "a", .expires = SECOND);
    advance(s, SECOND);
    expect_lines(s, "mail", "a");
    advance(s, SECOND);
    CHECK(timer_of(s, "mail", "a")->finished.ms == START + SECOND);
}

/* Limits a resource; returns nothing, because a backend without limits refuses it. */
static void limit(struct subject *s, struct bel_limit what)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = what;
    command.limit.action = BEL_LIMIT_SET;
    (void)ask(s, &command);
}

static void closed_resources_are_explained(struct subject *s)
{
    schedule(s, "mail", .id = "a", .resource = "api/search");
    schedule(s, "mail", .id = "b", .resource = "api/search");
    limit(s, (struct bel_limit){.resource = BEL_VIEW("api"), .has_until = true, .until_ms = 5});
    expect_lines(s, "mail", "a");
    limit(s, (struct bel_limit){.resource = BEL_VIEW("*"), .has_until = true, .until_ms = 5});
    expect_lines(s, "mail", "a");
    advance(s, 5);
    limit(s, (struct bel_limit){.resource = BEL_VIEW("api/search"),
                                .has_rate = true,
                                .rate_count = 1,
                                .rate_ms = 10,
                                .has_breaker = true,
                                .breaker_failures = 1});
    limit(s, (struct bel_limit){
                 .resource = BEL_VIEW("api"), .has_concurrency = true, .concurrency = 1});
    expect_claim(s, "mail", "a");
    expect_lines(s, "mail", "b");
    advance(s, 10);
    expect_lines(s, "mail", "b");
    (void)fail(s, "a", .kind = BEL_FAIL_RESOURCE);
    expect_lines(s, "mail", "b");
}

static const struct test tests[] = {
    TEST(every_timer_is_explained),
    TEST(what_is_not_there_is_not_explained),
    TEST(explaining_notices_an_expiry),
    TEST(closed_resources_are_explained),
};

GROUP(explaining, 0, tests);
