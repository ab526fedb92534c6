/* SPDX-License-Identifier: MIT */

/*
 * Resources: what limits hold back, and when it is delivered after all.
 */
#include "conformance.h"

#include <string.h>

/* LIMIT. A field that is 0 is not given. */
struct limited {
    const char *resource;
    uint64_t rate, per, burst, concurrency, until, breaker, open, max;
    bool off;      /* BREAKER off, or CONCURRENCY 0 */
    bool rate_off; /* RATE off */
};

static const struct heard *ask_limit(struct subject *s, const struct limited *what)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){
        .action = BEL_LIMIT_SET,
        .resource = view(what->resource),
        .has_rate = what->rate > 0 || what->per > 0 || what->rate_off,
        .has_burst = what->burst > 0,
        .has_concurrency = what->concurrency > 0,
        .has_until = what->until > 0,
        .has_breaker = what->breaker > 0 || what->off,
        .rate_count = what->rate,
        .rate_ms = what->per,
        .burst = what->burst,
        .concurrency = what->concurrency,
        .until_ms = what->until,
        .breaker_failures = what->breaker,
        .breaker_open_ms = what->open,
        .breaker_max_ms = what->max,
    };
    return ask(s, &command);
}

/* Sets limits and returns the state; without limits only the latter. */
static const struct bel_limit_state *limit_as(struct subject *s, const struct limited *what)
{
    const struct heard *heard = ask_limit(s, what);
    CHECK(heard->reply.err == 0 && heard->reply.limits.count == 1);
    CHECK(is_text(heard->reply.limits.items[0].name, what->resource));
    return &heard->reply.limits.items[0];
}

#define limit(s, ...) (AT, limit_as(s, &(struct limited){.resource = __VA_ARGS__}))
#define limit_error(s, ...)                                                                        \
    (AT, ask_limit(s, &(struct limited){.resource = __VA_ARGS__})->reply.err)

static const struct heard *act(struct subject *s, enum bel_limit_action action, const char *name)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = action, .resource = view(name)};
    const struct heard *heard = ask(s, &command);
    CHECK(heard->reply.err == 0);
    return heard;
}

#define clear(s, name)  (AT, &act(s, BEL_LIMIT_CLEAR, name)->reply.limits.items[0])
#define clear_all(s)    (AT, act(s, BEL_LIMIT_CLEAR_ALL, NULL)->reply.limits.changed)
#define forget(s, name) (AT, act(s, BEL_LIMIT_DELETE, name)->reply.limits.changed)

/* Schedules timers, each named by the resource that it has and a number, with long leases. */
static void fill(struct subject *s, const char *resource, unsigned count)
{
    configure(s, "mail", "lease", "2d");
    for (unsigned i = 1; i <= count; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "%s%u", resource, i);
        schedule(s, "mail", .id = id, .resource = resource);
    }
}

static void fails(struct subject *s, const char *id)
{
    (void)fail(s, id, .kind = BEL_FAIL_RESOURCE, .at_once = true);
}

/* Claims and fails the timer `id` some times, which must not be waiting. */
static void break_it(struct subject *s, const char *id, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        expect_claim(s, "mail", id);
        fails(s, id);
    }
}

static void a_limit_holds_back_its_resource_only(struct subject *s)
{
    fill(s, "api", 2);
    fill(s, "db", 1);
    schedule(s, "mail", .id = "none");
    CHECK(limit(s, "api", .until = 30 * SECOND)->limited_until.ms == START + 30 * SECOND);
    expect_ids(claim(s, "mail", .count = 9), "db1", "none");
    expect_claim(s, "mail");
    advance(s, 30 * SECOND - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_ids(claim(s, "mail", .count = 9), "api1", "api2");
    CHECK(limit(s, "api")->limited_until.ms == 0);
}

static void a_waiting_claim_is_served_when_a_limit_ends(struct subject *s)
{
    fill(s, "api", 1);
    limit(s, "api", .until = 10 * SECOND);
    const struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    advance(s, 10 * SECOND - 1);
    CHECK(waiter->heard == NULL);
    advance(s, 1);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "api1");
}

static void a_limit_is_never_shortened(struct subject *s)
{
    CHECK(limit(s, "api", .until = 10 * SECOND)->limited_until.ms == START + 10 * SECOND);
    CHECK(limit(s, "api", .until = MINUTE)->limited_until.ms == START + MINUTE);
    CHECK(limit(s, "api", .until = 5 * SECOND)->limited_until.ms == START + MINUTE);
}

static void a_limit_is_at_most_a_day(struct subject *s)
{
    CHECK(limit(s, "api", .until = 50 * HOUR)->limited_until.ms == START + DAY);
}

static void a_limited_failure_parks_the_timer_at_its_place(struct subject *s)
{
    fill(s, "api", 3);
    expect_claim(s, "mail", "api1");
    for (unsigned i = 0; i < 12; i++) {
        struct bel_verdict verdict = fail(s, "api1", .kind = BEL_FAIL_LIMITED, .in = 20 * SECOND);
        CHECK(verdict.state == BEL_READY && verdict.due.ms == START + wall(s) + 20 * SECOND);
        expect_state(s, "mail", "api1", BEL_READY);
        expect_claim(s, "mail");
        advance(s, 20 * SECOND);
        expect_claim(s, "mail", "api1");
    }
    CHECK(timer_of(s, "mail", "api1")->attempts == 0);
    (void)fail(s, "api1", .kind = BEL_FAIL_RESOURCE);
    CHECK(timer_of(s, "mail", "api1")->attempts == 1);
}

static void a_limited_failure_lasts_a_minute_by_default(struct subject *s)
{
    fill(s, "api", 1);
    expect_ids(claim(s, "mail", .worker = "w1"), "api1");
    (void)fail(s, "api1", .kind = BEL_FAIL_LIMITED);
    const struct bel_limit_state *state = limit(s, "api");
    CHECK(state->limited_until.ms == START + MINUTE && state->running == 0);
    CHECK(state->reports_count == 1 && is_text(state->reports[0].who, "w1"));
    CHECK(state->reports[0].at.ms == START && state->reports[0].for_ms == (uint64_t)MINUTE);
}

static void reports_are_shown_for_an_hour(struct subject *s)
{
    limit(s, "api", .until = SECOND);
    advance(s, 40 * MINUTE);
    limit(s, "api", .until = 2 * SECOND);
    const struct bel_limit_state *state = limit(s, "api");
    CHECK(state->reports_count == 2 && state->reports[0].for_ms == (uint64_t)(2 * SECOND));
    advance(s, 21 * MINUTE);
    CHECK(limit(s, "api")->reports_count == 1);
    advance(s, HOUR);
    CHECK(limit_error(s, "api") == BEL_ENOTFOUND);
}

static void clearing_ends_a_limit_at_once(struct subject *s)
{
    fill(s, "api", 1);
    limit(s, "api", .until = HOUR, .rate = 5, .per = SECOND);
    const struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    const struct bel_limit_state *state = clear(s, "api");
    CHECK(state->limited_until.ms == 0 && state->rate_count == 5 && state->rate_ms == SECOND);
    turn(s);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "api1");
}

static void clearing_needs_a_known_resource(struct subject *s)
{
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = BEL_LIMIT_CLEAR, .resource = BEL_VIEW("apy")};
    limit(s, "api", .until = HOUR);
    CHECK(ask(s, &command)->reply.err == BEL_ENOTFOUND);
    CHECK(limit_error(s, "apy") == BEL_ENOTFOUND);
    CHECK(limit(s, "api")->limited_until.ms == START + HOUR);
    CHECK(is_text(clear(s, "*")->name, "*"));
}

static void clearing_all_counts_the_limited_ones(struct subject *s)
{
    fill(s, "c", 1);
    limit(s, "a", .until = HOUR);
    limit(s, "b", .until = SECOND);
    limit(s, "d", .rate = 1, .per = HOUR);
    break_it(s, "c1", 5);
    advance(s, SECOND);
    CHECK(clear_all(s) == 2); /* a and c: b is over */
    CHECK(clear_all(s) == 0);
    expect_claim(s, "mail", "c1");
}

static void a_rate_gives_a_burst_and_then_its_interval(struct subject *s)
{
    fill(s, "api", 9);
    limit(s, "api", .rate = 2, .per = SECOND, .burst = 3);
    expect_ids(claim(s, "mail", .count = 9), "api1", "api2", "api3");
    advance(s, 499);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_ids(claim(s, "mail", .count = 9), "api4");
    advance(s, 10 * SECOND);
    expect_ids(claim(s, "mail", .count = 9), "api5", "api6", "api7");
}

static void a_rate_has_a_burst_of_one_by_default(struct subject *s)
{
    fill(s, "api", 3);
    CHECK(limit(s, "api", .rate = 3, .per = SECOND)->burst == 1);
    expect_ids(claim(s, "mail", .count = 9), "api1");
    advance(s, 333);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_ids(claim(s, "mail", .count = 9), "api2");
}

static void what_was_delivered_is_not_given_back(struct subject *s)
{
    fill(s, "api", 2);
    limit(s, "api", .rate = 1, .per = MINUTE);
    expect_claim(s, "mail", "api1");
    CHECK(release(s, "api1") == 0);
    expect_claim(s, "mail");
    advance(s, MINUTE);
    expect_claim(s, "mail", "api1");
}

static void a_new_rate_keeps_what_was_taken(struct subject *s)
{
    fill(s, "api", 9);
    limit(s, "api", .rate = 1, .per = SECOND, .burst = 4);
    expect_ids(claim(s, "mail", .count = 9), "api1", "api2", "api3", "api4");
    limit(s, "api", .rate = 1, .per = MINUTE, .burst = 1); /* four are taken in advance */
    advance(s, 4 * MINUTE - 1);
    expect_claim(s, "mail");
    advance(s, 1);
    expect_ids(claim(s, "mail", .count = 9), "api5");
}

static void a_rate_that_is_off_holds_nothing_back(struct subject *s)
{
    fill(s, "api", 4);
    limit(s, "api", .rate = 1, .per = HOUR, .concurrency = 9);
    expect_ids(claim(s, "mail", .count = 9), "api1");
    expect_claim(s, "mail");
    const struct bel_limit_state *state = limit(s, "api", .rate_off = true);
    CHECK(state->rate_count == 0 && state->rate_ms == 0 && state->rate.bytes == 0);
    CHECK(state->concurrency == 9);
    expect_ids(claim(s, "mail", .count = 9), "api2", "api3", "api4");
    fill(s, "api/x", 2);
    limit(s, "api", .rate = 1, .per = HOUR); /* nothing is taken in advance */
    expect_ids(claim(s, "mail", .count = 9), "api/x1");
}

static void concurrency_counts_leases(struct subject *s)
{
    fill(s, "api", 4);
    CHECK(limit(s, "api", .concurrency = 2)->concurrency == 2);
    expect_ids(claim(s, "mail", .count = 9), "api1", "api2");
    CHECK(limit(s, "api")->running == 2);
    CHECK(ack(s, "api1") == 1);
    expect_ids(claim(s, "mail", .count = 9), "api3");
    limit(s, "api", .concurrency = 1); /* revokes nothing */
    CHECK(ack(s, "api2") == 1);
    expect_claim(s, "mail");
    CHECK(release(s, "api3") == 0);
    expect_ids(claim(s, "mail", .count = 9), "api3");
}

static void a_waiting_claim_is_served_when_a_lease_ends(struct subject *s)
{
    fill(s, "api", 2);
    limit(s, "api", .concurrency = 1);
    expect_claim(s, "mail", "api1");
    const struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    CHECK(ack(s, "api1") == 1);
    turn(s);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "api2");
}

static void resources_nest(struct subject *s)
{
    fill(s, "api/search", 2);
    fill(s, "api", 1);
    fill(s, "apix", 1);
    limit(s, "api", .until = MINUTE);
    expect_ids(claim(s, "mail", .count = 9), "apix1");
    advance(s, MINUTE);
    limit(s, "api", .concurrency = 2);
    limit(s, "api/search", .concurrency = 1);
    expect_ids(claim(s, "mail", .count = 9), "api/search1", "api1");
    CHECK(limit(s, "api")->running == 2 && limit(s, "api/search")->running == 1);
    CHECK(ack(s, "api1") == 1);
    expect_claim(s, "mail");
    CHECK(ack(s, "api/search1") == 1);
    expect_ids(claim(s, "mail", .count = 9), "api/search2");
}

static void a_parked_timer_holds_nothing(struct subject *s)
{
    fill(s, "api/a", 1);
    fill(s, "api/b", 1);
    limit(s, "api", .concurrency = 1);
    limit(s, "api/a", .until = HOUR);
    expect_ids(claim(s, "mail", .count = 9), "api/b1");
}

static void the_star_caps_all_topics(struct subject *s)
{
    fill(s, "api", 2);
    schedule(s, "work", .id = "w1");
    schedule(s, "work", .id = "w2");
    limit(s, "*", .concurrency = 2);
    expect_ids(claim(s, "mail", .count = 1), "api1");
    expect_ids(claim(s, "work", .count = 9), "w1");
    expect_claim(s, "mail");
    const struct waiter *waiter = submit_claim(s, "work", .wait = HOUR);
    turn(s);
    CHECK(waiter->heard == NULL);
    CHECK(ack(s, "api1") == 1);
    turn(s);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "w2");
    CHECK(limit(s, "*")->running == 2);
    CHECK(forget(s, "*") == 1);
    expect_claim(s, "mail", "api2");
}

static void the_star_can_be_limited_for_a_time(struct subject *s)
{
    schedule(s, "mail", .id = "a");
    limit(s, "*", .until = MINUTE);
    const struct waiter *waiter = submit_claim(s, "mail", .wait = HOUR);
    turn(s);
    advance(s, MINUTE - 1);
    CHECK(waiter->heard == NULL);
    advance(s, 1);
    CHECK(waiter->heard != NULL);
    expect_ids(waiter->heard, "a");
}

static void a_breaker_opens_at_the_fifth_failure(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 1);
    break_it(s, "api1", 4);
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_CLOSED && limit(s, "api")->failures == 4);
    break_it(s, "api1", 1);
    const struct bel_limit_state *state = limit(s, "api");
    CHECK(state->breaker == BEL_BREAKER_OPEN);
    CHECK(state->breaker_until.ms == START + 30 * SECOND);
    expect_claim(s, "mail");
    advance(s, 30 * SECOND);
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_HALF_OPEN);
}

static void a_success_resets_the_count(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 1);
    break_it(s, "api1", 4);
    expect_claim(s, "mail", "api1");
    CHECK(ack(s, "api1") == 1);
    fill(s, "api", 1);
    break_it(s, "api1", 4);
    expect_claim(s, "mail", "api1");
}

static void half_open_lets_one_probe_through(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 4);
    break_it(s, "api1", 1);
    break_it(s, "api2", 1);
    break_it(s, "api3", 1);
    break_it(s, "api4", 1);
    break_it(s, "api1", 1);
    advance(s, 30 * SECOND);
    expect_ids(claim(s, "mail", .count = 9), "api2");
    CHECK(ack(s, "api2") == 1);
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_CLOSED);
    expect_ids(claim(s, "mail", .count = 9), "api3", "api4", "api1");
}

static void a_failed_probe_reopens_for_twice_as_long(struct subject *s)
{
    static const int64_t delays[] = {30, 60, 120, 240, 300, 300};
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 1);
    break_it(s, "api1", 5);
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        CHECK(limit(s, "api")->breaker_until.ms == START + wall(s) + delays[i] * SECOND);
        advance(s, (uint64_t)(delays[i] * SECOND - 1));
        expect_claim(s, "mail");
        advance(s, 1);
        break_it(s, "api1", 1);
    }
    advance(s, 5 * MINUTE);
    expect_claim(s, "mail", "api1");
    CHECK(ack(s, "api1") == 1);
    fill(s, "api", 1);
    break_it(s, "api1", 5);
    CHECK(limit(s, "api")->breaker_until.ms == START + wall(s) + 30 * SECOND); /* starts over */
}

static void a_lost_probe_is_a_failed_one(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 1);
    break_it(s, "api1", 5);
    advance(s, 30 * SECOND);
    expect_ids(claim(s, "mail", .lease = 30 * SECOND), "api1");
    advance(s, 30 * SECOND); /* the lease ends */
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_OPEN);
    CHECK(limit(s, "api")->breaker_until.ms == START + wall(s) + MINUTE);
}

static void a_probe_that_is_given_back_frees_its_place(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 2);
    break_it(s, "api1", 1);
    break_it(s, "api2", 1);
    break_it(s, "api1", 1);
    break_it(s, "api2", 1);
    break_it(s, "api1", 1);
    advance(s, 30 * SECOND);
    expect_ids(claim(s, "mail", .count = 9), "api2");
    CHECK(release_in(s, "api2", HOUR) == 0);
    expect_ids(claim(s, "mail", .count = 9), "api1");
    (void)fail(s, "api1", .in = HOUR); /* an error of another kind */
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_HALF_OPEN);
    CHECK(reschedule_in(s, "mail", "api2", 1) == 1);
    advance(s, 1);
    expect_claim(s, "mail", "api2");
    CHECK(cancel(s, "mail", "api2") == 1);
    CHECK(reschedule_in(s, "mail", "api1", 1) == 1);
    advance(s, 1);
    expect_claim(s, "mail", "api1");
}

static void late_results_do_not_move_an_open_breaker(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 3);
    expect_ids(claim(s, "mail", .count = 2, .lease = HOUR), "api1", "api2");
    break_it(s, "api3", 5);
    int64_t until = limit(s, "api")->breaker_until.ms;
    advance(s, SECOND);
    fails(s, "api1");
    CHECK(limit(s, "api")->breaker_until.ms == until);
    CHECK(ack(s, "api2") == 1);
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_OPEN);
}

static void failures_count_for_the_named_resource_only(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api/a", 1);
    fill(s, "api/b", 1);
    break_it(s, "api/a1", 1);
    CHECK(cancel(s, "mail", "api/b1") == 1);
    break_it(s, "api/a1", 4);
    CHECK(limit(s, "api/a")->breaker == BEL_BREAKER_OPEN);
    fill(s, "api/b", 1);
    expect_claim(s, "mail", "api/b1");
    CHECK(limit(s, "api")->breaker == BEL_BREAKER_CLOSED && limit(s, "api")->failures == 0);
}

static void a_breaker_can_be_set_and_switched_off(struct subject *s)
{
    configure(s, "mail", "retry", "fixed(1ms)");
    fill(s, "api", 1);
    const struct bel_limit_state *state =
        limit(s, "api", .breaker = 2, .open = SECOND, .max = 3 * SECOND);
    CHECK(state->breaker_failures == 2 && state->breaker_open_ms == SECOND);
    break_it(s, "api1", 2);
    CHECK(limit(s, "api")->breaker_until.ms == START + wall(s) + SECOND);
    CHECK(limit(s, "api", .off = true)->breaker == BEL_BREAKER_CLOSED);
    break_it(s, "api1", 20);
    expect_claim(s, "mail", "api1");
}

static void limits_are_checked_and_change_nothing(struct subject *s)
{
    limit(s, "api", .rate = 1, .per = SECOND, .burst = 2, .concurrency = 3);
    CHECK(limit_error(s, "") == BEL_EINVAL);
    CHECK(limit_error(s, "a b", .until = 1) == BEL_EINVAL);
    CHECK(limit_error(s, "**", .until = 1) == BEL_EINVAL);
    CHECK(limit_error(s, "nosuch") == BEL_ENOTFOUND);
    CHECK(limit_error(s, "api", .rate = 1, .burst = 9) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .per = 1, .concurrency = 9) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .rate = UINT64_MAX, .per = 1) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .rate = 1, .per = UINT64_MAX) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .burst = UINT64_MAX, .until = 5) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .concurrency = UINT64_MAX) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .breaker = UINT64_MAX, .until = 5) == BEL_EINVAL);
    CHECK(limit_error(s, "api", .breaker = 3, .open = 5, .max = 4) == BEL_EINVAL);
    CHECK(limit_error(s, "*", .breaker = 3) == BEL_EINVAL);
    const struct bel_limit_state *state = limit(s, "api");
    CHECK(state->rate_count == 1 && state->rate_ms == SECOND && state->burst == 2);
    CHECK(state->concurrency == 3 && state->limited_until.ms == 0);
    CHECK(state->breaker_failures == 5 && state->breaker_open_ms == 30 * SECOND);
    CHECK(state->breaker_max_ms == 300 * SECOND);
}

static void resources_are_listed_in_pages(struct subject *s)
{
    static const char *const names[] = {"a", "a/b", "b", "c", "d"};
    for (size_t i = 0; i < 5; i++) {
        limit(s, names[i * 3 % 5], .concurrency = 1 + i);
    }
    struct bel_command command = {.verb = BEL_VERB_LIMIT};
    command.limit = (struct bel_limit){.action = BEL_LIMIT_LIST, .count = 2};
    for (size_t seen = 0; seen < 5;) {
        const struct heard *heard = ask(s, &command);
        CHECK(heard->reply.err == 0 && heard->reply.limits.count == (seen < 4 ? 2 : 1));
        for (size_t i = 0; i < heard->reply.limits.count; i++) {
            CHECK(is_text(heard->reply.limits.items[i].name, names[seen++]));
        }
        CHECK((heard->reply.limits.cursor.bytes == 0) == (seen == 5));
        command.limit.cursor = heard->reply.limits.cursor;
    }
    CHECK(forget(s, "b") == 1);
    CHECK(forget(s, "b") == 0);
    CHECK(forget(s, "nosuch") == 0);
    command.limit = (struct bel_limit){.action = BEL_LIMIT_LIST};
    CHECK(ask(s, &command)->reply.limits.count == 4);
}

static void parked_timers_are_counted_when_a_claim_meets_them(struct subject *s)
{
    fill(s, "api", 3);
    limit(s, "api", .until = MINUTE);
    expect_claim(s, "mail");
    CHECK(topic(s, "mail")->counts[BEL_READY] == 3);
    expect_state(s, "mail", "api2", BEL_READY);
    CHECK(cancel(s, "mail", "api1") == 1);
    advance(s, MINUTE);
    expect_ids(claim(s, "mail", .count = 9), "api2", "api3");
}

static const struct test tests[] = {
    TEST(a_limit_holds_back_its_resource_only),
    TEST(a_waiting_claim_is_served_when_a_limit_ends),
    TEST(a_limit_is_never_shortened),
    TEST(a_limit_is_at_most_a_day),
    TEST(a_limited_failure_parks_the_timer_at_its_place),
    TEST(a_limited_failure_lasts_a_minute_by_default),
    TEST(reports_are_shown_for_an_hour),
    TEST(clearing_ends_a_limit_at_once),
    TEST(clearing_needs_a_known_resource),
    TEST(clearing_all_counts_the_limited_ones),
    TEST(a_rate_gives_a_burst_and_then_its_interval),
    TEST(a_rate_has_a_burst_of_one_by_default),
    TEST(what_was_delivered_is_not_given_back),
    TEST(a_new_rate_keeps_what_was_taken),
    TEST(a_rate_that_is_off_holds_nothing_back),
    TEST(concurrency_counts_leases),
    TEST(a_waiting_claim_is_served_when_a_lease_ends),
    TEST(resources_nest),
    TEST(a_parked_timer_holds_nothing),
    TEST(the_star_caps_all_topics),
    TEST(the_star_can_be_limited_for_a_time),
    TEST(a_breaker_opens_at_the_fifth_failure),
    TEST(a_success_resets_the_count),
    TEST(half_open_lets_one_probe_through),
    TEST(a_failed_probe_reopens_for_twice_as_long),
    TEST(a_lost_probe_is_a_failed_one),
    TEST(a_probe_that_is_given_back_frees_its_place),
    TEST(late_results_do_not_move_an_open_breaker),
    TEST(failures_count_for_the_named_resource_only),
    TEST(a_breaker_can_be_set_and_switched_off),
    TEST(limits_are_checked_and_change_nothing),
    TEST(resources_are_listed_in_pages),
    TEST(parked_timers_are_counted_when_a_claim_meets_them),
};

GROUP(resources, CAN_LIMIT, tests);
