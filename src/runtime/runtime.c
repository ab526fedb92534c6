/* SPDX-License-Identifier: MIT */

/*
 * Creates and destroys runtimes, registers kinds, and starts worker threads.
 */
#include "runtime/inbox.h"
#include "runtime/worker.h"

#include <stdlib.h>
#include <time.h>

/* Derives a number from an address and a counter, so that handles of two runtimes differ even if
 * both had the same address. */
static uint32_t disguise_from(const void *address)
{
    static atomic_uint_least32_t runtimes_made;
    /* Relaxed: the number only has to be different each time. */
    uint64_t seed = atomic_fetch_add_explicit(&runtimes_made, 1, memory_order_relaxed);
    seed = (seed << 48 ^ (uintptr_t)address) + 1;
    return (uint32_t)(seed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Initialises a condition for waits by the monotonic clock. */
static bool init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) return false;
    bool is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(cond, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return is_made;
}

static int make_parts(struct bel_runtime *runtime, uint32_t timers_max)
{
    int err = bel__pool_init(&runtime->pool, timers_max + MAGAZINES_SLACK, disguise_from(runtime));
    if (err) return err;
    err = bel__shared_init(&runtime->shared, runtime_now(runtime));
    if (err) return err;
    runtime->garbage_floor = timers_max / 4 < GARBAGE_MAX ? timers_max / 4 + 1 : GARBAGE_MAX;
    runtime->lateness = malloc(sizeof *runtime->lateness);
    if (runtime->lateness == NULL) return BEL_ENOMEM;
    bel__histogram_init(runtime->lateness);
    if (pthread_mutex_init(&runtime->mutex, NULL) != 0) return BEL_ENOMEM;
    if (pthread_cond_init(&runtime->rung, NULL) != 0) return BEL_ENOMEM;
    if (!init_monotonic(&runtime->roster.changed)) return BEL_ENOMEM;
    return bel__alarm_init(&runtime->metronome.alarm);
}

int bel_runtime_create(const struct bel_runtime_options *options, struct bel_runtime **out)
{
    static const struct bel_runtime_options defaults = {0};
    if (options == NULL) options = &defaults;
    uint32_t max = options->timers_max != 0 ? options->timers_max : TIMERS_MAX_DEFAULT;
    const struct bel_clock *clock = options->clock != NULL ? options->clock : bel_clock_system();
    if (max > TIMERS_MAX_DEFAULT || options->metronome > BEL_METRONOME_MANUAL) return BEL_EINVAL;
    /* The metronome's thread sleeps by the system clock, so it cannot follow another clock. */
    bool is_manual = options->metronome == BEL_METRONOME_MANUAL;
    if (clock != bel_clock_system() && !is_manual) return BEL_EINVAL;

    int err = bel__visitors_prepare();
    if (err) return err;
    struct bel_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) return BEL_ENOMEM;
    runtime->clock = clock;
    runtime->mode = options->metronome;
    runtime->forks = atomic_load_explicit(&bel__forks, memory_order_relaxed);
    runtime->metronome.alarm = (struct bel_alarm){-1, -1};
    runtime->metronome.clock_fd = -1;
    runtime->wall.move = bel__timer_follow;
    uint32_t us = options->resolution_us != 0 ? options->resolution_us : RESOLUTION_US_DEFAULT;
    runtime->metronome.resolution_ns = UINT64_C(1000) * us;
    err = make_parts(runtime, max);
    if (err) {
        bel_runtime_destroy(runtime);
        return err;
    }
    *out = runtime;
    return 0;
}

/* Ends the threads that bel_runtime_start() started. */
static void stop_threads(struct bel_runtime *runtime)
{
    int err = bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL);
    assert(err == 0);
    (void)err;
}

void bel_runtime_destroy(struct bel_runtime *runtime)
{
    if (runtime == NULL) return;
    if (!runtime_is_forked(runtime)) {
        if (runtime->thread_count > 0) stop_threads(runtime);
        bel__metronome_stop(runtime);
    }
    bel__visitors_forget(runtime);
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.seats[i], memory_order_relaxed);
        if (worker == NULL) continue;
        bel_wheel_destroy(worker->wheel);
        bel__alarm_finish(&worker->alarm);
        free(worker);
    }
    bel__shared_finish(&runtime->shared);
    while (runtime->inboxes != NULL) {
        struct bel_inbox *inbox = runtime->inboxes;
        runtime->inboxes = bel__inbox_next(inbox);
        bel__inbox_destroy(inbox);
    }
    bel__alarm_finish(&runtime->metronome.alarm);
    bel__alarm_unwatch_clock(runtime->metronome.clock_fd);
    bel__pool_finish(&runtime->pool);
    free(runtime->lateness);
    free(runtime);
}

/* Returns whether a kind can be registered. The mutex is held. */
static bool is_new(const struct bel_runtime *runtime, bel_kind_t kind)
{
    return kind < BEL_KINDS_MAX && !runtime_knows(runtime, kind);
}

int bel_runtime_on(struct bel_runtime *runtime, bel_kind_t kind, bel_ring_fn *ring, void *context)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (ring == NULL) return BEL_EINVAL;
    bel__runtime_lock(runtime);
    int err = is_new(runtime, kind) ? 0 : BEL_EINVAL;
    if (err == 0) {
        runtime->kinds[kind].context = context;
        /* Release pairs with the acquires of threads that schedule and ring. */
        atomic_store_explicit(&runtime->kinds[kind].ring, ring, memory_order_release);
    }
    bel__runtime_unlock(runtime);
    return err;
}

int bel_runtime_on_inbox(struct bel_runtime *runtime, bel_kind_t kind, struct bel_inbox *inbox)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (inbox == NULL) return BEL_EINVAL;
    bel__runtime_lock(runtime);
    int err = is_new(runtime, kind) ? 0 : BEL_EINVAL;
    if (err == 0) {
        atomic_store_explicit(&runtime->kinds[kind].inbox, inbox, memory_order_release);
    }
    bel__runtime_unlock(runtime);
    return err;
}

/* Threads that start together: each enters, and they continue only if all have. */
struct start {
    struct bel_runtime *runtime;
    unsigned threads, answers; /* how many exist, and how many have tried to enter */
    unsigned heard;            /* how many have read the decision */
    bool is_decided;
    int err;
};

/* Reports whether a thread could enter, and waits for the decision. Returns true to continue. */
static bool answer(struct start *start, int err)
{
    struct bel_runtime *runtime = start->runtime;
    bel__runtime_lock(runtime);
    if (start->err == 0) start->err = err;
    start->answers++;
    (void)pthread_cond_broadcast(&runtime->roster.changed);
    while (!start->is_decided) {
        (void)pthread_cond_wait(&runtime->roster.changed, &runtime->mutex);
    }
    bool goes_on = start->err == 0;
    start->heard++; /* the last access to `start` */
    (void)pthread_cond_broadcast(&runtime->roster.changed);
    bel__runtime_unlock(runtime);
    return goes_on;
}

static void *work(void *arg)
{
    struct bel_worker *worker;
    struct start *start = arg;
    int err = bel_worker_enter(start->runtime, &worker);
    bool goes_on = answer(start, err);
    if (goes_on) {
        bel_worker_run(worker);
    } else if (err == 0) {
        bel__worker_end(worker);
    }
    return NULL;
}

/* Waits until all threads have reported, decides, and waits until all have read the decision.
 * Returns 0 or the error. */
static int decide(struct start *start, const pthread_t *threads)
{
    struct bel_runtime *runtime = start->runtime;
    bel__runtime_lock(runtime);
    while (start->answers < start->threads) {
        (void)pthread_cond_wait(&runtime->roster.changed, &runtime->mutex);
    }
    if (start->threads > BEL_WORKERS_MAX - runtime->thread_count) start->err = BEL_EFULL;
    for (unsigned i = 0; start->err == 0 && i < start->threads; i++) {
        runtime->threads[runtime->thread_count++] = threads[i];
    }
    start->is_decided = true;
    (void)pthread_cond_broadcast(&runtime->roster.changed);
    while (start->heard < start->threads) {
        (void)pthread_cond_wait(&runtime->roster.changed, &runtime->mutex);
    }
    bel__runtime_unlock(runtime);
    return start->err;
}

int bel_runtime_start(struct bel_runtime *runtime, unsigned count)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (count > BEL_WORKERS_MAX) return BEL_EFULL;
    struct start start = {.runtime = runtime};
    pthread_t threads[BEL_WORKERS_MAX];
    unsigned made = 0;
    while (made < count && pthread_create(&threads[made], NULL, work, &start) == 0) {
        made++;
    }
    bel__runtime_lock(runtime);
    start.threads = made;
    if (made < count) start.err = BEL_ENOMEM;
    bel__runtime_unlock(runtime);
    int err = decide(&start, threads);
    for (unsigned i = 0; err != 0 && i < made; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return err;
}
