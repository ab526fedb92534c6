/* SPDX-License-Identifier: MIT */
#include "engine/state/limits.h"

#include "belfry/wheel.h"
#include "core/units.h"

#include <assert.h>

struct bel_limits bel__limits_default(void)
{
    return (struct bel_limits){.breaker_failures = BEL_BREAKER_FAILURES,
                               .breaker_open_ms = BEL_BREAKER_OPEN_MS,
                               .breaker_max_ms = BEL_BREAKER_MAX_MS};
}

bool bel__limits_are_default(const struct bel_limits *limits, uint64_t now)
{
    return limits->rate_count == 0 && limits->burst == 0 && limits->concurrency == 0 &&
           limits->breaker_failures == BEL_BREAKER_FAILURES &&
           limits->breaker_open_ms == BEL_BREAKER_OPEN_MS &&
           limits->breaker_max_ms == BEL_BREAKER_MAX_MS && limits->until <= now &&
           !limits->is_open && limits->failures == 0 && limits->openings == 0;
}

/* Returns the time that a delivery takes, in microseconds, rounded up. */
static uint64_t interval_us(const struct bel_limits *limits)
{
    assert(limits->rate_count > 0 && limits->rate_ms > 0);
    uint64_t us = limits->rate_ms * US_PER_MS;
    return us / limits->rate_count + (us % limits->rate_count != 0);
}

/* Returns when the rate allows a delivery, in ms. */
static uint64_t rate_opens(const struct bel_limits *limits)
{
    uint64_t burst = limits->burst == 0 ? 1 : limits->burst, ahead;
    if (__builtin_mul_overflow(burst - 1, interval_us(limits), &ahead)) return 0;
    if (limits->full_us <= ahead) return 0;
    uint64_t us = limits->full_us - ahead;
    return us / US_PER_MS + (us % US_PER_MS != 0);
}

bool bel__limits_are_half_open(const struct bel_limits *limits, uint64_t now)
{
    return limits->is_open && now >= limits->breaker_until;
}

enum bel_closed_by bel__limits_closed(const struct bel_limits *limits, uint64_t now,
                                      uint64_t leases, uint64_t *until)
{
    *until = limits->until;
    if (now < limits->until) return BEL_CLOSED_BY_LIMIT;
    if (limits->is_open) {
        *until = limits->has_probe ? BEL_NEVER : limits->breaker_until;
        if (limits->has_probe || now < limits->breaker_until) return BEL_CLOSED_BY_BREAKER;
    }
    if (limits->rate_count > 0) {
        *until = rate_opens(limits);
        if (now < *until) return BEL_CLOSED_BY_RATE;
    }
    *until = BEL_NEVER;
    if (limits->concurrency > 0 && leases >= limits->concurrency) return BEL_CLOSED_BY_CONCURRENCY;
    return BEL_CLOSED_BY_NOTHING;
}

bool bel__limits_take(struct bel_limits *limits, uint64_t now, const struct bel_key *timer)
{
    bool has_changed = false;
    assert(now >= limits->until);
    if (limits->rate_count > 0) {
        uint64_t from = limits->full_us > now * US_PER_MS ? limits->full_us : now * US_PER_MS;
        limits->full_us = from + interval_us(limits);
        has_changed = true;
    }
    if (limits->is_open) {
        assert(!limits->has_probe && now >= limits->breaker_until);
        limits->has_probe = true;
        limits->probe = *timer;
        has_changed = true;
    }
    return has_changed;
}

/* Opens the breaker, longer each time in a row. */
static void open_breaker(struct bel_limits *limits, uint64_t now)
{
    uint64_t delay = limits->breaker_open_ms;
    for (uint64_t i = 0; i < limits->openings && delay < limits->breaker_max_ms; i++) {
        delay *= 2;
    }
    if (delay > limits->breaker_max_ms) delay = limits->breaker_max_ms;
    limits->is_open = true;
    limits->has_probe = false;
    limits->openings++;
    limits->breaker_until = now + delay;
}

void bel__limits_close_breaker(struct bel_limits *limits)
{
    limits->is_open = limits->has_probe = false;
    limits->failures = limits->openings = limits->breaker_until = 0;
}

bool bel__limits_end(struct bel_limits *limits, uint64_t now, const struct bel_key *timer,
                     enum bel_lease_end end, bool is_own)
{
    if (limits->is_open) {
        if (!limits->has_probe || bel__key_compare(&limits->probe, timer) != 0) return false;
        limits->has_probe = false;
        if (end == BEL_LEASE_END_ACK) bel__limits_close_breaker(limits);
        if (end == BEL_LEASE_END_FAIL || end == BEL_LEASE_END_LOST) open_breaker(limits, now);
        return true;
    }
    if (end == BEL_LEASE_END_ACK && limits->failures > 0 && is_own) {
        limits->failures = 0;
        return true;
    }
    if (end != BEL_LEASE_END_FAIL || !is_own || limits->breaker_failures == 0) return false;
    limits->failures++;
    if (limits->failures >= limits->breaker_failures) open_breaker(limits, now);
    return true;
}

void bel__limits_limit(struct bel_limits *limits, uint64_t now, uint64_t ms)
{
    if (ms > BEL_LIMITED_MS_MAX) ms = BEL_LIMITED_MS_MAX;
    if (now + ms > limits->until) limits->until = now + ms;
}

bool bel__limits_clear(struct bel_limits *limits, uint64_t now)
{
    if (now >= limits->until && !limits->is_open) return false;
    limits->until = 0;
    bel__limits_close_breaker(limits);
    return true;
}

void bel__limits_set_rate(struct bel_limits *limits, uint64_t now, uint64_t count, uint64_t ms)
{
    uint64_t now_us = now * US_PER_MS;
    uint64_t before = limits->rate_count > 0 ? interval_us(limits) : 0;
    limits->rate_count = count;
    limits->rate_ms = ms;
    if (before == 0 || limits->full_us <= now_us) return;
    if (count == 0) {
        limits->full_us = 0;
        return;
    }
    __extension__ typedef unsigned __int128 wide;
    wide debt = (wide)(limits->full_us - now_us) * interval_us(limits);
    debt = debt / before + (debt % before != 0);
    uint64_t most = UINT64_MAX / 4; /* in ms, such a time is valid */
    limits->full_us = now_us + (debt > most ? most : (uint64_t)debt);
}
