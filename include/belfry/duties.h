/* SPDX-License-Identifier: MIT */
#ifndef BEL_DUTIES_H
#define BEL_DUTIES_H

/*
 * duties - the standard timers of a program that processes jobs, delivered as events in one inbox.
 *
 *     duty          belongs to  delay                           if already pending
 *     retry         task        10 s, doubling up to 1 h        replaced
 *     rate limit    resource    as reported, up to 24 h,        the longer one stays
 *                               default 60 s
 *     breaker       resource    30 s, doubling up to 300 s,     the first one stays
 *                               from the 5th failure in a row
 *     stale         task        its idle limit                  restarted by a heartbeat
 *     pacing        job         2 s after its last task ended   replaced
 *     cooldown      job         5 s; chains of at most 5        replaced
 *     job timeout   job         24 h                            the first one stays
 *     cron tick     schedule    until the next tick             runs do not overlap by default
 *
 * Jobs and limits of an engine keep the same waits durably; bel_duties(3) has the fields.
 *
 * A timer is named by its duty and a key, which is a number chosen by the program. At most one
 * timer exists per name. Timers are also cancelled by name:
 *
 *     bel_duties_create(runtime, &(struct bel_duties_options){.kind_first = 100}, &duties);
 *     bel_duties_retry(duties, (struct bel_duty_for){.key = task, .user = word}, attempt);
 *     ...
 *     count = bel_duties_take(duties, events, 64);
 *
 * The event of a cancelled or replaced timer is never delivered, even if the timer had already rung
 * and its event was in the inbox: bel_duties_take() drops it. To the caller, a timer is pending
 * until its event is taken.
 *
 * Threads: a set of duties belongs to one thread, which arms, cancels and takes. Its timers ring on
 * the workers of the runtime. A snapshot of the runtime does not contain the names; a snapshot of
 * the duties does, see bel_duties_snapshot().
 */

#include "belfry/declare.h"
#include "belfry/overlap.h"
#include "belfry/runtime.h"

BEL_BEGIN_DECLARATIONS

struct bel_duties; /* opaque: owns memory */

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

/* Limits of a set of duties; a field that is 0 has its default. */
struct bel_duty_limits {
    uint64_t retry_ns;       /* the first delay; default 10 s */
    uint64_t retry_max_ns;   /* the longest delay; default 1 h */
    uint32_t retry_jitter;   /* percent by which a delay is randomly shortened; default 0 */
    uint32_t breaker_opens;  /* failures in a row that open the breaker; default 5 */
    uint64_t breaker_ns;     /* the first delay; default 30 s */
    uint64_t breaker_max_ns; /* the longest delay; default 300 s */
    uint64_t rate_limit_ns;  /* delay if the resource reported none; default 60 s */
    uint64_t pacing_ns;      /* default 2 s */
    uint64_t cooldown_ns;    /* default 5 s */
    uint64_t job_timeout_ns; /* default 24 h */
    uint32_t chain_max;      /* jobs that may follow another in a chain; default 5 */
    uint32_t cron_queue_max; /* ticks that may wait for a run to end, others are skipped; default
                                100 */
};

/*
 * The delays as pure functions. NULL limits: the defaults.
 */

/* Returns the delay after attempt number `attempt`, counted from 1, has failed; at most
 * `retry_max_ns`. `chance` is a random number, which is used only with jitter. */
uint64_t bel_duty_retry_ns(const struct bel_duty_limits *limits, uint32_t attempt, uint32_t chance);

/* Returns how long a breaker stays open after `failures` failures in a row; 0: it is closed. */
uint64_t bel_duty_breaker_ns(const struct bel_duty_limits *limits, uint32_t failures);

/* Returns how long to leave a resource alone that reported a rate limit. `reported_ns` 0: the
 * resource reported no duration. */
uint64_t bel_duty_rate_limit_ns(const struct bel_duty_limits *limits, uint64_t reported_ns);

/*
 * A set of duties.
 */

struct bel_duties_options {
    bel_kind_t kind_first;         /* first of the eight kinds that the set uses */
    uint32_t names_max;            /* arming fails with BEL_EFULL above this number of names; 0:
                                      2^20 */
    struct bel_worker *worker;     /* rings all timers, in exact order; NULL: any worker */
    struct bel_duty_limits limits; /* a limit that is 0 has its default */
};

/* Creates a set with its own inbox. Returns 0 and sets `*out`; or returns BEL_EINVAL if one of its
 * kinds is already registered or too large, BEL_ENOMEM or BEL_EIO. */
BEL_CHECKED int bel_duties_create(struct bel_runtime *runtime,
                                  const struct bel_duties_options *options,
                                  struct bel_duties **out);

/* Cancels all timers of a set and frees it; NULL is allowed. Call it before bel_runtime_destroy().
 * The kinds stay registered. */
void bel_duties_destroy(struct bel_duties *duties);

/* A timer that rang: its name, and the user word that it was last armed with. */
struct bel_duty_event {
    enum bel_duty duty;
    uint64_t key;
    uint64_t user;
    struct bel_boot due;
    struct bel_boot now; /* when the timer rang */
    uint64_t missed;     /* cron: ticks left out since the previous event */
};

/* Takes up to `max` events in the order in which they rang. Returns the number taken. */
size_t bel_duties_take(struct bel_duties *duties, struct bel_duty_event *out, size_t max);

/* Returns a descriptor that is readable while there may be events. */
int bel_duties_fd(const struct bel_duties *duties);

/* Cancels the timer of a name and resets its failure count and its runs. Returns true if a timer
 * was pending. Call it for a breaker after a success, and for a job timeout when the job ends. */
bool bel_duties_cancel(struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/* Returns whether the timer of a name is pending. For a breaker: whether it is open. */
bool bel_duties_is_pending(const struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/* Returns the counter of a name. For a breaker: failures in a row. For a cron: ticks skipped
 * because a run had not ended. Otherwise 0. */
uint64_t bel_duties_count(const struct bel_duties *duties, enum bel_duty duty, uint64_t key);

/*
 * Arming. Each function returns 0; or, with nothing changed: BEL_EFULL, BEL_ENOMEM, BEL_ERANGE for
 * a delay too long to represent, BEL_ECLOSED after fork().
 */

/* The task, resource, job or schedule, and a word of the caller that its event returns. */
struct bel_duty_for {
    uint64_t key;
    uint64_t user;
};

/* What arming does if a timer of the same name is pending. */
enum bel_duty_rule {
    BEL_RULE_REPLACE,
    BEL_RULE_KEEP_LONGEST, /* the timer due later stays, with its user word */
    BEL_RULE_KEEP_FIRST,
};

struct bel_duty_timer {
    enum bel_duty duty;
    enum bel_duty_rule rule;
    uint64_t delay_ns;
};

/* Arms a timer with any delay and rule. The functions below call this one. */
BEL_CHECKED int bel_duties_arm(struct bel_duties *duties, struct bel_duty_for what,
                               const struct bel_duty_timer *timer);

/* Arms a retry after attempt number `attempt`, counted from 1, of a task has failed. With jitter,
 * takes the random number from the system; then the call may also fail with BEL_EIO. */
BEL_CHECKED int bel_duties_retry(struct bel_duties *duties, struct bel_duty_for task,
                                 uint32_t attempt);

/* Arms a rate limit of a resource for `reported_ns`; 0: the resource reported no duration. */
BEL_CHECKED int bel_duties_limit_rate(struct bel_duties *duties, struct bel_duty_for resource,
                                      uint64_t reported_ns);

/* Counts a failure of a resource. The fifth failure in a row opens its breaker. The event of the
 * breaker means: try once. If that attempt fails too, the breaker opens for twice as long.
 * Failures while the breaker is open come from earlier attempts; they are not counted and do not
 * prolong it. */
BEL_CHECKED int bel_duties_fail(struct bel_duties *duties, struct bel_duty_for resource);

/* Watches a task: its event arrives unless a heartbeat comes at least every `idle_ns`. */
BEL_CHECKED int bel_duties_watch(struct bel_duties *duties, struct bel_duty_for task,
                                 uint64_t idle_ns);

/* Restarts the idle limit of a task. Returns BEL_ESTALE if the task is not watched, or its event
 * was already taken. */
BEL_CHECKED int bel_duties_heartbeat(struct bel_duties *duties, uint64_t task);

/* Reports that a task of a job has ended while `running` other tasks of that job run. If none runs,
 * arms the pacing timer; its event means that the next task may start. */
BEL_CHECKED int bel_duties_pace(struct bel_duties *duties, struct bel_duty_for job,
                                uint32_t running);

/* Arms the cooldown of a job that follows another as number `depth` of a chain, counted from 1; its
 * event means that the job may start. Returns BEL_EFULL also if `depth` exceeds the limit. */
BEL_CHECKED int bel_duties_chain(struct bel_duties *duties, struct bel_duty_for job,
                                 uint32_t depth);

/* Arms the timeout of a job; 0: the default. Its event also cancels the pacing timer of the job.
 * The program must cancel the other timers of the job. */
BEL_CHECKED int bel_duties_start_job(struct bel_duties *duties, struct bel_duty_for job,
                                     uint64_t timeout_ns);

#define bel_duty_overlap bel_overlap /* the former name of the enum */

/* A tick at a wall time. */
struct bel_duty_tick {
    struct bel_wall at;
    uint64_t number; /* from 0, and those that are left out count */
    uint64_t missed; /* ticks left out directly before it */
};

/* Finds the tick after `last`, or the first tick if `last` is NULL. It may leave out ticks that are
 * past. Returns false if there is none. Called on the thread of the duties, in bel_duties_cron()
 * and when the event of `last` is taken. */
typedef bool bel_duty_next_fn(void *context, const struct bel_duty_tick *last, struct bel_wall now,
                              struct bel_duty_tick *out);

struct bel_duty_ticks {
    struct bel_boot first;
    uint64_t period_ns;       /* 0: only `first`; the program arms the next tick */
    enum bel_overlap overlap; /* of a tick while a run has not ended; see bel_duties_end_run() */
    bool catches_up;          /* deliver a tick for each one missed; otherwise leave them out */
    bel_duty_next_fn *next;   /* not NULL: ticks are at the wall times that it finds, and follow the
                                 clock when it is set; the fields above except `overlap` are
                                 ignored. For plans see bel_duties_cron_plan() */
    void *context;            /* of `next`; must be valid until the ticks end or are changed */
};

/* Starts ticks of a schedule, or changes them. Runs that have not ended still count. A delivered
 * tick starts a run. Returns BEL_ERANGE also if `first` is BEL_NEVER, or there is no tick. */
BEL_CHECKED int bel_duties_cron(struct bel_duties *duties, struct bel_duty_for schedule,
                                const struct bel_duty_ticks *ticks);

/* Reports that a run has ended. Returns true if a queued tick starts a new run now. */
bool bel_duties_end_run(struct bel_duties *duties, uint64_t schedule);

/*
 * Snapshots.
 */

/* Serializes every name: its timer, its user word, its failure count and its runs. A timer whose
 * event was not yet taken is recorded as due. Returns 0 and sets `*out` to `*out_bytes` of memory,
 * which the caller frees with free(); or returns BEL_ENOMEM or BEL_ECLOSED. */
BEL_CHECKED int bel_duties_snapshot(const struct bel_duties *duties, void **out, size_t *out_bytes);

/* Arms the names of a snapshot, which may come from another machine, with their remaining delays;
 * a name that exists is replaced. Of ticks by a rule only the next one is restored: start them
 * again with bel_duties_cron(). Timers of duties that a snapshot of the runtime has restored too
 * end without an event. Returns 0; or, with nothing armed, BEL_ECORRUPT if the snapshot is damaged,
 * BEL_EINVAL for a newer version; or BEL_EFULL or BEL_ENOMEM, and its names are cancelled. */
BEL_CHECKED int bel_duties_restore(struct bel_duties *duties, const void *snapshot, size_t bytes);

BEL_END_DECLARATIONS
#endif
