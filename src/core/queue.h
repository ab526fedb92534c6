/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_QUEUE_H
#define BEL_CORE_QUEUE_H

/*
 * queue - from many threads to one, and it can be closed.
 *
 * Any thread pushes; one thread, the consumer, takes everything at once, in the
 * order of the pushes. A push never waits: it is one compare-and-swap, repeated only
 * when another push or a take came between.
 *
 * The consumer closes the queue when it leaves. A push that races with the close is
 * in what the close returned or is refused: one of the two and never both, so
 * whatever was to be handed over has exactly one owner.
 *
 *     struct order { int what; struct bel_queue_node node; };
 *
 *     producer:  err = bel__queue_push(&inbox, &order->node, &was_empty);
 *                if (err == BEL_ECLOSED) go_elsewhere(order);
 *                else if (was_empty) wake(consumer);
 *
 *     consumer:  clear_wake();
 *                for (node = bel__queue_take(&inbox); node != NULL; node = next) {
 *                    next = node->next;
 *                    serve(node);
 *                }
 *                sleep_until_woken();
 *
 * No wake is lost as long as it is remembered (an eventfd does that) and cleared
 * before the take, as above.
 *
 * The nodes are the caller's and belong to the queue from a push that succeeds until
 * they are taken. A queue has nothing to release. One that many threads push to is
 * best given a cache line of its own.
 */

#include "belfry/error.h"

#include <stdbool.h>

/* Embed one in what is queued. It need not be initialised. */
struct bel_queue_node {
    struct bel_queue_node *next; /* valid once taken; NULL in the last */
};

/* A queue. The field is private. */
struct bel_queue {
    _Atomic(struct bel_queue_node *) newest;
};

/* Makes an empty, open queue, before any other thread knows of it. */
void bel__queue_init(struct bel_queue *queue);

/* Any thread: adds `node`. Returns 0 and says whether the queue was empty, so that
 * it is this thread's turn to wake the consumer; or returns BEL_ECLOSED, and neither
 * has changed. What the pusher wrote before is seen by whoever takes the node. */
BEL_CHECKED int bel__queue_push(struct bel_queue *queue, struct bel_queue_node *node,
                                bool *out_was_empty);

/* Consumer only: takes all there is and returns the oldest, which leads through
 * `next` to the newest; NULL if the queue is empty or closed. The time is linear in
 * the nodes taken. */
struct bel_queue_node *bel__queue_take(struct bel_queue *queue);

/* Consumer only: closes the queue for good and returns what was in it, as take does.
 * Who is refused by a push sees all that this thread did before it closed. */
struct bel_queue_node *bel__queue_close(struct bel_queue *queue);

/* Any thread: whether there is nothing to take. Only a hint unless the asker is the
 * consumer, for whom "false" stays true until it takes. */
bool bel__queue_is_empty(const struct bel_queue *queue);

#endif
