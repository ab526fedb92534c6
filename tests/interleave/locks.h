/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_LOCKS_H
#define BEL_TESTS_LOCKS_H

/*
 * Included before a product source with -include, after atomics.h, this file replaces mutexes and
 * conditions by those of the explorer: a thread that waits lets the other threads run. Both start
 * as zeroed memory.
 *
 * A condition has no spurious wakeups, and supports only broadcast. Other functions of pthread.h
 * that need a mutex or a condition do not compile.
 */

#include "atomics.h"

#include <errno.h>
#include <pthread.h>

struct interleave_mutex {
    atomic_bool is_held;
};

struct interleave_cond {
    atomic_bool sleeps[INTERLEAVE_THREADS_MAX];
};

static inline bool interleave_is_clear(const volatile void *flag)
{
    return !atomic_load_explicit((const volatile atomic_bool *)flag, memory_order_relaxed);
}

static inline int interleave_mutex_init(struct interleave_mutex *mutex, const void *unused)
{
    (void)unused;
    atomic_init(&mutex->is_held, false);
    return 0;
}

static inline int interleave_mutex_lock(struct interleave_mutex *mutex)
{
    interleave_await(&mutex->is_held, INTERLEAVE_WRITE, interleave_is_clear);
    /* Not a step: it belongs to the step just taken. */
    (void)INTERLEAVE_REAL_N(exchange)(&mutex->is_held, true, memory_order_acquire);
    return 0;
}

static inline int interleave_mutex_trylock(struct interleave_mutex *mutex)
{
    return atomic_exchange_explicit(&mutex->is_held, true, memory_order_acquire) ? EBUSY : 0;
}

static inline int interleave_mutex_unlock(struct interleave_mutex *mutex)
{
    atomic_store_explicit(&mutex->is_held, false, memory_order_release);
    return 0;
}

static inline int interleave_cond_wait(struct interleave_cond *cond, struct interleave_mutex *mutex)
{
    atomic_bool *sleeps = &cond->sleeps[interleave_self()];
    atomic_store_explicit(sleeps, true, memory_order_relaxed);
    (void)interleave_mutex_unlock(mutex);
    interleave_await(sleeps, INTERLEAVE_READ, interleave_is_clear);
    return interleave_mutex_lock(mutex);
}

static inline int interleave_cond_broadcast(struct interleave_cond *cond)
{
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        atomic_store_explicit(&cond->sleeps[i], false, memory_order_relaxed);
    }
    return 0;
}

#define pthread_mutex_t        struct interleave_mutex
#define pthread_mutex_init     interleave_mutex_init
#define pthread_mutex_lock     interleave_mutex_lock
#define pthread_mutex_trylock  interleave_mutex_trylock
#define pthread_mutex_unlock   interleave_mutex_unlock
#define pthread_cond_t         struct interleave_cond
#define pthread_cond_wait      interleave_cond_wait
#define pthread_cond_broadcast interleave_cond_broadcast

#endif
