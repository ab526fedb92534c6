/* SPDX-License-Identifier: MIT */

/*
 * Timers for any worker wait in one wheel, and a worker that polls takes them out one at a time. So
 * a worker that is stuck in a callback keeps no timer from ringing except its own. Every operation
 * ends in the wheel at once, on the thread that calls it: a cancelled timer leaves nothing behind,
 * whether or not a worker polls, or exists.
 *
 * Somebody must look when the first timer is due:
 *
 *     a worker sleeps         it is the keeper: its alarm is set for that time too. The other
 *                             sleepers sleep on. A keeper that wakes up passes the role to another
 *                             sleeper, by setting the alarm of that one: nobody wakes up for it
 *     no worker sleeps        the metronome tells those that sleep in a loop of the program, and
 *                             those that poll without waiting
 *     neither                 every worker is awake and looks before it sleeps
 *
 * A keeper that wakes up for a due timer has not rung it yet, and its program may do something else
 * first. So its successor looks GRACE_NS later; when the timer has been taken out, the alarm of the
 * successor is set for the next one.
 *
 * The queue `left` is for threads that cannot lock: signal handlers that interrupted this library
 * and cancel; and for timers of a worker that leaves while memory has run out.
 */
#include "runtime/shared.h"

#include "core/units.h"
#include "runtime/worker.h"

enum {
    LEFTS_MAX = 64, /* timers from `left` processed by one call */
};

#define GRACE_NS NS_PER_MS

int bel__shared_init(struct shared *shared, uint64_t now)
{
    struct bel_wheel_options options = {.now = now, .stale_percent = STALE_PERCENT};
    bel__list_init(&shared->sleepers);
    bel__queue_init(&shared->left);
    shared->covered = BEL_NEVER;
    atomic_init(&shared->next, BEL_NEVER);
    atomic_init(&shared->wake_at, BEL_NEVER);
    int err = bel_wheel_create(&options, &shared->wheel);
    if (err) return err;
    return pthread_mutex_init(&shared->mutex, NULL) == 0 ? 0 : BEL_ENOMEM;
}

void bel__shared_finish(struct shared *shared)
{
    bel_wheel_destroy(shared->wheel);
}

/* Becomes the owner of a timer. An entry in the wheel of a worker is not its own. */
static void take_over(struct record *record)
{
    if (record_is_shared(record)) return;
    record->entry = 0;
    set32(&record->owner, OWNER_SHARED);
}

int bel__shared_place(struct bel_runtime *runtime, struct record *record, uint64_t at)
{
    struct bel_wheel *wheel = runtime->shared.wheel;
    take_over(record);
    if (record->entry != 0) return bel_wheel_rearm(wheel, record->entry, at);
    uint8_t priority = what_priority(get32(&record->what));
    uint32_t index = record_index(&runtime->pool, record);
    return bel_wheel_arm(wheel, at, priority, index, &record->entry);
}

void bel__shared_reclaim(struct bel_runtime *runtime, struct visitor *visitor,
                         struct record *record)
{
    take_over(record); /* before the word: a worker that leaves may still have an entry of it */
    if (record->entry != 0) (void)bel_wheel_cancel(runtime->shared.wheel, record->entry);
    record->entry = 0;
    word_clear(&record->word);
    bel__visitor_give(runtime, visitor, record);
}

/* Takes over a QUEUED timer. Returns false if memory has run out: then it is still QUEUED. */
static bool try_settle(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    uint64_t seen = word_load(&record->word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) {
            bel__shared_reclaim(runtime, visitor, record);
            bel__visitor_count(runtime, visitor, COUNT_QUEUED_RECLAIMED, 1);
            return true;
        }
        if (word_state(seen) == WORD_MOVING) { /* the mover will place it */
            take_over(record);
        } else if (bel__shared_place(runtime, record, get64(&record->due)) != 0) {
            return false;
        }
        if (word_settle(&record->word, &seen)) return true;
    }
}

void bel__shared_settle(struct bel_runtime *runtime, struct visitor *visitor, struct record *record)
{
    struct shared *shared = &runtime->shared;
    if (try_settle(runtime, visitor, record)) return;
    record->node.next = shared->lefts;
    shared->lefts = &record->node;
}

static void process_lefts(struct bel_runtime *runtime, struct visitor *visitor)
{
    struct shared *shared = &runtime->shared;
    if (shared->lefts == NULL) shared->lefts = bel__queue_take_newest(&shared->left);
    for (unsigned i = 0; i < LEFTS_MAX && shared->lefts != NULL; i++) {
        struct bel_queue_node *next = shared->lefts->next;
        if (!try_settle(runtime, visitor, record_of_node(shared->lefts))) return;
        shared->lefts = next;
    }
}

void bel__shared_lock(struct bel_runtime *runtime, struct visitor *visitor)
{
    struct shared *shared = &runtime->shared;
    (void)pthread_mutex_lock(&shared->mutex);
    if (shared->lefts != NULL || !bel__queue_is_empty(&shared->left)) {
        process_lefts(runtime, visitor);
    }
}

static struct bel_worker *first_sleeper(const struct shared *shared)
{
    struct bel_link *link = bel__list_first(&shared->sleepers);
    return link != NULL ? BEL_CONTAINER_OF(link, struct bel_worker, sleeper) : NULL;
}

/* Makes a sleeper look at `at`. */
static void keep(struct shared *shared, struct bel_worker *keeper, uint64_t at)
{
    uint64_t before = shared->keeper == keeper ? shared->covered : BEL_NEVER;
    shared->keeper = keeper;
    shared->covered = at;
    if (before > keeper->sleeps_until) before = keeper->sleeps_until;
    uint64_t until = at < keeper->sleeps_until ? at : keeper->sleeps_until;
    if (until != before) bel__alarm_set(&keeper->alarm, (struct bel_boot){until});
}

/* Makes sure that somebody looks at `next`, unless somebody looks before. */
static void cover(struct bel_runtime *runtime, uint64_t next)
{
    struct shared *shared = &runtime->shared;
    bool is_told = shared->keeper == NULL && get64(&shared->wake_at) == BEL_NEVER;
    /* The metronome has told the workers; another time than that needs to be told again. */
    if (is_told && next != shared->covered) shared->covered = BEL_NEVER;
    if (next >= shared->covered) return;
    struct bel_worker *keeper = shared->keeper != NULL ? shared->keeper : first_sleeper(shared);
    if (keeper != NULL) {
        keep(shared, keeper, next);
    } else if (shared->served > 0) {
        shared->covered = next;
        bel__metronome_notify(runtime, &shared->wake_at, next);
    }
}

/* Publishes when the next timer is due. */
static uint64_t publish(struct shared *shared)
{
    uint64_t next = shared->lefts != NULL ? 0 : bel_wheel_next(shared->wheel);
    /* Relaxed: a worker that sees it late looks again with the mutex held before it sleeps, or is
     * told by the metronome. */
    if (next != get64(&shared->next)) set64(&shared->next, next);
    set64(&shared->count, bel_wheel_count(shared->wheel));
    return next;
}

void bel__shared_unlock(struct bel_runtime *runtime)
{
    cover(runtime, publish(&runtime->shared));
    (void)pthread_mutex_unlock(&runtime->shared.mutex);
}

/* Starts the ring of a timer that was popped. Returns false if it was cancelled or moved meanwhile:
 * the thread that did so waits for the mutex. */
static bool start_ring(struct bel_runtime *runtime, struct record *record, uint64_t now)
{
    uint64_t due = get64(&record->due), seen = word_load(&record->word);
    record->entry = 0;
    if (due > now && word_state(seen) == WORD_PENDING && (seen & WORD_QUEUED) == 0) {
        /* Moved, but memory ran out before the wheel was told. */
        if (bel__shared_place(runtime, record, due) == 0) return false;
        if (!word_hand_over(&record->word, seen)) return false;
        record->node.next = runtime->shared.lefts;
        runtime->shared.lefts = &record->node;
        return false;
    }
    return word_fire(&record->word);
}

enum bel_shared_pop bel__shared_pop(struct bel_worker *worker, uint64_t now, uint64_t own,
                                    struct record **out)
{
    struct bel_runtime *runtime = worker->runtime;
    struct shared *shared = &runtime->shared;
    struct bel_wheel_timer popped;
    enum bel_shared_pop result = BEL__SHARED_NONE;
    uint64_t first = 0;
    bel__shared_lock(runtime, worker->visitor);
    (void)bel_wheel_next_exact(shared->wheel, &first);
    if (first < own && bel_wheel_pop(shared->wheel, now, &popped)) {
        *out = record_at(&runtime->pool, (uint32_t)popped.user);
        result = start_ring(runtime, *out, now) ? BEL__SHARED_RINGS : BEL__SHARED_STALE;
    }
    /* This worker may be busy for long from here on: a keeper that it chose when it woke up must
     * look earlier, or need not look so soon. */
    uint64_t next = publish(shared);
    if (shared->keeper != NULL && shared->covered > now) keep(shared, shared->keeper, next);
    cover(runtime, next);
    (void)pthread_mutex_unlock(&shared->mutex);
    return result;
}

bool bel__shared_sleep(struct bel_worker *worker, uint64_t until)
{
    struct bel_runtime *runtime = worker->runtime;
    struct shared *shared = &runtime->shared;
    bel__shared_lock(runtime, worker->visitor);
    uint64_t next = publish(shared);
    bool sleeps = next > runtime_now(runtime);
    if (sleeps) {
        if (worker->is_served) shared->served--;
        worker->is_served = false;
        worker->is_listed = true;
        worker->sleeps_until = until;
        bel__link_insert_after(&shared->sleepers.head, &worker->sleeper);
        bel__alarm_set(&worker->alarm, (struct bel_boot){until});
        if (shared->keeper == NULL) shared->covered = BEL_NEVER; /* from now on it is this one */
        cover(runtime, next);
    }
    (void)pthread_mutex_unlock(&shared->mutex);
    return sleeps;
}

void bel__shared_wake(struct bel_worker *worker)
{
    struct bel_runtime *runtime = worker->runtime;
    struct shared *shared = &runtime->shared;
    bel__shared_lock(runtime, worker->visitor);
    bel__link_remove(&worker->sleeper);
    worker->is_listed = false;
    uint64_t next = publish(shared);
    if (shared->keeper == worker) {
        uint64_t now = runtime_now(runtime);
        shared->keeper = NULL;
        shared->covered = BEL_NEVER;
        if (next <= now) next = now + GRACE_NS;
    }
    cover(runtime, next);
    (void)pthread_mutex_unlock(&shared->mutex);
}

void bel__shared_set_served(struct bel_worker *worker, bool is_served)
{
    struct shared *shared = &worker->runtime->shared;
    if (worker->is_served == is_served) return;
    worker->is_served = is_served;
    bel__shared_lock(worker->runtime, worker->visitor);
    shared->served += is_served ? 1U : -1U;
    if (shared->keeper == NULL) shared->covered = BEL_NEVER; /* tell the metronome again */
    bel__shared_unlock(worker->runtime);
}
