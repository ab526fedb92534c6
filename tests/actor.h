/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ACTOR_H
#define BEL_TESTS_ACTOR_H

/*
 * actor - a thread that executes tasks one at a time, so that a test can run several threads in a
 * fixed order.
 *
 *     actor_start(&a);
 *     actor_do(&a, enter_as_worker, &place);     returns when it is done
 *     actor_stop(&a);                            the thread ends
 */

#include "check.h"

#include <pthread.h>
#include <stdbool.h>

struct actor {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*task)(void *arg); /* NULL: idle */
    void *arg;
    bool ends;
};

static void *actor_main(void *arg)
{
    struct actor *actor = arg;
    (void)pthread_mutex_lock(&actor->mutex);
    while (!actor->ends || actor->task != NULL) {
        if (actor->task == NULL) {
            (void)pthread_cond_wait(&actor->changed, &actor->mutex);
            continue;
        }
        (void)pthread_mutex_unlock(&actor->mutex);
        actor->task(actor->arg);
        (void)pthread_mutex_lock(&actor->mutex);
        actor->task = NULL;
        (void)pthread_cond_broadcast(&actor->changed);
    }
    (void)pthread_mutex_unlock(&actor->mutex);
    return NULL;
}

static inline void actor_start(struct actor *actor)
{
    *actor = (struct actor){.task = NULL};
    CHECK(pthread_mutex_init(&actor->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&actor->changed, NULL) == 0);
    CHECK(pthread_create(&actor->thread, NULL, actor_main, actor) == 0);
}

/* Starts a task on an idle actor and does not wait for it. */
static inline void actor_begin(struct actor *actor, void (*task)(void *), void *arg)
{
    (void)pthread_mutex_lock(&actor->mutex);
    CHECK(actor->task == NULL);
    actor->arg = arg;
    actor->task = task;
    (void)pthread_cond_broadcast(&actor->changed);
    (void)pthread_mutex_unlock(&actor->mutex);
}

/* Waits until the actor is idle. */
static inline void actor_await(struct actor *actor)
{
    (void)pthread_mutex_lock(&actor->mutex);
    while (actor->task != NULL) {
        (void)pthread_cond_wait(&actor->changed, &actor->mutex);
    }
    (void)pthread_mutex_unlock(&actor->mutex);
}

static inline void actor_do(struct actor *actor, void (*task)(void *), void *arg)
{
    actor_begin(actor, task, arg);
    actor_await(actor);
}

static inline void actor_stop(struct actor *actor)
{
    (void)pthread_mutex_lock(&actor->mutex);
    actor->ends = true;
    (void)pthread_cond_broadcast(&actor->changed);
    (void)pthread_mutex_unlock(&actor->mutex);
    CHECK(pthread_join(actor->thread, NULL) == 0);
    (void)pthread_mutex_destroy(&actor->mutex);
    (void)pthread_cond_destroy(&actor->changed);
}

#endif
