/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_RUNTIME_H
#define BEL_RUNTIME_RUNTIME_H

/*
 * The parts of a runtime. Each is explained in the file it is named after.
 */

#include "belfry/runtime.h"

#include "core/alarm.h"
#include "core/histogram.h"
#include "runtime/visitor.h"

enum {
    RESOLUTION_US_DEFAULT = 50,
    TIMERS_MAX_DEFAULT = 1 << 27,
    MAGAZINES_SLACK = 1 << 16, /* records that may sit in threads' magazines */
};

/* What a kind means. `ring` is written last: a kind that has neither has no meaning. */
struct kind {
    _Atomic(bel_ring_fn *) ring;
    _Atomic(struct bel_inbox *) inbox;
    void *context;
};

/* Who is there to poll, and what waits for them. */
struct roster {
    _Atomic(struct bel_worker *) live[BEL_WORKERS_MAX];  /* by index; NULL: not there */
    _Atomic(struct bel_worker *) seats[BEL_WORKERS_MAX]; /* the memory, kept for the next */
    _Atomic uint32_t seats_used;
    _Atomic uint32_t count;
    uint32_t incarnations;    /* workers ever entered */
    struct bel_queue merge;   /* timers without a worker; taken with the mutex held */
    _Atomic uint64_t unowned; /* timers in there */
    pthread_cond_t changed;   /* a worker has left, a thread has started, a shutdown is over */
    _Atomic bool stopping;    /* a shutdown is under way; written with the mutex held */
};

struct metronome {
    struct bel_alarm alarm;
    pthread_t thread;
    bool is_started;
    _Atomic bool stops;
    _Atomic uint64_t target; /* until when it sleeps; 0: it is awake or has been rung */
    uint64_t resolution_ns;
    uint64_t last; /* turn */
    _Atomic uint64_t turns, wakes, missed, drift_max;
};

struct bel_runtime {
    const struct bel_clock *clock;
    uint32_t forks; /* bel__forks when it was made */
    enum bel_metronome mode;
    struct pool pool;
    struct roster roster;
    struct metronome metronome;
    struct kind kinds[BEL_KINDS_MAX];
    pthread_mutex_t mutex;          /* for workers that come and go, never on the way of a timer */
    struct visitor *visitors;       /* guarded by the mutex */
    struct counters gone;           /* of visitors that are gone; written with the mutex held */
    struct counters signals;        /* of calls from signal handlers; by fetch_add */
    struct bel_histogram *lateness; /* of workers that are gone; with the mutex held */
    struct bel_inbox *inboxes;
    pthread_cond_t rung;                /* a callback that someone waits for has returned */
    pthread_t threads[BEL_WORKERS_MAX]; /* that bel_runtime_start() started */
    unsigned thread_count;
};

static inline bool runtime_is_forked(const struct bel_runtime *runtime)
{
    /* Relaxed: it changes in the child of a fork only, which has one thread then. */
    return atomic_load_explicit(&bel__forks, memory_order_relaxed) != runtime->forks;
}

static inline uint64_t runtime_now(const struct bel_runtime *runtime)
{
    return bel_clock_boot(runtime->clock).ns;
}

/* Whether a kind has a meaning. */
static inline bool runtime_knows(const struct bel_runtime *runtime, unsigned kind)
{
    if (kind >= BEL_KINDS_MAX) return false;
    /* Acquire pairs with the releases in bel_runtime_on and _on_inbox. */
    return atomic_load_explicit(&runtime->kinds[kind].ring, memory_order_acquire) != NULL ||
           atomic_load_explicit(&runtime->kinds[kind].inbox, memory_order_acquire) != NULL;
}

/* The mutex. Signal handlers keep out of a thread that has it, or they would wait for it for
 * ever; visitor.c. */
void bel__runtime_lock(struct bel_runtime *runtime);
void bel__runtime_unlock(struct bel_runtime *runtime);

/* Sends a timer, which is QUEUED by the caller, to its owner, or to whoever is there if
 * that has left; send.c. */
void bel__send(struct bel_runtime *runtime, struct record *record);

/* The same for a timer that was cancelled: that is not urgent, until there are many. */
void bel__send_back(struct bel_runtime *runtime, struct record *record);

/* Puts timers that nobody owns, all QUEUED and linked through `entry`, into the merge
 * queue; roster.c. */
void bel__roster_merge(struct bel_runtime *runtime, struct record *first, uint64_t count);

/* Shares out what waits among the workers. The mutex is held. */
void bel__roster_deal(struct bel_runtime *runtime);

/* What rings, as its record says, which is the caller's to read; ring.c. */
struct bel_event bel__ring_describe(const struct bel_runtime *runtime, struct record *record,
                                    uint64_t now);

/* Tells those who wait in bel_runtime_cancel_sync() for a timer whose word was `before`. */
void bel__ring_tell(struct bel_runtime *runtime, uint64_t before);

/* Any worker, or NULL. */
struct bel_worker *bel__roster_any(struct bel_runtime *runtime, struct visitor *visitor);

/* Starts the metronome's thread if there is to be one. The mutex is held. */
BEL_CHECKED int bel__metronome_start(struct bel_runtime *runtime);
void bel__metronome_stop(struct bel_runtime *runtime);

/* A worker's next due has become earlier than what the metronome knows. */
void bel__metronome_notify(struct bel_runtime *runtime, struct bel_worker *worker, uint64_t due);

#endif
