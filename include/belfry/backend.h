/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKEND_H
#define BEL_BACKEND_H

/*
 * backend - the interface to durable timers: the commands, their replies, and how a request is
 * processed.
 *
 * A request is submitted now and answered later, by a call of its `done` function. Submitting never
 * blocks and does no work; bel_backend_turn() does all of it:
 *
 *     struct bel_request request = {.command = {.verb = BEL_VERB_SCHEDULE, .schedule = {...}},
 *                                   .done = answered};
 *     bel_backend_submit(backend, &request);
 *     ...
 *     next = bel_backend_turn(backend, now);
 *
 * A turn processes timers that have come due, then the submitted requests in order of submission.
 * If there is too much to do for one turn, later requests wait for the next one, which is due now.
 * It makes the changes durable and only then calls `done`. The reply to a read-only request also
 * waits until everything the read could have seen is durable. bel_backend_turn() returns when the
 * next turn is needed; call it sooner if there is a request to submit. The result of a turn depends
 * only on the state, `now` and the requests.
 *
 * Memory: a request and the memory it points to belong to the caller and must not change until
 * `done` is called. Memory that a reply points to is valid until `done` returns. `done` may submit
 * requests, including the same one again, and may free the request. `done` must not call
 * bel_backend_turn().
 *
 * Threads: a backend belongs to one thread.
 */

#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/job.h"
#include "belfry/limit.h"
#include "belfry/stats.h"
#include "belfry/timer.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum bel_verb {
    BEL_VERB_SCHEDULE,
    BEL_VERB_CANCEL,
    BEL_VERB_RESCHEDULE,
    BEL_VERB_GET,
    BEL_VERB_CLAIM,
    BEL_VERB_ACK,
    BEL_VERB_FAIL,
    BEL_VERB_RELEASE,
    BEL_VERB_EXTEND,
    BEL_VERB_LIST,
    BEL_VERB_REVIVE,
    BEL_VERB_PURGE,
    BEL_VERB_TOPICS,
    BEL_VERB_TOPIC,
    BEL_VERB_CONFIGURE,
    BEL_VERB_PAUSE,
    BEL_VERB_RESUME,
    BEL_VERB_EXPLAIN,
    BEL_VERB_AGENDA,
    BEL_VERB_JOB_SUBMIT,
    BEL_VERB_JOB_GET,
    BEL_VERB_JOB_CANCEL,
    BEL_VERB_JOB_LIST,
    BEL_VERB_JOB_PAUSE,
    BEL_VERB_JOB_RESUME,
    BEL_VERB_LIMIT,
    BEL_VERBS,
};

enum bel_fail_kind {
    BEL_FAIL_ERROR,    /* uses up an attempt */
    BEL_FAIL_RESOURCE, /* uses up an attempt and counts as a failure for the resource's breaker */
    BEL_FAIL_LIMITED,  /* uses up no attempt: the resource reported a rate limit */
};

/*
 * The member of struct bel_command that each verb reads, and the member of struct bel_reply that it
 * sets. Errors: BEL_EINVAL for an invalid value, BEL_EFULL for a limit, BEL_ENOMEM, BEL_ECONFLICT
 * for an id that is in use, BEL_ESTALE for a token that is not the newest of its timer (FAIL,
 * RELEASE, EXTEND), BEL_ENOTFOUND for an unknown topic, timer or job (TOPIC, EXPLAIN, all of JOB
 * but SUBMIT and LIST), BEL_EUNSUPPORTED.
 * BEL_EIO and BEL_ECORRUPT are permanent: every later request fails with them too. After an error
 * nothing has changed, except by verbs that work on many timers (CANCEL, ACK, REVIVE, PURGE): there
 * `why` says how many were changed before the error. A backend in other processes recovers from
 * BEL_EIO, and whether the request that failed has changed anything is unknown.
 *
 *     SCHEDULE    schedule      id
 *     CANCEL      cancel        count: unfinished timers that are now cancelled
 *     RESCHEDULE  reschedule    count: 1, or 0 if the timer is not scheduled or ready
 *     GET         target        timers: one, or none
 *     CLAIM       claim         deliveries: none if the wait ended without one
 *     ACK         ack           count: live leases whose timers are now done
 *     FAIL        fail          verdict
 *     RELEASE     release       count: 1
 *     EXTEND      extend        count: remaining time of the lease, in ms
 *     LIST        list          timers in order, and a cursor for the next page
 *     REVIVE      target        count: dead timers that are now due; no id: all of the topic
 *     PURGE       purge         count: timers deleted
 *     TOPICS                    names, sorted
 *     TOPIC       target        topic
 *     CONFIGURE   configure     all settings are applied, or none if one is invalid
 *     PAUSE       target
 *     RESUME      target
 *     EXPLAIN     target        names: lines that say why a timer is not running, and when it will;
 *                               and the reason
 *     AGENDA      agenda        steps
 *     JOB_SUBMIT  job_submit    submitted
 *     JOB_GET     job_get       job
 *     JOB_CANCEL  job_target    count: 1, or 0 if the job has ended
 *     JOB_LIST    job_list      jobs, and a cursor for the next page
 *     JOB_PAUSE   job_target    count: 1, or 0 if the job has ended or is paused
 *     JOB_RESUME  job_target    count: 1, or 0 if the job is not paused
 *     LIMIT       limit         limits
 */
struct bel_target {
    struct bel_view topic, id;
};

struct bel_cancel {
    struct bel_view topic;
    const struct bel_view *ids;
    size_t ids_count;
};

struct bel_reschedule {
    struct bel_view topic, id;
    enum bel_when when; /* BEL_WHEN_IN or BEL_WHEN_AT */
    uint64_t delay_ms;
    struct bel_wall at;
};

struct bel_claim {
    const struct bel_view *topics; /* served in rotation, one delivery from each */
    size_t topics_count;
    uint32_t count;         /* maximum number of deliveries; 0: 1 */
    uint64_t lease_ms;      /* 0: the timer's lease time, or else the topic's */
    uint64_t wait_ms;       /* how long to wait, in real time, if there is nothing to deliver */
    struct bel_view worker; /* name of the worker, for display; optional */
};

struct bel_ack {
    const struct bel_view *tokens;
    size_t tokens_count;
    bool has_result; /* only with a single token */
    struct bel_view result;
};

struct bel_fail {
    struct bel_view token, reason;
    enum bel_fail_kind kind;
    bool dead;         /* allow no more attempts */
    bool has_delay;    /* otherwise the retry policy sets the delay */
    uint64_t delay_ms; /* until the next attempt */
};

struct bel_release {
    struct bel_view token;
    bool has_delay; /* otherwise the timer is ready again at once, in its old place in the order */
    uint64_t delay_ms;
};

struct bel_extend {
    struct bel_view token;
    uint64_t lease_ms; /* from now; 0: the lease time of the claim */
};

struct bel_list_query {
    struct bel_view topic;
    bool has_state, has_from, has_to;
    enum bel_state state;
    struct bel_wall from, to; /* only timers with from <= due < to */
    uint32_t count;           /* maximum number of timers; 0: 100 */
    struct bel_view cursor;   /* from the previous reply; empty: start at the beginning */
};

struct bel_purge {
    struct bel_view topic;
    bool has_state; /* otherwise all terminal states; BEL_LEASED and BEL_BLOCKED are invalid */
    enum bel_state state;
};

struct bel_setting {
    struct bel_view name, value;
};

struct bel_configure {
    struct bel_view topic;
    const struct bel_setting *settings;
    size_t settings_count;
};

struct bel_agenda {
    bool has_from, has_to; /* defaults: from now, to 24 h after `from` */
    struct bel_wall from, to;
    uint64_t step_ms;      /* 0: 1 h */
    struct bel_view topic; /* empty: all topics */
};

struct bel_command {
    enum bel_verb verb;
    union {
        struct bel_schedule_spec schedule;
        struct bel_target target;
        struct bel_cancel cancel;
        struct bel_reschedule reschedule;
        struct bel_claim claim;
        struct bel_ack ack;
        struct bel_fail fail;
        struct bel_release release;
        struct bel_extend extend;
        struct bel_list_query list;
        struct bel_purge purge;
        struct bel_configure configure;
        struct bel_agenda agenda;
        struct bel_job_submit job_submit;
        struct bel_job_get job_get;
        struct bel_job_list job_list;
        struct bel_job_target job_target;
        struct bel_limit limit;
    };
};

/* What the unfinished timers of a topic wait for; each that no worker has is counted once. */
enum bel_wait {
    BEL_WAIT_TIME,        /* for their due; without plans */
    BEL_WAIT_BLOCKED,     /* for the timer or tasks before them */
    BEL_WAIT_PAUSED,      /* ready, in a paused topic */
    BEL_WAIT_RESOURCE,    /* ready, and their resource is limited, broken, out of rate or in use */
    BEL_WAIT_CONCURRENCY, /* ready, and the topic has as many leases as its concurrency allows */
    BEL_WAIT_WORKER,      /* ready: for a worker, or for their job if it is paused */
    BEL_WAITS,
};

/* Returns the name of a reason: "time", "blocked" ... */
const char *bel_wait_name(enum bel_wait wait);

struct bel_topic {
    struct bel_view name;
    uint64_t counts[BEL_STATES]; /* a plan that has a next time counts as scheduled */
    uint64_t plans;              /* that are not done */
    uint64_t oldest_age_ms;      /* how long the first ready timer has been due; 0: no timer is
                                    ready */
    bool paused;
    const struct bel_setting *settings; /* every setting, with a value that CONFIGURE accepts */
    size_t settings_count;
    /* Since the backend was opened; the quantiles are upper bounds, at most twice the value. */
    uint64_t claimed, completed, failed, released, lost;
    uint64_t claims_per_minute, completions_per_minute; /* in the last minute, about */
    uint64_t waited_ms_p50, waited_ms_p99;              /* from due to claim */
    uint64_t ran_ms_p50, ran_ms_p99;                    /* from claim to acknowledgement */
    bool has_no_rates;                   /* the six numbers above are not measured, and 0 */
    const struct bel_work *work;         /* all of it, live; NULL: none, or no numbers of its own */
    const struct bel_named_work *groups; /* a list; NULL: no timer of a group was claimed */
    uint64_t waiting[BEL_WAITS];         /* timers by what they wait for */
};

struct bel_agenda_step {
    struct bel_wall start;
    uint64_t count;
};

/* Why a timer is not running, in a word: the first that holds of ended, blocked, time, job paused,
 * topic paused, pacing, pressure, limited, breaker, rate, resource concurrency, * (a limit of all
 * timers), topic concurrency, share, not loaded, no worker. The word of a leased timer is leased;
 * that of one that a waiting worker is about to get, ready.
 *
 * `by` names what the timer waits for: a resource, task, plan, job, group, topic, worker or cause
 * of pressure; or the state in which it ended. */
struct bel_reason {
    const char *word;
    struct bel_view by;    /* empty: it has no name */
    bool has_until;        /* it is known when this ends */
    struct bel_wall until; /* only if has_until */
};

struct bel_reply {
    int err;                       /* 0, or the error: nothing has changed */
    char why[BEL_REPLY_WHY_BYTES]; /* if err: a message for people, ends in 0 */
    union {
        uint64_t count;
        struct bel_view id;
        struct bel_verdict verdict;
        const struct bel_topic *topic;
        struct {
            const struct bel_delivery *items;
            size_t count;
        } deliveries;
        struct {
            const struct bel_timer *items;
            size_t count;
            struct bel_view cursor; /* empty: this is the last page */
        } timers;
        struct {
            const struct bel_view *items;
            size_t count;
            const struct bel_reason *reason; /* of EXPLAIN; else NULL */
        } names;
        struct {
            const struct bel_agenda_step *items;
            size_t count;
        } steps;
        struct bel_job_submitted submitted;
        const struct bel_job *job;
        struct {
            const struct bel_job *items;
            size_t count;
            struct bel_view cursor; /* empty: this is the last page */
        } jobs;
        struct bel_limit_reply limits;
    };
};

struct bel_request {
    struct bel_command command;
    void (*done)(struct bel_request *request, const struct bel_reply *reply);
    void *user;    /* for the caller's use */
    bool is_early; /* of a read: its reply may show changes that a crash could still take back */
    struct {       /* private to the carrier of the request, such as a driver, while it holds it */
        void *next, *prev, *carrier;
        void (*done)(struct bel_request *request, const struct bel_reply *reply);
    } via;
    struct { /* private to the backend while it holds the request */
        void *next, *prev;
        uint64_t words[10];
        struct bel_reply reply; /* preallocated, so that BEL_ENOMEM can be reported */
    } own;
};

/* The current time on every clock. `real` limits waits, which a virtual clock must not delay. */
struct bel_now {
    struct bel_boot boot;
    struct bel_wall wall;
    struct bel_mono real;
    /* Nanoseconds since the last full millisecond of `wall`, so that timers due by wall time are
     * not up to 1 ms late; 0: unknown. Read the boot clock before the wall clock: the time between
     * the two reads can make a turn early, never late. */
    uint32_t wall_rest_ns;
};

/* When the next turn is needed if no request is submitted: at the earlier of `due` and `wait`. Both
 * may be too early, never too late. A time that is not after now means at once.
 *
 * `add` and `change` are in the future while the backend holds back requests with that effect,
 * because its disk cannot keep up. Such a request waits in the backend, and so do all requests
 * submitted after it. A caller with independent sources of requests submits the others first. */
struct bel_next {
    struct bel_boot due;         /* the next timer, lease or plan; BEL_NEVER: none */
    struct bel_mono wait;        /* the end of the first wait; BEL_NEVER: none */
    struct bel_mono add, change; /* 0: requests are not held back */
};

/* What a request may do. */
enum bel_effect {
    BEL_EFFECT_READ,   /* shows what there is */
    BEL_EFFECT_CHANGE, /* changes or ends timers: CLAIM, ACK, CANCEL ... */
    BEL_EFFECT_ADD,    /* adds timers: SCHEDULE, REVIVE, JOB SUBMIT */
};

/* A backend. To implement one, make this the first member and set the first three functions. A
 * backend that waits for other processes also sets `descriptor`. */
struct bel_backend {
    void (*submit)(struct bel_backend *backend, struct bel_request *request);
    bool (*withdraw)(struct bel_backend *backend, struct bel_request *request);
    struct bel_next (*turn)(struct bel_backend *backend, struct bel_now now);
    int (*descriptor)(const struct bel_backend *backend); /* NULL: there is none */
};

/* Submits a request. The backend owns the request until it calls `done`. */
void bel_backend_submit(struct bel_backend *backend, struct bel_request *request);

/* Withdraws a request. Returns true if the request had not begun, or was a waiting claim: `done` is
 * not called and the request is the caller's again. Otherwise returns false, and `done` will be
 * called. */
bool bel_backend_withdraw(struct bel_backend *backend, struct bel_request *request);

/* Processes due timers and requests, commits, sends replies, and returns when the next turn is
 * needed. */
struct bel_next bel_backend_turn(struct bel_backend *backend, struct bel_now now);

/* Returns a descriptor, for poll(), that is readable when a turn is needed because something has
 * arrived from another process; or -1: only time and requests need turns. It stays the same. */
int bel_backend_descriptor(const struct bel_backend *backend);

/* Reads each time of a clock once. */
struct bel_now bel_clock_now(const struct bel_clock *clock);

/*
 * For a program without an event loop: submits a request and takes turns until it is done. `done`
 * is called as usual, but may be NULL here, and must neither submit nor free the request. Other
 * submitted requests are processed in the same turns. Returns the error of the reply, or 0. This
 * function sleeps only for replies of other processes, if the backend has a descriptor. A claim
 * that would have to wait is withdrawn without a call of `done`, and the function returns
 * BEL_EBUSY; the next turn tells how long to sleep. With a backend whose
 * replies leave in a later turn (BEL_ENGINE_SYNC_IN_THREAD), and while a backend holds back
 * requests, this function busy-waits.
 */
BEL_CHECKED int bel_backend_call(struct bel_backend *backend, const struct bel_clock *clock,
                                 struct bel_request *request);

/* Returns the name of a verb in lower case: "schedule". */
const char *bel_verb_name(enum bel_verb verb);

enum bel_effect bel_verb_effect(enum bel_verb verb);

/* Return whether a topic name, or an id chosen by a user, is valid. The options of CLAIM (COUNT,
 * LEASE, WAIT, WORKER) are not valid topic names. */
bool bel_topic_is_valid(struct bel_view topic);
bool bel_id_is_valid(struct bel_view id);

BEL_END_DECLARATIONS
#endif
