/* SPDX-License-Identifier: MIT */

/*
 * One word points at the newest node, and each node at the node pushed before it:
 *
 *     newest --> C --> B --> A --> NULL    NULL: empty   &parked: empty   &closed: closed
 *
 * A push prepends a node with a compare-and-swap. The consumer swaps the word for NULL, or for the
 * mark &closed, and reverses the chain. All pushes succeed one after the other on this one word,
 * which defines their order. Because "closed" is a value of the same word, a push comes either
 * before or after the close. "Parked" is another value of the word, so the consumer cannot fall
 * asleep while a push believes it to be awake; no ordering between two words is needed.
 *
 * Nodes may be reused at any time without the ABA problem of stacks: a push does not dereference
 * the node that it found, it only requires that this node is still the newest.
 *
 * Memory order. There is one atomic, so every store to it pairs with the loads here:
 *
 *   - The store of a push is a release, and the swaps of take and close are acquires, so the
 *     consumer sees the node and everything its pusher wrote before. It reads only the store of
 *     the last push, but each push is a read-modify-write and so continues the release sequence
 *     of the earlier ones: one acquire covers all pushers.
 *   - The store of a close is a release, and a push that finds the mark loads it again with
 *     acquire before it returns BEL_ECLOSED. If the queue was reopened meanwhile, the push goes on.
 *   - Opening is a release: a push that finds the queue open also sees what its new consumer
 *     wrote before. For this the compare-and-swap of a push is also an acquire.
 *   - All other accesses are relaxed: their values are compared but never dereferenced.
 *
 * No stronger order is needed, because no code compares this word with another one.
 */
#include "core/queue.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Only the addresses of these nodes are used. */
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

    /* Relaxed: compared and stored, not dereferenced. The swap below detects an outdated value. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    do {
        if (found == &closed) {
            /* Acquire pairs with the release of the swap in bel__queue_close. */
            found = atomic_load_explicit(&queue->newest, memory_order_acquire);
            if (found == &closed) return BEL_ECLOSED;
        }
        node->next = found == &parked ? NULL : found;
        /* Release pairs with the acquire of the swaps in take and close, acquire with the release
         * in open. Relaxed on failure: then this is the first load again. */
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
    /* Relaxed: only decides whether to swap. Without this check an idle consumer would take the
     * cache line away from the pushers. Only this thread closes or empties the queue, so a queue
     * that is neither closed nor empty stays so until the swap. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    if (found == NULL || found == &closed) return NULL;

    /* Acquire pairs with the release of the swap in bel__queue_push. No release is needed: a push
     * that finds the queue empty reads nothing else. */
    found = atomic_exchange_explicit(&queue->newest, NULL, memory_order_acquire);
    assert(found != NULL && found != &closed); /* otherwise there are two consumers */
    return found == &parked ? NULL : found;
}

struct bel_queue_node *bel__queue_take(struct bel_queue *queue)
{
    return turn_round(bel__queue_take_newest(queue));
}

bool bel__queue_park(struct bel_queue *queue)
{
    struct bel_queue_node *found = NULL;
    /* Relaxed: the swap passes no other data in either direction. */
    return atomic_compare_exchange_strong_explicit(&queue->newest, &found, &parked,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           found == &parked;
}

struct bel_queue_node *bel__queue_close(struct bel_queue *queue)
{
    /* Acquire pairs with the release of the swap in bel__queue_push, release with the second load
     * there. */
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
    /* Relaxed: only the value is used; bel__queue_take orders the nodes that it takes. */
    struct bel_queue_node *found = atomic_load_explicit(&queue->newest, memory_order_relaxed);
    return is_mark(found);
}
