/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: there is an explanation for every timer. Its text is for people and not checked; its
 * reason is, where the backend gives one: the model has none.
 */
#include "conformance.h"

#include <string.h>

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

/* Checks the reason of an explanation. `until`: from START, 0: not known. */
static void expect_reason(struct subject *s, const char *id, const char *word, const char *by,
                          int64_t until)
{
    expect_lines(s, "mail", id);
    struct bel_command command = {.verb = BEL_VERB_EXPLAIN};
    command.target = (struct bel_target){view("mail"), view(id)};
    const struct bel_reason *reason = ask(s, &command)->reply.names.reason;
    if (reason == NULL) return;
    CHECK_NOTE("%s: %s by %.*s", id, reason->word, (int)reason->by.bytes,
               (const char *)reason->by.data);
    CHECK(strcmp(reason->word, word) == 0);
    CHECK(is_text(reason->by, by));
    CHECK(reason->has_until == (until != 0));
    CHECK(until == 0 || reason->until.ms == START + until);
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
    expect_lines(s, "mail", "leased");
    expect_reason(s, "dead", "ended", "dead", 0);
    expect_reason(s, "done", "ended", "done", 0);
    expect_reason(s, "ready", "no worker", "mail", 0);
    expect_reason(s, "scheduled", "time", "", HOUR);
    expect_reason(s, "plan", "time", "", HOUR);
    pause_topic(s, "mail");
    expect_reason(s, "ready", "topic paused", "mail", 0);
    advance(s, 2 * HOUR);
    expect_lines(s, "mail", occurrence("plan", HOUR));
    expect_reason(s, occurrence("plan", 2 * HOUR), "blocked", "plan", 0);
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
    expect_reason(s, "a", "limited", "api", 5);
    limit(s, (struct bel_limit){.resource = BEL_VIEW("*"), .has_until = true, .until_ms = 5});
    expect_reason(s, "a", "limited", "api", 5);
    schedule(s, "mail", .id = "c");
    expect_reason(s, "c", "*", "*", 5);
    CHECK(cancel(s, "mail", "c") == 1);
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
    expect_reason(s, "b", "rate", "api/search", 15);
    advance(s, 10);
    expect_reason(s, "b", "resource concurrency", "api", 0);
    (void)fail(s, "a", .kind = BEL_FAIL_RESOURCE);
    expect_reason(s, "b", "breaker", "api/search", 15 + 30 * SECOND);
}

static const struct test tests[] = {
    TEST(every_timer_is_explained),
    TEST(what_is_not_there_is_not_explained),
    TEST(explaining_notices_an_expiry),
    TEST(closed_resources_are_explained),
};

GROUP(explaining, 0, tests);
