/* SPDX-License-Identifier: MIT */

/*
 * A runtime as a whole: how it is made, what its kinds mean, its own threads, its end.
 */
#include "runtime/inbox.h"
#include "runtime/worker.h"

#include <stdlib.h>

/* Spreads an address over the bits of a generation: handles of two runtimes differ. */
static uint32_t disguise_from(const void *address)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)address + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32);
}

static int make_parts(struct bel_runtime *runtime, uint32_t timers_max)
{
    int err = bel__pool_init(&runtime->pool, timers_max + MAGAZINES_SLACK, disguise_from(runtime));
    if (err) return err;
    bel__queue_init(&runtime->roster.merge);
    runtime->lateness = malloc(sizeof *runtime->lateness);
    if (runtime->lateness == NULL) return BEL_ENOMEM;
    bel__histogram_init(runtime->lateness);
    if (pthread_mutex_init(&runtime->mutex, NULL) != 0) return BEL_ENOMEM;
    if (pthread_cond_init(&runtime->rung, NULL) != 0) return BEL_ENOMEM;
    if (pthread_cond_init(&runtime->roster.left, NULL) != 0) return BEL_ENOMEM;
    return bel__alarm_init(&runtime->metronome.alarm);
}

int bel_runtime_create(const struct bel_runtime_options *options, struct bel_runtime **out)
{
    static const struct bel_runtime_options defaults = {0};
    if (options == NULL) options = &defaults;
    uint32_t max = options->timers_max != 0 ? options->timers_max : TIMERS_MAX_DEFAULT;
    if (max > TIMERS_MAX_DEFAULT || options->metronome > BEL_METRONOME_MANUAL) return BEL_EINVAL;

    int err = bel__visitors_prepare();
    if (err) return err;
    struct bel_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) return BEL_ENOMEM;
    runtime->clock = options->clock != NULL ? options->clock : bel_clock_system();
    runtime->mode = options->metronome;
    runtime->forks = atomic_load_explicit(&bel__forks, memory_order_relaxed);
    runtime->metronome.alarm = (struct alarm){-1, -1};
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
    while (runtime->inboxes != NULL) {
        struct bel_inbox *inbox = runtime->inboxes;
        runtime->inboxes = bel__inbox_next(inbox);
        bel__inbox_destroy(inbox);
    }
    bel__alarm_finish(&runtime->metronome.alarm);
    bel__pool_finish(&runtime->pool);
    free(runtime->lateness);
    free(runtime);
}

static bool is_new(const struct bel_runtime *runtime, bel_kind_t kind)
{
    /* Who gives kinds their meanings does so on one thread or with a lock. */
    return kind < BEL_KINDS_MAX && !runtime_knows(runtime, kind);
}

int bel_runtime_on(struct bel_runtime *runtime, bel_kind_t kind, bel_ring_fn *ring, void *context)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (ring == NULL || !is_new(runtime, kind)) return BEL_EINVAL;
    runtime->kinds[kind].context = context;
    /* Release pairs with the acquires of those who schedule and ring. */
    atomic_store_explicit(&runtime->kinds[kind].ring, ring, memory_order_release);
    return 0;
}

int bel_runtime_on_inbox(struct bel_runtime *runtime, bel_kind_t kind, struct bel_inbox *inbox)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (inbox == NULL || !is_new(runtime, kind)) return BEL_EINVAL;
    atomic_store_explicit(&runtime->kinds[kind].inbox, inbox, memory_order_release);
    return 0;
}

static void *work(void *arg)
{
    struct bel_worker *worker;
    int err = bel_worker_enter(arg, &worker);
    if (err == 0) bel_worker_run(worker);
    return NULL;
}

int bel_runtime_start(struct bel_runtime *runtime, unsigned count)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (count > BEL_WORKERS_MAX - runtime->thread_count) return BEL_EFULL;
    for (unsigned i = 0; i < count; i++) {
        pthread_t *thread = &runtime->threads[runtime->thread_count];
        if (pthread_create(thread, NULL, work, runtime) != 0) return BEL_ENOMEM;
        runtime->thread_count++;
    }
    return 0;
}
