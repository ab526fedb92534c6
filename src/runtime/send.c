/* SPDX-License-Identifier: MIT */

/*
 * Who set QUEUED on a timer sends it, and is alone with it meanwhile. A worker has two
 * queues: the inbox, for timers that are new or moved, which wakes it; and the returns,
 * for cancelled ones, which only have to be cleared away some time. A worker that is
 * leaving has closed both; then the timer goes to the merge queue.
 *
 * Cancelled timers that are not cleared away are garbage. Each worker has at most
 * GARBAGE_MAX of it, or a quarter of its live timers: from half of that on it is woken,
 * and beyond it those who cancel give way for a moment, though never for long.
 */
#include "runtime/worker.h"

#include <sched.h>

enum {
    WAKE_EVERY = 1024, /* cancelled timers to one wake */
    YIELDS_MAX = 2000, /* about a millisecond */
};

/* The memory of the worker that an owner's id names, whoever is there by now. */
static struct bel_worker *seat_of(struct bel_runtime *runtime, uint32_t owner)
{
    uint32_t index = owner & (BEL_WORKERS_MAX - 1);
    /* Acquire pairs with the release in bel_worker_enter: the queues are made. */
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

/* How much garbage a worker may have that has this much. */
static uint64_t garbage_max(const struct bel_worker *worker, uint32_t depth)
{
    uint64_t timers = get64(&worker->live), live = timers > depth ? timers - depth : 0;
    return live / 4 > GARBAGE_MAX ? live / 4 : GARBAGE_MAX;
}

/* There is much garbage: sees to it that there will be less. */
__attribute__((noinline)) static void press(struct bel_worker *worker, uint32_t depth)
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
    /* Relaxed: a number to go by. Before the push, so that it is never below 0. */
    uint32_t depth = atomic_fetch_add_explicit(&worker->returns_depth, 1, memory_order_relaxed);
    if (bel__queue_push(&worker->returns, &record->node, &was) == 0) {
        if (depth >= GARBAGE_MAX / 2) press(worker, depth);
        return;
    }
    atomic_fetch_sub_explicit(&worker->returns_depth, 1, memory_order_relaxed);
    /* It waits there until someone deals, which is soon enough, and needs no lock: this may
     * be a signal handler. */
    send_to_merge(runtime, record);
}
