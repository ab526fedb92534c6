/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ACCOUNTS_H
#define BEL_TESTS_ACCOUNTS_H

/*
 * accounts - what the threads of inter_exit were told about their timers, and the check that
 * everything adds up when they have finished; accounts.c.
 */

#include "around.h"

enum {
    TIMERS = 3,
    NOW = 100,
    DUE = 200,   /* of all timers, initially */
    LATER = 300, /* thread n moves a timer to this plus n */
    END = 1000,
};

/* The results of a thread's calls; each belongs to its thread. */
struct told {
    bool has_scheduled[TIMERS];
    bool has_cancelled[TIMERS];
    bool has_moved[TIMERS];
    unsigned rings[TIMERS];
    uint64_t rang_due[TIMERS];
};

extern struct told told[AROUND_VISITORS];
extern bool repeats; /* the first timer */

/* In setup, check and threads: the calling thread becomes a worker, or polls as one. */
void enter(void);
void poll(void);

/* Returns the calling thread's worker. */
struct bel_worker *this_worker(void);

/* After each schedule: checks the places of all timers, lets all workers poll until no timer is in
 * a queue, compares the counters with what the threads were told, and lets all timers become due.
 * */
void check(void);

#endif
