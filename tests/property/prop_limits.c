/* SPDX-License-Identifier: MIT */

/*
 * The limits of one resource compared with a model that keeps every delivery and every event of a
 * history and decides from them anew:
 *
 *     rate       a bucket of tokens as an exact fraction, filled at each step
 *     breaker    the list of ends since the last change, and the probe
 *     until      the latest end of all reports since the last clear
 *
 * Whatever the model says, the bounds hold: in any time W at most W x rate + burst deliveries, at
 * most `concurrency` leases, one probe.
 */
#include "engine/state/limits.h"

#include "belfry/wheel.h"
#include "property.h"

enum {
    LEASES_MAX = 40,
    DELIVERIES_MAX = 4000,
    STEPS = 1500,
    CASES = 300,
};

static struct bel_limits limits;
static uint64_t random_state, now;

/* The model. Tokens are in units of 1 / interval: a token is `interval_us`. */
static uint64_t interval_us, burst, concurrency, until_ms;
static uint64_t tokens_us, filled_at; /* tokens at a time, in us of the interval */
static bool is_open;
static uint64_t failures_max, open_ms, max_ms, failures, openings, opens_ms;
static uint64_t leases[LEASES_MAX];
static size_t leases_count;
static uint64_t probe; /* number of the timer; 0: none */
static uint64_t next_timer;
static uint64_t deliveries[DELIVERIES_MAX];
static size_t deliveries_count;
static uint64_t rate_since; /* deliveries from here on obey the rate */

static struct bel_key key_of(uint64_t timer)
{
    return (struct bel_key){{timer, 0, 0}};
}

static void fill_bucket(void)
{
    if (interval_us == 0) return;
    uint64_t more = (now - filled_at) * 1000, most = burst * interval_us;
    tokens_us = tokens_us + more < most ? tokens_us + more : most;
    filled_at = now;
}

static bool model_is_closed(void)
{
    fill_bucket();
    if (now < until_ms) return true;
    if (is_open && (now < opens_ms || probe != 0)) return true;
    if (interval_us > 0 && tokens_us < interval_us) return true;
    return concurrency > 0 && leases_count >= concurrency;
}

static void check_rate(void)
{
    uint64_t in_window = 0, window_ms = random_below(&random_state, 200);
    if (interval_us == 0) return;
    for (size_t i = deliveries_count; i-- > 0 && deliveries[i] >= rate_since;) {
        if (deliveries[i] + window_ms < now) break;
        in_window++;
    }
    CHECK(in_window <= window_ms * 1000 / interval_us + burst);
}

static void claim(void)
{
    uint64_t until;
    enum bel_closed_by by = bel__limits_closed(&limits, now, leases_count, &until);
    CHECK((by != BEL_CLOSED_BY_NOTHING) == model_is_closed());
    if (by != BEL_CLOSED_BY_NOTHING) {
        CHECK(until > now); /* never at once, or it would be polled */
        CHECK(by != BEL_CLOSED_BY_CONCURRENCY || until == BEL_NEVER);
        return;
    }
    if (leases_count == LEASES_MAX || deliveries_count == DELIVERIES_MAX) return;
    struct bel_key key = key_of(++next_timer);
    (void)bel__limits_take(&limits, now, &key);
    leases[leases_count++] = next_timer;
    if (interval_us > 0) tokens_us -= interval_us;
    if (is_open) {
        CHECK(probe == 0);
        probe = next_timer;
    }
    deliveries[deliveries_count++] = now;
    check_rate();
}

static void open_breaker(void)
{
    uint64_t delay = open_ms;
    for (uint64_t i = 0; i < openings; i++) {
        delay = 2 * delay < max_ms ? 2 * delay : max_ms;
    }
    is_open = true;
    opens_ms = now + (delay < max_ms ? delay : max_ms);
    openings++;
    probe = 0;
}

static void model_end(uint64_t timer, enum bel_lease_end end, bool is_own)
{
    if (is_open && timer != probe) return;
    if (is_open) {
        probe = 0;
        if (end == BEL_LEASE_END_ACK) {
            is_open = false;
            failures = openings = 0;
        } else if (end != BEL_LEASE_END_OTHER) {
            open_breaker();
        }
        return;
    }
    if (!is_own) return;
    if (end == BEL_LEASE_END_ACK) failures = 0;
    if (end == BEL_LEASE_END_FAIL && failures_max > 0 && ++failures >= failures_max) open_breaker();
}

static void end_one(void)
{
    if (leases_count == 0) return;
    size_t which = random_below(&random_state, leases_count);
    uint64_t timer = leases[which];
    leases[which] = leases[--leases_count];
    bool is_own = random_below(&random_state, 4) > 0;
    enum bel_lease_end end = random_below(&random_state, 3) > 0
                                 ? BEL_LEASE_END_FAIL
                                 : (enum bel_lease_end)random_below(&random_state, 4);
    struct bel_key key = key_of(timer);
    (void)bel__limits_end(&limits, now, &key, end, is_own);
    model_end(timer, end, is_own);
}

static void limit(void)
{
    uint64_t ms = random_below(&random_state, 60);
    bel__limits_limit(&limits, now, ms);
    if (now + ms > until_ms) until_ms = now + ms;
}

static void clear(void)
{
    bool was_limited = now < until_ms || is_open;
    CHECK(bel__limits_clear(&limits, now) == was_limited);
    until_ms = 0;
    if (!was_limited) return;
    is_open = false;
    failures = openings = probe = 0;
}

/* A new rate keeps the tokens that were taken in advance: those that are missing in the bucket. */
static void set_rate(void)
{
    uint64_t count = random_below(&random_state, 4) + 1;
    uint64_t ms = (random_below(&random_state, 20) + 1) * count; /* whole microseconds */
    fill_bucket();
    bel__limits_set_rate(&limits, now, count, ms);
    limits.burst = burst = random_below(&random_state, 5) + 1;
    interval_us = ms * 1000 / count;
    /* The rest of the history begins with a bucket that is as full as the engine says. */
    uint64_t debt = limits.full_us > now * 1000 ? limits.full_us - now * 1000 : 0;
    uint64_t most = burst * interval_us;
    tokens_us = debt < most ? most - debt : 0;
    if (debt > most) { /* more was taken than the new burst: wait that out */
        filled_at = now + (debt - most) / 1000;
        now = filled_at;
        tokens_us = 0;
        if ((debt - most) % 1000 != 0) now = ++filled_at;
    }
    rate_since = now + 1;
}

static void check_state(void)
{
    CHECK(limits.is_open == is_open && limits.failures == failures);
    CHECK_EQ(limits.openings, openings);
    if (is_open) CHECK_EQ(limits.breaker_until, opens_ms);
    CHECK(limits.has_probe == (probe != 0));
    CHECK(bel__limits_are_half_open(&limits, now) == (is_open && now >= opens_ms));
    CHECK(concurrency == 0 || leases_count <= concurrency);
}

static void run_case(uint64_t seed)
{
    random_state = seed;
    now = 1 + random_below(&random_state, 1000);
    leases_count = deliveries_count = 0;
    interval_us = until_ms = failures = openings = probe = next_timer = 0;
    is_open = false;
    limits = bel__limits_default();
    CHECK(bel__limits_are_default(&limits, now));
    limits.concurrency = concurrency = random_below(&random_state, 5);
    limits.breaker_failures = failures_max = random_below(&random_state, 4);
    limits.breaker_open_ms = open_ms = 1 + random_below(&random_state, 20);
    limits.breaker_max_ms = max_ms = open_ms + random_below(&random_state, 100);
    if (seed % 3 > 0) set_rate();
    for (int step = 0; step < STEPS; step++) {
        uint64_t what = random_below(&random_state, 100);
        if (what < 50) claim();
        if (what >= 50 && what < 80) end_one();
        if (what == 80 && seed % 2 == 0) limit();
        if (what == 81) clear();
        now += random_below(&random_state, 3) == 0 ? random_below(&random_state, 12) : 0;
        check_state();
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "histories");
}
