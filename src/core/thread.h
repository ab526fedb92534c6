/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_THREAD_H
#define BEL_CORE_THREAD_H

/*
 * thread - starts the threads of the library.
 */

#include "belfry/error.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>

/* Starts a thread with all signals blocked, so that they go to the program's threads. Returns 0 and
 * sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED static inline int bel__thread_start(pthread_t *out, void *(*run)(void *context),
                                                void *context)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    int failed = pthread_sigmask(SIG_SETMASK, &all, &before);
    assert(!failed);
    failed = pthread_create(out, NULL, run, context);
    int unmasked = pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert(!unmasked);
    (void)unmasked;
    return failed ? BEL_ENOMEM : 0;
}

#endif
