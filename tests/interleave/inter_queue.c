/* SPDX-License-Identifier: MIT */

/*
 * Every interleaving of a few pushes with takes, parking, a close and reopening. In every case a
 * node ends in exactly one place, with the consumer or with the pusher that was refused; a pusher's
 * nodes come out in its order; and of the nodes taken at once only the oldest was told that the
 * queue was empty or parked.
 *
 * The contents of the items and what the consumer writes is plain memory, so that the thread
 * sanitizer checks whether the queue orders it.
 */
#include "core/queue.h"

#include "interleave.h"

#include <stdatomic.h>

enum {
    PUSHES_MAX = 2,
    NEVER = 1, /* as an error: there was no push */
};

struct item {
    struct bel_queue_node node; /* first, so that a node can be cast to its item */
    unsigned pusher, number;    /* the pushing thread, and the number of its items before this
                                   one */

    int err;                /* of the pusher: result of the push */
    enum bel_queue_was was; /* of the pusher: state that the push returned */

    bool is_taken;              /* of the consumer */
    enum bel_queue_was has_met; /* of the consumer: state that the push must have returned */
};

static struct bel_queue queue;
static struct item items[INTERLEAVE_THREADS_MAX][PUSHES_MAX];
static unsigned pushed[INTERLEAVE_THREADS_MAX]; /* each belongs to its thread */

static struct {
    unsigned next[INTERLEAVE_THREADS_MAX]; /* the number of the next item of each pusher */
    unsigned taken;                        /* items */
    bool is_parked;
    bool has_closed, has_opened; /* written before it closes or opens */
} consumer;

static atomic_uint wakes; /* simulates an eventfd */

static void start_anew(void)
{
    bel__queue_init(&queue);
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        for (unsigned k = 0; k < PUSHES_MAX; k++) {
            items[i][k] = (struct item){.pusher = i, .err = NEVER};
        }
        pushed[i] = consumer.next[i] = 0;
    }
    consumer.taken = 0;
    consumer.is_parked = consumer.has_closed = consumer.has_opened = false;
    atomic_init(&wakes, 0);
}

/* Pushes the next item of this thread. */
static struct item *push(void)
{
    unsigned self = interleave_self();
    unsigned number = pushed[self]++;
    struct item *item = &items[self][number];
    item->number = number;
    item->err = bel__queue_push(&queue, &item->node, &item->was);
    if (item->err != 0) {
        REQUIRE(item->err == BEL_ECLOSED);
        REQUIRE(consumer.has_closed);
    }
    return item;
}

static void push_one(void)
{
    (void)push();
}

static void push_two(void)
{
    int first = push()->err;
    int second = push()->err;
    if (first != 0 && second == 0) REQUIRE(consumer.has_opened);
}

static void push_and_wake(void)
{
    const struct item *item = push();
    bool wakes_it = item->err == 0 && item->was == BEL__QUEUE_PARKED;
    if (wakes_it) (void)atomic_fetch_add_explicit(&wakes, 1, memory_order_seq_cst);
}

/* A mutant may return one of the queue's marks. */
static struct item *item_of(struct bel_queue_node *node)
{
    uintptr_t first = (uintptr_t)items, at = (uintptr_t)node;
    REQUIRE(at >= first && at < first + sizeof items);
    return (struct item *)node;
}

static void consume(struct bel_queue_node *oldest)
{
    enum bel_queue_was met = consumer.is_parked ? BEL__QUEUE_PARKED : BEL__QUEUE_EMPTY;
    consumer.is_parked = false;
    for (struct bel_queue_node *node = oldest; node != NULL; node = node->next) {
        struct item *item = item_of(node);
        REQUIRE(!item->is_taken);
        REQUIRE(item->number >= consumer.next[item->pusher]); /* those between were refused */
        consumer.next[item->pusher] = item->number + 1;
        consumer.taken++;
        item->is_taken = true;
        item->has_met = met;
        met = BEL__QUEUE_FILLED;
    }
}

static void take_once(void)
{
    consume(bel__queue_take(&queue));
}

static void take_twice(void)
{
    take_once();
    take_once();
}

/* "Not empty" stays true for the consumer, however many threads push. */
static void take_if_not_empty(void)
{
    if (bel__queue_is_empty(&queue)) return;
    struct bel_queue_node *oldest = bel__queue_take(&queue);
    REQUIRE(oldest != NULL);
    consume(oldest);
}

/* The consumer parks, but does not sleep. */
static void park_and_take_twice(void)
{
    consumer.is_parked = bel__queue_park(&queue);
    take_twice();
}

/* A parked queue stays parked until there is a push. */
static void park_twice_and_take(void)
{
    consumer.is_parked = bel__queue_park(&queue);
    bool again = bel__queue_park(&queue);
    struct bel_queue_node *oldest = bel__queue_take(&queue);
    REQUIRE(again ? consumer.is_parked : oldest != NULL);
    consume(oldest);
}

static void close_it(void)
{
    consumer.has_closed = true;
    consume(bel__queue_close(&queue));
}

static void take_and_close(void)
{
    take_once();
    close_it();
}

static void park_and_close(void)
{
    consumer.is_parked = bel__queue_park(&queue);
    close_it();
}

static void close_and_open(void)
{
    close_it();
    consumer.has_opened = true;
    bel__queue_open(&queue);
    take_once();
}

/* No pusher is told to wake a consumer that has parked and then left. */
static void park_close_and_open(void)
{
    park_and_close();
    REQUIRE(!bel__queue_park(&queue));
    consumer.has_opened = true;
    bel__queue_open(&queue);
    take_once();
}

static bool is_woken(const volatile void *address)
{
    return atomic_load_explicit((const volatile atomic_uint *)address, memory_order_seq_cst) > 0;
}

/* The consumer of queue.h. If a wake is lost, it waits for ever; no wake may be left over. */
static void take_two_or_sleep(void)
{
    while (true) {
        take_once();
        if (consumer.taken == 2) return;
        consumer.is_parked = bel__queue_park(&queue);
        if (consumer.is_parked) {
            interleave_await(&wakes, INTERLEAVE_READ, is_woken);
            REQUIRE(atomic_exchange_explicit(&wakes, 0, memory_order_seq_cst) == 1);
        }
    }
}

static void start_parked(void)
{
    start_anew();
    consumer.is_parked = bel__queue_park(&queue);
}

/* The consumer of an inbox, which is woken as long as there is something: it takes one item at a
 * time, and wakes itself if there are more. */
static void take_two_one_by_one(void)
{
    const struct bel_queue_node *rest = NULL;
    for (unsigned left = 2; left > 0; left--) {
        interleave_await(&wakes, INTERLEAVE_READ, is_woken);
        REQUIRE(atomic_exchange_explicit(&wakes, 0, memory_order_seq_cst) == 1);
        if (rest == NULL) {
            struct bel_queue_node *oldest = bel__queue_take(&queue);
            consume(oldest);
            rest = oldest;
        }
        REQUIRE(rest != NULL);
        rest = rest != NULL ? rest->next : NULL;
        if (rest == NULL) consumer.is_parked = bel__queue_park(&queue);
        if (!consumer.is_parked) (void)atomic_fetch_add_explicit(&wakes, 1, memory_order_seq_cst);
    }
}

static void check_places(void)
{
    bool is_closed = consumer.has_closed && !consumer.has_opened;
    if (is_closed) REQUIRE(bel__queue_is_empty(&queue));
    consume(bel__queue_take(&queue));
    REQUIRE(!is_woken(&wakes));
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        for (unsigned k = 0; k < pushed[i]; k++) {
            const struct item *item = &items[i][k];
            REQUIRE(item->err != NEVER);
            REQUIRE(item->is_taken == (item->err == 0));
            REQUIRE(!item->is_taken || item->was == item->has_met);
        }
    }
}

/* Taken items are pushed again, so that a pusher can find the newest node that it saw before, with
 * another node after it. */
static void take_and_push_again(void)
{
    enum bel_queue_was was;
    struct bel_queue_node *next;
    for (struct bel_queue_node *node = bel__queue_take(&queue); node != NULL; node = next) {
        next = node->next;
        REQUIRE(bel__queue_push(&queue, node, &was) == 0);
    }
}

static void check_that_none_is_lost(void)
{
    struct bel_queue_node *node = bel__queue_take(&queue);
    for (; node != NULL; node = node->next) {
        struct item *item = item_of(node);
        REQUIRE(!item->is_taken);
        item->is_taken = true;
    }
    for (unsigned i = 0; i < INTERLEAVE_THREADS_MAX; i++) {
        for (unsigned k = 0; k < pushed[i]; k++) {
            REQUIRE(items[i][k].is_taken);
        }
    }
}

/* The small cases first: they detect most mutants. */
static const struct interleave_case cases[] = {
    {.name = "three_pushers_and_a_closer",
     .setup = start_anew,
     .threads = {push_one, push_one, push_one, close_it},
     .check = check_places},
    {.name = "two_pushers_and_a_closer",
     .setup = start_anew,
     .threads = {push_two, push_two, close_it},
     .check = check_places,
     .spurious_max = 1},
    {.name = "two_pushers_and_a_taker_who_pushes_again",
     .setup = start_anew,
     .threads = {push_one, push_two, take_and_push_again},
     .check = check_that_none_is_lost},
    {.name = "two_pushers_wake_a_sleeper",
     .setup = start_anew,
     .threads = {push_and_wake, push_and_wake, take_two_or_sleep},
     .check = check_places,
     .spurious_max = 1},
    {.name = "two_pushers_and_a_taker_who_parks",
     .setup = start_anew,
     .threads = {push_one, push_one, park_and_take_twice},
     .check = check_places},
    {.name = "two_pushers_and_a_taker_who_parks_twice",
     .setup = start_anew,
     .threads = {push_one, push_one, park_twice_and_take},
     .check = check_places},
    {.name = "two_pushers_wake_a_taker_of_one_at_a_time",
     .setup = start_parked,
     .threads = {push_and_wake, push_and_wake, take_two_one_by_one},
     .check = check_places},
    {.name = "a_pusher_and_a_closer_who_parks_and_opens_again",
     .setup = start_anew,
     .threads = {push_two, park_close_and_open},
     .check = check_places},
    {.name = "two_pushers_and_a_taker_who_looks_first",
     .setup = start_anew,
     .threads = {push_one, push_two, take_if_not_empty},
     .check = check_places,
     .spurious_max = 1},
    {.name = "three_pushers_and_a_taker",
     .setup = start_anew,
     .threads = {push_one, push_one, push_one, take_twice},
     .check = check_places},
    {.name = "two_pushers_and_a_closer_who_opens_again",
     .setup = start_anew,
     .threads = {push_one, push_two, close_and_open},
     .check = check_places},
    {.name = "two_pushers_and_a_taker_who_closes",
     .setup = start_anew,
     .threads = {push_one, push_two, take_and_close},
     .check = check_places,
     .spurious_max = 1},
    {.name = "two_pushers_and_a_closer_who_parks",
     .setup = start_anew,
     .threads = {push_one, push_two, park_and_close},
     .check = check_places},
    {.name = "two_pushers_and_a_taker",
     .setup = start_anew,
     .threads = {push_two, push_two, take_twice},
     .check = check_places},
};

int main(int argc, char **argv)
{
    return interleave_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
