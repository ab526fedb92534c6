/* SPDX-License-Identifier: MIT */

/*
 * When the threads have finished, each timer is in one place. Then all workers poll until no timer
 * is in a queue, and the counts must balance; finally all timers become due, and each one that was
 * scheduled must have rung or been cancelled exactly once.
 */
#include "accounts.h"

#include <string.h>

static struct bel_runtime *const runtime = &around.runtime;
static struct visitor *const visitors = around.visitors;
static struct bel_worker *const seats = around.seats;
static struct record *const records = around.records;

struct told told[AROUND_VISITORS];
bool repeats;

void enter(void)
{
    struct bel_worker *worker;
    REQUIRE(bel_worker_enter(runtime, &worker) == 0);
}

struct bel_worker *this_worker(void)
{
    struct bel_worker *worker = visitors[around_self()].worker;
    REQUIRE(worker != NULL && worker->visitor == &visitors[around_self()]);
    return worker;
}

void poll(void)
{
    (void)bel_worker_poll(this_worker(), AROUND_SLOTS);
}

struct places {
    unsigned wheels, queues, magazines;
};

static struct places places[AROUND_RECORDS + 1];

static void count_queued(struct bel_queue_node *node)
{
    uint32_t index = record_index(&runtime->pool, record_of_node(node));
    REQUIRE(index >= 1 && index <= AROUND_RECORDS);
    REQUIRE(++places[index].queues == 1);
}

static void count_list(struct bel_queue_node *node)
{
    for (; node != NULL; node = node->next) {
        count_queued(node);
    }
}

static void count_queue(const struct bel_queue *queue)
{
    if (bel__queue_is_empty(queue)) return;
    count_list(atomic_load_explicit(&queue->newest, memory_order_relaxed));
}

/* Returns whether an entry belonged to a timer that its worker has cancelled. */
static bool is_cancelled(const struct visitor *visitor, bel_timer_t entry)
{
    const struct cancelled *cancelled = &visitor->cancelled;
    REQUIRE(cancelled->count - cancelled->removed <= CANCELLED_RING);
    for (uint64_t i = cancelled->removed; i < cancelled->count; i++) {
        if (cancelled->entries[i % CANCELLED_RING] == entry) return true;
    }
    return false;
}

/* Counts the timers of a wheel that belongs to a visitor or, if NULL, to all. */
static void count_wheel(const struct bel_wheel *wheel, uint32_t owner,
                        const struct visitor *visitor)
{
    for (unsigned i = 0; i < AROUND_SLOTS; i++) {
        const struct bel_wheel_timer *slot = &wheel->slots[i];
        if (slot->timer == BEL_TIMER_NONE) continue;
        if (visitor != NULL && is_cancelled(visitor, slot->timer)) continue;
        const struct record *record = record_at(&runtime->pool, (uint32_t)slot->user);
        uint64_t word = word_load(&record->word);
        places[slot->user].wheels++;
        if ((word & WORD_QUEUED) != 0) continue;
        REQUIRE(get32(&record->owner) == owner);
        REQUIRE(record->entry == slot->timer);
        REQUIRE(get64(&record->due) == slot->due);
    }
}

static struct bel_worker *live(unsigned index)
{
    return atomic_load_explicit(&runtime->roster.live[index], memory_order_relaxed);
}

static void count_places(void)
{
    memset(places, 0, sizeof places);
    count_queue(&runtime->shared.left);
    count_list(runtime->shared.lefts);
    count_wheel(runtime->shared.wheel, OWNER_SHARED, NULL);
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        struct bel_worker *seat = &seats[i];
        count_queue(&seat->inbox);
        count_queue(&seat->returns);
        count_list(seat->backlog.unturned);
        count_list(seat->backlog.turned);
        count_list(seat->backlog.first);
        count_list(seat->returned);
        if (live(i) != NULL) count_wheel(seat->wheel, worker_id(seat), seat->visitor);
    }
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        const struct magazine *magazine = &visitors[i].magazine;
        for (uint32_t k = 0; k < magazine->count; k++) {
            places[magazine->indexes[k]].magazines++;
        }
    }
}

/* Somebody looks when the first timer of the shared wheel is due, or all workers are awake. */
static void check_shared(void)
{
    const struct shared *shared = &runtime->shared;
    uint64_t next = shared->lefts != NULL ? 0 : bel_wheel_next(shared->wheel);
    REQUIRE(get64(&shared->next) == next);
    REQUIRE(bel__list_is_empty(&shared->sleepers));
    REQUIRE(shared->keeper == NULL);
    REQUIRE(get64(&shared->count) == bel_wheel_count(shared->wheel));
}

/* Every record is in exactly one place, the one that its word says. */
static void check_places(void)
{
    count_places();
    check_shared();
    for (unsigned i = 1; i <= AROUND_RECORDS; i++) {
        uint64_t word = word_load(&records[i].word);
        bool is_queued = (word & WORD_QUEUED) != 0, is_free = word_state(word) == WORD_FREE;
        bool is_pending = word_state(word) == WORD_PENDING;
        REQUIRE(is_free || is_pending || (is_queued && word_state(word) == WORD_CANCELLED));
        REQUIRE(places[i].magazines == is_free);
        REQUIRE(places[i].queues == is_queued);
        REQUIRE(is_queued ? places[i].wheels <= 1 : places[i].wheels == is_pending);
    }
}

static void poll_all(void)
{
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        const struct bel_worker *worker = live(i);
        if (worker == NULL) continue;
        REQUIRE(worker->visitor != NULL);
        around_act_for((unsigned)(worker->visitor - visitors));
        poll();
    }
}

/* All workers poll until no timer is in a queue. */
static void drain(void)
{
    atomic_store_explicit(&runtime->roster.stopping, false, memory_order_relaxed);
    if (live(0) == NULL && live(1) == NULL) {
        around_act_for(AROUND_MAIN);
        enter();
    }
    for (unsigned i = 0; i < 3; i++) {
        poll_all();
    }
    bel__shared_lock(runtime, &visitors[around_self()]);
    bel__shared_unlock(runtime);
    REQUIRE(bel__queue_is_empty(&runtime->shared.left) && runtime->shared.lefts == NULL);
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        REQUIRE(bel__intake_is_empty(&seats[i]));
    }
}

static uint64_t total(enum counter which)
{
    uint64_t sum = get64(&runtime->gone.counts[which]) + get64(&runtime->signals.counts[which]);
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        sum += get64(&visitors[i].counters.counts[which]);
    }
    return sum;
}

/* The counters match the timers, now that no timer is in a queue. */
static void check_books(void)
{
    uint64_t scheduled = 0, cancelled = 0, moved = 0, rings = 0, pending = 0, workers = 0;
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        for (unsigned k = 0; k < TIMERS; k++) {
            scheduled += told[i].has_scheduled[k];
            cancelled += told[i].has_cancelled[k];
            moved += told[i].has_moved[k];
            rings += told[i].rings[k];
        }
    }
    for (unsigned i = 1; i <= AROUND_RECORDS; i++) {
        pending += places[i].wheels;
    }
    for (unsigned i = 0; i < AROUND_SEATS; i++) {
        REQUIRE(get32(&seats[i].returns_depth) == 0);
        REQUIRE(get64(&seats[i].sent) == get64(&seats[i].backlog.taken));
        workers += live(i) != NULL;
    }
    REQUIRE(total(COUNT_SCHEDULED) == scheduled);
    REQUIRE(total(COUNT_CANCELLED) == cancelled);
    REQUIRE(total(COUNT_RESCHEDULED) == moved);
    REQUIRE(total(COUNT_FIRED) == rings);
    REQUIRE(total(COUNT_ENDED) == (repeats ? 0 : rings));
    REQUIRE(scheduled == pending + cancelled + total(COUNT_ENDED));
    REQUIRE(total(COUNT_QUEUED_CANCELLED) == total(COUNT_QUEUED_RECLAIMED));
    REQUIRE(get32(&runtime->roster.count) == workers);
}

/* A timer has rung once, at the time to which it was last moved, or was cancelled. */
static void check_timer(unsigned timer)
{
    unsigned scheduled = 0, ends = 0, moves = 0;
    uint64_t rang_due = 0;
    for (unsigned i = 0; i < AROUND_VISITORS; i++) {
        scheduled += told[i].has_scheduled[timer];
        ends += told[i].rings[timer] + told[i].has_cancelled[timer];
        moves += told[i].has_moved[timer];
        rang_due += told[i].rang_due[timer];
    }
    if (timer == 0 && repeats) return;
    REQUIRE(ends == scheduled);
    if (rang_due == 0) return;
    if (moves == 0) REQUIRE(rang_due == DUE);
    if (moves > 0) REQUIRE(rang_due >= LATER && told[rang_due - LATER].has_moved[timer]);
}

void check(void)
{
    check_places();
    drain();
    check_places();
    check_books();
    around.now = END;
    poll_all();
    check_places();
    check_books();
    for (unsigned i = 0; i < TIMERS; i++) {
        check_timer(i);
    }
}
