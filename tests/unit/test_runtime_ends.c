/* SPDX-License-Identifier: MIT */

/*
 * Threads that use a runtime start, leave, and end in the middle of calls; or the runtime is
 * destroyed before them. On the real clock, because workers must sleep; timers are due at once or
 * in an hour, so that nothing depends on the speed of the machine. An alarm ends a case that
 * blocks.
 */
#include "belfry/runtime.h"

#include "../live.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum {
    KIND_COUNT = 1, /* counts in `rung` */
    KIND_EXIT,      /* and ends the thread inside the callback */
    USERS = 512,
};

static struct bel_worker *worker; /* of the main thread */
static bel_timer_t pending, beating;
static atomic_uint rung[USERS]; /* by user word */

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    atomic_fetch_add(&rung[event->user % USERS], 1);
    CHECK(sem_post(&rang) == 0);
}

static void ring_and_end_the_thread(void *context, const struct bel_event *event)
{
    ring(context, event);
    pthread_exit(NULL);
}

static struct bel_runtime *make_runtime(void)
{
    struct bel_runtime *made;
    CHECK(bel_runtime_create(NULL, &made) == 0);
    CHECK(bel_runtime_on(made, KIND_COUNT, ring, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_EXIT, ring_and_end_the_thread, NULL) == 0);
    return made;
}

static void open_all(void)
{
    (void)alarm(PATIENCE_S);
    for (unsigned i = 0; i < USERS; i++) {
        atomic_store(&rung[i], 0);
    }
    CHECK(sem_init(&rang, 0, 0) == 0);
    runtime = make_runtime();
}

static struct bel_worker *other_worker; /* of the thread that will end */
static sem_t entered;

/* A worker that ends in the callback of the first KIND_EXIT timer. */
static void *work_until_the_end(void *arg)
{
    (void)arg;
    CHECK(bel_worker_enter(runtime, &other_worker) == 0);
    CHECK(sem_post(&entered) == 0);
    bel_worker_run(other_worker);
    CHECK_NOTE("it is to end inside a callback");
    CHECK(false);
    return NULL;
}

/* A worker that receives timers and returns without leaving. */
static void *work_and_return(void *arg)
{
    unsigned *rounds = arg;
    CHECK(bel_worker_enter(runtime, &other_worker) == 0);
    CHECK(sem_post(&entered) == 0);
    for (unsigned i = 0; i < *rounds; i++) {
        while (bel_worker_poll(other_worker, 1) == 0) {}
    }
    return NULL;
}

static pthread_t start_thread(void *(*body)(void *), void *arg)
{
    pthread_t thread;
    CHECK(sem_init(&entered, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, body, arg) == 0);
    while (sem_wait(&entered) != 0) {}
    return thread;
}

static bel_timer_t schedule_there(bel_kind_t kind, uint64_t delay_ns, uint64_t user)
{
    return schedule_in(runtime,
                       (struct bel_schedule){.kind = kind, .user = user, .worker = other_worker},
                       delay_ns);
}

/* Polls until `rings` timers have rung on this thread. */
static void poll_for(size_t rings)
{
    while (rings > 0) {
        size_t now = bel_worker_poll(worker, rings);
        rings -= now;
        if (now == 0) CHECK(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
    }
}

static void a_worker_that_ends_in_a_callback_leaves_its_timers_to_the_others(void)
{
    enum {
        TIMERS = 200
    };
    bel_timer_t timers[TIMERS];
    open_all();
    pthread_t thread = start_thread(work_until_the_end, NULL);
    for (unsigned i = 0; i < TIMERS; i++) {
        timers[i] = schedule_there(KIND_COUNT, HOUR + i, i);
    }
    bel_timer_t last = schedule_there(KIND_EXIT, 0, 300);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(stats().workers, 0);
    CHECK_EQ(stats().unowned, TIMERS);
    CHECK_EQ(stats().ended, 1);
    CHECK(!bel_runtime_is_pending(runtime, last));
    CHECK(bel_runtime_cancel_sync(runtime, last) == BEL_ESTALE);

    CHECK(bel_worker_enter(runtime, &worker) == 0);
    for (unsigned i = 0; i < TIMERS; i++) {
        CHECK(bel_runtime_reschedule(runtime, timers[i], (struct bel_boot){i + 1}) == 0);
    }
    poll_for(TIMERS);
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    for (unsigned i = 0; i < TIMERS; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    CHECK_EQ(atomic_load(&rung[300]), 1);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().fired, TIMERS + 1);
    CHECK(bel_worker_leave(worker) == 0);
    worker = NULL;
    close_all();
}

static void a_beat_whose_callback_ended_its_thread_goes_on_elsewhere(void)
{
    open_all();
    pthread_t thread = start_thread(work_until_the_end, NULL);
    struct bel_schedule options = {
        .kind = KIND_EXIT, .worker = other_worker, .repeat = BEL_RATE_SKIP, .period_ns = HOUR};
    beating = schedule_in(runtime, options, 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(bel_runtime_is_pending(runtime, beating));
    CHECK(bel_runtime_reschedule(runtime, beating, (struct bel_boot){1}) == 0);
    thread = start_thread(work_until_the_end, NULL); /* and once more */
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(atomic_load(&rung[0]), 2);
    CHECK_EQ(stats().fired, 2);
    CHECK(bel_runtime_cancel(runtime, beating));
    CHECK_EQ(stats().pending, 0);
    close_all();
}

static void a_thread_of_the_runtime_that_ends_in_a_callback_is_joined(void)
{
    open_all();
    CHECK(bel_runtime_start(runtime, 2) == 0);
    await_workers(2);
    (void)schedule(KIND_EXIT, 0, 1);
    await_workers(1);
    for (uint64_t i = 2; i < 20; i++) {
        (void)schedule(KIND_COUNT, 0, i);
    }
    await_rings(19);
    for (unsigned i = 1; i < 20; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    (void)schedule(KIND_EXIT, 0, 20);
    await_workers(0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    close_all();
}

static void a_worker_that_returns_without_leaving_has_left(void)
{
    unsigned rounds = 1;
    open_all();
    pthread_t thread = start_thread(work_and_return, &rounds);
    pending = schedule_there(KIND_COUNT, HOUR, 1);
    (void)schedule_there(KIND_COUNT, 0, 2);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(stats().workers, 0);
    (void)schedule_there(KIND_COUNT, 0, 3); /* to a worker that has ended */
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK(bel_runtime_reschedule(runtime, pending, (struct bel_boot){1}) == 0);
    poll_for(2);
    for (unsigned i = 1; i < 4; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    CHECK(bel_worker_leave(worker) == 0);
    worker = NULL;
    close_all();
}

/* Threads that are not workers. */

enum {
    TIMERS_A_VISIT = 200, /* more than a thread's magazine */
};

static atomic_uint highest; /* index of any record seen */

/* Schedules, moves and cancels, and leaves one timer that rings. */
static void *visit(void *arg)
{
    const unsigned *number = arg;
    bel_timer_t timers[TIMERS_A_VISIT];
    struct bel_boot later = {bel_clock_boot(bel_clock_system()).ns + 2 * HOUR};
    for (unsigned i = 0; i < TIMERS_A_VISIT; i++) {
        timers[i] = schedule(KIND_COUNT, HOUR + i, *number);
        unsigned index = (uint32_t)timers[i], before = atomic_load(&highest);
        while (index > before && !atomic_compare_exchange_weak(&highest, &before, index)) {}
    }
    for (unsigned i = 0; i < TIMERS_A_VISIT; i++) {
        if (i % 3 == 0) CHECK(bel_runtime_reschedule(runtime, timers[i], later) == 0);
        if (i > 0) CHECK(bel_runtime_cancel(runtime, timers[i]));
        if (i > 0) CHECK(!bel_runtime_cancel(runtime, timers[i]));
    }
    CHECK(bel_runtime_reschedule(runtime, timers[0], (struct bel_boot){1}) == 0);
    return NULL;
}

static void threads_that_come_and_go_lose_nothing_and_give_back_their_memory(void)
{
    enum {
        VISITS = 400,
        AT_ONCE = 4
    };
    static unsigned numbers[VISITS];
    pthread_t threads[AT_ONCE];
    open_all();
    atomic_store(&highest, 0);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    for (unsigned i = 0; i < VISITS; i += AT_ONCE) {
        for (unsigned k = 0; k < AT_ONCE; k++) {
            numbers[i + k] = i + k;
            CHECK(pthread_create(&threads[k], NULL, visit, &numbers[i + k]) == 0);
        }
        for (unsigned k = 0; k < AT_ONCE; k++) {
            CHECK(pthread_join(threads[k], NULL) == 0);
        }
    }
    await_rings(VISITS);
    for (unsigned i = 0; i < VISITS; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    CHECK_EQ(stats().scheduled, UINT64_C(1) * VISITS * TIMERS_A_VISIT);
    CHECK_EQ(stats().cancelled, UINT64_C(1) * VISITS * (TIMERS_A_VISIT - 1));
    CHECK_EQ(stats().pending, 0);
    close_all();
    CHECK_NOTE("%u records for at most %d timers at once", atomic_load(&highest),
               AT_ONCE * TIMERS_A_VISIT);
    CHECK(atomic_load(&highest) < VISITS * TIMERS_A_VISIT / 4);
}

static pthread_barrier_t barrier;

/* Uses the runtime, and ends after it was destroyed. */
static void *outlive(void *arg)
{
    struct bel_runtime *other = arg;
    bel_timer_t timer = schedule(KIND_COUNT, HOUR, 0);
    CHECK(bel_runtime_cancel(runtime, timer));
    (void)schedule(KIND_COUNT, HOUR, 0);
    (void)schedule_in(other, (struct bel_schedule){.kind = KIND_COUNT}, HOUR);
    (void)pthread_barrier_wait(&barrier);
    /* This runtime is being destroyed now; the other one is not. */
    for (unsigned i = 0; i < 100; i++) {
        timer = schedule_in(other, (struct bel_schedule){.kind = KIND_COUNT}, HOUR);
        CHECK(bel_runtime_cancel(other, timer));
    }
    return NULL;
}

static void a_runtime_may_go_before_the_threads_that_used_it(void)
{
    enum {
        THREADS = 4,
        ROUNDS = 50
    };
    pthread_t threads[THREADS];
    struct bel_runtime *other = make_runtime();
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_all();
        CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
        for (unsigned i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, outlive, other) == 0);
        }
        (void)pthread_barrier_wait(&barrier);
        close_all();
        for (unsigned i = 0; i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
        CHECK(pthread_barrier_destroy(&barrier) == 0);
    }
    struct bel_runtime_stats there;
    bel_runtime_stats(other, NULL, &there);
    CHECK_EQ(there.scheduled, UINT64_C(101) * ROUNDS * THREADS);
    CHECK_EQ(there.cancelled, UINT64_C(100) * ROUNDS * THREADS);
    bel_runtime_destroy(other);
}

/* Uses the runtime, and ends while it is being destroyed. */
static void *end_meanwhile(void *arg)
{
    (void)arg;
    (void)schedule(KIND_COUNT, HOUR, 0);
    CHECK(sem_post(&entered) == 0);
    return NULL;
}

static void threads_may_end_while_the_runtime_goes(void)
{
    enum {
        THREADS = 4,
        ROUNDS = 200
    };
    pthread_t threads[THREADS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_all();
        CHECK(sem_init(&entered, 0, 0) == 0);
        for (unsigned i = 0; i < THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, end_meanwhile, NULL) == 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            while (sem_wait(&entered) != 0) {}
        }
        close_all();
        for (unsigned i = 0; i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
    }
}

static void a_thread_that_uses_many_runtimes_does_not_collect_them(void)
{
    size_t before = 0;
    for (unsigned i = 0; i < 1100; i++) {
        if (i == 100) before = mallinfo2().uordblks;
        open_all();
        (void)schedule(KIND_COUNT, HOUR, 0);
        close_all();
    }
    CHECK(mallinfo2().uordblks < before + 64 * UINT64_C(1024));
}

int main(void)
{
    RUN(a_worker_that_ends_in_a_callback_leaves_its_timers_to_the_others);
    RUN(a_beat_whose_callback_ended_its_thread_goes_on_elsewhere);
    RUN(a_thread_of_the_runtime_that_ends_in_a_callback_is_joined);
    RUN(a_worker_that_returns_without_leaving_has_left);
    RUN(threads_that_come_and_go_lose_nothing_and_give_back_their_memory);
    RUN(a_runtime_may_go_before_the_threads_that_used_it);
    RUN(threads_may_end_while_the_runtime_goes);
    RUN(a_thread_that_uses_many_runtimes_does_not_collect_them);
    return 0;
}
