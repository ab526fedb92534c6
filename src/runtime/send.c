/* SPDX-License-Identifier: MIT */

/*
 * The thread that set QUEUED on a timer sends it and owns it until then. A worker has two queues:
 * the inbox, for new and moved timers, which wakes it; and the returns, for cancelled ones, which
 * are reclaimed later. A worker that is leaving has closed both; then the timer goes to the merge
 * queue.
 *
 * Cancelled timers that are not yet reclaimed are garbage. A worker has at most GARBAGE_MAX of
 * them, or a quarter of its live timers: above half of the limit it is woken, and above the limit
 * threads that cancel yield for at most about a millisecond.
 */
#include "runtime/worker.h"

#include <sched.h>

enum {
    WAKE_EVERY = 1024, /* cancelled timers per wake */
    YIELDS_MAX = 2000, /* about a millisecond */
};

/* Returns the memory of the worker that an owner id names; another worker may use it by now. */
static struct bel_worker *seat_of(struct bel_runtime *runtime, uint32_t owner)
{
    uint32_t index = owner & (BEL_WORKERS_MAX - 1);
    /* Acquire pairs with the release in bel_worker_enter: the queues are initialised. */
    return atomic_load_explicit(&runtime->roster.seats[index], memory_order_acquire);
}

static void send_to_merge(struct bel_runtime *runtime, struct record *record)
{
    set32(&record->owner, OWNER_NONE);
    record->entry = 0;
    bel__roster_merge(runtime, record, 1);
}

void bel__send(struct bel_runtime *runtime, struct record *record)
{
    uint32_t owner = get32(&record->owner);
    enum bel_queue_was was;
    if (owner != OWNER_NONE) {
        struct bel_worker *worker = seat_of(runtime, owner);
        if (bel__queue_push(&worker->inbox, &record->node, &was) == 0) {
            if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&worker->alarm);
            return;
        }
    }
    send_to_merge(runtime, record);
    bel__runtime_lock(runtime);
    if (owner != OWNER_NONE) count_many(&runtime->gone, COUNT_TAKEN, 1); /* it did not arrive */
    bel__roster_deal(runtime);
    bel__runtime_unlock(runtime);
}

/* Returns the garbage limit of a worker that has `depth` cancelled timers. */
static uint64_t garbage_max(const struct bel_worker *worker, uint32_t depth)
{
    uint64_t timers = get64(&worker->live), live = timers > depth ? timers - depth : 0;
    return live / 4 > GARBAGE_MAX ? live / 4 : GARBAGE_MAX;
}

/* Wakes the worker, and yields while it has too much garbage. */
__attribute__((noinline)) static void limit_garbage(struct bel_worker *worker, uint32_t depth)
{
    bool is_much = depth > garbage_max(worker, depth) / 2;
    if (is_much && depth % WAKE_EVERY == 0) bel__alarm_ring(&worker->alarm);
    for (unsigned i = 0; i < YIELDS_MAX; i++) {
        depth = get32(&worker->returns_depth);
        if (depth < garbage_max(worker, depth)) break;
        (void)sched_yield();
    }
}

void bel__send_back(struct bel_runtime *runtime, struct record *record)
{
    uint32_t owner = get32(&record->owner);
    enum bel_queue_was was;
    assert(owner != OWNER_NONE);
    struct bel_worker *worker = seat_of(runtime, owner);
    /* Relaxed: an estimate. Before the push, so that it is never below 0. */
    uint32_t depth = atomic_fetch_add_explicit(&worker->returns_depth, 1, memory_order_relaxed);
    if (bel__queue_push(&worker->returns, &record->node, &was) == 0) {
        if (depth >= GARBAGE_MAX / 2) limit_garbage(worker, depth);
        return;
    }
    atomic_fetch_sub_explicit(&worker->returns_depth, 1, memory_order_relaxed);
    /* The timer waits there until the next deal. This takes no lock, because the caller may be a
     * signal handler. */
    send_to_merge(runtime, record);
}
