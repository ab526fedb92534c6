/* SPDX-License-Identifier: MIT */

/*
 * The thread that set QUEUED on a timer sends it and owns it until then. A worker has two queues:
 * the inbox, for new and moved timers, which wakes it; and the returns, for cancelled ones, which
 * are reclaimed later. A worker that is leaving has closed both; then the timer goes to the shared
 * wheel.
 *
 * Cancelled timers that are not yet reclaimed are garbage. A worker has at most GARBAGE_MAX of
 * them, or a quarter of its live timers, in either queue:
 *
 *     returns   above half of the limit the worker is woken; above the limit, threads that cancel
 *               wait until it has reclaimed some, for PAUSE_NS at most. If it has not polled by
 *               then it is stuck, and nobody waits again before it polls: its wheel has no more of
 *               them than it had timers when it got stuck
 *     inbox     above half of the limit, each thread that cancels a timer there also reclaims some,
 *               whether or not the worker polls
 */
#include "core/units.h"
#include "runtime/worker.h"

#include <sched.h>

enum {
    WAKE_EVERY = 1024, /* cancelled timers per wake */
    LOOK_EVERY = 64,   /* timers cancelled in inboxes, after which a thread counts all of them */
    YIELDS_MAX = 2000, /* for a clock that stands still */
};

#define PAUSE_NS NS_PER_MS

/* Returns the memory of the worker that an owner id names; another worker may use it by now. */
static struct bel_worker *seat_of(struct bel_runtime *runtime, uint32_t owner)
{
    uint32_t index = owner & (BEL_WORKERS_MAX - 1);
    assert(owner != OWNER_SHARED);
    /* Acquire pairs with the release in bel_worker_enter: the queues are initialised. */
    return atomic_load_explicit(&runtime->roster.seats[index], memory_order_acquire);
}

void bel__send(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    uint32_t owner = get32(&record->owner);
    enum bel_queue_was was;
    if (owner != OWNER_SHARED) {
        struct bel_worker *worker = seat_of(runtime, owner);
        /* Relaxed: for statistics. Before the push, so that it is never below `taken`. */
        atomic_fetch_add_explicit(&worker->sent, 1, memory_order_relaxed);
        if (bel__queue_push(&worker->inbox, &record->node, &was) == 0) {
            if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&worker->alarm);
            return;
        }
        atomic_fetch_sub_explicit(&worker->sent, 1, memory_order_relaxed);
    }
    bel__shared_lock(runtime, visitor);
    bel__shared_settle(runtime, visitor, record);
    bel__shared_unlock(runtime);
}

/* Returns the garbage limit of a worker that has `timers`, of which `garbage` are cancelled. */
static uint64_t garbage_max(const struct bel_worker *worker, uint64_t timers, uint64_t garbage)
{
    uint64_t floor = worker->runtime->garbage_floor, live = timers > garbage ? timers - garbage : 0;
    return live / 4 > floor ? live / 4 : floor;
}

/* Returns whether a worker has too many cancelled timers in its wheel. */
static bool has_too_many(const struct bel_worker *worker)
{
    uint32_t depth = get32(&worker->returns_depth);
    return depth >= garbage_max(worker, get64(&worker->live), depth);
}

/* Wakes the worker, and waits a moment while it has too much garbage. */
__attribute__((noinline)) static void limit_garbage(struct bel_worker *worker, uint32_t depth)
{
    bool is_much = depth > garbage_max(worker, get64(&worker->live), depth) / 2;
    if (is_much && depth % WAKE_EVERY == 0) bel__alarm_ring(&worker->alarm);
    if (!has_too_many(worker)) return;
    /* Relaxed: at worst a thread waits once more, or once less. */
    if (atomic_load_explicit(&worker->is_stuck, memory_order_relaxed)) return;
    uint64_t until = runtime_now(worker->runtime) + PAUSE_NS;
    for (unsigned i = 0; i < YIELDS_MAX; i++) {
        (void)sched_yield();
        if (!has_too_many(worker)) return;
        if (runtime_now(worker->runtime) >= until) break;
    }
    atomic_store_explicit(&worker->is_stuck, true, memory_order_relaxed);
}

void bel__send_back(struct bel_runtime *runtime, struct record *record)
{
    uint32_t owner = get32(&record->owner);
    enum bel_queue_was was;
    if (owner != OWNER_SHARED) {
        struct bel_worker *worker = seat_of(runtime, owner);
        /* Relaxed: an estimate. Before the push, so that it is never below 0. */
        uint32_t depth = atomic_fetch_add_explicit(&worker->returns_depth, 1, memory_order_relaxed);
        if (bel__queue_push(&worker->returns, &record->node, &was) == 0) {
            if (depth >= runtime->garbage_floor / 2) limit_garbage(worker, depth);
            return;
        }
        atomic_fetch_sub_explicit(&worker->returns_depth, 1, memory_order_relaxed);
    }
    /* The timer waits there until the next thread locks the shared wheel. This takes no lock,
     * because the caller may be a signal handler. */
    bel__visitor_count(runtime, NULL, COUNT_QUEUED_CANCELLED, 1);
    int err = bel__queue_push(&runtime->shared.left, &record->node, &was);
    assert(err == 0); /* this queue is never closed */
    (void)err;
}

/* Reclaims cancelled timers from the inbox of a worker: some if there are many, and if there are
 * too many, until it could or for a moment. */
__attribute__((noinline)) static void sweep(struct bel_worker *worker, struct visitor *visitor)
{
    uint64_t inbox = worker_inbox(worker), garbage = inbox;
    if (visitor != NULL) {
        uint64_t made = get64(&visitor->counters.counts[COUNT_QUEUED_CANCELLED]);
        if (made % LOOK_EVERY == 1) {
            visitor->garbage_seen = bel__stats_queued_garbage(worker->runtime);
        }
        garbage = visitor->garbage_seen;
    }
    uint64_t max = garbage_max(worker, inbox, garbage);
    if (inbox < max / 2 || garbage < max / 2) return;
    if (bel__intake_sweep(worker, visitor) || garbage < max) return;
    uint64_t until = runtime_now(worker->runtime) + PAUSE_NS;
    for (unsigned i = 0; i < YIELDS_MAX; i++) {
        (void)sched_yield();
        if (bel__intake_sweep(worker, visitor)) return;
        if (runtime_now(worker->runtime) >= until) return;
    }
}

void bel__send_note_cancelled(struct bel_runtime *runtime, struct visitor *visitor, uint32_t owner)
{
    if (visitor != NULL && visitor->busy) { /* in a call, or in a signal handler during one */
        bel__visitor_count(runtime, NULL, COUNT_QUEUED_CANCELLED, 1);
        return;
    }
    if (visitor != NULL) visitor_begin(visitor);
    bel__visitor_count(runtime, visitor, COUNT_QUEUED_CANCELLED, 1);
    if (owner != OWNER_SHARED) {
        struct bel_worker *worker = seat_of(runtime, owner);
        if (worker_inbox(worker) >= runtime->garbage_floor / 2) sweep(worker, visitor);
    }
    if (visitor != NULL) visitor_end(visitor);
}
