/* SPDX-License-Identifier: MIT */

/*
 * Timers whose worker has left arrive here as a parcel, in the order in which they are due:
 *
 *     merge queue --> parcel: a - b - c - d - e --deal--> worker 1: a - c - e
 *                                                         worker 2: b - d
 *
 * Dealing gives each timer to the worker that has the fewest so far, and sends each worker one
 * parcel. This happens whenever timers arrive or a worker enters, with the mutex held, so that no
 * worker leaves the roster meanwhile. Without workers the timers wait.
 */
#include "runtime/worker.h"

void bel__roster_merge(struct bel_runtime *runtime, struct record *first, uint64_t count)
{
    enum bel_queue_was was;
    /* Relaxed: for statistics. Before the push, so that it is never below 0. */
    atomic_fetch_add_explicit(&runtime->roster.unowned, count, memory_order_relaxed);
    int err = bel__queue_push(&runtime->roster.merge, &first->node, &was);
    assert(err == 0); /* the merge queue is never closed */
    (void)err;
}

struct share {
    struct bel_worker *worker;
    uint64_t load;
    struct record *first, *last;
    uint64_t count;
};

static unsigned list_shares(struct bel_runtime *runtime, struct share *shares)
{
    unsigned count = 0;
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        /* Relaxed: written with the mutex held. */
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_relaxed);
        if (worker == NULL) continue;
        uint64_t coming = worker->dealt - get64(&worker->adopted);
        shares[count++] = (struct share){.worker = worker, .load = get64(&worker->live) + coming};
    }
    return count;
}

static void give(struct share *share, struct record *record)
{
    record->entry = 0;
    if (share->first == NULL) {
        share->first = record;
    } else {
        share->last->entry = (uintptr_t)record;
    }
    share->last = record;
    share->count++;
    share->load++;
}

static struct share *smallest(struct share *shares, unsigned count)
{
    struct share *best = &shares[0];
    for (unsigned i = 1; i < count; i++) {
        if (shares[i].load < best->load) best = &shares[i];
    }
    return best;
}

static void send_parcel(struct bel_runtime *runtime, struct share *share)
{
    enum bel_queue_was was;
    if (share->first == NULL) return;
    share->worker->dealt += share->count;
    count_many(&runtime->gone, COUNT_SENT, share->count);
    /* Relaxed: see bel__roster_merge. */
    atomic_fetch_sub_explicit(&runtime->roster.unowned, share->count, memory_order_relaxed);
    int err = bel__queue_push(&share->worker->inbox, &share->first->node, &was);
    assert(err == 0); /* a worker closes its inbox with the mutex held, after it has left the
                         roster */
    (void)err;
    if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&share->worker->alarm);
}

void bel__roster_deal(struct bel_runtime *runtime)
{
    struct share shares[BEL_WORKERS_MAX];
    if (bel__queue_is_empty(&runtime->roster.merge)) return;
    unsigned count = list_shares(runtime, shares);
    if (count == 0) return;
    struct bel_queue_node *node = bel__queue_take(&runtime->roster.merge);
    while (node != NULL) {
        struct record *record = record_of_node(node), *next;
        node = node->next;
        for (; record != NULL; record = next) {
            assert(get32(&record->owner) == OWNER_NONE);
            next = parcel_next(record);
            give(smallest(shares, count), record);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        send_parcel(runtime, &shares[i]);
    }
}

struct bel_worker *bel__roster_any(struct bel_runtime *runtime, struct visitor *visitor)
{
    /* Acquire pairs with the release in bel_worker_enter. */
    uint32_t seats = atomic_load_explicit(&runtime->roster.seats_used, memory_order_acquire);
    for (uint32_t i = 0; i < seats; i++) {
        uint32_t index = visitor->turn++ % seats;
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[index], memory_order_acquire);
        if (worker != NULL) return worker;
    }
    return NULL;
}
