/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_RUNTIME_H
#define BEL_RUNTIME_RUNTIME_H

/*
 * The parts of a runtime. Each is explained in the file of the same name.
 */

#include "belfry/runtime.h"

#include "core/alarm.h"
#include "core/histogram.h"
#include "runtime/shared.h"
#include "runtime/visitor.h"
#include "runtime/wall.h"

enum {
    RESOLUTION_US_DEFAULT = 50,
    TIMERS_MAX_DEFAULT = 1 << 27,
    MAGAZINES_SLACK = 1 << 16, /* records that may be in the magazines of threads */
};

#define OVERDUE_NS UINT64_C(1000000) /* a timer later than this is overdue */

/* The action of a kind: a callback or an inbox; neither if it is not registered. `ring` is written
 * last. */
struct kind {
    _Atomic(bel_ring_fn *) ring;
    _Atomic(struct bel_inbox *) inbox;
    void *context;
};

/* The workers. */
struct roster {
    _Atomic(struct bel_worker *) live[BEL_WORKERS_MAX];  /* by index; NULL: no worker */
    _Atomic(struct bel_worker *) seats[BEL_WORKERS_MAX]; /* their memory, kept for reuse */
    _Atomic uint32_t seats_used;
    _Atomic uint32_t count;
    uint32_t incarnations;  /* workers that have ever entered */
    pthread_cond_t changed; /* a worker has left, a thread has started, a shutdown has ended */
    _Atomic bool stopping;  /* a shutdown is running; written with the mutex held */
};

struct metronome {
    struct bel_alarm alarm;
    pthread_t thread;
    bool is_started;
    _Atomic bool stops;
    _Atomic uint64_t target; /* until when it sleeps; 0: it is awake or has been rung */
    uint64_t resolution_ns;
    uint64_t last; /* time of the last turn */
    int clock_fd;  /* readable when the wall clock was set; -1: none yet, or not available */
    _Atomic uint64_t turns, wakes, missed, drift_max;
};

struct bel_runtime {
    const struct bel_clock *clock;
    uint32_t forks; /* value of bel__forks when the runtime was created */
    enum bel_metronome mode;
    struct pool pool;
    struct roster roster;
    struct shared shared;
    struct metronome metronome;
    struct wall wall;
    struct kind kinds[BEL_KINDS_MAX];
    pthread_mutex_t mutex;          /* for workers that enter and leave; never taken to schedule
                                       or ring */
    struct visitor *visitors;       /* guarded by the mutex */
    struct counters gone;           /* of threads that have ended; written with the mutex held */
    struct counters signals;        /* of calls in signal handlers; by fetch_add */
    struct bel_histogram *lateness; /* of workers that have left; with the mutex held */
    struct bel_inbox *inboxes;
    pthread_cond_t rung;                /* a callback that a thread waits for has returned */
    pthread_t threads[BEL_WORKERS_MAX]; /* started by bel_runtime_start() */
    unsigned thread_count;
    uint32_t garbage_floor; /* the least garbage limit of a worker */
};

static inline bool runtime_is_forked(const struct bel_runtime *runtime)
{
    /* Relaxed: changes only in the child of a fork, which has one thread then. */
    return atomic_load_explicit(&bel__forks, memory_order_relaxed) != runtime->forks;
}

static inline uint64_t runtime_now(const struct bel_runtime *runtime)
{
    return bel_clock_boot(runtime->clock).ns;
}

/* Returns whether a kind is registered. */
static inline bool runtime_knows(const struct bel_runtime *runtime, unsigned kind)
{
    if (kind >= BEL_KINDS_MAX) return false;
    /* Acquire pairs with the releases in bel_runtime_on and _on_inbox. */
    return atomic_load_explicit(&runtime->kinds[kind].ring, memory_order_acquire) != NULL ||
           atomic_load_explicit(&runtime->kinds[kind].inbox, memory_order_acquire) != NULL;
}

/* Lock and unlock the mutex. They also mark the thread as busy, so that a signal handler on it does
 * not wait for the mutex for ever; visitor.c. */
void bel__runtime_lock(struct bel_runtime *runtime);
void bel__runtime_unlock(struct bel_runtime *runtime);

/* Sends a timer, which the caller has set to QUEUED, to its owner, or to the shared wheel if the
 * owner has left. `visitor` is the caller's, marked as busy; send.c. */
void bel__send(struct bel_runtime *runtime, struct visitor *visitor, struct record *record);

/* Sends a cancelled timer to its owner to be reclaimed; does not wake the owner unless many wait.
 * May be called in a signal handler. */
void bel__send_back(struct bel_runtime *runtime, struct record *record);

/* Returns the number of cancelled timers in queues, without those in `returns`; stats.c. */
uint64_t bel__stats_queued_garbage(struct bel_runtime *runtime);

/* Notes that a timer was cancelled in a queue, usually the inbox of the worker `owner`, and
 * reclaims some if there are many. `visitor` may be NULL, or busy in a signal handler. */
void bel__send_note_cancelled(struct bel_runtime *runtime, struct visitor *visitor, uint32_t owner);

/* Builds the event of a record, which the caller may read; ring.c. */
struct bel_event bel__ring_describe(const struct bel_runtime *runtime, struct record *record,
                                    uint64_t now);

/* Counts the pending timers of the worker `owner`, or of all if it is 0, that were due before
 * `before`; found.c. */
void bel__found_overdue(const struct bel_runtime *runtime, uint32_t owner, uint64_t before,
                        struct bel_runtime_stats *out);

/* Wakes threads that wait in bel_runtime_cancel_sync() for a timer whose word was `before`. */
void bel__ring_tell(struct bel_runtime *runtime, uint64_t before);

/* Starts the metronome's thread unless the mode is manual. The mutex is held. */
BEL_CHECKED int bel__metronome_start(struct bel_runtime *runtime);
void bel__metronome_stop(struct bel_runtime *runtime);

/* Tells the metronome that a worker's next due, or that of the shared wheel, is `due`. */
void bel__metronome_notify(struct bel_runtime *runtime, _Atomic uint64_t *wake_at, uint64_t due);

#endif
