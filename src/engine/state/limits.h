/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_LIMITS_H
#define BEL_ENGINE_STATE_LIMITS_H

/*
 * limits - the limits of one resource and their state: a rate, a number of leases, a time until
 * which the resource is limited, and a circuit breaker. Without memory, rows or clock: the time is
 * passed in, in ms of engine time.
 *
 *     rate       a delivery takes an interval T = duration / n, rounded up to a microsecond. `full`
 *                is when the bucket will be full again; a delivery moves it by T. A delivery is
 *                allowed while full <= now + (burst - 1) T. So in any time W there are at most
 *                W / T + burst deliveries.
 *     until      nothing is delivered before it. It only moves later, until it is cleared.
 *     breaker    closed --n failures--> open --time--> half open --probe's success--> closed
 *                                         ^                '------probe's failure--.
 *                                         '----------------------------------------'
 *                each opening in a row doubles the time. Half open follows from the time: it is
 *                not stored.
 */

#include "core/sorted.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_BREAKER_FAILURES = 5, /* defaults */
    BEL_BREAKER_OPEN_MS = 30 * 1000,
    BEL_BREAKER_MAX_MS = 300 * 1000,
    BEL_LIMITED_MS_MAX = 24 * 60 * 60 * 1000,
    BEL_RATE_COUNT_MAX = 1000 * 1000 * 1000, /* these keep all times within 64 bits */
    BEL_RATE_MS_MAX = 24 * 60 * 60 * 1000,
    BEL_BURST_MAX = 1000 * 1000,
};

struct bel_limits {
    uint64_t rate_count, rate_ms; /* n deliveries in rate_ms; 0: no rate */
    uint64_t burst;               /* 0: 1 */
    uint64_t concurrency;         /* 0: no limit */
    uint64_t breaker_failures;    /* that open the breaker; 0: the breaker is off */
    uint64_t breaker_open_ms, breaker_max_ms;

    uint64_t full_us;  /* when the bucket is full */
    uint64_t until;    /* 0: never limited, or cleared */
    bool is_open;      /* the breaker is open, or half open after breaker_until */
    bool has_probe;    /* half open: one timer is leased to try */
    uint64_t failures; /* in a row; while the breaker is open: those that opened it */
    uint64_t openings, breaker_until;
    struct bel_key probe; /* the timer's key */
};

/* Why a resource is closed, in the order in which reasons are told. */
enum bel_closed_by {
    BEL_CLOSED_BY_NOTHING,
    BEL_CLOSED_BY_LIMIT,
    BEL_CLOSED_BY_BREAKER,
    BEL_CLOSED_BY_RATE,
    BEL_CLOSED_BY_CONCURRENCY,
};

/* How the lease of a timer ended, for the resource. */
enum bel_lease_end {
    BEL_LEASE_END_OTHER,
    BEL_LEASE_END_ACK,
    BEL_LEASE_END_FAIL, /* of the kind `resource` */
    BEL_LEASE_END_LOST,
};

/* Returns limits that allow everything, with the default breaker. */
struct bel_limits bel__limits_default(void);

/* Returns whether nothing but defaults is set, and no state is worth keeping at `now`. */
bool bel__limits_are_default(const struct bel_limits *limits, uint64_t now);

/* Returns why a resource with `leases` leases is closed. Sets `*until` to when it opens, BEL_NEVER
 * if that depends on the end of a lease; ignored if it is open. */
enum bel_closed_by bel__limits_closed(const struct bel_limits *limits, uint64_t now,
                                      uint64_t leases, uint64_t *until);

/* Counts the delivery of a timer. The resource must be open. Returns whether the state changed. */
bool bel__limits_take(struct bel_limits *limits, uint64_t now, const struct bel_key *timer);

/* Notes the end of a timer's lease; `is_own`: the timer's resource itself, not a resource above it.
 * Returns whether the state changed. */
bool bel__limits_end(struct bel_limits *limits, uint64_t now, const struct bel_key *timer,
                     enum bel_lease_end end, bool is_own);

/* Limits the resource for `ms` from `now`, at most BEL_LIMITED_MS_MAX; never shortens. */
void bel__limits_limit(struct bel_limits *limits, uint64_t now, uint64_t ms);

/* Ends the time and closes the breaker. Returns false, and nothing has changed, if the resource was
 * limited by neither. */
bool bel__limits_clear(struct bel_limits *limits, uint64_t now);

/* Sets the rate. Deliveries that were taken in advance stay taken. */
void bel__limits_set_rate(struct bel_limits *limits, uint64_t now, uint64_t count, uint64_t ms);

/* Closes the breaker, and forgets failures and openings. */
void bel__limits_close_breaker(struct bel_limits *limits);

/* Returns whether the breaker is half open. */
bool bel__limits_are_half_open(const struct bel_limits *limits, uint64_t now);

#endif
