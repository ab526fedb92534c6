/* SPDX-License-Identifier: MIT */

/*
 * When the last worker has left, every pending timer is in the shared wheel. This thread takes out
 * those that are there and processes them as the caller chose. A timer scheduled meanwhile goes to
 * the same wheel and stays there.
 *
 * Other threads may still cancel and move timers. So each timer is claimed first (word.h); from
 * then on it rings as on a worker, and threads that wait for its callback are woken.
 */
#include "core/units.h"
#include "runtime/inbox.h"
#include "runtime/worker.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* While it waits for a deadline, looks at the runtime's clock at least this often. */
#define LOOK_NS NS_PER_S

/* Allows workers to enter again. */
static void reopen(struct bel_runtime *runtime)
{
    bel__runtime_lock(runtime);
    atomic_store_explicit(&runtime->roster.stopping, false, memory_order_release);
    (void)pthread_cond_broadcast(&runtime->roster.changed);
    bel__runtime_unlock(runtime);
}

/* Waits until the roster has changed, or until `deadline` of the runtime's clock. Returns false if
 * that has come. The mutex is held. */
static bool wait_for_change(struct bel_runtime *runtime, uint64_t deadline)
{
    if (deadline == BEL_NEVER) {
        (void)pthread_cond_wait(&runtime->roster.changed, &runtime->mutex);
        return true;
    }
    uint64_t now = runtime_now(runtime);
    if (deadline <= now) return false;
    /* The condition does not know the boot clock: waits for the rest, and looks again. */
    uint64_t at = bel_clock_mono(bel_clock_system()).ns;
    uint64_t rest = deadline - now < LOOK_NS ? deadline - now : LOOK_NS;
    struct timespec until = {(time_t)((at + rest) / NS_PER_S), (long)((at + rest) % NS_PER_S)};
    (void)pthread_cond_timedwait(&runtime->roster.changed, &runtime->mutex, &until);
    return true;
}

/* Waits for another shutdown to end, then until no worker is left. Returns 0; or BEL_EBUSY at the
 * deadline, and then the workers that are left go on. */
static int stop_workers(struct bel_runtime *runtime, uint64_t deadline)
{
    struct roster *roster = &runtime->roster;
    bool is_in_time = true;
    bel__runtime_lock(runtime);
    while (is_in_time && atomic_load_explicit(&roster->stopping, memory_order_relaxed)) {
        is_in_time = wait_for_change(runtime, deadline);
    }
    if (!is_in_time) {
        bel__runtime_unlock(runtime);
        return BEL_EBUSY;
    }
    /* Release pairs with the acquire in bel_worker_wait. */
    atomic_store_explicit(&roster->stopping, true, memory_order_release);
    for (unsigned i = 0; i < BEL_WORKERS_MAX; i++) {
        struct bel_worker *worker = atomic_load_explicit(&roster->live[i], memory_order_relaxed);
        if (worker != NULL) bel__alarm_ring(&worker->alarm);
    }
    while (is_in_time && get32(&roster->count) > 0) {
        is_in_time = wait_for_change(runtime, deadline);
    }
    if (get32(&roster->count) > 0) {
        bel__runtime_unlock(runtime);
        reopen(runtime);
        return BEL_EBUSY;
    }
    unsigned thread_count = runtime->thread_count;
    runtime->thread_count = 0; /* no others start before the shutdown ends */
    bel__runtime_unlock(runtime);
    for (unsigned i = 0; i < thread_count; i++) {
        (void)pthread_join(runtime->threads[i], NULL);
    }
    return 0;
}

/* The state of a shutdown. */
struct closing {
    struct bel_runtime *runtime, *into;
    struct visitor *visitor;
    struct record **records;
    size_t count, done;
    enum bel_shutdown how;
    int err;
};

/* Takes the timers out of the shared wheel into an array; they are QUEUED, so this thread owns
 * them. The mutex of the wheel is held. */
static void take_out(struct closing *closing)
{
    struct bel_runtime *runtime = closing->runtime;
    struct bel_wheel_timer popped;
    uint64_t most = bel_wheel_count(runtime->shared.wheel);
    while (closing->count < most && bel_wheel_count(runtime->shared.wheel) > 0) {
        /* No result: the wheel has much to do. */
        if (!bel_wheel_pop(runtime->shared.wheel, BEL_NEVER - 1, &popped)) continue;
        struct record *record = record_at(&runtime->pool, (uint32_t)popped.user);
        record->entry = 0;
        if (word_take_out(&record->word)) closing->records[closing->count++] = record;
    }
}

/* Collects the pending timers. Returns 0 or BEL_ENOMEM. */
static int collect(struct closing *closing)
{
    struct bel_runtime *runtime = closing->runtime;
    assert(closing->visitor != NULL);
    visitor_begin(closing->visitor);
    bel__shared_lock(runtime, closing->visitor);
    size_t most = bel_wheel_count(runtime->shared.wheel);
    closing->records = malloc((most + 1) * sizeof(struct record *));
    if (closing->records != NULL) take_out(closing);
    bel__shared_unlock(runtime);
    visitor_end(closing->visitor);
    return closing->records != NULL ? 0 : BEL_ENOMEM;
}

struct place {
    uint64_t due;
    size_t arrival;
    struct record *record;
    uint8_t priority;
};

static int compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->due != b->due) return a->due < b->due ? -1 : 1;
    if (a->priority != b->priority) return a->priority < b->priority ? -1 : 1;
    return a->arrival < b->arrival ? -1 : 1;
}

/* Sorts by due and priority; equal ones keep their order. */
static int sort(struct record **records, size_t count)
{
    struct place *places = malloc((count + 1) * sizeof *places);
    if (places == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){get64(&records[i]->due), i, records[i],
                                   what_priority(get32(&records[i]->what))};
    }
    qsort(places, count, sizeof *places, compare);
    for (size_t i = 0; i < count; i++) {
        records[i] = places[i].record;
    }
    free(places);
    return 0;
}

static void give(struct closing *closing, struct record *record)
{
    pool_give(&closing->runtime->pool, &closing->visitor->magazine, record);
}

/* Claims a timer: no thread can cancel or move it any more. Returns false if it was already
 * cancelled. */
static bool claim(struct record *record)
{
    uint64_t seen = word_load(&record->word);
    for (;;) {
        if (word_state(seen) == WORD_CANCELLED) return false;
        if (word_state(seen) == WORD_MOVING) { /* ends in a moment */
            (void)sched_yield();
            seen = word_load(&record->word);
        } else if (word_claim(&record->word, &seen)) {
            return true;
        }
    }
}

/* Ends a claimed timer. */
static void end_life(struct closing *closing, struct record *record, enum counter as)
{
    bool is_over;
    bel__ring_tell(closing->runtime, word_fired(&record->word, &is_over));
    assert(is_over);
    count(closing->visitor, as);
}

static void fire(struct closing *closing, struct record *record)
{
    struct bel_runtime *runtime = closing->runtime;
    struct visitor *visitor = closing->visitor;
    struct bel_event event = bel__ring_describe(runtime, record, runtime_now(runtime));
    const struct kind *kind = &runtime->kinds[event.kind];
    struct bel_inbox *inbox = atomic_load_explicit(&kind->inbox, memory_order_acquire);
    count(visitor, COUNT_FIRED);
    if (inbox != NULL) {
        end_life(closing, record, COUNT_ENDED);
        bel__inbox_put(inbox, record, &event);
        return;
    }
    visitor->ringing = record;
    visitor_end(visitor);
    atomic_load_explicit(&kind->ring, memory_order_acquire)(kind->context, &event);
    if (runtime_is_forked(runtime)) return; /* the timer belongs to the parent */
    visitor_begin(visitor);
    visitor->ringing = NULL;
    end_life(closing, record, COUNT_ENDED);
    give(closing, record);
}

static int migrate(struct closing *closing, struct record *record)
{
    uint32_t what = get32(&record->what);
    bel_timer_t timer;
    struct bel_schedule schedule = {
        .due = {get64(&record->due)},
        .user = get64(&record->user),
        .period_ns = record_period(record),
        .wall_ms = record_wall(record),
        .kind = what_kind(what),
        .priority = what_priority(what),
        .repeat = what_repeat(what),
    };
    int err = schedule.wall_ms == WALL_NONE
                  ? bel_runtime_schedule(closing->into, &schedule, &timer)
                  : bel_runtime_schedule_wall(closing->into, &schedule, &timer);
    if (err) {
        unsigned bits = schedule.repeat != BEL_ONCE ? WORD_REPEATS : 0;
        bel__ring_tell(closing->runtime, word_unclaim(&record->word, bits));
        return err;
    }
    end_life(closing, record, COUNT_CANCELLED);
    give(closing, record);
    return 0;
}

/* Processes one timer. Returns 0, or an error, and then it stays pending. */
static int process(struct closing *closing, struct record *record)
{
    if (!claim(record)) {
        word_clear(&record->word);
        give(closing, record);
        return 0;
    }
    if (closing->how == BEL_SHUTDOWN_MIGRATE) return migrate(closing, record);
    if (closing->how == BEL_SHUTDOWN_FIRE) {
        fire(closing, record);
        return 0;
    }
    end_life(closing, record, COUNT_CANCELLED);
    give(closing, record);
    return 0;
}

/* Ends the shutdown, also if the thread ends inside a callback: the remaining timers stay
 * pending. */
static void finish(void *arg)
{
    struct closing *closing = arg;
    struct visitor *visitor = closing->visitor;
    size_t count = closing->count - closing->done;
    struct record **rest = closing->records + closing->done;
    if (!runtime_is_forked(closing->runtime)) { /* otherwise the timers belong to the parent */
        if (visitor->ringing != NULL) {         /* its callback did not return */
            visitor_begin(visitor);
            end_life(closing, visitor->ringing, COUNT_ENDED);
            give(closing, visitor->ringing);
            visitor->ringing = NULL;
        }
        bel__shared_lock(closing->runtime, visitor);
        for (size_t i = 0; i < count; i++) {
            bel__shared_settle(closing->runtime, visitor, rest[i]);
        }
        bel__shared_unlock(closing->runtime);
        visitor_end(visitor);
        reopen(closing->runtime);
    }
    free(closing->records);
}

/* Processes the timers in order until an error. */
static void process_all(struct closing *closing)
{
    assert(closing->visitor != NULL);
    visitor_begin(closing->visitor);
    pthread_cleanup_push(finish, closing);
    while (closing->err == 0 && closing->done < closing->count) {
        closing->err = process(closing, closing->records[closing->done++]);
        if (closing->err) closing->done--;
        if (runtime_is_forked(closing->runtime)) closing->err = BEL_ECLOSED;
    }
    pthread_cleanup_pop(1);
}

int bel_runtime_shutdown(struct bel_runtime *runtime, enum bel_shutdown how,
                         struct bel_runtime *into)
{
    return bel_runtime_shutdown_until(runtime, how, into, (struct bel_boot){BEL_NEVER});
}

int bel_runtime_shutdown_until(struct bel_runtime *runtime, enum bel_shutdown how,
                               struct bel_runtime *into, struct bel_boot deadline)
{
    bool migrates = how == BEL_SHUTDOWN_MIGRATE;
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    if (how > BEL_SHUTDOWN_DISCARD) return BEL_EINVAL;
    if (migrates && (into == NULL || into == runtime)) return BEL_EINVAL;
    struct closing closing = {.runtime = runtime, .into = into, .how = how};
    struct visitor *visitor = visitor_find(runtime);
    if (visitor == NULL && how != BEL_SHUTDOWN_KEEP) {
        int err = bel__visitor_make(runtime, &visitor);
        if (err) return err;
    }
    if (visitor != NULL && visitor->ringing != NULL) return BEL_EBUSY;
    if (visitor != NULL && visitor->worker != NULL) bel__worker_end(visitor->worker);
    int err = stop_workers(runtime, deadline.ns);
    if (err) return err;
    if (how == BEL_SHUTDOWN_KEEP) {
        reopen(runtime);
        return 0;
    }
    closing.visitor = visitor;
    closing.err = collect(&closing);
    if (closing.err == 0) closing.err = sort(closing.records, closing.count);
    process_all(&closing);
    return closing.err;
}
