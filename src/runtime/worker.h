/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_WORKER_H
#define BEL_RUNTIME_WORKER_H

/*
 * worker - a thread's membership in a runtime. The first fields belong to the thread; the fields
 * after them are written by other threads and have cache lines of their own.
 */

#include "core/histogram.h"
#include "core/list.h"
#include "runtime/runtime.h"

#include <stdalign.h>

enum {
    CACHE_LINE = 64,
    INTAKE_MAX = 1024,       /* timers received, and cancelled ones reclaimed, per poll */
    TURN_MAX = 8 * 1024,     /* received timers that one poll reverses into sending order */
    HAND_OVER_MAX = 256,     /* timers that a worker that leaves hands over at a time */
    GARBAGE_MAX = 64 * 1024, /* cancelled timers not yet reclaimed; or a quarter of the live ones */
    STALE_PERCENT = 10,      /* keeps a wheel's stale entries below a quarter of its timers */
    TRIES_MAX = 4,           /* calls per poll to a wheel that has more to do */
    POLLS_PER_LOOK = 64,     /* polls that trust an unchanged published time */
    INDEX_BITS = 8,          /* of a worker's id */
};

static_assert(BEL_WORKERS_MAX == 1 << INDEX_BITS, "an id has room for the index");

/* Timers taken from the inbox and not yet received. Usually the worker holds the mutex while it
 * receives timers, but a thread that cancels many of them may take out the cancelled ones. The
 * atomics are written with the mutex held. */
struct backlog {
    pthread_mutex_t mutex;
    _Atomic bool is_filled;             /* there are timers */
    _Atomic uint64_t taken;             /* timers that have left the backlog */
    struct bel_queue_node *unturned;    /* newest first */
    struct bel_queue_node *turned;      /* already reversed, oldest first */
    struct bel_queue_node *turned_last; /* the newest of them */
    struct bel_queue_node *first;       /* completely reversed, oldest first */
    struct bel_queue_node *last;        /* the newest of them; undefined if there is none */
    struct bel_queue_node *swept;       /* the last that a sweep has looked at; NULL: none */
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): cache lines of their own, see above */
struct bel_worker {
    struct bel_runtime *runtime;
    struct visitor *visitor;
    struct bel_wheel *wheel;
    _Atomic uint32_t id; /* the owner field of records: incarnation << 8 | index */
    uint32_t index;      /* in the roster */
    bool is_taken;       /* with the runtime's mutex held */
    bool is_polling;
    bool has_waited;                 /* since the last poll */
    bool has_parked;                 /* its inbox, since it last took from it */
    volatile bool is_waiting;        /* asleep: only a signal handler on this thread can see it */
    bool must_look;                  /* the next poll must read the clock: something has changed */
    _Atomic bool is_watched;         /* the metronome wakes it: see bel_worker_fd() */
    bool is_served;                  /* counted in `served` of the shared wheel */
    bool is_listed;                  /* in `sleepers` of the shared wheel */
    struct bel_link sleeper;         /* with the mutex of the shared wheel held */
    uint64_t sleeps_until;           /* likewise; without the dues of the shared wheel */
    uint32_t unchanged;              /* polls since the published time changed */
    uint64_t now_seen;               /* the published time at the last check */
    uint64_t wake_known;             /* the last value written to wake_at; 0: unknown */
    struct bel_queue_node *returned; /* cancelled timers to reclaim, in no order */
    struct bel_alarm alarm;
    struct bel_histogram lateness;

    alignas(CACHE_LINE) struct bel_queue inbox;
    _Atomic uint64_t sent; /* timers pushed into the inbox */
    alignas(CACHE_LINE) struct bel_queue returns;
    _Atomic uint32_t returns_depth;
    _Atomic bool is_stuck; /* a thread has waited in vain for the worker to reclaim */
    alignas(CACHE_LINE) struct backlog backlog;
    alignas(CACHE_LINE) _Atomic uint64_t wake_at; /* when the metronome must serve it */
    _Atomic uint64_t live;                        /* timers in its wheel, for other threads */
    _Atomic uint64_t stale;                       /* stale entries in its wheel */
    _Atomic uint64_t next;                        /* its first due; 0: it is polling */
    _Atomic uint64_t polled_at;                   /* when its last poll began */
    alignas(CACHE_LINE) _Atomic uint64_t now;     /* the time that the metronome published */
};

/* The steps of bel_worker_poll(). */

/* Receives timers that other threads sent: up to INTAKE_MAX of each queue, in order; intake.c. */
void bel__intake(struct bel_worker *worker);

/* Returns whether there is nothing to receive. */
bool bel__intake_is_empty(const struct bel_worker *worker);

/* Closes the queues of a worker that has left the roster, and empties it into the shared wheel. */
void bel__intake_hand_over(struct bel_worker *worker);

/* Reclaims some of the cancelled timers that a worker has not received. Any thread may call it.
 * Returns false if another thread holds the backlog. */
bool bel__intake_sweep(struct bel_worker *worker, struct visitor *visitor);

/* Puts a pending timer of the worker into its wheel, to come up at `at`. If memory has run out,
 * sends it to the inbox again. */
void bel__worker_arm(struct bel_worker *worker, struct record *record, uint64_t at);

/* Tells the metronome, if necessary, when the worker's next timer is due. */
void bel__worker_publish(struct bel_worker *worker);

/* Removes the timers that the worker has cancelled from its wheel. */
void bel__worker_remove_cancelled(const struct bel_worker *worker);

/* Rings a timer whose entry has come up, unless the entry is stale; ring.c. */
bool bel__ring(struct bel_worker *worker, const struct bel_wheel_timer *popped, uint64_t now);

/* Rings the first due timer of the shared wheel, unless an own one is not later. */
enum bel_shared_pop bel__ring_shared(struct bel_worker *worker, uint64_t now);

/* Ends the ring of a callback that will not return. */
void bel__ring_abandon(struct bel_worker *worker);

/* Makes the worker leave because its thread ends, even inside a callback. */
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

/* Returns whether this worker owns a timer, which the caller may read. */
static inline bool worker_owns(const struct bel_worker *worker, const struct record *record)
{
    return get32(&record->owner) == worker_id(worker);
}

/* Returns how many timers were sent to a worker and not yet received. */
static inline uint64_t worker_inbox(const struct bel_worker *worker)
{
    uint64_t taken = get64(&worker->backlog.taken), sent = get64(&worker->sent);
    return sent > taken ? sent - taken : 0;
}

/* Makes room for a timer that the worker is about to cancel: removes from its wheel the one that it
 * cancelled CANCELLED_RING timers ago. */
static inline void worker_make_room(const struct bel_worker *worker)
{
    struct cancelled *cancelled = &worker->visitor->cancelled;
    if (cancelled->count - cancelled->removed < CANCELLED_RING) return;
    (void)bel_wheel_cancel(worker->wheel,
                           cancelled->entries[cancelled->removed++ % CANCELLED_RING]);
}

/* Begins to remove a timer that has just ended from the worker's wheel. Another timer may use the
 * record at once: what comes up in the wheel leads to its own timer after
 * worker_remove_cancelled(). */
static inline void worker_cancel_later(const struct bel_worker *worker, struct record *record)
{
    struct cancelled *cancelled = &worker->visitor->cancelled;
    if (record->entry == 0) return;
    worker_make_room(worker); /* a signal handler may have used the room */
    bel_wheel_expect(worker->wheel, record->entry);
    cancelled->entries[cancelled->count++ % CANCELLED_RING] = record->entry;
    record->entry = 0;
}

/* To be called before the worker looks at what comes next in its wheel. */
static inline void worker_remove_cancelled(const struct bel_worker *worker)
{
    const struct cancelled *cancelled = &worker->visitor->cancelled;
    if (cancelled->count != cancelled->removed) bel__worker_remove_cancelled(worker);
}

/* Returns a free record to the pool. */
static inline void worker_give(struct bel_worker *worker, struct record *record)
{
    pool_give(pool_of(worker), &worker->visitor->magazine, record);
}

#endif
