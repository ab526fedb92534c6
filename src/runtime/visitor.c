/* SPDX-License-Identifier: MIT */

/*
 * A thread has a list of visitors, one for each runtime it uses, and a runtime has a list of them,
 * one for each thread; usually both are short. Whichever ends first, thread or runtime, detaches
 * the visitor from the other under one global lock. A thread's list only grows, at its head, so
 * that a signal handler can read it at any time.
 *
 * A child after fork() has one thread, and locks held by other threads stay locked. So the fork
 * handler initialises the global lock again and increments a counter. A runtime created under an
 * earlier count is closed (`forks` of struct bel_runtime), and its locks are not used any more.
 */
#include "runtime/visitor.h"

#include "runtime/runtime.h"
#include "runtime/worker.h"

#include <stdlib.h>

_Atomic uint32_t bel__forks;

_Thread_local struct visitor *bel__visitor_recent;
static _Thread_local struct visitor *mine;

static pthread_mutex_t lives = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void after_fork(void)
{
    (void)pthread_mutex_init(&lives, NULL);
    /* Relaxed: the child has one thread. */
    atomic_fetch_add_explicit(&bel__forks, 1, memory_order_relaxed);
}

static void take_out(struct bel_runtime *runtime, struct visitor *visitor)
{
    struct visitor **link = &runtime->visitors;
    while (*link != visitor) {
        link = &(*link)->next;
    }
    *link = visitor->next;
}

/* Detaches a visitor from its runtime, which exists. */
static void detach(struct bel_runtime *runtime, struct visitor *visitor)
{
    if (runtime_is_forked(runtime)) { /* its locks may be locked for ever */
        take_out(runtime, visitor);
        return;
    }
    bel__pool_return(&runtime->pool, &visitor->magazine, 0);
    (void)pthread_mutex_lock(&runtime->mutex);
    take_out(runtime, visitor);
    for (unsigned i = 0; i < COUNTERS; i++) {
        count_many(&runtime->gone, (enum counter)i, get64(&visitor->counters.counts[i]));
    }
    (void)pthread_mutex_unlock(&runtime->mutex);
}

/* Called when a thread ends, for any reason. */
static void end_thread(void *unused)
{
    (void)unused;
    while (mine != NULL) {
        struct visitor *visitor = mine;
        struct bel_worker *worker = visitor->worker;
        visitor->busy = 0; /* a call that was interrupted will not return */
        /* A runtime that has workers exists. Another may be destroyed at any moment. */
        if (worker != NULL && !runtime_is_forked(worker->runtime)) visitor->end_worker(worker);
        visitor_begin(visitor);
        (void)pthread_mutex_lock(&lives);
        struct bel_runtime *runtime = visitor_runtime(visitor);
        if (runtime != NULL) detach(runtime, visitor);
        (void)pthread_mutex_unlock(&lives);
        mine = visitor->thread_next;
        bel__visitor_recent = NULL; /* leaving may have set it */
        free(visitor);
    }
}

static void prepare(void)
{
    has_key =
        pthread_key_create(&key, end_thread) == 0 && pthread_atfork(NULL, NULL, after_fork) == 0;
}

int bel__visitors_prepare(void)
{
    return pthread_once(&once, prepare) == 0 && has_key ? 0 : BEL_ENOMEM;
}

struct visitor *bel__visitor_search(const struct bel_runtime *runtime)
{
    for (struct visitor *visitor = mine; visitor != NULL; visitor = visitor->thread_next) {
        if (visitor_runtime(visitor) != runtime) continue;
        bel__visitor_recent = visitor;
        return visitor;
    }
    return NULL;
}

/* Returns a visitor whose runtime was destroyed, or a new one; NULL if memory has run out. */
static struct visitor *find_free(void)
{
    struct visitor *visitor = mine;
    while (visitor != NULL && visitor_runtime(visitor) != NULL) {
        visitor = visitor->thread_next;
    }
    if (visitor != NULL) {
        struct visitor *next = visitor->thread_next;
        *visitor = (struct visitor){.thread_next = next};
        return visitor;
    }
    visitor = calloc(1, sizeof *visitor);
    if (visitor == NULL) return NULL;
    visitor->thread_next = mine;
    /* A signal handler sees the list before or after this change. */
    atomic_signal_fence(memory_order_release);
    mine = visitor;
    return visitor;
}

int bel__visitor_make(struct bel_runtime *runtime, struct visitor **out)
{
    if (pthread_setspecific(key, &mine) != 0) return BEL_ENOMEM;
    struct visitor *visitor = find_free();
    if (visitor == NULL) return BEL_ENOMEM;
    visitor_begin(visitor);
    (void)pthread_mutex_lock(&runtime->mutex);
    visitor->next = runtime->visitors;
    runtime->visitors = visitor;
    /* Relaxed: read by this thread, or by one that destroys the runtime later. */
    atomic_store_explicit(&visitor->runtime, runtime, memory_order_relaxed);
    (void)pthread_mutex_unlock(&runtime->mutex);
    visitor_end(visitor);
    *out = visitor;
    return 0;
}

void bel__visitor_count(struct bel_runtime *runtime, struct visitor *visitor, enum counter which,
                        uint64_t more)
{
    if (visitor != NULL) {
        count_many(&visitor->counters, which, more);
    } else { /* Release as in count_many(). */
        atomic_fetch_add_explicit(&runtime->signals.counts[which], more, memory_order_release);
    }
}

void bel__visitor_give(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    struct magazine one = {0};
    pool_give(&runtime->pool, visitor != NULL ? &visitor->magazine : &one, record);
    if (visitor == NULL) bel__pool_return(&runtime->pool, &one, 0);
}

void bel__runtime_lock(struct bel_runtime *runtime)
{
    struct visitor *visitor = visitor_find(runtime);
    if (visitor != NULL) visitor->busy = visitor->busy + 1;
    (void)pthread_mutex_lock(&runtime->mutex);
}

void bel__runtime_unlock(struct bel_runtime *runtime)
{
    struct visitor *visitor = visitor_find(runtime); /* first: the runtime may be destroyed once
                                                        unlocked */
    (void)pthread_mutex_unlock(&runtime->mutex);
    if (visitor != NULL) visitor->busy = visitor->busy - 1;
}

void bel__visitors_forget(struct bel_runtime *runtime)
{
    (void)pthread_mutex_lock(&lives);
    for (struct visitor *visitor = runtime->visitors, *next; visitor != NULL; visitor = next) {
        next = visitor->next;
        if (visitor->worker != NULL) visitor->worker = NULL;
        /* Release pairs with the acquire in visitor_runtime: from here on the visitor is free. */
        atomic_store_explicit(&visitor->runtime, NULL, memory_order_release);
    }
    (void)pthread_mutex_unlock(&lives);
}
