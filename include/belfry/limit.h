/* SPDX-License-Identifier: MIT */
#ifndef BEL_LIMIT_H
#define BEL_LIMIT_H

/*
 * limit - limits of resources. A resource is what the work of timers uses, such as a database or an
 * API; a timer names at most one. A timer is delivered only if its resource is open, and so are all
 * resources above it: "api" is above "api/search". The resource "*" is above all timers.
 *
 *     rate          n deliveries in a duration, with a burst of deliveries at once
 *     concurrency   leases at the same time
 *     until         nothing is delivered before it: by LIMIT, or by FAIL of the kind `limited`
 *     breaker       opens after failures in a row (FAIL of the kind `resource`), for a time that
 *                   doubles with each opening in a row; then one timer is delivered as a probe,
 *                   whose success closes the breaker
 *
 * Timers of a closed resource stay ready, and wait without costing anything. This header has the
 * request and the reply of BEL_VERB_LIMIT; belfry/backend.h has the verb.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum bel_limit_action {
    BEL_LIMIT_LIST,      /* reply: items, in the order of names, and a cursor for the next page */
    BEL_LIMIT_SET,       /* changes what is given; reply: one item */
    BEL_LIMIT_CLEAR,     /* ends `until`, closes the breaker, keeps the rest; reply: one item */
    BEL_LIMIT_CLEAR_ALL, /* the same for all resources; reply: how many were limited */
    BEL_LIMIT_DELETE,    /* forgets all limits and their state; reply: 1, or 0 if there were none */
};

enum bel_breaker {
    BEL_BREAKER_CLOSED,
    BEL_BREAKER_OPEN,
    BEL_BREAKER_HALF_OPEN,
    BEL_BREAKERS,
};

/* A request. Without anything to change, BEL_LIMIT_SET shows a resource. This and BEL_LIMIT_CLEAR
 * fail with BEL_ENOTFOUND if the resource is unknown. */
struct bel_limit {
    enum bel_limit_action action;
    struct bel_view resource;
    bool has_rate, has_burst, has_concurrency, has_until, has_breaker;
    uint64_t rate_count, rate_ms;             /* deliveries in a duration; both 0: no rate */
    uint64_t burst;                           /* default: 1 */
    uint64_t concurrency;                     /* 0: no limit */
    uint64_t until_ms;                        /* from now; at most 24 h; never shortened */
    uint64_t breaker_failures;                /* 0: off */
    uint64_t breaker_open_ms, breaker_max_ms; /* 0: 30 s and 300 s */
    uint32_t count;                           /* of a list; 0: 100 */
    struct bel_view cursor;                   /* of the previous reply; empty: from the start */
};

/* A report of a limit. */
struct bel_limit_report {
    struct bel_view who; /* the worker; empty: LIMIT */
    struct bel_wall at;
    uint64_t for_ms;
};

/* A resource in a reply. */
struct bel_limit_state {
    struct bel_view name;
    uint64_t rate_count, rate_ms; /* 0: no rate */
    struct bel_view rate;         /* as text that LIMIT accepts, such as 5/1s; empty: none */
    uint64_t burst;
    uint64_t concurrency;          /* 0: no limit */
    uint64_t running;              /* leases of its timers, and of those below it */
    uint64_t parked;               /* ready timers in memory that wait because it is closed */
    struct bel_wall limited_until; /* 0: not limited */
    enum bel_breaker breaker;
    uint64_t breaker_failures; /* that open it; 0: off */
    uint64_t breaker_open_ms, breaker_max_ms;
    uint64_t failures;             /* in a row; while the breaker is open: those that opened it */
    struct bel_wall breaker_until; /* of an open breaker; else 0 */
    const struct bel_limit_report *reports; /* of the last hour, the newest first */
    size_t reports_count;
    struct bel_view closed_by; /* why nothing is delivered now: limited, breaker, rate or
                                  concurrency, a constant; empty: it is open itself */
    /* Of the timers that name this resource, since the engine was opened; and in the last minute,
     * about. 0 for a resource without numbers of its own: the engine counts 1,000. */
    uint64_t claimed, completed, failed;
    uint64_t claims_per_minute, completions_per_minute, failures_per_minute;
};

struct bel_limit_reply {
    enum bel_limit_action action; /* of the request */
    const struct bel_limit_state *items;
    size_t count;
    struct bel_view cursor; /* of a list; empty: this is the last page */
    uint64_t changed;       /* resources, by CLEAR_ALL and DELETE */
};

/* Frees the copy of bel_driver_limit(); NULL is allowed. */
void bel_limit_reply_destroy(struct bel_limit_reply *reply);

/* Returns the name of a breaker's state: "closed", "open", "half_open". */
const char *bel_breaker_name(enum bel_breaker breaker);

/* Returns whether a resource may have this name: like a topic, with no empty part between
 * slashes ("a//b"). "*" is none. */
bool bel_resource_is_valid(struct bel_view name);

BEL_END_DECLARATIONS
#endif
