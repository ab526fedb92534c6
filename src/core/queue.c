/* SPDX-License-Identifier: MIT */

/*
 * One word points at the newest node, and each node at the one pushed before it:
 *
 *     newest --> C --> B --> A --> NULL    NULL: empty   &parked: empty   &closed: closed
 *
 * A push puts a node in front with a compare-and-swap. The consumer swaps the word
 * for NULL, or for the mark &closed, and turns the chain round: the pushes succeeded
 * one after the other on one word, and that is the order they come out in. Since
 * being closed is a value of the same word, a push and the close can only come one
 * before the other. Being parked is another such value, so the consumer cannot fall
 * asleep beside a push that thinks it is awake, and two threads need not look at two
 * words in a certain order for that.
 *
 * Nodes may be used again at any time without the ABA trouble of stacks: a push does
 * not look into the node it found, it only needs it to be the newest still.
 *
 * Memory order. There is one atomic, so every store to it pairs with the loads here:
 *
 *   - The push's store is a release, and the swaps of take and close are acquires, so
 *     the consumer sees the node and what its pusher wrote before. It reads only the
 *     last push's store, but each push is a read-modify-write and so continues the
 *     release sequences of the ones it found: all pushers are covered by one acquire.
 *   - The close's store is a release, and a push that finds the mark loads again with
 *     acquire before it says so. If the queue was opened again meanwhile, it goes on.
 *   - Opening is a release, for a push that finds the queue open also finds what its
 *     consumer made before; that push is a read-modify-write with acquire for it.
 *   - All else is relaxed, for it is used only as a value and never followed.
 *
 * No other order is needed: nothing here compares this word with another one.
 */
#include "core/queue.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Only their addresses are used. */
static struct bel_queue_node closed, parked;

static bool is_mark(const struct bel_queue_node *node)
{
    return node == NULL || node == &closed || node == &parked;
}

void bel__queue_init(struct bel_queue *queue)
{
    assert(queue != NULL);
    atomic_init(&queue->newest, NULL);
}

int bel__queue_push(struct bel_queue *queue, struct bel_queue_node *node,
                    enum bel_queue_was *out_was)
{
    assert(!is_mark(node));
    assert(out_was != NULL);

    /* Relaxed: compared and stored, not followed. The swap below tells if it is old. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    do {
        if (found == &closed) {
            /* Acquire pairs with the release of the swap in bel__queue_close. */
            found = atomic_load_explicit(&queue->newest, memory_order_acquire);
            if (found == &closed) return BEL_ECLOSED;
        }
        node->next = found == &parked ? NULL : found;
        /* Release pairs with the acquire of the swaps in take and close, acquire with the
         * release in open. Relaxed when it fails: then it is the first load over again. */
    } while (!atomic_compare_exchange_weak_explicit(&queue->newest, &found, node,
                                                    memory_order_acq_rel, memory_order_relaxed));
    *out_was = found == NULL      ? BEL__QUEUE_EMPTY
               : found == &parked ? BEL__QUEUE_PARKED
                                  : BEL__QUEUE_FILLED;
    return 0;
}

bool bel__queue_turn(struct bel_queue_node **newest, struct bel_queue_node **oldest, size_t max)
{
    for (size_t i = 0; i < max && *newest != NULL; i++) {
        struct bel_queue_node *node = *newest;
        *newest = node->next;
        node->next = *oldest;
        *oldest = node;
    }
    return *newest == NULL;
}

static struct bel_queue_node *turn_round(struct bel_queue_node *newest)
{
    struct bel_queue_node *oldest = NULL;
    (void)bel__queue_turn(&newest, &oldest, SIZE_MAX);
    return oldest;
}

struct bel_queue_node *bel__queue_take_newest(struct bel_queue *queue)
{
    /* Relaxed: only decides whether to swap, which saves an idle consumer from taking
     * the cache line away from the pushers. Only this thread closes or empties the
     * queue, so what is neither stays neither until the swap. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    if (found == NULL || found == &closed) return NULL;

    /* Acquire pairs with the release of the swap in bel__queue_push. Not a release: a
     * push that finds the queue empty learns nothing else from it. */
    found = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    assert(found != NULL && found != &closed); /* else there are two consumers */
    return found == &parked ? NULL : found;
}

struct bel_queue_node *bel__queue_take(struct bel_queue *queue)
{
    return turn_round(bel__queue_take_newest(queue));
}

bool bel__queue_park(struct bel_queue *queue)
{
    struct bel_queue_node *found = NULL;
    /* Relaxed: nothing is told and nothing learnt but whether the queue is empty. */
    return atomic_compare_exchange_strong_explicit(&queue->newest, &found, &parked,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           found == &parked;
}

struct bel_queue_node *bel__queue_close(struct bel_queue *queue)
{
    /* Acquire pairs with the release of the swap in bel__queue_push, release with the
     * second load there. */
    struct bel_queue_node *found =
        atomic_exchange_explicit(&queue->newest, &closed, memory_order_acq_rel);
    return is_mark(found) ? NULL : turn_round(found);
}

void bel__queue_open(struct bel_queue *queue)
{
    assert(atomic_load_explicit(&queue->newest, memory_order_relaxed) == &closed);
    /* Release pairs with the acquire of the swap in bel__queue_push. */
    atomic_store_explicit(&queue->newest, NULL, memory_order_release);
}

bool bel__queue_is_empty(const struct bel_queue *queue)
{
    assert(queue != NULL);
    /* Relaxed: the answer is used only as a value; the take orders what it takes. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    return is_mark(found);
}
