/* SPDX-License-Identifier: MIT */

/*
 * The loop of a worker:
 *
 *     poll:  receive sent timers --> pop due timers --> ring --> tell the metronome
 *     wait:  park the inbox, sleep until the next due or until woken
 *
 * Reading the clock is most of the cost of a poll that finds nothing. So a busy worker uses the
 * time that the metronome publishes, which changes when something is due, and reads the clock
 * itself after it has changed something, or after POLLS_PER_LOOK polls: a stalled metronome delays
 * it by no more than that.
 *
 * A timer that the worker cancels ends at once, but leaves the wheel a little later: a swap on its
 * word lets no other access of memory begin, so the cache miss of the wheel would follow that of
 * the word. The last few wait in a ring, prefetched. It is emptied before anything is popped.
 *
 * The memory of a worker that has left, and its descriptors, are kept for the next one: a thread
 * that was about to wake the old one may still do so.
 */
#include "runtime/worker.h"

#include <stdlib.h>

static void set_watched(struct bel_worker *worker, bool is_watched)
{
    /* Relaxed: a metronome that sees it late wakes the worker at its next turn. */
    atomic_store_explicit(&worker->is_watched, is_watched, memory_order_relaxed);
}

/* Notes whether the metronome serves a worker. */
static void set_served(struct bel_worker *worker, bool is_served)
{
    if (worker->is_served == is_served) return;
    struct visitor *visitor = worker->visitor;
    bool is_busy = visitor->busy != 0;
    if (!is_busy) visitor_begin(visitor);
    bel__shared_set_served(worker, is_served);
    if (!is_busy) visitor_end(visitor);
}

/* A clock other than the system clock wakes no thread: bel_runtime_tick() must be called. */
static bool has_real_clock(const struct bel_worker *worker)
{
    return worker->runtime->clock == bel_clock_system();
}

/* Allocates the memory of a new worker. */
static struct bel_worker *make_seat(struct bel_runtime *runtime)
{
    struct bel_worker *worker = aligned_alloc(CACHE_LINE, sizeof *worker);
    if (worker == NULL) return NULL;
    *worker = (struct bel_worker){.runtime = runtime};
    bel__queue_init(&worker->inbox);
    bel__queue_init(&worker->returns);
    (void)bel__queue_close(&worker->inbox);
    (void)bel__queue_close(&worker->returns);
    bool is_made = pthread_mutex_init(&worker->backlog.mutex, NULL) == 0;
    if (is_made && bel__alarm_init(&worker->alarm) == 0) return worker;
    free(worker);
    return NULL;
}

/* Finds a free seat in the roster. The mutex is held. */
static int find_seat(struct bel_runtime *runtime, struct bel_worker **out)
{
    struct roster *roster = &runtime->roster;
    struct bel_worker *worker = NULL;
    uint32_t index = 0;
    for (; index < BEL_WORKERS_MAX; index++) {
        /* Relaxed: written with the mutex held. */
        worker = atomic_load_explicit(&roster->seats[index], memory_order_relaxed);
        if (worker == NULL || !worker->is_taken) break;
    }
    if (index == BEL_WORKERS_MAX) return BEL_EFULL;
    if (worker == NULL) {
        worker = make_seat(runtime);
        if (worker == NULL) return BEL_ENOMEM;
        worker->index = index;
        /* Release pairs with the acquires of threads that send to it. */
        atomic_store_explicit(&roster->seats[index], worker, memory_order_release);
        if (index >= get32(&roster->seats_used)) {
            /* Sequentially consistent, like the store to `live` below: see metronome.c. */
            atomic_store_explicit(&roster->seats_used, index + 1, memory_order_seq_cst);
        }
    }
    *out = worker;
    return 0;
}

/* Incarnations wrap around, but skip 0, which would make an id equal to OWNER_NONE. */
static uint32_t next_incarnation(struct roster *roster)
{
    roster->incarnations = (roster->incarnations + 1) & (UINT32_MAX >> INDEX_BITS);
    if (roster->incarnations == 0) roster->incarnations = 1;
    return roster->incarnations;
}

/* Assigns a seat to a thread. The mutex is held. */
static void take_seat(struct bel_worker *worker, struct visitor *visitor, struct bel_wheel *wheel)
{
    struct roster *roster = &worker->runtime->roster;
    assert(visitor->cancelled.count == visitor->cancelled.removed);
    worker->is_taken = true;
    worker->visitor = visitor;
    worker->wheel = wheel;
    set_watched(worker, !has_real_clock(worker));
    worker->must_look = true;
    worker->has_waited = false;
    worker->is_waiting = false;
    worker->has_parked = false;
    worker->wake_known = BEL_NEVER;
    atomic_store_explicit(&worker->is_stuck, false, memory_order_relaxed);
    bel__histogram_init(&worker->lateness);
    bel__alarm_clear(&worker->alarm);
    set64(&worker->live, 0);
    set64(&worker->next, BEL_NEVER);
    set64(&worker->polled_at, runtime_now(worker->runtime));
    set64(&worker->now, runtime_now(worker->runtime));
    atomic_store_explicit(&worker->wake_at, BEL_NEVER, memory_order_relaxed);
    set32(&worker->id, next_incarnation(roster) << INDEX_BITS | worker->index);
    bel__queue_open(&worker->inbox);
    bel__queue_open(&worker->returns);
    visitor->worker = worker;
    visitor->end_worker = bel__worker_end;
    atomic_store_explicit(&roster->live[worker->index], worker, memory_order_seq_cst);
    set32(&roster->count, get32(&roster->count) + 1);
}

int bel_worker_enter(struct bel_runtime *runtime, struct bel_worker **out)
{
    if (runtime_is_forked(runtime)) return BEL_ECLOSED;
    struct visitor *visitor;
    struct bel_worker *worker = NULL;
    struct bel_wheel *wheel;
    int err = visitor_get(runtime, &visitor);
    if (err) return err;
    if (visitor->worker != NULL) return BEL_EBUSY;
    struct bel_wheel_options options = {.now = runtime_now(runtime),
                                        .stale_percent = STALE_PERCENT};
    err = bel_wheel_create(&options, &wheel);
    if (err) return err;

    bel__runtime_lock(runtime);
    err = atomic_load_explicit(&runtime->roster.stopping, memory_order_relaxed) ? BEL_ECLOSED : 0;
    if (err == 0) err = bel__metronome_start(runtime);
    if (err == 0) err = find_seat(runtime, &worker);
    if (err == 0) {
        take_seat(worker, visitor, wheel);
        *out = worker;
    }
    bel__runtime_unlock(runtime);
    if (err) bel_wheel_destroy(wheel);
    if (err == 0 && worker_is_watched(worker)) set_served(worker, true);
    return err;
}

/* Clears the pointer first: a child that another thread forks meanwhile destroys the wheels that it
 * finds, and must not find this one half destroyed. */
static void destroy_wheel(struct bel_worker *worker)
{
    struct bel_wheel *wheel = worker->wheel;
    worker->wheel = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    bel_wheel_destroy(wheel);
}

void bel__worker_end(struct bel_worker *worker)
{
    struct bel_runtime *runtime = worker->runtime;
    struct roster *roster = &runtime->roster;
    struct visitor *visitor = worker->visitor;
    visitor_begin(visitor);
    if (visitor->ringing != NULL) bel__ring_abandon(worker);
    bel__runtime_lock(runtime);
    atomic_store_explicit(&roster->live[worker->index], NULL, memory_order_relaxed);
    atomic_store_explicit(&worker->wake_at, BEL_NEVER, memory_order_relaxed);
    bel__runtime_unlock(runtime);

    if (worker->is_listed) bel__shared_wake(worker); /* the thread was ended in its sleep */
    set_served(worker, false);
    bel__intake_hand_over(worker);
    destroy_wheel(worker);
    set64(&worker->live, 0);

    bel__runtime_lock(runtime);
    bel__histogram_merge(runtime->lateness, &worker->lateness);
    bel__histogram_init(&worker->lateness);
    visitor->worker = NULL;
    worker->visitor = NULL; /* it is freed with its thread, but statistics may still be read */
    worker->is_polling = false;
    worker->is_taken = false; /* only now: until here the thread was still cleaning up */
    set32(&roster->count, get32(&roster->count) - 1);
    (void)pthread_cond_broadcast(&roster->changed);
    bel__runtime_unlock(runtime);
    visitor_end(visitor); /* the seat and the runtime may belong to others by now */
}

int bel_worker_leave(struct bel_worker *worker)
{
    if (runtime_is_forked(worker->runtime)) return BEL_ECLOSED;
    if (worker->is_polling) return BEL_EBUSY;
    bel__worker_end(worker);
    return 0;
}

void bel__worker_remove_cancelled(const struct bel_worker *worker)
{
    struct cancelled *cancelled = &worker->visitor->cancelled;
    for (; cancelled->removed != cancelled->count; cancelled->removed++) {
        bel_timer_t entry = cancelled->entries[cancelled->removed % CANCELLED_RING];
        bool was_there = bel_wheel_cancel(worker->wheel, entry);
        assert(was_there);
        (void)was_there;
    }
}

void bel__worker_publish(struct bel_worker *worker)
{
    struct bel_wheel_stats stats;
    if (worker->is_waiting) { /* in a signal handler: the sleep must become shorter */
        bel__alarm_ring(&worker->alarm);
        return;
    }
    worker_remove_cancelled(worker);
    bel_wheel_stats(worker->wheel, &stats);
    set64(&worker->live, stats.armed);
    set64(&worker->stale, stats.entries > stats.armed ? stats.entries - stats.armed : 0);
    set64(&worker->next, bel_wheel_next(worker->wheel));
    /* The worker will probably wait again, and then wakes itself. */
    if (worker->has_waited && !worker_is_watched(worker)) {
        worker->has_waited = false;
        worker->wake_known = 0;
        return;
    }
    set_served(worker, true);
    uint64_t next = bel_wheel_next(worker->wheel);
    /* The metronome may have served it too early for this poll to see. */
    if (next == worker->wake_known && get64(&worker->wake_at) == next) return;
    worker->wake_known = next;
    bel__metronome_notify(worker->runtime, &worker->wake_at, next);
}

/* Returns before when no timer of the shared wheel is due. */
static uint64_t shared_next(const struct bel_worker *worker)
{
    return get64(&worker->runtime->shared.next);
}

/* Returns whether nothing was sent and nothing can be due at the published time. */
static bool is_quiet(struct bel_worker *worker)
{
    if (worker->must_look || !bel__intake_is_empty(worker)) return false;
    if (worker->runtime->mode != BEL_METRONOME_THREAD) return false;
    if (worker->wake_known == 0) return false; /* the metronome would not publish the time */
    uint64_t now = get64(&worker->now);
    if (now >= bel_wheel_next(worker->wheel)) return false;
    if (now >= shared_next(worker)) return false;
    if (now != worker->now_seen) worker->unchanged = 0;
    worker->now_seen = now;
    if (++worker->unchanged < POLLS_PER_LOOK) return true;
    count(worker->visitor, COUNT_HELPED);
    return false;
}

/* For the program's own loop: makes the descriptor readable if another poll is needed. */
static void update_descriptor(struct bel_worker *worker, uint64_t now)
{
    bool more = !bel__intake_is_empty(worker) || bel_wheel_next(worker->wheel) <= now ||
                shared_next(worker) <= now;
    worker->has_parked = true;
    if (more || !bel__queue_park(&worker->inbox)) bel__alarm_ring(&worker->alarm);
}

/* Rings up to `rings_max` due timers, within a bounded amount of work. */
static size_t ring_due(struct bel_worker *worker, uint64_t now, size_t rings_max)
{
    struct bel_wheel_timer popped;
    size_t rings = 0, stale = 0;
    unsigned tries = 0;
    while (rings < rings_max && stale < INTAKE_MAX && !runtime_is_forked(worker->runtime)) {
        worker_remove_cancelled(worker);
        if (shared_next(worker) <= now) {
            enum bel_shared_pop popped_shared = bel__ring_shared(worker, now);
            rings += popped_shared == BEL__SHARED_RINGS;
            stale += popped_shared == BEL__SHARED_STALE;
            if (popped_shared != BEL__SHARED_NONE) continue;
        }
        if (!bel_wheel_pop(worker->wheel, now, &popped)) {
            /* None is due, or the wheel has reached the work limit of one call. */
            if (bel_wheel_next(worker->wheel) > now || ++tries == TRIES_MAX) break;
        } else if (bel__ring(worker, &popped, now)) {
            rings++;
        } else {
            stale++;
        }
    }
    return rings;
}

size_t bel_worker_poll(struct bel_worker *worker, size_t rings_max)
{
    struct visitor *visitor = worker->visitor;
    if (worker->is_polling || runtime_is_forked(worker->runtime)) return 0;
    visitor_begin(visitor);
    if (!worker_is_watched(worker) && is_quiet(worker)) {
        visitor_end(visitor);
        return 0;
    }
    worker->is_polling = true;
    if (worker_is_watched(worker)) bel__alarm_clear(&worker->alarm);
    bel__intake(worker);
    uint64_t now = runtime_now(worker->runtime);
    set64(&worker->now, now);
    set64(&worker->polled_at, now);
    set64(&worker->next, 0);
    worker->unchanged = 0;
    worker->must_look = false; /* until a callback schedules something */
    size_t rings = ring_due(worker, now, rings_max);
    worker->is_polling = false;
    if (runtime_is_forked(worker->runtime)) return rings; /* a callback forked: this is the child */
    bel__worker_publish(worker);
    if (worker_is_watched(worker)) update_descriptor(worker, now);
    visitor_end(visitor);
    return rings;
}

/* Returns when to poll for the worker's own timers. */
static uint64_t next_of(const struct bel_worker *worker)
{
    worker_remove_cancelled(worker);
    return bel__intake_is_empty(worker) ? bel_wheel_next(worker->wheel) : 0;
}

struct bel_boot bel_worker_next(const struct bel_worker *worker)
{
    if (runtime_is_forked(worker->runtime)) return (struct bel_boot){BEL_NEVER};
    visitor_begin(worker->visitor);
    uint64_t next = next_of(worker), shared = shared_next(worker);
    visitor_end(worker->visitor);
    return (struct bel_boot){shared < next ? shared : next};
}

static bool is_stopping(const struct bel_worker *worker)
{
    /* Acquire pairs with the release in bel_runtime_shutdown. */
    return atomic_load_explicit(&worker->runtime->roster.stopping, memory_order_acquire);
}

/* Decides whether to sleep, and until when. While asleep, the worker wakes itself unless it is
 * watched; a timer that a signal handler on this thread schedules is earlier than wake_known and
 * wakes it too. */
static bool prepare_sleep(struct bel_worker *worker, uint64_t *until)
{
    uint64_t next = next_of(worker);
    if (next < *until) *until = next;
    uint64_t now = runtime_now(worker->runtime);
    if (*until <= now || shared_next(worker) <= now || is_stopping(worker)) return false;
    worker->has_parked = true;
    if (!bel__queue_park(&worker->inbox)) return false;
    if (!has_real_clock(worker)) {
        bel__metronome_notify(worker->runtime, &worker->wake_at, *until);
    } else if (worker_is_watched(worker)) {
        bel__alarm_set(&worker->alarm, (struct bel_boot){*until});
    } else {
        if (!bel__shared_sleep(worker, *until)) return false;
        atomic_store_explicit(&worker->wake_at, BEL_NEVER, memory_order_relaxed);
    }
    worker->wake_known = BEL_NEVER;
    worker->has_waited = true;
    worker->is_waiting = true;
    return true;
}

/* Ends a sleep. The alarm was cleared, but the program's own loop may depend on it. */
static void finish_sleep(struct bel_worker *worker, uint64_t wake_known)
{
    bool is_watched = worker_is_watched(worker);
    worker->wake_known = is_watched ? wake_known : 0;
    worker->is_waiting = false;
    if (is_watched) bel__alarm_ring(&worker->alarm);
    if (!worker->is_listed) return;
    visitor_begin(worker->visitor);
    bel__shared_wake(worker);
    visitor_end(worker->visitor);
}

bool bel_worker_wait(struct bel_worker *worker, struct bel_boot until)
{
    struct bel_runtime *runtime = worker->runtime;
    if (worker->is_polling || runtime_is_forked(runtime)) return false;
    worker->must_look = true;
    uint64_t wake_known = worker->wake_known;
    visitor_begin(worker->visitor);
    bool sleeps = prepare_sleep(worker, &until.ns);
    visitor_end(worker->visitor);
    if (sleeps) {
        bel__alarm_sleep(&worker->alarm);
        finish_sleep(worker, wake_known);
    }
    return !is_stopping(worker);
}

void bel_worker_run(struct bel_worker *worker)
{
    do {
        (void)bel_worker_poll(worker, INTAKE_MAX);
    } while (bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
    int err = bel_worker_leave(worker);
    (void)err; /* BEL_EBUSY or BEL_ECLOSED: inside a callback or in a child */
}

int bel_worker_fd(struct bel_worker *worker)
{
    if (runtime_is_forked(worker->runtime)) return -1;
    set_watched(worker, true);
    set_served(worker, true);
    bel__alarm_ring(&worker->alarm); /* the first poll finds out what is due */
    return worker->alarm.event_fd;
}
