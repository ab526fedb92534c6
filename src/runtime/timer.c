/* SPDX-License-Identifier: MIT */

/*
 * The operations on timers that any thread can call. Each has a fast path, for a worker and its own
 * timers, which ends in its wheel; one for the timers of the shared wheel, which ends there, with
 * its mutex held (shared.c); and one for timers of other workers, which changes the word and sends
 * the timer to its owner (send.c).
 */
#include "runtime/worker.h"

#include "core/units.h"

#include <math.h>

/* The slow path is out of line, so that the fast path saves no registers for it. */
#define SLOW_PATH __attribute__((noinline))

static inline int check(const struct bel_runtime *runtime, const struct bel_schedule *schedule,
                        uint64_t due)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (due == BEL_NEVER) return BEL_ERANGE;
    if (!runtime_knows(runtime, schedule->kind)) return BEL_EINVAL;
    if (schedule->repeat > BEL_DELAY) return BEL_EINVAL;
    if (schedule->repeat != BEL_ONCE && schedule->period_ns == 0) return BEL_EINVAL;
    return 0;
}

/* When a timer is due, and its wall time if it was given as one. */
struct when {
    uint64_t due;
    int64_t wall_ms;
};

/* Initialises a record. Returns its generation. */
static inline uint32_t fill(struct record *record, const struct bel_schedule *options,
                            struct when when, uint32_t owner, unsigned bits)
{
    uint32_t what = what_of(options->kind, options->priority, options->repeat);
    if (options->repeat != BEL_ONCE) {
        bits |= WORD_REPEATS;
        set64(&record->period_ns, options->period_ns);
    }
    if (when.wall_ms != WALL_NONE) {
        what |= WHAT_INSTANT;
        atomic_store_explicit(&record->wall_ms, when.wall_ms, memory_order_relaxed);
    }
    set64(&record->due, when.due);
    set64(&record->user, options->user);
    set32(&record->owner, owner);
    set32(&record->what, what);
    return word_start(&record->word, bits);
}

/* Schedules on the caller's own wheel. The timer is pending only after it is in the wheel, because
 * a snapshot may see it from then on. */
static inline int schedule_own(struct bel_worker *worker, uint32_t index,
                               const struct bel_schedule *options, struct when when,
                               bel_timer_t *out)
{
    struct record *record = record_at(pool_of(worker), index);
    int err = bel_wheel_arm(worker->wheel, when.due, options->priority, index, &record->entry);
    if (err) {
        worker_give(worker, record);
        return err;
    }
    count(worker->visitor, COUNT_SCHEDULED); /* before another thread can end it */
    uint32_t generation = fill(record, options, when, worker_id(worker), 0);
    worker->must_look = true;
    if (when.due < worker->wake_known && !worker->is_polling) bel__worker_publish(worker);
    *out = pool_handle(pool_of(worker), index, generation);
    return 0;
}

/* Schedules on another worker. */
SLOW_PATH static void schedule_there(struct visitor *visitor, uint32_t index,
                                     const struct bel_schedule *options, struct when when,
                                     bel_timer_t *out)
{
    struct bel_runtime *runtime = visitor_runtime(visitor);
    struct record *record = record_at(&runtime->pool, index);
    record->entry = 0;
    count(visitor, COUNT_SCHEDULED);
    uint32_t generation = fill(record, options, when, worker_id(options->worker), WORD_QUEUED);
    bel__send(runtime, visitor, record);
    *out = pool_handle(&runtime->pool, index, generation);
}

/* Schedules on any worker. */
SLOW_PATH static int schedule_shared(struct visitor *visitor, uint32_t index,
                                     const struct bel_schedule *options, struct when when,
                                     bel_timer_t *out)
{
    struct bel_runtime *runtime = visitor_runtime(visitor);
    struct record *record = record_at(&runtime->pool, index);
    bel__shared_lock(runtime, visitor);
    int err =
        bel_wheel_arm(runtime->shared.wheel, when.due, options->priority, index, &record->entry);
    if (err == 0) {
        count(visitor, COUNT_SCHEDULED);
        uint32_t generation = fill(record, options, when, OWNER_SHARED, 0);
        *out = pool_handle(&runtime->pool, index, generation);
    }
    bel__shared_unlock(runtime);
    if (err) pool_give(&runtime->pool, &visitor->magazine, record);
    return err;
}

/* Creates the visitor of a thread that schedules for the first time. */
SLOW_PATH static int prepare(struct bel_runtime *runtime, struct visitor **out)
{
    int err = visitor_get(runtime, out);
    if (err) return err;
    return (*out)->busy ? BEL_EBUSY : 0;
}

SLOW_PATH static int refill(struct visitor *visitor)
{
    return bel__pool_refill(&visitor_runtime(visitor)->pool, &visitor->magazine);
}

static inline int schedule(struct bel_runtime *runtime, const struct bel_schedule *options,
                           struct when when, bel_timer_t *out)
{
    struct visitor *visitor = visitor_find(runtime);
    int err = check(runtime, options, when.due);
    if (err) return err;
    if (visitor == NULL || visitor->busy) {
        err = prepare(runtime, &visitor);
        if (err) return err;
    }
    visitor_begin(visitor);
    if (visitor->magazine.count == 0) err = refill(visitor);
    if (err == 0) {
        uint32_t index = visitor->magazine.indexes[--visitor->magazine.count];
        struct bel_worker *worker = visitor->worker, *there = options->worker;
        if (worker != NULL && (there == NULL || there == worker)) {
            err = schedule_own(worker, index, options, when, out);
        } else if (there == NULL) {
            err = schedule_shared(visitor, index, options, when, out);
        } else {
            schedule_there(visitor, index, options, when, out);
        }
    }
    visitor_end(visitor);
    return err;
}

int bel_runtime_schedule(struct bel_runtime *runtime, const struct bel_schedule *options,
                         bel_timer_t *out)
{
    return schedule(runtime, options, (struct when){options->due.ns, WALL_NONE}, out);
}

int bel_runtime_schedule_after(struct bel_runtime *runtime, uint64_t delay_ns,
                               const struct bel_schedule *options, bel_timer_t *out)
{
    struct bel_boot due;
    int err = bel_boot_add((struct bel_boot){runtime_now(runtime)}, delay_ns, &due);
    if (err) return err;
    return schedule(runtime, options, (struct when){due.ns, WALL_NONE}, out);
}

int bel_runtime_schedule_wall(struct bel_runtime *runtime, const struct bel_schedule *options,
                              bel_timer_t *out)
{
    int64_t at = options->wall_ms;
    uint64_t due;
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (at == WALL_NONE) return BEL_ERANGE;
    /* Relaxed: nothing else is read. */
    if (!atomic_load_explicit(&runtime->wall.is_used, memory_order_relaxed)) {
        bel__wall_begin(runtime);
    }
    uint32_t steps = bel__wall_steps(runtime);
    int64_t now = bel_clock_wall(runtime->clock).ms;
    int err = bel__wall_due(at, now, runtime_now(runtime), &due);
    if (err == 0) err = schedule(runtime, options, (struct when){due, at}, out);
    if (err == 0 && bel__wall_steps(runtime) != steps) bel__wall_follow(runtime, *out);
    return err;
}

int bel_delay_from_seconds(double seconds, uint64_t *out_ns)
{
    if (isnan(seconds) || seconds <= 0) {
        *out_ns = 0;
        return 0;
    }
    double ns = ceil(seconds * 1e9);
    if (ns >= 18446744073709551615.0) return BEL_ERANGE; /* 2^64 */
    *out_ns = (uint64_t)ns;
    return 0;
}

/* Returns the calling thread's worker if it owns the timer; NULL otherwise, or in a signal handler
 * that interrupted this library. */
static inline struct bel_worker *as_owner(const struct visitor *visitor,
                                          const struct record *record)
{
    if (visitor == NULL || visitor->worker == NULL || visitor->busy) return NULL;
    return worker_owns(visitor->worker, record) ? visitor->worker : NULL;
}

/* Counts for a thread that may be in a signal handler or has no visitor. */
static void count_anywhere(struct bel_runtime *runtime, struct visitor *visitor, enum counter which)
{
    if (visitor != NULL && !visitor->busy) {
        visitor_begin(visitor);
        count(visitor, which);
        visitor_end(visitor);
    } else { /* Release as in count_many(). */
        atomic_fetch_add_explicit(&runtime->signals.counts[which], 1, memory_order_release);
    }
}

/* Cancels a timer that the caller does not own, or that is QUEUED. */
SLOW_PATH static bool cancel_there(struct bel_runtime *runtime, struct visitor *visitor,
                                   struct record *record, uint32_t generation)
{
    enum word_end end = word_cancel(&record->word, generation);
    if (end == WORD_NOT_ENDED) return false;
    count_anywhere(runtime, visitor, COUNT_CANCELLED);
    if (end == WORD_ENDED_PUSH) bel__send_back(runtime, record);
    if (end == WORD_ENDED_QUEUED) {
        /* Any other record may be here by now: then the inbox of another worker is cleared up. */
        bel__send_note_cancelled(runtime, visitor, get32(&record->owner));
    }
    return true;
}

/* Cancels a timer of the shared wheel. Returns false if it is not pending there. */
SLOW_PATH static bool cancel_shared(struct bel_runtime *runtime, struct visitor *visitor,
                                    struct record *record, uint32_t generation)
{
    if (visitor != NULL) visitor_begin(visitor);
    bel__shared_lock(runtime, visitor);
    bool is_ended = word_cancel_own(&record->word, generation);
    if (is_ended) {
        if (record->entry != 0) (void)bel_wheel_cancel(runtime->shared.wheel, record->entry);
        bel__visitor_give(runtime, visitor, record);
    }
    bel__shared_unlock(runtime);
    if (visitor != NULL) visitor_end(visitor);
    if (is_ended) count_anywhere(runtime, visitor, COUNT_CANCELLED);
    return is_ended;
}

/* Cancels a timer that the calling thread does not own. */
static bool cancel_other(struct bel_runtime *runtime, struct visitor *visitor,
                         struct record *record, uint32_t generation)
{
    /* A timer of the shared wheel stays there until it ends. In a signal handler that interrupted
     * this library, the mutex cannot be locked. */
    bool is_shared = record_is_shared(record) && (visitor == NULL || !visitor->busy);
    if (is_shared && cancel_shared(runtime, visitor, record, generation)) return true;
    return cancel_there(runtime, visitor, record, generation);
}

bool bel_runtime_cancel(struct bel_runtime *runtime, bel_timer_t timer)
{
    if (runtime_is_forked(runtime)) return false;
    struct record *record = pool_find(&runtime->pool, timer);
    if (record == NULL) return false;
    uint32_t generation = pool_handle_generation(&runtime->pool, timer);
    struct visitor *visitor = visitor_find(runtime);
    __builtin_prefetch(record, 1);
    if (visitor != NULL && visitor->worker != NULL && !visitor->busy) {
        visitor_begin(visitor);
        worker_make_room(visitor->worker); /* while the record is fetched */
        visitor_end(visitor);
    }
    struct bel_worker *owner = as_owner(visitor, record);
    if (owner == NULL) return cancel_other(runtime, visitor, record, generation);

    visitor_begin(visitor);
    bool is_mine = word_cancel_own(&record->word, generation);
    if (is_mine) {
        worker_cancel_later(owner, record);
        worker_give(owner, record);
        count(visitor, COUNT_CANCELLED);
    }
    visitor_end(visitor);
    return is_mine || cancel_there(runtime, visitor, record, generation);
}

int bel_runtime_cancel_sync(struct bel_runtime *runtime, bel_timer_t timer)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    const struct visitor *visitor = visitor_find(runtime);
    struct record *record = pool_find(&runtime->pool, timer);
    if (record == NULL) return BEL_ESTALE;
    uint32_t generation = pool_handle_generation(&runtime->pool, timer);
    if (visitor != NULL && visitor->ringing == record &&
        word_generation(word_load(&record->word)) == generation) {
        return BEL_EBUSY;
    }
    bool is_ended = bel_runtime_cancel(runtime, timer);
    bel__runtime_lock(runtime);
    while (word_wait(&record->word, generation)) {
        (void)pthread_cond_wait(&runtime->rung, &runtime->mutex);
    }
    bel__runtime_unlock(runtime);
    return is_ended ? 0 : BEL_ESTALE;
}

/* Ends the move of a timer that its owner must be told of. */
static void send_moved(struct visitor *visitor, struct record *record, enum word_moved moved)
{
    struct bel_runtime *runtime = visitor_runtime(visitor);
    bool is_cancelled = moved == WORD_MOVED_ENDED || moved == WORD_MOVED_ENDED_PUSH;
    if (is_cancelled) bel__send_note_cancelled(runtime, visitor, get32(&record->owner));
    if (moved == WORD_MOVED_PUSH || moved == WORD_MOVED_ENDED_PUSH) {
        bel__send(runtime, visitor, record);
    }
}

/* Moves a timer of the caller, which is in its wheel or in its inbox. */
static void move_own(struct bel_worker *owner, struct record *record, uint64_t due)
{
    int err = 0;
    /* After the move has ended, a thread that cancels may sweep a timer without an entry. */
    uint64_t entry = record->entry;
    enum word_moved moved = word_move_end(&record->word, 0);
    if (entry != 0) err = bel_wheel_rearm(owner->wheel, entry, due);
    /* If memory has run out, the entry comes up at the old time and is corrected then. */
    (void)err;
    if (moved != WORD_MOVED_KEPT) send_moved(owner->visitor, record, moved);
    owner->must_look = true;
    if (due < owner->wake_known && !owner->is_polling) bel__worker_publish(owner);
}

/* Moves a timer of the shared wheel, or one that is in its queue. */
static void move_shared(struct visitor *visitor, struct record *record, uint64_t due)
{
    struct bel_runtime *runtime = visitor_runtime(visitor);
    bel__shared_lock(runtime, visitor);
    switch (word_move_end(&record->word, 0)) {
    case WORD_MOVED_KEPT:
        if ((word_load(&record->word) & WORD_QUEUED) != 0) break; /* placed when it is taken out */
        /* If memory has run out, the entry comes up at the old time and is corrected then. */
        if (bel__shared_place(runtime, record, due) != 0 && record->entry == 0 &&
            word_hand_over(&record->word, word_load(&record->word))) {
            bel__shared_settle(runtime, visitor, record);
        }
        break;
    case WORD_MOVED_ENDED:
        bel__send_note_cancelled(runtime, visitor, OWNER_SHARED);
        break;
    default:
        bel__shared_reclaim(runtime, visitor, record);
    }
    bel__shared_unlock(runtime);
}

/* Moves a timer after word_move_begin(). */
static void move(struct visitor *visitor, struct record *record, uint64_t due)
{
    struct bel_worker *worker = visitor->worker;
    set64(&record->due, due);
    if (worker != NULL && worker_owns(worker, record)) {
        move_own(worker, record, due);
    } else if (record_is_shared(record)) {
        move_shared(visitor, record, due);
    } else {
        send_moved(visitor, record, word_move_end(&record->word, WORD_QUEUED));
    }
}

int bel_runtime_reschedule(struct bel_runtime *runtime, bel_timer_t timer, struct bel_boot due)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (due.ns == BEL_NEVER) return BEL_ERANGE;
    struct visitor *visitor;
    int err = visitor_get(runtime, &visitor);
    if (err) return err;
    if (visitor->busy) return BEL_EBUSY;
    struct record *record = pool_find(&runtime->pool, timer);
    if (record == NULL) return BEL_ESTALE;

    visitor_begin(visitor);
    enum word_move begun =
        word_move_begin(&record->word, pool_handle_generation(&runtime->pool, timer));
    bool is_moved = begun == WORD_MOVE_BEGUN || begun == WORD_MOVE_OTHER;
    if (is_moved) count(visitor, COUNT_RESCHEDULED);
    if (begun == WORD_MOVE_BEGUN) {
        set32(&record->what, get32(&record->what) & ~WHAT_INSTANT);
        move(visitor, record, due.ns);
    }
    visitor_end(visitor);
    if (is_moved) return 0;
    return begun == WORD_MOVE_BUSY ? BEL_EBUSY : BEL_ESTALE;
}

void bel__timer_follow(struct bel_runtime *runtime, struct visitor *visitor,
                       const struct found *found, uint64_t due)
{
    struct record *record = record_at(&runtime->pool, found->index);
    visitor_begin(visitor);
    if (word_move_begin(&record->word, found->generation) == WORD_MOVE_BEGUN) {
        /* Another thread may have given it a due of its own meanwhile. */
        bool is_wall = record_wall(record) == found->wall_ms;
        move(visitor, record, is_wall ? due : get64(&record->due));
    }
    visitor_end(visitor);
}

bool bel_runtime_is_pending(const struct bel_runtime *runtime, bel_timer_t timer)
{
    if (runtime_is_forked(runtime)) return false;
    const struct record *record = pool_find(&runtime->pool, timer);
    if (record == NULL) return false;
    uint64_t word = word_load(&record->word);
    return word_generation(word) == pool_handle_generation(&runtime->pool, timer) &&
           word_is_pending(word);
}
