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
 *     producer:  err = bel__queue_push(&inbox, &order->node, &was);
 *                if (err == BEL_ECLOSED) go_elsewhere(order);
 *                else if (was == BEL__QUEUE_PARKED) wake(consumer);
 *
 *     consumer:  for (node = bel__queue_take(&inbox); node != NULL; node = next) {
 *                    next = node->next;
 *                    serve(node);
 *                }
 *                if (bel__queue_park(&inbox)) sleep_until_woken();
 *
 * A consumer that parks is woken by the first push after that, and only by that one. No
 * wake is lost as long as it is remembered: an eventfd does that.
 *
 * The nodes are the caller's and belong to the queue from a push that succeeds until
 * they are taken. A queue has nothing to release. One that many threads push to is
 * best given a cache line of its own.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Embed one in what is queued. It need not be initialised. */
struct bel_queue_node {
    struct bel_queue_node *next; /* valid once taken; NULL in the last */
};

/* A queue. The field is private. */
struct bel_queue {
    _Atomic(struct bel_queue_node *) newest;
};

/* What a push found. */
enum bel_queue_was {
    BEL__QUEUE_EMPTY,
    BEL__QUEUE_PARKED, /* empty, and the consumer waits to be woken: by this pusher */
    BEL__QUEUE_FILLED,
};

/* Makes an empty, open queue, before any other thread knows of it. */
void bel__queue_init(struct bel_queue *queue);

/* Any thread: adds `node`. Returns 0 and says what the queue was before; or returns
 * BEL_ECLOSED, and neither has changed. What the pusher wrote before is seen by whoever
 * takes the node. */
BEL_CHECKED int bel__queue_push(struct bel_queue *queue, struct bel_queue_node *node,
                                enum bel_queue_was *out_was);

/* Consumer only: takes all there is and returns the oldest, which leads through
 * `next` to the newest; NULL if the queue is empty or closed. The time is linear in
 * the nodes taken. A parked queue is no longer parked. */
struct bel_queue_node *bel__queue_take(struct bel_queue *queue);

/* Consumer only: the same in constant time, but the newest comes first. */
struct bel_queue_node *bel__queue_take_newest(struct bel_queue *queue);

/* Turns round what was taken newest first, at most `max` nodes in one call: they go from
 * `*newest` to `*oldest`, which is NULL to begin with. True if that is all of them, and
 * then `*oldest` leads to the newest. */
bool bel__queue_turn(struct bel_queue_node **newest, struct bel_queue_node **oldest, size_t max);

/* Consumer only: from here on the next push is told to wake the consumer. False if there
 * is something to take, or the queue is closed: then do not sleep. */
bool bel__queue_park(struct bel_queue *queue);

/* Consumer only: closes the queue for good and returns what was in it, as take does.
 * Who is refused by a push sees all that this thread did before it closed. */
struct bel_queue_node *bel__queue_close(struct bel_queue *queue);

/* Opens a closed queue for another consumer, who is the calling thread. */
void bel__queue_open(struct bel_queue *queue);

/* Any thread: whether there is nothing to take. Only a hint unless the asker is the
 * consumer, for whom "false" stays true until it takes. */
bool bel__queue_is_empty(const struct bel_queue *queue);

#endif
