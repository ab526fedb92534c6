/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_AROUND_H
#define BEL_TESTS_AROUND_H

/*
 * around - the environment of the runtime's parts when the explorer runs them: a wheel is a table,
 * an alarm is a flag, time stands still, and the visitor of a thread is found by its number. Wheels
 * and visitors are plain memory, so the thread sanitizer detects access by other threads.
 *
 * In setup and check the test acts for the threads:
 *
 *     around_act_for(0);
 *     err = bel_worker_enter(&around.runtime, &worker);
 */

#include "interleave.h"
#include "runtime/worker.h"

enum {
    AROUND_SLOTS = 4,                     /* of a wheel */
    AROUND_SEATS = 2,                     /* workers at the same time */
    AROUND_RECORDS = 4,                   /* indices start at 1 */
    AROUND_MAIN = INTERLEAVE_THREADS_MAX, /* a visitor that belongs to no thread */
    AROUND_VISITORS,
    AROUND_SHARED = AROUND_VISITORS, /* the shared wheel */
};

/* A wheel that is just a table of its timers. */
struct bel_wheel {
    bool is_there;
    unsigned refusals; /* number of calls that will fail for lack of memory */
    uint32_t armed_ever;
    struct bel_wheel_timer slots[AROUND_SLOTS]; /* `timer` is 0 in free slots */
};

extern struct around {
    struct bel_worker seats[AROUND_SEATS];
    struct bel_runtime runtime;
    struct visitor visitors[AROUND_VISITORS];
    struct bel_wheel wheels[AROUND_VISITORS + 1]; /* one per visitor, and the shared one */
    atomic_bool is_rung[AROUND_SEATS];            /* alarms; `event_fd` is their index */
    struct record records[AROUND_RECORDS + 1];
    uint64_t now;
    unsigned acting; /* visitor, in setup and check */
} around;

/* In setup: initialises an empty runtime, the time, and the callback for rings. */
void around_start(uint64_t now, bel_ring_fn *ring);

/* In setup: gives a visitor a record to schedule with. */
void around_give(unsigned visitor, uint32_t index);

/* Returns the calling thread's visitor; in setup and check the one that it acts for. */
unsigned around_self(void);

/* In setup and check: the following calls are made by this visitor. */
void around_act_for(unsigned visitor);

#endif
