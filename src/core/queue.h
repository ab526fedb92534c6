/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_QUEUE_H
#define BEL_CORE_QUEUE_H

/*
 * queue - a lock-free queue from many threads to one consumer, which can close it.
 *
 * Any thread pushes. One thread, the consumer, takes everything at once, in the order of the
 * pushes. A push never waits: it is one compare-and-swap, repeated only if another push or a take
 * interferes.
 *
 * The consumer closes the queue when it leaves. A push that races with the close is either returned
 * by the close or fails with BEL_ECLOSED, never both, so every node has exactly one owner.
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
 * Only the first push after a consumer has parked is told to wake it. The wake must be sticky, like
 * that of an eventfd, so that one which comes before the sleep is not lost.
 *
 * Nodes are memory of the caller and belong to the queue from a successful push until they are
 * taken. A queue has nothing to free. If many threads push to a queue, put it in a cache line of
 * its own.
 */

#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Embed one in each queued item. It need not be initialised. */
struct bel_queue_node {
    struct bel_queue_node *next; /* valid once taken; NULL in the last */
};

/* A queue. The field is private. */
struct bel_queue {
    _Atomic(struct bel_queue_node *) newest;
};

/* The state of the queue that a push found. */
enum bel_queue_was {
    BEL__QUEUE_EMPTY,
    BEL__QUEUE_PARKED, /* empty, and the consumer is parked: this pusher must wake it */
    BEL__QUEUE_FILLED,
};

/* Initialises an empty, open queue, before another thread can access it. */
void bel__queue_init(struct bel_queue *queue);

/* Adds `node`. Any thread may call it. Returns 0 and sets `*out_was` to the state before; or
 * returns BEL_ECLOSED with nothing changed. The taker of the node sees everything that the pusher
 * wrote before. */
BEL_CHECKED int bel__queue_push(struct bel_queue *queue, struct bel_queue_node *node,
                                enum bel_queue_was *out_was);

/* Takes all nodes and returns the oldest, which leads through `next` to the newest; NULL if the
 * queue is empty or closed. Takes time linear in the nodes taken. Unparks the queue. Consumer
 * only. */
struct bel_queue_node *bel__queue_take(struct bel_queue *queue);

/* Like bel__queue_take(), in constant time, but the newest node comes first. Consumer only. */
struct bel_queue_node *bel__queue_take_newest(struct bel_queue *queue);

/* Reverses a chain from bel__queue_take_newest(), at most `max` nodes per call, from `*newest` to
 * `*oldest`, which is NULL at first. Returns true when done: then `*oldest` is the oldest node. */
bool bel__queue_turn(struct bel_queue_node **newest, struct bel_queue_node **oldest, size_t max);

/* Parks: the next push is told to wake the consumer. Returns false if there is something to take or
 * the queue is closed: then do not sleep. Consumer only. */
bool bel__queue_park(struct bel_queue *queue);

/* Closes the queue and returns its nodes like bel__queue_take(). A thread whose push fails with
 * BEL_ECLOSED sees everything that this thread wrote before closing. Consumer only. */
struct bel_queue_node *bel__queue_close(struct bel_queue *queue);

/* Opens a closed queue again. The calling thread becomes the consumer. */
void bel__queue_open(struct bel_queue *queue);

/* Returns whether there is nothing to take. Any thread may call it, but only for the consumer is
 * the result reliable: false stays false until the consumer takes. */
bool bel__queue_is_empty(const struct bel_queue *queue);

#endif
