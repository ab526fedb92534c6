/* SPDX-License-Identifier: MIT */
#ifndef BEL_DURABLE_TIMER_H
#define BEL_DURABLE_TIMER_H

/*
 * timer - a durable timer as its users see it: what they say when they schedule one, what a
 * worker is handed, and what is told of one when somebody asks.
 *
 *     scheduled --due--> ready --claim--> leased --ack--> done
 *         ^                ^                |  |
 *         |                '--lease ends----'  |            blocked: waits for another one
 *         '------------fail, after backoff-----'            dead, cancelled, expired, skipped
 *
 * Inside a topic, and there inside a group, timers are delivered in the order (due, priority,
 * sequence). Between the groups of a topic, shares are fair: those with the fewest leases first.
 */

#include "belfry/clock.h"
#include "belfry/misfire.h"
#include "belfry/plan.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_TOPIC_BYTES_MAX = 200,        /* of a name: 1 to so many of A-Z a-z 0-9 . _ : / - */
    BEL_ID_BYTES_MAX = 128,           /* the same set; an occurrence's id is longer and has an @ */
    BEL_ID_BYTES = 160,               /* room for any id, an occurrence's too */
    BEL_GROUP_BYTES_MAX = 200,        /* any bytes */
    BEL_HEADERS_MAX = 100,            /* of a timer */
    BEL_HEADERS_BYTES_MAX = 64 << 10, /* names and values together */
    BEL_TEXT_BYTES_MAX = 256, /* of a reason or a worker, cut off behind; of a correlation */
    BEL_RESULT_BYTES_MAX = 64 << 10,
    BEL_TOKEN_BYTES_MAX = 400,        /* of A-Z a-z 0-9 _ - */
    BEL_OUTCOMES_MAX = 5,             /* that are kept of a timer, the last ones */
    BEL_PAYLOAD_BYTES_MAX = 64 << 20, /* the highest limit that can be configured */
    BEL_PAYLOAD_BYTES_DEFAULT = 1 << 20,
    BEL_CLAIM_COUNT_MAX = 1000,
    BEL_LIST_COUNT_MAX = 1000,
    BEL_OVERLAP_QUEUE_MAX = 100, /* unfinished occurrences of a plan that queues them */
};

enum bel_state {
    BEL_SCHEDULED, /* not due yet */
    BEL_READY,     /* due, and nobody has it */
    BEL_LEASED,    /* a worker has it */
    BEL_BLOCKED,   /* waits for another one to end */
    BEL_DONE,      /* from here on the states are terminal */
    BEL_DEAD,      /* out of attempts, or rejected: kept, and can be revived */
    BEL_CANCELLED,
    BEL_EXPIRED, /* nobody came in time */
    BEL_SKIPPED,
    BEL_STATES,
};

/* "scheduled" and so on. */
const char *bel_state_name(enum bel_state state);

/* Finds a state by its name, in small letters. False if there is none. */
bool bel_state_find(struct bel_view name, enum bel_state *out);

struct bel_header {
    struct bel_view name, value;
};

enum bel_conflict {
    BEL_CONFLICT_REPLACE,  /* the old one goes, whatever its state */
    BEL_CONFLICT_KEEP,     /* the old one stays, as long as it is known */
    BEL_CONFLICT_REJECT,   /* the same, and it is an error */
    BEL_CONFLICT_EARLIEST, /* the one that is due first stays */
    BEL_CONFLICT_LATEST,
};

enum bel_overlap {
    BEL_OVERLAP_SKIP,  /* a time at which the one before is unfinished makes none */
    BEL_OVERLAP_QUEUE, /* it waits, blocked, for the one before to end */
    BEL_OVERLAP_ALLOW,
};

/* When a timer is due. */
enum bel_when {
    BEL_WHEN_NOW,
    BEL_WHEN_IN, /* after a delay, which no change of the clock moves */
    BEL_WHEN_AT, /* at an instant of the wall clock */
};

/* How a timer recurs; none if there is no rule. `when` of the schedule is then the first
 * nominal time, and without one the rule says it. */
struct bel_recurrence {
    enum bel_plan_kind kind;
    struct bel_view rule; /* as bel_plan_create() reads it; it must be of that kind */
    struct bel_view zone; /* an IANA name; none: UTC */
    enum bel_plan_mode mode;
    enum bel_gap gap;
    enum bel_fold fold;
    enum bel_misfire misfire;
    enum bel_overlap overlap;
    bool has_until;
    struct bel_wall until;
    uint64_t count;     /* nominal times in all; 0: without end */
    uint64_t spread_ms; /* the window that each is moved in, by the id */
};

/* What is to be scheduled. All zeros, a topic and a payload are enough. */
struct bel_schedule_spec {
    struct bel_view topic;
    struct bel_view id; /* none: one is made, 26 characters that sort by due */
    struct bel_view payload;
    enum bel_when when;
    uint64_t delay_ms;  /* if IN */
    struct bel_wall at; /* if AT; a past time is due now */
    struct bel_recurrence plan;
    bool has_priority; /* else 128 */
    uint8_t priority;  /* lower first */
    enum bel_conflict conflict;
    struct bel_view group, resource, correlation; /* none, or not empty */
    const struct bel_header *headers;
    size_t headers_count;
    struct bel_view retry; /* as bel_backoff_parse() reads it; none: the topic's */
    uint64_t lease_ms;     /* 0: the topic's */
    uint64_t expires_ms;   /* after due; 0: never */
};

/* What a worker is handed. */
struct bel_delivery {
    struct bel_view token, topic, id, payload, correlation;
    struct bel_wall due;
    uint64_t attempt;                 /* 1 + the failures so far */
    uint64_t lease_ms;                /* how long it lasts */
    const struct bel_header *headers; /* with belfry-plan and belfry-nominal, if it recurs */
    size_t headers_count;
};

enum bel_outcome_kind {
    BEL_OUTCOME_FAILED,
    BEL_OUTCOME_CRASHED, /* the lease ended */
};

struct bel_outcome {
    enum bel_outcome_kind kind;
    struct bel_wall at;
    struct bel_view reason;
};

/* What is known of a timer or a plan. What does not apply is 0. */
struct bel_timer {
    struct bel_view topic, id, payload, group, resource, correlation, retry;
    enum bel_state state;
    uint8_t priority;
    bool has_next;       /* of a plan: `due` is its next nominal time */
    struct bel_wall due; /* a plan: its next nominal time, if there is one */
    struct bel_wall created;
    struct bel_wall finished; /* if the state is terminal */
    struct bel_wall expires;  /* if expires_ms */
    uint64_t expires_ms, lease_ms;
    uint64_t attempts, crashes; /* failures; leases lost */
    uint64_t lease_left_ms;     /* if leased */
    struct bel_view worker;     /* who has it, if it said so */
    struct bel_view reason;     /* why it is dead, expired, skipped */
    struct bel_view result;     /* of the ack */
    const struct bel_header *headers;
    size_t headers_count;
    struct bel_outcome outcomes[BEL_OUTCOMES_MAX]; /* from old to new */
    size_t outcomes_count;
    struct bel_recurrence plan;     /* of a plan; no rule: it is none */
    uint64_t made, skipped, missed; /* of a plan: occurrences; left out by overlap, by misfire */
    struct bel_view plan_id;        /* of an occurrence: its plan, and its nominal time */
    struct bel_wall nominal;
};

#pragma GCC visibility pop
#endif
