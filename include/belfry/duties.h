/* SPDX-License-Identifier: MIT */
#ifndef BEL_DUTIES_H
#define BEL_DUTIES_H

/*
 * duties - what a program that works through jobs waits for, as events in one inbox.
 *
 *     duty          of a       waits                           rule
 *     retry         task       10 s, doubling up to 1 h        replaces
 *     rate limit    resource   as reported, up to 24 h,        never shortens
 *                              else 60 s
 *     breaker       resource   30 s, doubling up to 300 s,     never prolonged
 *                              from the 5th failure in a row
 *     stale         task       its idle limit                  a heartbeat starts it anew
 *     pacing        job        2 s, once no task of it runs    replaces
 *     cooldown      job        5 s; chains of at most 5        replaces
 *     job timeout   job        24 h                            never prolonged
 *     cron tick     schedule   until the next tick             never overlaps, unless told
 *
 * A timer is named by its duty and a key, a number of the program's, and there is at most
 * one of each name. It is cancelled by name, too:
 *
 *     bel_duties_create(runtime, &(struct bel_duties_options){.kind_first = 100}, &duties);
 *     bel_duties_retry(duties, (struct bel_duty_for){.key = task, .user = word}, attempt);
 *     ...
 *     count = bel_duties_take(duties, events, 64);
 *
 * What has been cancelled or replaced does not arrive, even if it had rung by then and was
 * in the inbox: taking drops it. So to the owner a timer is pending until its event is
 * taken, and nothing comes as a surprise.
 *
 * Threads: a set of duties belongs to one thread, which arms, cancels and takes. Its timers
 * ring on the runtime's workers. Names are not in a snapshot: a program that starts again
 * arms its duties anew, from what it knows of its jobs.
 */

#include "belfry/runtime.h"

#pragma GCC visibility push(default)

struct bel_duties; /* opaque: it owns memory */

enum bel_duty {
    BEL_DUTY_RETRY,
    BEL_DUTY_RATE_LIMIT,
    BEL_DUTY_BREAKER,
    BEL_DUTY_STALE,
    BEL_DUTY_PACING,
    BEL_DUTY_COOLDOWN,
    BEL_DUTY_JOB_TIMEOUT,
    BEL_DUTY_CRON,
    BEL_DUTY_COUNT,
};

/* Numbers that can be chosen; 0 is the default. */
struct bel_duty_limits {
    uint64_t retry_ns;       /* the first delay: 10 s */
    uint64_t retry_max_ns;   /* 1 h */
    uint32_t retry_jitter;   /* percent by which chance may shorten it: none */
    uint32_t breaker_opens;  /* at so many failures in a row: 5 */
    uint64_t breaker_ns;     /* the first delay: 30 s */
    uint64_t breaker_max_ns; /* 300 s */
    uint64_t rate_limit_ns;  /* when no wait was reported: 60 s */
    uint64_t pacing_ns;      /* 2 s */
    uint64_t cooldown_ns;    /* 5 s */
    uint64_t job_timeout_ns; /* 24 h */
    uint32_t chain_max;      /* jobs that follow another: 5 */
    uint32_t cron_queue_max; /* ticks that wait for a run to end; more are skipped: 100 */
};

/*
 * The arithmetic by itself. NULL limits are the defaults.
 */

/* How long to wait after attempt 1, 2, ... has failed: never more than the maximum,
 * whatever the number. `chance` is any number; it matters with jitter only. */
uint64_t bel_duty_retry_ns(const struct bel_duty_limits *limits, uint32_t attempt, uint32_t chance);

/* How long a breaker stays open after so many failures in a row; 0: it is closed. */
uint64_t bel_duty_breaker_ns(const struct bel_duty_limits *limits, uint32_t failures);

/* How long to leave a resource alone that reported a wait, or with 0 none. */
uint64_t bel_duty_rate_limit_ns(const struct bel_duty_limits *limits, uint64_t reported_ns);

/*
 * A set of duties.
 */

struct bel_duties_options {
    bel_kind_t kind_first;         /* this and the next seven are the set's */
    uint32_t names_max;            /* arming fails with BEL_EFULL beyond it; 0: 2^20 */
    struct bel_worker *worker;     /* rings them all, in exact order; NULL: any */
    struct bel_duty_limits limits; /* each that is 0 is the default */
};

/* Makes a set with an inbox of its own. Returns 0 and sets `*out`; or BEL_EINVAL if one of
 * the kinds has a meaning already or is too large, BEL_ENOMEM or BEL_EIO. */
BEL_CHECKED int bel_duties_create(struct bel_runtime *runtime,
                                  const struct bel_duties_options *options,
                                  struct bel_duties **out);

/* Cancels everything and frees the set, before its runtime; NULL is allowed. The kinds stay
 * taken. */
void bel_duties_destroy(struct bel_duties *duties);

/* What came: by name, with the user word it was last armed with. */
struct bel_duty_event {
    enum bel_duty duty;
    uint64_t key;
    uint64_t user;
    struct bel_boot due;
    struct bel_boot now; /* when it rang */
    uint64_t missed;     /* cron: ticks left out since the one before */
};

/* Takes up to `max` events, in the order in which they rang, and returns how many. */
size_t bel_duties_take(struct bel_duties *duties, struct bel_duty_event *out, size_t max);

/* Readable while there may be events. */
int bel_duties_fd(const struct bel_duties *duties);

/* Ends what is under a name, and forgets its count and runs: true if a timer was pending.
 * A success does this to a breaker, the end of a job to its timeout. */
bool bel_duties_cancel(struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/* Whether a timer is pending under a name. A breaker is open then. */
bool bel_duties_is_pending(const struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/* What is counted under a name: failures in a row of a breaker, ticks of a cron that were
 * skipped because a run had not ended; else 0. */
uint64_t bel_duties_count(const struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/*
 * Arming. Each returns 0; or, and nothing has changed: BEL_EFULL, BEL_ENOMEM, BEL_ERANGE
 * for a delay that is too long to represent, BEL_ECLOSED after fork().
 */

/* Which task, resource or job it is, and a word for the event. */
struct bel_duty_for {
    uint64_t key;
    uint64_t user;
};

/* What happens to a timer that is pending under the same name. */
enum bel_duty_rule {
    BEL_RULE_REPLACE,
    BEL_RULE_KEEP_LONGEST, /* the one that is due later stays, with its word */
    BEL_RULE_KEEP_FIRST,
};

struct bel_duty_timer {
    enum bel_duty duty;
    enum bel_duty_rule rule;
    uint64_t delay_ns;
};

/* What the others do in their own ways, for a duty with rules of its own. */
BEL_CHECKED int bel_duties_arm(struct bel_duties *duties, struct bel_duty_for what,
                               const struct bel_duty_timer *timer);

/* Attempt 1, 2, ... at a task has failed. Chance, if there is jitter, is the system's. */
BEL_CHECKED int bel_duties_retry(struct bel_duties *duties, struct bel_duty_for task,
                                 uint32_t attempt);

/* A resource wants to be left alone for so long; 0: it did not say for how long. */
BEL_CHECKED int bel_duties_limit_rate(struct bel_duties *duties, struct bel_duty_for resource,
                                      uint64_t reported_ns);

/* A resource has failed. From the fifth time in a row on its breaker is open; its event
 * says to try once: if that fails too, it is open for twice as long. What fails while it is
 * open was under way before, and neither counts nor prolongs it. */
BEL_CHECKED int bel_duties_fail(struct bel_duties *duties, struct bel_duty_for resource);

/* A task is being worked on, and its worker says so at least once in `idle_ns`. */
BEL_CHECKED int bel_duties_watch(struct bel_duties *duties, struct bel_duty_for task,
                                 uint64_t idle_ns);

/* It does so. BEL_ESTALE if it is not watched, or not any more: then it is too late. */
BEL_CHECKED int bel_duties_heartbeat(struct bel_duties *duties, uint64_t task);

/* A task of a job has ended, and so many others of it still run: if none, the next may
 * start when this rings. */
BEL_CHECKED int bel_duties_pace(struct bel_duties *duties, struct bel_duty_for job,
                                uint32_t running);

/* A job follows another as the `depth`th of its chain, 1 for the first that does; it may
 * start when this rings. BEL_EFULL also if the chain is too long. */
BEL_CHECKED int bel_duties_chain(struct bel_duties *duties, struct bel_duty_for job,
                                 uint32_t depth);

/* A job starts, and has so long; 0: the default. Its event ends its pacing, too; what else
 * is not finished is the program's to cancel. */
BEL_CHECKED int bel_duties_start_job(struct bel_duties *duties, struct bel_duty_for job,
                                     uint64_t timeout_ns);

/* What a tick does while a run has not ended. */
enum bel_duty_overlap {
    BEL_OVERLAP_SKIP,  /* it is counted and left out */
    BEL_OVERLAP_QUEUE, /* it waits: see bel_duties_end_run() */
    BEL_OVERLAP_ALLOW, /* it arrives */
};

struct bel_duty_ticks {
    struct bel_boot first;
    uint64_t period_ns; /* 0: the first only; the program knows when the next is */
    enum bel_duty_overlap overlap;
    bool catches_up; /* a tick for each one missed; else only those to come */
};

/* Starts ticking, or changes how it ticks: runs that have not ended still count. A tick
 * that arrives starts a run. BEL_ERANGE also if `first` is BEL_NEVER. */
BEL_CHECKED int bel_duties_cron(struct bel_duties *duties, struct bel_duty_for schedule,
                                const struct bel_duty_ticks *ticks);

/* A run has ended. True if a tick has been waiting for that: it is to be run now. */
bool bel_duties_end_run(struct bel_duties *duties, uint64_t schedule);

#pragma GCC visibility pop
#endif
