/* SPDX-License-Identifier: MIT */

/*
 * A thread that wakes workers that cannot wake themselves: those that are busy, and those that
 * sleep in the program's own loop. Each worker stores in `wake_at` when its next timer is due; so
 * does the shared wheel, if no worker can wake up for it. A turn publishes the time to the workers
 * whose `wake_at` has come, and wakes them; then the metronome sleeps until the earliest of the
 * others:
 *
 *     nothing is due           sleeps indefinitely: no wakeups
 *     something later          sleeps until exactly then
 *     many dues close together a turn per `resolution`, which serves all that is due by then
 *
 * Targets are absolute. A metronome that was kept from running finds everything that became due
 * meanwhile in one turn: it does not count ticks, so it cannot lose any.
 *
 * A worker that gets an earlier timer writes `wake_at` and then reads `target`; the metronome
 * writes `target` and then reads every `wake_at`. All four accesses are sequentially consistent, so
 * at least one of the two sees the other's store. The stores by which a worker enters the roster,
 * and the loads that search it, are sequentially consistent too; otherwise the metronome could miss
 * a worker that has just entered. The first worker that finds the target too late sets it to 0 and
 * rings; the others need not.
 */
#include "runtime/worker.h"

enum {
    LATE_NS = 1000000, /* a turn later than this counts as missed */
};

/* Serves one worker. Returns when it must be served next. */
static uint64_t serve(struct metronome *metronome, struct bel_worker *worker, uint64_t now)
{
    uint64_t wake_at = atomic_load_explicit(&worker->wake_at, memory_order_seq_cst);
    if (wake_at > now) return wake_at;
    /* On failure the worker has polled or got another timer: use its new value. */
    if (!atomic_compare_exchange_strong_explicit(&worker->wake_at, &wake_at, BEL_NEVER,
                                                 memory_order_seq_cst, memory_order_seq_cst)) {
        return wake_at;
    }
    set64(&worker->now, now);
    set64(&metronome->wakes, get64(&metronome->wakes) + 1);
    if (worker_is_watched(worker)) bel__alarm_ring(&worker->alarm);
    return BEL_NEVER;
}

/* Tells all workers of a due timer that any of them may ring. Returns when to tell them next. */
static uint64_t serve_shared(struct bel_runtime *runtime, uint64_t now)
{
    uint64_t wake_at = atomic_load_explicit(&runtime->shared.wake_at, memory_order_seq_cst);
    if (wake_at > now) return wake_at;
    if (!atomic_compare_exchange_strong_explicit(&runtime->shared.wake_at, &wake_at, BEL_NEVER,
                                                 memory_order_seq_cst, memory_order_seq_cst)) {
        return wake_at;
    }
    uint32_t seats = atomic_load_explicit(&runtime->roster.seats_used, memory_order_acquire);
    for (uint32_t i = 0; i < seats; i++) {
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_acquire);
        if (worker == NULL) continue;
        set64(&worker->now, now);
        if (worker_is_watched(worker)) bel__alarm_ring(&worker->alarm);
    }
    return BEL_NEVER;
}

/* Serves all workers. Returns when the first must be served next. */
static uint64_t serve_all(struct bel_runtime *runtime, uint64_t now)
{
    uint64_t next = serve_shared(runtime, now);
    /* Acquire pairs with the releases in bel_worker_enter. */
    uint32_t seats = atomic_load_explicit(&runtime->roster.seats_used, memory_order_acquire);
    for (uint32_t i = 0; i < seats; i++) {
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_acquire);
        if (worker == NULL) continue;
        uint64_t wake_at = serve(&runtime->metronome, worker, now);
        if (wake_at < next) next = wake_at;
    }
    return next;
}

static void note_drift(struct metronome *metronome, uint64_t target, uint64_t now)
{
    if (target == 0 || target == BEL_NEVER || now < target) return;
    uint64_t drift = now - target;
    if (drift > get64(&metronome->drift_max)) set64(&metronome->drift_max, drift);
    if (drift > LATE_NS) set64(&metronome->missed, get64(&metronome->missed) + 1);
}

/* Does one turn. Returns the time of the next, which the resolution limits. */
static uint64_t turn(struct bel_runtime *runtime, uint64_t now)
{
    struct metronome *metronome = &runtime->metronome;
    /* A worker that gets an earlier timer after this is seen below, or sees the target 0. */
    uint64_t target = atomic_exchange_explicit(&metronome->target, 0, memory_order_seq_cst);
    note_drift(metronome, target, now);
    set64(&metronome->turns, get64(&metronome->turns) + 1);
    metronome->last = now;
    uint64_t next = serve_all(runtime, now);
    uint64_t earliest = now + metronome->resolution_ns;
    return next < earliest ? earliest : next;
}

static bool is_too_late(struct bel_runtime *runtime, uint64_t target)
{
    if (atomic_load_explicit(&runtime->shared.wake_at, memory_order_seq_cst) < target) return true;
    uint32_t seats = atomic_load_explicit(&runtime->roster.seats_used, memory_order_seq_cst);
    for (uint32_t i = 0; i < seats; i++) {
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_seq_cst);
        if (worker == NULL) continue;
        if (atomic_load_explicit(&worker->wake_at, memory_order_seq_cst) < target) return true;
    }
    return false;
}

/* Sleeps until `target`, unless a worker has an earlier timer by now. */
static void sleep_until(struct bel_runtime *runtime, uint64_t target)
{
    struct metronome *metronome = &runtime->metronome;
    uint64_t earliest = metronome->last + metronome->resolution_ns;
    atomic_store_explicit(&metronome->target, target, memory_order_seq_cst);
    if (target > earliest && is_too_late(runtime, target)) return;
    bel__alarm_wait_with(&metronome->alarm, (struct bel_boot){target}, metronome->clock_fd);
}

/* Moves the timers for wall times if the wall clock was set. The first such timer makes the
 * metronome watch the clock. */
static void follow_clock(struct bel_runtime *runtime)
{
    struct metronome *metronome = &runtime->metronome;
    if (!atomic_load_explicit(&runtime->wall.is_used, memory_order_acquire)) return;
    if (metronome->clock_fd < 0) metronome->clock_fd = bel__alarm_watch_clock();
    if (bel__wall_check(runtime) && metronome->clock_fd >= 0) {
        bel__alarm_unwatch_clock(metronome->clock_fd);
        metronome->clock_fd = bel__alarm_watch_clock();
    }
}

static void *run(void *arg)
{
    struct bel_runtime *runtime = arg;
    struct metronome *metronome = &runtime->metronome;
    while (!atomic_load_explicit(&metronome->stops, memory_order_acquire)) {
        uint64_t now = runtime_now(runtime), earliest = metronome->last + metronome->resolution_ns;
        if (now < earliest) { /* rung: wait for the resolution to pass */
            bel__alarm_wait(&metronome->alarm, (struct bel_boot){earliest});
            continue;
        }
        follow_clock(runtime);
        sleep_until(runtime, turn(runtime, now));
    }
    return NULL;
}

int bel__metronome_start(struct bel_runtime *runtime)
{
    struct metronome *metronome = &runtime->metronome;
    if (runtime->mode == BEL_METRONOME_MANUAL || metronome->is_started) return 0;
    /* Blocks all signals: signal handlers should run on the program's threads. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    metronome->is_started = pthread_create(&metronome->thread, NULL, run, runtime) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return metronome->is_started ? 0 : BEL_ENOMEM;
}

void bel__metronome_stop(struct bel_runtime *runtime)
{
    struct metronome *metronome = &runtime->metronome;
    if (!metronome->is_started) return;
    atomic_store_explicit(&metronome->stops, true, memory_order_release);
    bel__alarm_ring(&metronome->alarm);
    (void)pthread_join(metronome->thread, NULL);
    metronome->is_started = false;
}

void bel__metronome_notify(struct bel_runtime *runtime, _Atomic uint64_t *wake_at, uint64_t due)
{
    struct metronome *metronome = &runtime->metronome;
    atomic_store_explicit(wake_at, due, memory_order_seq_cst);
    uint64_t target = atomic_load_explicit(&metronome->target, memory_order_seq_cst);
    while (due < target) {
        if (atomic_compare_exchange_weak_explicit(&metronome->target, &target, 0,
                                                  memory_order_seq_cst, memory_order_seq_cst)) {
            bel__alarm_ring(&metronome->alarm);
            return;
        }
    }
}

struct bel_boot bel_runtime_tick(struct bel_runtime *runtime)
{
    if (runtime_is_forked(runtime) || runtime->mode != BEL_METRONOME_MANUAL) {
        return (struct bel_boot){BEL_NEVER};
    }
    struct metronome *metronome = &runtime->metronome;
    (void)bel__wall_check(runtime);
    uint64_t target = turn(runtime, runtime_now(runtime));
    atomic_store_explicit(&metronome->target, target, memory_order_seq_cst);
    return (struct bel_boot){target};
}
