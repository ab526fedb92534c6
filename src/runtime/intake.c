/* SPDX-License-Identifier: MIT */

/*
 * The worker receives timers that other threads sent. The worker owns a timer from a queue until it
 * settles the word: it puts the timer into its wheel and then clears QUEUED; if the word has
 * changed meanwhile, it starts over. If the timer already has an entry in this wheel, that entry is
 * moved; otherwise a new one is made.
 *
 *     inbox --take--> unturned --turn--> turned --when complete--> first ... last --> wheel
 *     (newest first)                     (oldest first)
 *
 * The chains between inbox and wheel are the backlog. A thread that cancels many timers there may
 * take the cancelled ones out, because a worker that does not poll would keep them for ever: a
 * sweep goes along the backlog, a few timers at a time, then turns those that were sent meanwhile,
 * and starts again. The rest keeps its order.
 *
 * A worker that leaves empties its queues and its wheel into the shared wheel. Timers that other
 * threads cancel or move at that moment are not lost: those threads have set QUEUED and find the
 * queues closed, so they pass the timers to the shared wheel themselves.
 */
#include "runtime/worker.h"

#include <sched.h>

enum {
    VAIN_MAX = 100000, /* pops without a result before the worker yields */
    SWEEP_STEPS = 32,  /* timers that one sweep looks at */
};

/* Reclaims a cancelled timer that came from a queue. */
static void reclaim(struct bel_worker *worker, struct record *record)
{
    if (worker_owns(worker, record) && record->entry != 0) {
        (void)bel_wheel_cancel(worker->wheel, record->entry);
    }
    record->entry = 0;
    word_clear(&record->word);
    worker_give(worker, record);
}

/* Becomes the owner of a timer that came from a queue. An entry in another wheel is not its own. */
static void take_over(struct bel_worker *worker, struct record *record)
{
    if (worker_owns(worker, record)) return;
    record->entry = 0;
    set32(&record->owner, worker_id(worker));
}

/* Puts a timer into the wheel. Returns 0 or BEL_ENOMEM. */
static int place(struct bel_worker *worker, struct record *record, uint64_t at)
{
    worker->must_look = true;
    take_over(worker, record);
    if (record->entry != 0) return bel_wheel_rearm(worker->wheel, record->entry, at);
    uint8_t priority = what_priority(get32(&record->what));
    uint32_t index = record_index(pool_of(worker), record);
    return bel_wheel_arm(worker->wheel, at, priority, index, &record->entry);
}

void bel__worker_arm(struct bel_worker *worker, struct record *record, uint64_t at)
{
    if (place(worker, record, at) == 0) return;
    if (word_hand_over(&record->word, word_load(&record->word))) {
        bel__send(worker->runtime, worker->visitor, record);
    }
}

/* Processes a timer that came from the inbox. Returns false if memory has run out: then it is in
 * the inbox again. Adds to `*cancelled` if it was cancelled. */
static bool settle(struct bel_worker *worker, struct record *record, uint64_t *cancelled)
{
    uint64_t seen = word_load(&record->word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) {
            reclaim(worker, record);
            ++*cancelled;
            return true;
        }
        if (word_state(seen) == WORD_MOVING) { /* the mover will send it again */
            take_over(worker, record);
        } else if (place(worker, record, get64(&record->due)) != 0) {
            bel__send(worker->runtime, worker->visitor, record);
            return false;
        }
        if (word_settle(&record->word, &seen)) return true;
    }
}

/*
 * The backlog. Its mutex is held.
 */

static bool backlog_is_empty(const struct backlog *backlog)
{
    return backlog->first == NULL && backlog->turned == NULL && backlog->unturned == NULL;
}

/* Takes the timers of the inbox, if those taken before are turned. Returns true if there were
 * any. */
static bool fetch(struct bel_worker *worker)
{
    struct backlog *backlog = &worker->backlog;
    if (backlog->unturned != NULL || backlog->turned != NULL) return false;
    backlog->unturned = bel__queue_take_newest(&worker->inbox);
    return backlog->unturned != NULL;
}

/* Appends the timers that are completely reversed. */
static void append_turned(struct backlog *backlog)
{
    if (backlog->unturned != NULL || backlog->turned == NULL) return;
    if (backlog->first == NULL) {
        backlog->first = backlog->turned;
    } else {
        backlog->last->next = backlog->turned;
    }
    backlog->last = backlog->turned_last;
    backlog->turned = NULL;
}

/* Moves one timer from `unturned` to `turned`. */
static void turn_one(struct backlog *backlog)
{
    struct bel_queue_node *node = backlog->unturned;
    backlog->unturned = node->next;
    if (backlog->turned == NULL) backlog->turned_last = node;
    node->next = backlog->turned;
    backlog->turned = node;
}

/* Ends a change of the backlog by which `left` timers have left it, `cancelled` of them because
 * they were cancelled. */
static void finish_backlog(struct bel_worker *worker, struct visitor *visitor, uint64_t left,
                           uint64_t cancelled)
{
    struct backlog *backlog = &worker->backlog;
    /* Relaxed: estimates, and the worker that sees `is_filled` late is rung. */
    set64(&backlog->taken, get64(&backlog->taken) + left);
    atomic_store_explicit(&backlog->is_filled, !backlog_is_empty(backlog), memory_order_relaxed);
    if (cancelled == 0) return;
    bel__visitor_count(worker->runtime, visitor, COUNT_QUEUED_RECLAIMED, cancelled);
}

static void take_inbox(struct bel_worker *worker)
{
    struct backlog *backlog = &worker->backlog;
    bool is_filled = atomic_load_explicit(&backlog->is_filled, memory_order_relaxed);
    if (!is_filled && !worker->has_parked && bel__queue_is_empty(&worker->inbox)) return;
    (void)pthread_mutex_lock(&backlog->mutex); /* at worst until a sweep has taken its steps */
    uint64_t left = 0, cancelled = 0;
    worker->has_parked = false;
    backlog->swept = NULL;
    if (backlog->first == NULL) {
        (void)fetch(worker);
        for (unsigned i = 0; i < TURN_MAX && backlog->unturned != NULL; i++) {
            turn_one(backlog);
        }
        append_turned(backlog);
    }
    while (left < INTAKE_MAX && backlog->first != NULL) {
        struct record *record = record_of_node(backlog->first);
        backlog->first = backlog->first->next;
        left++;
        if (!settle(worker, record, &cancelled)) break;
    }
    finish_backlog(worker, worker->visitor, left, cancelled);
    (void)pthread_mutex_unlock(&backlog->mutex);
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
    if (cleared == 0) return;
    /* Relaxed: estimates. */
    atomic_fetch_sub_explicit(&worker->returns_depth, cleared, memory_order_relaxed);
    atomic_store_explicit(&worker->is_stuck, false, memory_order_relaxed);
}

void bel__intake(struct bel_worker *worker)
{
    take_inbox(worker);
    take_returns(worker);
}

bool bel__intake_is_empty(const struct bel_worker *worker)
{
    return !atomic_load_explicit(&worker->backlog.is_filled, memory_order_relaxed) &&
           worker->returned == NULL && bel__queue_is_empty(&worker->inbox) &&
           bel__queue_is_empty(&worker->returns);
}

/*
 * Sweeping, on the thread that cancels.
 */

/* Reclaims a timer of the backlog if it is cancelled and not in the worker's wheel, which is not
 * the caller's. */
static bool sweep_timer(struct bel_worker *worker, struct visitor *visitor, struct record *record)
{
    if (word_state(word_load(&record->word)) != WORD_CANCELLED) return false;
    if (worker_owns(worker, record) && record->entry != 0) return false;
    record->entry = 0;
    word_clear(&record->word);
    bel__visitor_give(worker->runtime, visitor, record);
    return true;
}

/* Looks at the next timer that is not yet turned. Returns true if it was reclaimed. */
static bool sweep_unturned(struct bel_worker *worker, struct visitor *visitor)
{
    struct backlog *backlog = &worker->backlog;
    struct bel_queue_node *next = backlog->unturned->next;
    bool is_gone = sweep_timer(worker, visitor, record_of_node(backlog->unturned));
    if (is_gone) {
        backlog->unturned = next;
    } else {
        turn_one(backlog);
    }
    append_turned(backlog);
    return is_gone;
}

/* Looks at the next timer that is turned; there is one. Returns true if it was reclaimed. */
static bool sweep_turned(struct bel_worker *worker, struct visitor *visitor)
{
    struct backlog *backlog = &worker->backlog;
    struct bel_queue_node *before = backlog->swept;
    struct bel_queue_node *node = before != NULL ? before->next : backlog->first;
    struct bel_queue_node *next = node->next;
    if (!sweep_timer(worker, visitor, record_of_node(node))) {
        backlog->swept = node;
        return false;
    }
    if (before != NULL) {
        before->next = next;
    } else {
        backlog->first = next;
    }
    if (backlog->last == node) backlog->last = before;
    return true;
}

/* Returns whether a sweep has come to the end of the timers that are turned. */
static bool is_swept(const struct backlog *backlog)
{
    return backlog->first == NULL || backlog->swept == backlog->last;
}

bool bel__intake_sweep(struct bel_worker *worker, struct visitor *visitor)
{
    struct backlog *backlog = &worker->backlog;
    if (pthread_mutex_trylock(&backlog->mutex) != 0) return false;
    uint64_t cancelled = 0;
    bool has_fetched = false;
    for (unsigned i = 0; i < SWEEP_STEPS; i++) {
        if (is_swept(backlog) && backlog->unturned == NULL) {
            backlog->swept = NULL;
            /* A queue that is not empty is not parked: taking from it loses no wakeup. */
            if (bel__queue_is_empty(&worker->inbox) && backlog->first == NULL) break;
            if (!bel__queue_is_empty(&worker->inbox)) has_fetched |= fetch(worker);
        }
        bool turns = is_swept(backlog) && backlog->unturned != NULL;
        cancelled += turns ? sweep_unturned(worker, visitor) : sweep_turned(worker, visitor);
    }
    finish_backlog(worker, visitor, cancelled, cancelled);
    (void)pthread_mutex_unlock(&backlog->mutex);
    /* The worker may have found its inbox empty meanwhile and sleep. */
    if (has_fetched) bel__alarm_ring(&worker->alarm);
    return true;
}

/*
 * Leaving.
 */

/* Timers that a worker hands over. The mutex of the shared wheel is held. */
struct hand_over {
    struct bel_worker *worker;
    unsigned count; /* since the mutex was locked */
};

/* Lets other threads have the shared wheel now and then. */
static void pause_hand_over(struct hand_over *hand)
{
    if (++hand->count < HAND_OVER_MAX) return;
    hand->count = 0;
    bel__shared_unlock(hand->worker->runtime);
    bel__shared_lock(hand->worker->runtime, hand->worker->visitor);
}

static void hand_over(struct hand_over *hand, struct record *record)
{
    struct bel_worker *worker = hand->worker;
    if (word_is_pending(word_load(&record->word))) count(worker->visitor, COUNT_ADOPTED);
    bel__shared_settle(worker->runtime, worker->visitor, record);
    pause_hand_over(hand);
}

/* Hands over a chain of the inbox. Returns the number of timers. */
static uint64_t hand_over_all(struct hand_over *hand, struct bel_queue_node *node)
{
    uint64_t timers = 0;
    for (struct bel_queue_node *next; node != NULL; node = next, timers++) {
        next = node->next;
        hand_over(hand, record_of_node(node));
    }
    return timers;
}

static uint64_t hand_over_backlog(struct hand_over *hand, struct bel_queue_node *inbox)
{
    struct backlog *backlog = &hand->worker->backlog;
    while (backlog->unturned != NULL) {
        turn_one(backlog);
    }
    append_turned(backlog);
    uint64_t timers = hand_over_all(hand, backlog->first) + hand_over_all(hand, inbox);
    backlog->first = NULL;
    backlog->swept = NULL;
    return timers;
}

/* Reclaims cancelled timers. Returns their number. */
static uint32_t reclaim_all(struct bel_worker *worker, struct bel_queue_node *node)
{
    uint32_t timers = 0;
    for (struct bel_queue_node *next; node != NULL; node = next, timers++) {
        next = node->next;
        reclaim(worker, record_of_node(node));
    }
    return timers;
}

/* Takes all timers out of the wheel, in the order in which they are due. */
static void hand_over_wheel(struct hand_over *hand)
{
    struct bel_worker *worker = hand->worker;
    struct bel_wheel_timer popped;
    unsigned vain = 0;
    worker_remove_cancelled(worker);
    while (bel_wheel_count(worker->wheel) > 0) {
        if (!bel_wheel_pop(worker->wheel, BEL_NEVER - 1, &popped)) {
            /* The wheel has much to do; or, if this persists, memory has run out for now. */
            if (++vain > VAIN_MAX) (void)sched_yield();
            continue;
        }
        vain = 0;
        struct record *record = record_at(pool_of(worker), (uint32_t)popped.user);
        /* Another owner: the timer was cancelled, and its record is in use again. */
        if (!worker_owns(worker, record)) continue;
        if (word_hand_over(&record->word, word_load(&record->word))) hand_over(hand, record);
    }
}

void bel__intake_hand_over(struct bel_worker *worker)
{
    struct hand_over hand = {.worker = worker};
    (void)pthread_mutex_lock(&worker->backlog.mutex);
    struct bel_queue_node *inbox = bel__queue_close(&worker->inbox);
    struct bel_queue_node *returns = bel__queue_close(&worker->returns);
    bel__shared_lock(worker->runtime, worker->visitor);
    uint64_t timers = hand_over_backlog(&hand, inbox);
    uint32_t cleared = reclaim_all(worker, worker->returned) + reclaim_all(worker, returns);
    worker->returned = NULL;
    hand_over_wheel(&hand); /* last: the others may have had entries */
    bel__shared_unlock(worker->runtime);
    finish_backlog(worker, worker->visitor, timers, 0);
    (void)pthread_mutex_unlock(&worker->backlog.mutex);
    /* Relaxed: an estimate. */
    atomic_fetch_sub_explicit(&worker->returns_depth, cleared, memory_order_relaxed);
}
