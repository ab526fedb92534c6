/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_WORKER_H
#define BEL_RUNTIME_WORKER_H

/*
 * worker - a thread's place in a runtime. The first part is the thread's own; after that,
 * each on a cache line by itself, what other threads write to.
 */

#include "core/histogram.h"
#include "runtime/runtime.h"

#include <stdalign.h>

enum {
    CACHE_LINE = 64,
    INTAKE_MAX = 1024,       /* timers taken in, and cleared away, by one poll */
    ADOPT_MAX = 256,         /* timers adopted by one poll */
    TURN_MAX = 8 * 1024,     /* timers that one poll turns round, oldest first */
    DEAL_MAX = 1024,         /* timers without a worker that one poll shares out */
    GARBAGE_MAX = 64 * 1024, /* cancelled timers not cleared away; or a quarter of the live */
    STALE_PERCENT = 10,      /* keeps a wheel's stale entries below a quarter of its timers */
    TRIES_MAX = 4,           /* calls to a wheel that has more to do, by one poll */
    POLLS_PER_LOOK = 64,     /* polls that believe an unchanged published time */
    INDEX_BITS = 8,          /* of a worker's id */
};

static_assert(BEL_WORKERS_MAX == 1 << INDEX_BITS, "an id has room for the index");

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): lines of their own, see above */
struct bel_worker {
    struct bel_runtime *runtime;
    struct visitor *visitor;
    struct bel_wheel *wheel;
    _Atomic uint32_t id; /* a record's owner: incarnation << 8 | index */
    uint32_t index;      /* in the roster */
    bool is_taken;       /* with the runtime's mutex held */
    bool is_polling;
    bool has_waited;                 /* since the last poll */
    volatile bool is_waiting;        /* asleep: only a signal handler on it can see that */
    bool must_look;                  /* at the clock: something has changed */
    _Atomic bool is_watched;         /* the metronome wakes it: see bel_worker_fd() */
    uint32_t unchanged;              /* polls since the published time has changed */
    uint64_t now_seen;               /* the published time when it was last looked at */
    uint64_t wake_known;             /* the last that was written to wake_at; 0: unknown */
    struct bel_queue_node *unturned; /* taken from the inbox, newest first */
    struct bel_queue_node *turned;   /* the rest of that, oldest first */
    struct bel_queue_node *incoming; /* all of it, oldest first, not looked at yet */
    struct bel_queue_node *returned; /* cancelled, taken out, in no order */
    struct record *parcel;           /* timers to adopt, linked through `entry` */
    struct bel_alarm alarm;
    struct bel_histogram lateness;

    alignas(CACHE_LINE) struct bel_queue inbox;
    alignas(CACHE_LINE) struct bel_queue returns;
    _Atomic uint32_t returns_depth;
    alignas(CACHE_LINE) _Atomic uint64_t wake_at; /* when the metronome is to look after it */
    _Atomic uint64_t live;                        /* timers in its wheel, for the others */
    _Atomic uint64_t stale;                       /* entries in it that belong to none */
    _Atomic uint64_t adopted;                     /* timers dealt to it that it has */
    uint64_t dealt;                               /* with the runtime's mutex held */
    alignas(CACHE_LINE) _Atomic uint64_t now;     /* as the metronome published it */
};

/* Where bel_worker_poll()'s work is done. */

/* Takes in what others sent: up to INTAKE_MAX of each kind, in order; intake.c. */
void bel__intake(struct bel_worker *worker);

/* Whether there is anything to take in. */
bool bel__intake_is_empty(const struct bel_worker *worker);

/* Takes everything out of a worker that has left the roster and closed its queues, and
 * hands it on. */
void bel__intake_hand_over(struct bel_worker *worker, struct bel_queue_node *inbox,
                           struct bel_queue_node *returns);

/* Puts a pending timer of the worker's own into its wheel, to come up when it is due or
 * later; without memory it goes through the inbox once more. */
void bel__worker_arm(struct bel_worker *worker, struct record *record, uint64_t at);

/* Tells the metronome, if need be, when the worker's next timer is due. */
void bel__worker_publish(struct bel_worker *worker);

/* Rings a timer that has come up, if it is not stale; ring.c. */
bool bel__ring(struct bel_worker *worker, const struct bel_wheel_timer *popped, uint64_t now);

/* Ends what a callback has begun that did not return. */
void bel__ring_abandon(struct bel_worker *worker);

/* The thread ends: it leaves, even from inside a callback. */
void bel__worker_end(struct bel_worker *worker);

static inline struct pool *pool_of(const struct bel_worker *worker)
{
    return &worker->runtime->pool;
}

static inline uint32_t worker_id(const struct bel_worker *worker)
{
    return get32(&worker->id);
}

static inline bool worker_is_watched(const struct bel_worker *worker)
{
    return atomic_load_explicit(&worker->is_watched, memory_order_relaxed);
}

/* Whether a timer, which the caller may look at, is in this worker's hands. */
static inline bool worker_owns(const struct bel_worker *worker, const struct record *record)
{
    return get32(&record->owner) == worker_id(worker);
}

/* The next record of a parcel. */
static inline struct record *parcel_next(const struct record *record)
{
    return (struct record *)(uintptr_t)record->entry; /* NOLINT(performance-no-int-to-ptr) */
}

/* Gives back a record whose life has ended. */
static inline void worker_give(struct bel_worker *worker, struct record *record)
{
    pool_give(pool_of(worker), &worker->visitor->magazine, record);
}

#endif
