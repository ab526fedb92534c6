/* SPDX-License-Identifier: MIT */

/*
 * Every counter has one writer, its thread, and is read while it changes. Ends are summed before
 * starts: each end was counted after its start, so scheduled - ended is never negative, even while
 * both change.
 */
#include "runtime/worker.h"

#include <stdlib.h>

static uint64_t read_count(const struct counters *counters, enum counter which)
{
    /* Acquire pairs with the release in count_many(). */
    return atomic_load_explicit(&counters->counts[which], memory_order_acquire);
}

/* Sums a counter over all threads. The mutex is held. */
static uint64_t total(const struct bel_runtime *runtime, enum counter which)
{
    uint64_t sum = read_count(&runtime->gone, which) + read_count(&runtime->signals, which);
    for (const struct visitor *v = runtime->visitors; v != NULL; v = v->next) {
        sum += read_count(&v->counters, which);
    }
    return sum;
}

static uint64_t one(const struct bel_runtime *runtime, const struct bel_worker *worker,
                    enum counter which)
{
    if (worker == NULL) return total(runtime, which);
    return worker->visitor != NULL ? read_count(&worker->visitor->counters, which) : 0;
}

/* Returns the number of cancelled timers in queues. The mutex is held. */
static uint64_t queued_garbage(const struct bel_runtime *runtime)
{
    uint64_t reclaimed = total(runtime, COUNT_QUEUED_RECLAIMED);
    uint64_t cancelled = total(runtime, COUNT_QUEUED_CANCELLED);
    /* A timer may be reclaimed just before the thread that cancelled it counts that. */
    return cancelled > reclaimed ? cancelled - reclaimed : 0;
}

uint64_t bel__stats_queued_garbage(struct bel_runtime *runtime)
{
    bel__runtime_lock(runtime);
    uint64_t garbage = queued_garbage(runtime);
    bel__runtime_unlock(runtime);
    return garbage;
}

static void read_lateness(struct bel_runtime *runtime, const struct bel_worker *worker,
                          struct bel_runtime_stats *out)
{
    struct bel_histogram *all = malloc(sizeof *all);
    if (all == NULL) return; /* the numbers stay 0 */
    bel__histogram_init(all);
    if (worker == NULL) bel__histogram_merge(all, runtime->lateness);
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        struct bel_worker *live =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_relaxed);
        if (live == NULL) continue;
        if (worker != NULL && worker != live) continue;
        bel__histogram_merge(all, &live->lateness);
        out->garbage += get32(&live->returns_depth);
        out->inbox += worker_inbox(live);
        out->stale_entries += get64(&live->stale);
    }
    out->lateness_p50_ns = bel__histogram_quantile(all, 500000);
    out->lateness_p99_ns = bel__histogram_quantile(all, 990000);
    out->lateness_max_ns = bel__histogram_max(all);
    free(all);
}

/* Returns whether a worker may have a timer that was due before `late`: one that it knew of after
 * its last poll, or one that it has got since then. */
static bool may_be_late(const struct bel_worker *worker, uint64_t late)
{
    uint64_t next = get64(&worker->next);
    bool is_polling = next == 0, has_not_polled = get64(&worker->polled_at) < late;
    if (is_polling || worker_inbox(worker) > 0) return has_not_polled;
    return next < late;
}

/* Counts the overdue timers, if there may be any. The mutex is held. */
static void read_overdue(struct bel_runtime *runtime, const struct bel_worker *worker,
                         struct bel_runtime_stats *out)
{
    uint64_t now = runtime_now(runtime), late = now > OVERDUE_NS ? now - OVERDUE_NS : 0;
    bool is_late = worker == NULL && get64(&runtime->shared.next) < late;
    for (unsigned i = 0; i < BEL_WORKERS_MAX && !is_late; i++) {
        const struct bel_worker *live =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_relaxed);
        if (live == NULL || (worker != NULL && worker != live)) continue;
        is_late = may_be_late(live, late);
    }
    if (is_late) bel__found_overdue(runtime, worker != NULL ? worker_id(worker) : 0, late, out);
}

void bel_runtime_stats(struct bel_runtime *runtime, const struct bel_worker *worker,
                       struct bel_runtime_stats *out)
{
    *out = (struct bel_runtime_stats){.oldest_due = {BEL_NEVER}};
    if (runtime_is_forked(runtime)) return;
    const struct metronome *metronome = &runtime->metronome;
    bel__runtime_lock(runtime);
    out->ended = one(runtime, worker, COUNT_ENDED);
    out->cancelled = one(runtime, worker, COUNT_CANCELLED);
    out->fired = one(runtime, worker, COUNT_FIRED);
    out->rescheduled = one(runtime, worker, COUNT_RESCHEDULED);
    out->stale = one(runtime, worker, COUNT_STALE);
    out->adopted = one(runtime, worker, COUNT_ADOPTED);
    out->self_helped = one(runtime, worker, COUNT_HELPED);
    out->scheduled = one(runtime, worker, COUNT_SCHEDULED);
    if (worker == NULL) {
        out->pending = out->scheduled - out->ended - out->cancelled;
        out->shared = get64(&runtime->shared.count);
        out->garbage = queued_garbage(runtime);
    } else {
        out->pending = get64(&worker->live);
    }
    out->workers = get32(&runtime->roster.count);
    if (out->workers == 0) out->unowned = out->shared;
    read_lateness(runtime, worker, out);
    read_overdue(runtime, worker, out);
    bel__runtime_unlock(runtime);
    out->metronome_turns = get64(&metronome->turns);
    out->metronome_wakes = get64(&metronome->wakes);
    out->metronome_missed = get64(&metronome->missed);
    out->metronome_drift_max_ns = get64(&metronome->drift_max);
}
