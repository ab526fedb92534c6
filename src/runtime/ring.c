/* SPDX-License-Identifier: MIT */

/*
 * Rings a timer whose wheel entry has come up. The entry is only a hint (see word.h): if the timer
 * was cancelled or moved meanwhile, nothing rings. Otherwise the timer is FIRING until the callback
 * has returned or the event is in the inbox. Then the timer ends, or goes back into the wheel for
 * its next ring.
 *
 * The record of a timer that has ended carries its event to an inbox; a timer that repeats takes
 * another record for it. So ringing allocates no memory.
 */
#include "core/units.h"
#include "runtime/inbox.h"
#include "runtime/repeat.h"
#include "runtime/worker.h"

static struct beat beat_of(const struct record *record, uint64_t now)
{
    return (struct beat){
        .due = get64(&record->due),
        .period_ns = record_period(record),
        .now = now,
        .end = now,
        .repeat = (enum bel_repeat)what_repeat(get32(&record->what)),
    };
}

struct bel_event bel__ring_describe(const struct bel_runtime *runtime, struct record *record,
                                    uint64_t now)
{
    const struct pool *pool = &runtime->pool;
    uint32_t what = get32(&record->what), generation = word_generation(word_load(&record->word));
    struct beat beat = beat_of(record, now);
    return (struct bel_event){
        .timer = pool_handle(pool, record_index(pool, record), generation),
        .user = get64(&record->user),
        .due = {beat.due},
        .now = {now},
        .missed = beat.repeat == BEL_ONCE ? 0 : bel__repeat_missed(&beat),
        .kind = what_kind(what),
        .priority = what_priority(what),
    };
}

void bel__ring_tell(struct bel_runtime *runtime, uint64_t before)
{
    if ((before & WORD_WAITED) == 0) return;
    bel__runtime_lock(runtime);
    (void)pthread_cond_broadcast(&runtime->rung);
    bel__runtime_unlock(runtime);
}

/* Returns the wall time of the next ring by the current clocks, rounded up. */
static int64_t wall_of(const struct bel_runtime *runtime, uint64_t due)
{
    uint64_t now = runtime_now(runtime), ahead = due > now ? due - now : 0;
    struct bel_wall wall = bel_clock_wall(runtime->clock);
    int err = bel_wall_add(wall, ahead / NS_PER_MS + (ahead % NS_PER_MS != 0), &wall);
    return err ? INT64_MAX : wall.ms;
}

static void set_next(struct bel_worker *worker, struct record *record, uint64_t due)
{
    set64(&record->due, due);
    if (record_wall(record) == WALL_NONE) return;
    int64_t wall_ms = wall_of(worker->runtime, due);
    atomic_store_explicit(&record->wall_ms, wall_ms, memory_order_relaxed);
}

/* Ends a ring. Returns true if the timer has ended; otherwise it is in its wheel again, to come up
 * at `at`. */
static bool end_ring(struct bel_worker *worker, struct record *record, uint64_t at,
                     uint64_t *out_before)
{
    struct bel_runtime *runtime = worker->runtime;
    bool is_over, repeats = what_repeat(get32(&record->what)) != BEL_ONCE;
    bool is_shared = repeats && record_is_shared(record);
    if (is_shared) bel__shared_lock(runtime, worker->visitor); /* another thread may end it then */
    *out_before = word_fired(&record->word, &is_over);
    if (!is_over && !is_shared) bel__worker_arm(worker, record, at);
    if (!is_over && is_shared && bel__shared_place(runtime, record, at) != 0 &&
        word_hand_over(&record->word, word_load(&record->word))) {
        bel__shared_settle(runtime, worker->visitor, record);
    }
    if (is_shared) bel__shared_unlock(runtime);
    bel__ring_tell(runtime, *out_before);
    return is_over;
}

/* Ends a ring and counts it. Returns true if the timer has ended. */
static bool finish(struct bel_worker *worker, struct record *record, uint64_t now)
{
    uint64_t before;
    struct beat beat = beat_of(record, now);
    if (beat.repeat != BEL_ONCE) {
        if (beat.repeat == BEL_DELAY) beat.end = runtime_now(worker->runtime);
        set_next(worker, record, bel__repeat_next(&beat));
    }
    bool is_over = end_ring(worker, record, get64(&record->due), &before);
    if (is_over && (before & WORD_STOP) == 0) count(worker->visitor, COUNT_ENDED);
    return is_over;
}

static void call(struct bel_worker *worker, struct record *record, const struct kind *kind,
                 uint64_t now)
{
    struct bel_event event = bel__ring_describe(worker->runtime, record, now);
    struct visitor *visitor = worker->visitor;
    /* Acquire pairs with the release in bel_runtime_on. */
    bel_ring_fn *ring = atomic_load_explicit(&kind->ring, memory_order_acquire);
    visitor->ringing = record;
    visitor_end(visitor);
    ring(kind->context, &event);
    if (runtime_is_forked(worker->runtime)) return; /* the timer belongs to the parent */
    visitor_begin(visitor);
    visitor->ringing = NULL;
    if (finish(worker, record, now)) worker_give(worker, record);
}

/* Puts an event into an inbox. Returns false if memory has run out. */
static bool deliver(struct bel_worker *worker, struct record *record, struct bel_inbox *inbox,
                    uint64_t now)
{
    struct bel_event event = bel__ring_describe(worker->runtime, record, now);
    struct magazine *magazine = &worker->visitor->magazine;
    if ((word_load(&record->word) & WORD_REPEATS) == 0) {
        bool is_over = finish(worker, record, now);
        assert(is_over);
        (void)is_over;
        bel__inbox_put(inbox, record, &event);
        return true;
    }
    if (magazine->count == 0 && bel__pool_refill(pool_of(worker), magazine) != 0) return false;
    struct record *carrier = record_at(pool_of(worker), magazine->indexes[--magazine->count]);
    bel__inbox_put(inbox, carrier, &event);
    if (finish(worker, record, now)) worker_give(worker, record);
    return true;
}

/* Puts a timer back that could not ring. It comes up again 1 ms later, so that it does not keep the
 * worker from other timers until memory is available. */
static void put_back(struct bel_worker *worker, struct record *record, uint64_t now)
{
    uint64_t before;
    if (end_ring(worker, record, now + NS_PER_MS, &before)) worker_give(worker, record);
}

/* Rings a timer that is FIRING. Returns false if memory has run out. */
static bool ring(struct bel_worker *worker, struct record *record, uint64_t now)
{
    uint64_t due = get64(&record->due);
    const struct kind *kind = &worker->runtime->kinds[what_kind(get32(&record->what))];
    struct bel_inbox *inbox = atomic_load_explicit(&kind->inbox, memory_order_acquire);
    if (inbox == NULL) {
        bel__histogram_record(&worker->lateness, now - due);
        count(worker->visitor, COUNT_FIRED);
        call(worker, record, kind, now);
        return true;
    }
    if (!deliver(worker, record, inbox, now)) {
        put_back(worker, record, now);
        return false;
    }
    bel__histogram_record(&worker->lateness, now - due);
    count(worker->visitor, COUNT_FIRED);
    return true;
}

bool bel__ring(struct bel_worker *worker, const struct bel_wheel_timer *popped, uint64_t now)
{
    struct record *record = record_at(pool_of(worker), (uint32_t)popped->user);
    uint64_t due = get64(&record->due);
    record->entry = 0;
    if (due > now) { /* moved, but memory ran out before the wheel was told */
        uint64_t seen = word_load(&record->word);
        if (word_state(seen) == WORD_PENDING && (seen & WORD_QUEUED) == 0) {
            bel__worker_arm(worker, record, due);
            return false;
        }
    }
    if (!word_fire(&record->word)) {
        count(worker->visitor, COUNT_STALE);
        return false;
    }
    return ring(worker, record, now);
}

enum bel_shared_pop bel__ring_shared(struct bel_worker *worker, uint64_t now)
{
    struct record *record;
    uint64_t own = BEL_NEVER;
    if (bel_wheel_next(worker->wheel) <= now) (void)bel_wheel_next_exact(worker->wheel, &own);
    if (own <= get64(&worker->runtime->shared.next)) return BEL__SHARED_NONE;
    enum bel_shared_pop popped = bel__shared_pop(worker, now, own, &record);
    if (popped == BEL__SHARED_STALE) count(worker->visitor, COUNT_STALE);
    if (popped == BEL__SHARED_RINGS && !ring(worker, record, now)) return BEL__SHARED_STALE;
    return popped;
}

void bel__ring_abandon(struct bel_worker *worker)
{
    struct record *record = worker->visitor->ringing;
    worker->visitor->ringing = NULL;
    if (finish(worker, record, runtime_now(worker->runtime))) worker_give(worker, record);
}
