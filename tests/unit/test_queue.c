/* SPDX-License-Identifier: MIT */
#include "core/queue.h"

#include "../check.h"

#include <pthread.h>
#include <stddef.h>

static struct bel_queue queue;

static bool push(struct bel_queue_node *node)
{
    enum bel_queue_was was = BEL__QUEUE_FILLED;
    CHECK(bel__queue_push(&queue, node, &was) == 0);
    return was != BEL__QUEUE_FILLED;
}

static void a_new_queue_is_empty(void)
{
    bel__queue_init(&queue);
    CHECK(bel__queue_is_empty(&queue));
    CHECK(bel__queue_take(&queue) == NULL);
}

static void nodes_are_taken_in_the_order_pushed(void)
{
    struct bel_queue_node a, b, c;
    bel__queue_init(&queue);
    (void)push(&a);
    (void)push(&b);
    (void)push(&c);
    CHECK(bel__queue_take(&queue) == &a);
    CHECK(a.next == &b);
    CHECK(b.next == &c);
    CHECK(c.next == NULL);
    CHECK(bel__queue_take(&queue) == NULL);
}

static void nodes_taken_newest_first_are_turned_round_a_few_at_a_time(void)
{
    struct bel_queue_node a, b, c, *newest, *oldest = NULL;
    bel__queue_init(&queue);
    CHECK(bel__queue_take_newest(&queue) == NULL);
    (void)push(&a);
    (void)push(&b);
    (void)push(&c);
    newest = bel__queue_take_newest(&queue);
    CHECK(newest == &c);
    CHECK(!bel__queue_turn(&newest, &oldest, 2));
    CHECK(newest == &a);
    CHECK(bel__queue_turn(&newest, &oldest, 2));
    CHECK(newest == NULL);
    CHECK(oldest == &a && a.next == &b && b.next == &c && c.next == NULL);
    oldest = NULL;
    CHECK(bel__queue_turn(&newest, &oldest, 0)); /* there is nothing to reverse */
    CHECK(oldest == NULL);
}

static void only_the_first_push_finds_the_queue_empty(void)
{
    struct bel_queue_node a, b, c;
    bel__queue_init(&queue);
    CHECK(push(&a));
    CHECK(!push(&b));
    CHECK(!bel__queue_is_empty(&queue));
    CHECK(bel__queue_take(&queue) == &a);
    CHECK(bel__queue_is_empty(&queue));
    CHECK(push(&c));
}

static void a_taken_node_may_be_pushed_again(void)
{
    struct bel_queue_node a, b;
    bel__queue_init(&queue);
    (void)push(&a);
    CHECK(bel__queue_take(&queue) == &a);
    (void)push(&b);
    (void)push(&a);
    CHECK(bel__queue_take(&queue) == &b);
    CHECK(b.next == &a);
    CHECK(a.next == NULL);
}

static void closing_returns_what_was_in_the_queue(void)
{
    struct bel_queue_node a, b;
    bel__queue_init(&queue);
    (void)push(&a);
    (void)push(&b);
    CHECK(bel__queue_close(&queue) == &a);
    CHECK(a.next == &b);
    CHECK(b.next == NULL);
}

static void a_closed_queue_refuses_and_touches_nothing(void)
{
    struct bel_queue_node node = {&node};
    enum bel_queue_was was = BEL__QUEUE_EMPTY;
    bel__queue_init(&queue);
    CHECK(bel__queue_close(&queue) == NULL);
    CHECK(bel__queue_push(&queue, &node, &was) == BEL_ECLOSED);
    CHECK(node.next == &node);
    CHECK(was == BEL__QUEUE_EMPTY);
}

static void a_closed_queue_stays_closed(void)
{
    struct bel_queue_node node;
    enum bel_queue_was was;
    bel__queue_init(&queue);
    CHECK(bel__queue_close(&queue) == NULL);
    CHECK(bel__queue_take(&queue) == NULL);
    CHECK(bel__queue_close(&queue) == NULL);
    CHECK(bel__queue_is_empty(&queue));
    CHECK(bel__queue_push(&queue, &node, &was) == BEL_ECLOSED);
}

static enum bel_queue_was push_finds(struct bel_queue_node *node)
{
    enum bel_queue_was was = BEL__QUEUE_FILLED;
    CHECK(bel__queue_push(&queue, node, &was) == 0);
    return was;
}

static void only_the_first_push_is_told_to_wake_a_parked_consumer(void)
{
    struct bel_queue_node a, b, c;
    bel__queue_init(&queue);
    CHECK(push_finds(&a) == BEL__QUEUE_EMPTY);
    CHECK(!bel__queue_park(&queue));
    CHECK(bel__queue_take(&queue) == &a);
    CHECK(bel__queue_park(&queue));
    CHECK(bel__queue_park(&queue));
    CHECK(bel__queue_is_empty(&queue));
    CHECK(push_finds(&b) == BEL__QUEUE_PARKED);
    CHECK(push_finds(&c) == BEL__QUEUE_FILLED);
    CHECK(bel__queue_take(&queue) == &b);
    CHECK(b.next == &c && c.next == NULL);
}

static void taking_or_closing_ends_parking(void)
{
    struct bel_queue_node a;
    bel__queue_init(&queue);
    CHECK(bel__queue_park(&queue));
    CHECK(bel__queue_take(&queue) == NULL);
    CHECK(push_finds(&a) == BEL__QUEUE_EMPTY);
    CHECK(bel__queue_take(&queue) == &a);
    CHECK(bel__queue_park(&queue));
    CHECK(bel__queue_close(&queue) == NULL);
    CHECK(!bel__queue_park(&queue));
}

static void a_closed_queue_can_be_opened_again(void)
{
    struct bel_queue_node a;
    bel__queue_init(&queue);
    CHECK(bel__queue_close(&queue) == NULL);
    bel__queue_open(&queue);
    CHECK(push_finds(&a) == BEL__QUEUE_EMPTY);
    CHECK(bel__queue_close(&queue) == &a);
}

struct letter {
    struct bel_queue_node node;
    uint64_t text; /* plain memory: only the queue makes it safe to read */
};

static void *write_letter(void *arg)
{
    struct letter *letter = arg;
    letter->text = 42;
    (void)push(&letter->node);
    return NULL;
}

static void what_the_pusher_wrote_is_seen_by_the_taker(void)
{
    struct letter letter = {.text = 0};
    pthread_t thread;
    bel__queue_init(&queue);
    CHECK(pthread_create(&thread, NULL, write_letter, &letter) == 0);
    struct bel_queue_node *node;
    while ((node = bel__queue_take(&queue)) == NULL) {}
    CHECK_EQ(((struct letter *)node)->text, 42);
    CHECK(pthread_join(thread, NULL) == 0);
}

static uint64_t forwarding_address; /* plain memory, written before the close */

/* The first push may be taken, the second may be returned by the close. */
static void *push_until_refused(void *arg)
{
    static struct bel_queue_node nodes[3];
    enum bel_queue_was was;
    int err = 0;
    (void)arg;
    for (unsigned i = 0; i < 3 && err == 0; i++) {
        err = bel__queue_push(&queue, &nodes[i], &was);
        while (!bel__queue_is_empty(&queue)) {}
    }
    CHECK(err == BEL_ECLOSED);
    CHECK_EQ(forwarding_address, 7);
    return NULL;
}

static void what_the_closer_wrote_is_seen_by_the_refused(void)
{
    pthread_t thread;
    bel__queue_init(&queue);
    forwarding_address = 0;
    CHECK(pthread_create(&thread, NULL, push_until_refused, NULL) == 0);
    while (bel__queue_take(&queue) == NULL) {}
    forwarding_address = 7;
    (void)bel__queue_close(&queue);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    RUN(a_new_queue_is_empty);
    RUN(nodes_are_taken_in_the_order_pushed);
    RUN(nodes_taken_newest_first_are_turned_round_a_few_at_a_time);
    RUN(only_the_first_push_finds_the_queue_empty);
    RUN(a_taken_node_may_be_pushed_again);
    RUN(closing_returns_what_was_in_the_queue);
    RUN(a_closed_queue_refuses_and_touches_nothing);
    RUN(a_closed_queue_stays_closed);
    RUN(only_the_first_push_is_told_to_wake_a_parked_consumer);
    RUN(taking_or_closing_ends_parking);
    RUN(a_closed_queue_can_be_opened_again);
    RUN(what_the_pusher_wrote_is_seen_by_the_taker);
    RUN(what_the_closer_wrote_is_seen_by_the_refused);
    return 0;
}
