/* SPDX-License-Identifier: MIT */

/*
 * The worker receives timers that other threads sent. The worker owns a timer from a queue until it
 * settles the word: it puts the timer into its wheel and then clears QUEUED; if the word has
 * changed meanwhile, it starts over. If the timer already has an entry in this wheel, that entry is
 * moved; otherwise a new one is made.
 *
 * A worker that leaves does the reverse: it empties its queues and its wheel, and sends the pending
 * timers to the merge queue as one parcel. Timers that other threads cancel or move at that moment
 * are not lost: those threads have set QUEUED and find the queues closed, so they send the timers
 * to the merge queue themselves.
 */
#include "runtime/worker.h"

#include <sched.h>

enum {
    VAIN_MAX = 100000 /* pops without a result before the worker yields */
};

static void remove_entry(struct bel_worker *worker, struct record *record)
{
    if (worker_owns(worker, record) && record->entry != 0) {
        (void)bel_wheel_cancel(worker->wheel, record->entry);
    }
    record->entry = 0;
}

/* Reclaims a cancelled timer that came from a queue. */
static void reclaim(struct bel_worker *worker, struct record *record)
{
    remove_entry(worker, record);
    word_clear(&record->word);
    worker_give(worker, record);
}

/* Puts a timer into the wheel. Returns 0 or BEL_ENOMEM. */
static int place(struct bel_worker *worker, struct record *record, uint64_t at)
{
    worker->must_look = true;
    if (worker_owns(worker, record) && record->entry != 0) {
        return bel_wheel_rearm(worker->wheel, record->entry, at);
    }
    uint8_t priority = what_priority(get32(&record->what));
    uint32_t index = record_index(pool_of(worker), record);
    record->entry = 0;
    set32(&record->owner, worker_id(worker));
    return bel_wheel_arm(worker->wheel, at, priority, index, &record->entry);
}

void bel__worker_arm(struct bel_worker *worker, struct record *record, uint64_t at)
{
    if (place(worker, record, at) == 0) return;
    if (word_hand_over(&record->word, word_load(&record->word))) {
        count(worker->visitor, COUNT_SENT);
        bel__send(worker->runtime, record);
    }
}

/* Processes a timer that came from a queue. Returns false if memory has run out: then it is in the
 * inbox again. */
static bool settle(struct bel_worker *worker, struct record *record)
{
    uint64_t seen = word_load(&record->word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) {
            reclaim(worker, record);
            return true;
        }
        if (word_state(seen) == WORD_MOVING) { /* the mover will send it again */
            if (!worker_owns(worker, record)) record->entry = 0;
            set32(&record->owner, worker_id(worker));
        } else if (place(worker, record, get64(&record->due)) != 0) {
            count(worker->visitor, COUNT_SENT);
            bel__send(worker->runtime, record);
            return false;
        }
        if (word_settle(&record->word, &seen)) return true;
    }
}

/* Adopts some timers of a parcel. Returns false if there are more. */
static bool adopt(struct bel_worker *worker)
{
    uint64_t adopted = 0;
    while (worker->parcel != NULL && adopted < ADOPT_MAX) {
        struct record *record = worker->parcel;
        worker->parcel = parcel_next(record);
        record->entry = 0;
        adopted++;
        if (!settle(worker, record)) break;
    }
    count_many(&worker->visitor->counters, COUNT_ADOPTED, adopted);
    count_many(&worker->visitor->counters, COUNT_TAKEN, adopted);
    /* Relaxed: one writer, and readers only need an estimate. */
    set64(&worker->adopted, get64(&worker->adopted) + adopted);
    return worker->parcel == NULL;
}

/* Takes the nodes of the inbox and reverses them, as many as a poll may. */
static void fetch(struct bel_worker *worker)
{
    if (worker->unturned == NULL) worker->unturned = bel__queue_take_newest(&worker->inbox);
    if (!bel__queue_turn(&worker->unturned, &worker->turned, TURN_MAX)) return;
    worker->incoming = worker->turned;
    worker->turned = NULL;
}

static void take_inbox(struct bel_worker *worker)
{
    if (!adopt(worker)) return;
    if (worker->incoming == NULL) fetch(worker);
    for (unsigned i = 0; i < INTAKE_MAX && worker->incoming != NULL; i++) {
        struct record *record = record_of_node(worker->incoming);
        worker->incoming = worker->incoming->next;
        if (get32(&record->owner) == OWNER_NONE) {
            worker->parcel = record;
            if (!adopt(worker)) return;
            continue;
        }
        count(worker->visitor, COUNT_TAKEN);
        if (!settle(worker, record)) return;
    }
}

static void take_returns(struct bel_worker *worker)
{
    uint32_t cleared = 0;
    if (worker->returned == NULL) worker->returned = bel__queue_take_newest(&worker->returns);
    while (cleared < INTAKE_MAX && worker->returned != NULL) {
        struct record *record = record_of_node(worker->returned);
        worker->returned = worker->returned->next;
        if (worker->returned != NULL) __builtin_prefetch(record_of_node(worker->returned), 1);
        assert(word_state(word_load(&record->word)) == WORD_CANCELLED);
        reclaim(worker, record);
        cleared++;
    }
    /* Relaxed: an estimate. */
    if (cleared > 0) {
        atomic_fetch_sub_explicit(&worker->returns_depth, cleared, memory_order_relaxed);
    }
}

void bel__intake(struct bel_worker *worker)
{
    take_inbox(worker);
    take_returns(worker);
}

bool bel__intake_is_empty(const struct bel_worker *worker)
{
    return worker->parcel == NULL && worker->incoming == NULL && worker->unturned == NULL &&
           worker->returned == NULL && bel__queue_is_empty(&worker->inbox) &&
           bel__queue_is_empty(&worker->returns);
}

/* A list of timers to hand over. */
struct row {
    struct record *first, *last;
    uint64_t count;
};

static void append(struct row *row, struct record *record)
{
    set32(&record->owner, OWNER_NONE);
    record->entry = 0;
    if (row->first == NULL) {
        row->first = record;
    } else {
        row->last->entry = (uintptr_t)record;
    }
    row->last = record;
    row->count++;
}

/* Passes on a timer that came from a queue. */
static void pass_on(struct bel_worker *worker, struct record *record, struct row *row)
{
    uint64_t seen = word_load(&record->word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) {
            reclaim(worker, record);
            return;
        }
        remove_entry(worker, record);
        if (word_state(seen) == WORD_PENDING) {
            append(row, record);
            return;
        }
        set32(&record->owner, OWNER_NONE); /* the mover sends it to the merge queue */
        if (word_settle(&record->word, &seen)) return;
    }
}

static void pass_on_all(struct bel_worker *worker, struct bel_queue_node *node, struct row *row)
{
    while (node != NULL) {
        struct record *record = record_of_node(node), *next = NULL;
        node = node->next;
        bool is_parcel = get32(&record->owner) == OWNER_NONE;
        for (; record != NULL; record = next) {
            next = is_parcel ? parcel_next(record) : NULL;
            if (is_parcel) record->entry = 0;
            count(worker->visitor, COUNT_TAKEN);
            pass_on(worker, record, row);
        }
    }
}

/* Takes all timers out of the wheel, in the order in which they are due. */
static void empty_wheel(struct bel_worker *worker, struct row *row)
{
    struct bel_wheel_timer popped;
    unsigned vain = 0;
    while (bel_wheel_count(worker->wheel) > 0) {
        if (!bel_wheel_pop(worker->wheel, BEL_NEVER - 1, &popped)) {
            /* The wheel has much to do; or, if this persists, memory has run out for now. */
            if (++vain > VAIN_MAX) (void)sched_yield();
            continue;
        }
        vain = 0;
        struct record *record = record_at(pool_of(worker), (uint32_t)popped.user);
        uint64_t seen = word_load(&record->word);
        /* Checked after the word: a thread that took the timer over set the owner before the
         * word. */
        if (!worker_owns(worker, record)) continue;
        if (word_hand_over(&record->word, seen)) append(row, record);
    }
}

void bel__intake_hand_over(struct bel_worker *worker, struct bel_queue_node *inbox,
                           struct bel_queue_node *returns)
{
    struct row row = {0};
    uint64_t depth = 0;
    for (struct record *next; worker->parcel != NULL; worker->parcel = next) {
        next = parcel_next(worker->parcel);
        worker->parcel->entry = 0;
        count(worker->visitor, COUNT_TAKEN);
        pass_on(worker, worker->parcel, &row);
    }
    pass_on_all(worker, worker->incoming, &row);
    (void)bel__queue_turn(&worker->unturned, &worker->turned, SIZE_MAX);
    pass_on_all(worker, worker->turned, &row);
    pass_on_all(worker, inbox, &row);
    for (struct bel_queue_node *next; worker->returned != NULL; worker->returned = next, depth++) {
        next = worker->returned->next;
        reclaim(worker, record_of_node(worker->returned));
    }
    for (struct bel_queue_node *next; returns != NULL; returns = next, depth++) {
        next = returns->next;
        reclaim(worker, record_of_node(returns));
    }
    worker->incoming = worker->turned = NULL;
    /* Relaxed: an estimate. */
    atomic_fetch_sub_explicit(&worker->returns_depth, (uint32_t)depth, memory_order_relaxed);
    empty_wheel(worker, &row);
    if (row.first != NULL) bel__roster_merge(worker->runtime, row.first, row.count);
}
