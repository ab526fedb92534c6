/* SPDX-License-Identifier: MIT */

/*
 * Several producers push while the consumer takes and, at some point, closes. At the end each node
 * must be in exactly one place, and the order in which nodes came out must be a possible order of
 * the pushes:
 *
 *   - the nodes of a producer come out in its order, and all that were refused are its last;
 *   - a push that had returned before another began comes out before it;
 *   - as many pushes found the queue empty as takes found it not empty.
 *
 * The seed determines everything except how the threads interleave, so a failure may need several
 * runs to reproduce.
 */
#include "core/queue.h"
#include "property.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum {
    PRODUCERS_MAX = 4,
    PUSHES_MAX = 1000,
    CASES = 1000,
};

struct item {
    struct bel_queue_node node; /* first, so that a node can be cast to its item */
    uint64_t producer, number;  /* plain memory: only the queue makes it safe to read */
    uint64_t seen;              /* of the consumer: how often it came out */
};

struct producer {
    struct item items[PUSHES_MAX];
    uint64_t began[PUSHES_MAX], ended[PUSHES_MAX]; /* tickets around each push */
    uint64_t index, count, accepted, found_empty, random_state;
};

struct consumer {
    uint64_t taken, batches, next[PRODUCERS_MAX];
    const struct item *order[PRODUCERS_MAX * PUSHES_MAX];
};

static struct bel_queue queue;
static struct producer producers[PRODUCERS_MAX];
static struct consumer consumer;
static atomic_uint_fast64_t tickets; /* the consumer does not touch it */

static void *produce(void *arg)
{
    struct producer *p = arg;
    int err = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        struct item *item = &p->items[i];
        enum bel_queue_was was = BEL__QUEUE_FILLED;
        if (random_below(&p->random_state, 32) == 0) sched_yield();
        item->producer = p->index;
        item->number = i;
        p->began[i] = atomic_fetch_add(&tickets, 1);
        int now = bel__queue_push(&queue, &item->node, &was);
        p->ended[i] = atomic_fetch_add(&tickets, 1);
        CHECK(now == 0 || now == BEL_ECLOSED);
        CHECK(err == 0 || now == err); /* once closed, always closed */
        err = now;
        p->accepted += err == 0;
        p->found_empty += err == 0 && was != BEL__QUEUE_FILLED;
    }
    return NULL;
}

static void consume(struct bel_queue_node *node)
{
    if (node == NULL) return;
    consumer.batches++;
    for (struct bel_queue_node *next; node != NULL; node = next) {
        struct item *item = (struct item *)node;
        next = node->next;
        item->seen++;
        CHECK_EQ(item->number, consumer.next[item->producer]++);
        consumer.order[consumer.taken++] = item;
    }
}

static void check_order(void)
{
    uint64_t latest_begin = 0;
    for (uint64_t i = 0; i < consumer.taken; i++) {
        const struct item *item = consumer.order[i];
        const struct producer *p = &producers[item->producer];
        CHECK(p->ended[item->number] >= latest_begin);
        if (p->began[item->number] > latest_begin) latest_begin = p->began[item->number];
    }
}

static void check_places(unsigned producer_count)
{
    uint64_t accepted = 0, found_empty = 0;
    for (unsigned i = 0; i < producer_count; i++) {
        const struct producer *p = &producers[i];
        accepted += p->accepted;
        found_empty += p->found_empty;
        for (uint64_t k = 0; k < p->count; k++) {
            CHECK_EQ(p->items[k].seen, k < p->accepted);
        }
    }
    CHECK_EQ(consumer.taken, accepted);
    CHECK_EQ(consumer.batches, found_empty);
}

static void run_case(uint64_t seed)
{
    pthread_t threads[PRODUCERS_MAX];
    uint64_t random_state = seed, total = 0;
    unsigned producer_count = 1 + (unsigned)random_below(&random_state, PRODUCERS_MAX);
    uint64_t pushes_max = 1 + (random_u64(&random_state) % PUSHES_MAX);

    bel__queue_init(&queue);
    consumer = (struct consumer){0};
    for (unsigned i = 0; i < producer_count; i++) {
        struct producer *p = &producers[i];
        p->index = i;
        p->count = 1 + random_below(&random_state, pushes_max);
        p->accepted = p->found_empty = 0;
        p->random_state = random_u64(&random_state);
        for (uint64_t k = 0; k < p->count; k++) {
            p->items[k].seen = 0;
        }
        total += p->count;
    }
    for (unsigned i = 0; i < producer_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, produce, &producers[i]) == 0);
    }

    uint64_t close_after = random_below(&random_state, total + 1);
    while (consumer.taken < close_after) {
        consume(bel__queue_take(&queue));
        if (random_below(&random_state, 4) == 0) sched_yield();
    }
    consume(bel__queue_close(&queue));
    CHECK(bel__queue_take(&queue) == NULL);
    for (unsigned i = 0; i < producer_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(bel__queue_close(&queue) == NULL);
    check_places(producer_count);
    check_order();
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "races");
}
