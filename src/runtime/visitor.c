/* SPDX-License-Identifier: MIT */

/*
 * A thread has a list of visitors, one for each runtime it uses, and a runtime has a list
 * of them, one for each thread; mostly both are short. The first to go, thread or runtime,
 * takes the visitor out of the other's reach under one lock for all.
 *
 * A child after fork() has one thread, and whatever the others held locked stays locked.
 * So the child's handler makes the lock anew and counts; a runtime made under an earlier
 * count is closed (bel_runtime's `forks`), and nothing of it is locked any more.
 */
#include "runtime/visitor.h"

#include "runtime/runtime.h"
#include "runtime/worker.h"

#include <stdlib.h>

_Atomic uint32_t bel__forks;

_Thread_local struct visitor *bel__visitors_mine;

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

/* Takes a visitor out of its runtime, which is there. */
static void detach(struct visitor *visitor)
{
    struct bel_runtime *runtime = visitor->runtime;
    bel__pool_return(&runtime->pool, &visitor->magazine, 0);
    (void)pthread_mutex_lock(&runtime->mutex);
    struct visitor **link = &runtime->visitors;
    while (*link != visitor) {
        link = &(*link)->next;
    }
    *link = visitor->next;
    for (unsigned i = 0; i < COUNTERS; i++) {
        count_many(&runtime->gone, (enum counter)i, get64(&visitor->counters.counts[i]));
    }
    (void)pthread_mutex_unlock(&runtime->mutex);
}

/* The thread ends, for whatever reason. */
static void end_thread(void *unused)
{
    (void)unused;
    while (bel__visitors_mine != NULL) {
        struct visitor *visitor = bel__visitors_mine;
        bool usable = visitor->runtime != NULL && !runtime_is_forked(visitor->runtime);
        if (usable && visitor->worker != NULL) bel__worker_end(visitor->worker);
        (void)pthread_mutex_lock(&lives);
        usable = visitor->runtime != NULL && !runtime_is_forked(visitor->runtime);
        if (usable) detach(visitor);
        (void)pthread_mutex_unlock(&lives);
        bel__visitors_mine = visitor->thread_next;
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
    struct visitor **link = &bel__visitors_mine;
    for (; *link != NULL; link = &(*link)->thread_next) {
        struct visitor *visitor = *link;
        if (visitor->runtime != runtime) continue;
        *link = visitor->thread_next;
        visitor->thread_next = bel__visitors_mine;
        bel__visitors_mine = visitor;
        return visitor;
    }
    return NULL;
}

int bel__visitor_make(struct bel_runtime *runtime, struct visitor **out)
{
    if (pthread_setspecific(key, &bel__visitors_mine) != 0) return BEL_ENOMEM;
    struct visitor *visitor = calloc(1, sizeof *visitor);
    if (visitor == NULL) return BEL_ENOMEM;
    visitor->runtime = runtime;
    visitor->thread_next = bel__visitors_mine;
    bel__visitors_mine = visitor;
    (void)pthread_mutex_lock(&runtime->mutex);
    visitor->next = runtime->visitors;
    runtime->visitors = visitor;
    (void)pthread_mutex_unlock(&runtime->mutex);
    *out = visitor;
    return 0;
}

void bel__visitors_forget(struct bel_runtime *runtime)
{
    (void)pthread_mutex_lock(&lives);
    for (struct visitor *visitor = runtime->visitors; visitor != NULL; visitor = visitor->next) {
        visitor->runtime = NULL;
        visitor->worker = NULL;
    }
    (void)pthread_mutex_unlock(&lives);
}
