/* SPDX-License-Identifier: MIT */
#ifndef BEL_DURABLE_TIMER_H
#define BEL_DURABLE_TIMER_H

/*
 * timer - the data of durable timers: the parameters of scheduling one, the delivery that a worker
 * receives, and the full record that GET and LIST return.
 *
 *     scheduled --due--> ready --claim--> leased --ack--> done
 *         ^                ^                |  |
 *         |                '--lease ends----'  |            blocked: waits for another timer
 *         '------------fail, after backoff-----'            dead, cancelled, expired, skipped
 *
 * Timers of one group of a topic are delivered in the order (due, priority, sequence). The groups
 * of a topic share fairly: the group with the fewest leases goes first.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/delivery.h"
#include "belfry/misfire.h"
#include "belfry/overlap.h"
#include "belfry/plan.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_TOPIC_BYTES_MAX = 200,        /* of a name, 1 to this many of A-Z a-z 0-9 . _ : / - */
    BEL_ID_BYTES_MAX = 128,           /* same characters; the id of an occurrence is longer and
                                         contains an @ */
    BEL_ID_BYTES = 160,               /* room for any id, including an occurrence's */
    BEL_GROUP_BYTES_MAX = 200,        /* any bytes */
    BEL_HEADERS_MAX = 100,            /* per timer */
    BEL_HEADERS_BYTES_MAX = 64 << 10, /* names and values together */
    BEL_TEXT_BYTES_MAX = 256,         /* of a reason or a worker name, which are truncated; of a
                                 correlation */
    BEL_RESULT_BYTES_MAX = 64 << 10,
    BEL_RULE_BYTES_MAX = 1024,        /* of a cron rule or a recurrence rule */
    BEL_TOKEN_BYTES_MAX = 400,        /* of A-Z a-z 0-9 _ - */
    BEL_OUTCOMES_MAX = 5,             /* the most recent outcomes kept per timer */
    BEL_PAYLOAD_BYTES_MAX = 64 << 20, /* the highest limit that can be configured */
    BEL_PAYLOAD_BYTES_DEFAULT = 1 << 20,
    BEL_CLAIM_COUNT_MAX = 1000,
    BEL_LIST_COUNT_MAX = 1000,
    BEL_OVERLAP_QUEUE_MAX = 100, /* unfinished occurrences per plan with BEL_OVERLAP_QUEUE */
};

enum bel_state {
    BEL_SCHEDULED, /* not due yet */
    BEL_READY,     /* due and not leased */
    BEL_LEASED,    /* claimed by a worker */
    BEL_BLOCKED,   /* waits for another timer to finish */
    BEL_DONE,      /* this state and the following ones are terminal */
    BEL_DEAD,      /* out of attempts, or rejected; can be revived */
    BEL_CANCELLED,
    BEL_EXPIRED, /* not claimed before its expiry */
    BEL_SKIPPED,
    BEL_STATES,
};

/* Returns the name of a state in lower case: "scheduled". */
const char *bel_state_name(enum bel_state state);

/* Finds a state by its name in lower case. Returns false for an unknown name. */
bool bel_state_find(struct bel_view name, enum bel_state *out);

/* The state of a timer after FAIL. */
struct bel_verdict {
    enum bel_state state; /* BEL_SCHEDULED, BEL_DEAD, BEL_EXPIRED; or BEL_READY: the timer waits
                             for its resource, which is limited */
    struct bel_wall due; /* of the next attempt, if BEL_SCHEDULED; end of the limit, if BEL_READY */
};

enum bel_conflict {
    BEL_CONFLICT_REPLACE,  /* the new timer replaces the old one in any state */
    BEL_CONFLICT_KEEP,     /* the old timer stays, even if finished, until its record is removed */
    BEL_CONFLICT_REJECT,   /* fails with BEL_ECONFLICT; the old timer stays */
    BEL_CONFLICT_EARLIEST, /* the timer that is due first stays */
    BEL_CONFLICT_LATEST,
};

/* How the due time of a timer is given. */
enum bel_when {
    BEL_WHEN_NOW,
    BEL_WHEN_IN, /* after a delay, which setting the clock does not change */
    BEL_WHEN_AT, /* at an instant of the wall clock */
};

struct bel_timer;

/* How a timer recurs; an empty rule means that it does not. `when` of the schedule gives the first
 * nominal time; with BEL_WHEN_NOW the rule gives it. */
struct bel_recurrence {
    enum bel_plan_kind kind;
    struct bel_view rule; /* as for bel_plan_create(); must be of that kind */
    struct bel_view zone; /* IANA name; empty: UTC */
    enum bel_plan_mode mode;
    enum bel_gap gap;
    enum bel_fold fold;
    enum bel_misfire misfire;
    enum bel_overlap overlap;
    bool has_until;
    struct bel_wall until;
    uint64_t count;     /* nominal times in total; 0: no limit */
    uint64_t spread_ms; /* window within which each time is moved, by the hash of the id */
};

/* The parameters of SCHEDULE. A topic and a payload are enough; the rest may be 0. */
struct bel_schedule_spec {
    struct bel_view topic;
    struct bel_view id; /* empty: generated, 26 characters that sort by due time */
    struct bel_view payload;
    enum bel_when when;
    uint64_t delay_ms;  /* with BEL_WHEN_IN */
    struct bel_wall at; /* with BEL_WHEN_AT; a time in the past is due now */
    struct bel_recurrence plan;
    bool has_priority; /* default: BEL_PRIORITY_DEFAULT, 128 */
    uint8_t priority;  /* lower goes first */
    enum bel_conflict conflict;
    struct bel_view group, resource, correlation; /* optional */
    const struct bel_header *headers;
    size_t headers_count;
    struct bel_view retry; /* as for bel_backoff_parse(); empty: the topic's */
    uint64_t lease_ms;     /* 0: the topic's */
    uint64_t expires_ms;   /* time after `due` at which the timer expires; 0: never */
    bool has_empty_id;     /* the id is the empty text: only in topics that are shared with the
                              package faststream-redis-timers */
    bool is_imported;      /* from an export: names of headers may begin with belfry- */
    /* A timer or plan as LIST returns it: it is stored as it is, with its state, counts and times,
     * behind all others with the same due and priority. A leased one becomes ready. Of the other
     * members only the topic and the conflict policy count: KEEP or REJECT. NULL: a new timer. */
    const struct bel_timer *whole;
};

enum bel_outcome_kind {
    BEL_OUTCOME_FAILED,
    BEL_OUTCOME_CRASHED, /* the lease expired */
};

struct bel_outcome {
    enum bel_outcome_kind kind;
    struct bel_wall at;
    struct bel_view reason;
};

/* The full record of a timer or a plan. Fields that do not apply are 0. */
struct bel_timer {
    struct bel_view topic, id, payload, group, resource, correlation, retry;
    enum bel_state state;
    uint8_t priority;
    bool has_next;       /* plan: `due` is its next nominal time */
    struct bel_wall due; /* plan: its next nominal time, if has_next */
    struct bel_wall created;
    struct bel_wall finished; /* if the state is terminal */
    struct bel_wall expires;  /* if expires_ms is not 0 */
    uint64_t expires_ms, lease_ms;
    uint64_t attempts, crashes; /* failures; expired leases */
    uint64_t lease_left_ms;     /* if leased */
    struct bel_view worker;     /* if leased and the worker gave a name */
    struct bel_view reason;     /* why the timer is dead, expired or skipped */
    struct bel_view result;     /* given with ACK */
    const struct bel_header *headers;
    size_t headers_count;
    struct bel_outcome outcomes[BEL_OUTCOMES_MAX]; /* oldest first */
    size_t outcomes_count;
    struct bel_recurrence plan;     /* plan; an empty rule: this is not a plan */
    uint64_t made, skipped, missed; /* plan: occurrences made, skipped by overlap, missed */
    uint64_t used;                  /* plan with a count: how many times it has counted */
    struct bel_view plan_id;        /* occurrence: the id of its plan, and its nominal time */
    struct bel_wall nominal;
    /* What no command shows, for a copy of the timer in another store. */
    bool is_delay;         /* its due does not move when the wall clock is set */
    bool is_task;          /* it belongs to a job */
    bool has_start;        /* plan: the rule counts from `start`, not from `created` */
    bool is_catching_up;   /* plan: makes up for times that it has missed */
    struct bel_wall start; /* plan: if has_start */
    uint64_t spread_by_ms; /* occurrence that is blocked: how long after `nominal` it is due */
};

BEL_END_DECLARATIONS
#endif
