/* SPDX-License-Identifier: MIT */

/*
 * Timers whose worker has left come here as a parcel, in the order they are due:
 *
 *     merge queue --> parcel: a - b - c - d - e --deal--> worker 1: a - c - e
 *                                                         worker 2: b - d
 *
 * Dealing gives each timer to the worker that has the fewest by then, and sends each worker
 * one parcel. It happens whenever timers come in or a worker enters, with the mutex held,
 * so that nobody leaves the roster meanwhile. Without workers the timers wait.
 */
#include "runtime/worker.h"

void bel__roster_merge(struct bel_runtime *runtime, struct record *first, uint64_t count)
{
    enum bel_queue_was was;
    /* Relaxed: a number for statistics. Before the push, so that it is never below 0. */
    atomic_fetch_add_explicit(&runtime->roster.unowned, count, memory_order_relaxed);
    int err = bel__queue_push(&runtime->roster.merge, &first->node, &was);
    assert(err == 0); /* it is never closed */
    (void)err;
}

struct hand {
    struct bel_worker *worker;
    uint64_t load;
    struct record *first, *last;
    uint64_t count;
};

static unsigned sit_down(struct bel_runtime *runtime, struct hand *hands)
{
    unsigned count = 0;
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        /* Relaxed: it is written with the mutex held. */
        struct bel_worker *worker =
            atomic_load_explicit(&runtime->roster.live[i], memory_order_relaxed);
        if (worker == NULL) continue;
        uint64_t coming = worker->dealt - get64(&worker->adopted);
        hands[count++] = (struct hand){.worker = worker, .load = get64(&worker->live) + coming};
    }
    return count;
}

static void give(struct hand *hand, struct record *record)
{
    record->entry = 0;
    if (hand->first == NULL) {
        hand->first = record;
    } else {
        hand->last->entry = (uintptr_t)record;
    }
    hand->last = record;
    hand->count++;
    hand->load++;
}

static struct hand *emptiest(struct hand *hands, unsigned count)
{
    struct hand *best = &hands[0];
    for (unsigned i = 1; i < count; i++) {
        if (hands[i].load < best->load) best = &hands[i];
    }
    return best;
}

static void send_parcel(struct bel_runtime *runtime, struct hand *hand)
{
    enum bel_queue_was was;
    if (hand->first == NULL) return;
    hand->worker->dealt += hand->count;
    count_many(&runtime->gone, COUNT_SENT, hand->count);
    /* Relaxed: see bel__roster_merge. */
    atomic_fetch_sub_explicit(&runtime->roster.unowned, hand->count, memory_order_relaxed);
    int err = bel__queue_push(&hand->worker->inbox, &hand->first->node, &was);
    assert(err == 0); /* it closes with the mutex held, after it has left the roster */
    (void)err;
    if (was == BEL__QUEUE_PARKED) bel__alarm_ring(&hand->worker->alarm);
}

void bel__roster_deal(struct bel_runtime *runtime)
{
    struct hand hands[BEL_WORKERS_MAX];
    if (bel__queue_is_empty(&runtime->roster.merge)) return;
    unsigned count = sit_down(runtime, hands);
    if (count == 0) return;
    struct bel_queue_node *node = bel__queue_take(&runtime->roster.merge);
    while (node != NULL) {
        struct record *record = record_of_node(node), *next;
        node = node->next;
        for (; record != NULL; record = next) {
            assert(get32(&record->owner) == OWNER_NONE);
            next = parcel_next(record);
            give(emptiest(hands, count), record);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        send_parcel(runtime, &hands[i]);
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
