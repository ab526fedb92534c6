/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_SHARED_H
#define BEL_RUNTIME_SHARED_H

/*
 * shared - the timers that any worker may ring: one wheel behind a mutex; shared.c.
 *
 * A thread that holds the mutex is the owner of these timers (see word.h). The mutex is taken with
 * the visitor marked as busy, so that a signal handler on the same thread does not wait for it.
 */

#include "core/list.h"
#include "core/queue.h"
#include "runtime/record.h"

#include "belfry/wheel.h"

#include <pthread.h>

struct bel_runtime;
struct bel_worker;
struct visitor;

/* All fields but the atomics and the queue are guarded by the mutex. */
struct shared {
    pthread_mutex_t mutex;
    struct bel_wheel *wheel;
    struct bel_list sleepers;     /* workers asleep in bel_worker_wait(), latest first */
    struct bel_worker *keeper;    /* the sleeper that wakes up for the wheel, or NULL */
    uint64_t covered;             /* when the keeper or the metronome looks; BEL_NEVER: nobody */
    unsigned served;              /* workers that the metronome wakes, or tells the time */
    struct bel_queue left;        /* QUEUED timers left by threads that could not lock */
    struct bel_queue_node *lefts; /* taken from `left`, not yet processed */
    _Atomic uint64_t next;        /* no timer is due before; 0: `lefts` must be processed */
    _Atomic uint64_t count;       /* timers in the wheel */
    _Atomic uint64_t wake_at;     /* when the metronome must tell the workers */
};

/* Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__shared_init(struct shared *shared, uint64_t now);
void bel__shared_finish(struct shared *shared);

/* Locks the mutex. `visitor` is the caller's, marked as busy; or NULL if it has none. */
void bel__shared_lock(struct bel_runtime *runtime, struct visitor *visitor);

/* Publishes when the next timer is due, makes sure that somebody looks then, and unlocks. */
void bel__shared_unlock(struct bel_runtime *runtime);

/* The functions below are called with the mutex held. */

/* Puts a timer into the wheel, to come up at `at`, or moves it there. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__shared_place(struct bel_runtime *runtime, struct record *record, uint64_t at);

/* Ends a timer that is CANCELLED and not in a queue any more. */
void bel__shared_reclaim(struct bel_runtime *runtime, struct visitor *visitor,
                         struct record *record);

/* Takes over a QUEUED timer that the caller has taken out of its queue. */
void bel__shared_settle(struct bel_runtime *runtime, struct visitor *visitor,
                        struct record *record);

/* The functions below lock the mutex themselves. */

/* Takes the first due timer out of the wheel and starts its ring, unless `own`, the first due of
 * the worker's own wheel, is not later. */
enum bel_shared_pop {
    BEL__SHARED_NONE,
    BEL__SHARED_STALE, /* the first timer was cancelled or moved meanwhile */
    BEL__SHARED_RINGS,
};
enum bel_shared_pop bel__shared_pop(struct bel_worker *worker, uint64_t now, uint64_t own,
                                    struct record **out);

/* Sets the alarm of a worker that is going to sleep: until `until`, or until the wheel's next due
 * if nobody else looks then. Returns false if something is due now. */
bool bel__shared_sleep(struct bel_worker *worker, uint64_t until);
void bel__shared_wake(struct bel_worker *worker);

/* Notes whether the metronome serves a worker: see `served`. */
void bel__shared_set_served(struct bel_worker *worker, bool is_served);

#endif
