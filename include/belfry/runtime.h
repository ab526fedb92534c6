/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_H
#define BEL_RUNTIME_H

/*
 * runtime - timers on many threads.
 *
 *     thread ---schedule---> worker: inbox --> wheel --> ring --> callback on the worker
 *     thread ---cancel-----> timer (one compare-and-swap)    '--> inbox of the program
 *
 * A thread becomes a worker by entering. Each worker has a wheel of its own; what it
 * schedules for itself and what it polls touches only its own memory. Any thread may
 * schedule on a worker, and cancel or move any timer by its handle, and what it is told
 * is what happened: if bel_runtime_cancel() says true, the timer does not ring.
 *
 *     static void ring(void *context, const struct bel_event *event) { ... }
 *
 *     bel_runtime_create(NULL, &runtime);
 *     bel_runtime_on(runtime, KIND_IDLE, ring, NULL);
 *     bel_runtime_start(runtime, 2);
 *     bel_runtime_schedule(runtime, &(struct bel_schedule){.due = due, .kind = KIND_IDLE,
 *         .priority = BEL_PRIORITY_DEFAULT, .user = conn_id}, &timer);
 *
 * What rings is named by a kind, a small number, and not by an address, so that pending
 * timers can be written down and read again by another process.
 *
 * No timer is lost: those of a worker that leaves, or whose thread ends, are adopted by
 * the others, and wait for the next one if there is none. Order is exact within one
 * worker: (due, priority, order of scheduling).
 *
 * Threads: any function may be called on any thread unless it says otherwise. After
 * fork() the child has none of the threads: there the runtime answers BEL_ECLOSED and
 * can be destroyed. In a signal handler only bel_runtime_schedule() and
 * bel_runtime_cancel() are allowed, on a thread that has scheduled before or is a worker;
 * the former says BEL_EBUSY if it interrupted this library. Times are bel_clock_boot()'s.
 */

#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/wheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_KINDS_MAX = 1024,  /* kinds are 0 .. 1023 */
    BEL_WORKERS_MAX = 256, /* at once */
};

typedef uint16_t bel_kind_t;

struct bel_runtime; /* opaque: it owns memory and threads */
struct bel_worker;  /* opaque: a thread's place in a runtime */
struct bel_inbox;   /* opaque: where a program's own loop finds what rang */

/* What a timer does after it has rung. */
enum bel_repeat {
    BEL_ONCE,       /* nothing */
    BEL_RATE_SKIP,  /* due + n * period, the next that is still to come */
    BEL_RATE_BURST, /* due + period, even if that has passed: rings for each one missed */
    BEL_RATE_DELAY, /* due + period; when that was missed, the beat starts anew from now */
    BEL_DELAY,      /* the end of the callback + period */
};

struct bel_schedule {
    struct bel_boot due;       /* the past is due at once */
    uint64_t user;             /* the caller's word */
    uint64_t period_ns;        /* for what repeats: at least 1 */
    struct bel_worker *worker; /* NULL: the caller if it is one, else any */
    int64_t wall_ms;           /* see bel_runtime_schedule_wall() */
    bel_kind_t kind;
    uint8_t priority; /* BEL_PRIORITY_DEFAULT; or 0, first, to 255, last */
    uint8_t repeat;   /* enum bel_repeat */
};

/* What rang. */
struct bel_event {
    bel_timer_t timer;
    uint64_t user;
    struct bel_boot due;
    struct bel_boot now; /* when it was taken out; before due only by BEL_SHUTDOWN_FIRE */
    uint64_t missed;     /* beats left out since the one before, BEL_RATE_SKIP and _DELAY */
    bel_kind_t kind;
    uint8_t priority;
};

typedef void bel_ring_fn(void *context, const struct bel_event *event);

enum bel_metronome {
    BEL_METRONOME_THREAD, /* a thread, started when it is first needed */
    BEL_METRONOME_MANUAL, /* none: call bel_runtime_tick() */
};

struct bel_runtime_options {
    const struct bel_clock *clock; /* NULL: the system's; another needs BEL_METRONOME_MANUAL */
    /* From so many timers on schedule may fail with BEL_EFULL, and 2^16 later it does: each
     * thread has some in hand. Events that wait in an inbox count, too. 0: 2^27. */
    uint32_t timers_max;
    uint32_t resolution_us; /* wakes a worker at most once in this; 0: 50 */
    enum bel_metronome metronome;
};

/* Makes a runtime without workers; NULL options are the defaults. Returns 0 and sets
 * `*out`, or returns BEL_ENOMEM, BEL_EIO or BEL_EINVAL and leaves it alone. */
BEL_CHECKED int bel_runtime_create(const struct bel_runtime_options *options,
                                   struct bel_runtime **out);

/* Stops the threads that bel_runtime_start() started, forgets all timers and frees the
 * runtime; NULL is allowed. No other thread may be using it or be one of its workers. */
void bel_runtime_destroy(struct bel_runtime *runtime);

/* Says what happens when timers of a kind ring: a call on the worker. Returns 0, or
 * BEL_EINVAL if the kind is too large or has been given a meaning before. */
BEL_CHECKED int bel_runtime_on(struct bel_runtime *runtime, bel_kind_t kind, bel_ring_fn *ring,
                               void *context);

/* The same: an event in an inbox of this runtime. */
BEL_CHECKED int bel_runtime_on_inbox(struct bel_runtime *runtime, bel_kind_t kind,
                                     struct bel_inbox *inbox);

/*
 * Schedules. Returns 0 and sets `*out`; or, and nothing has changed: BEL_ERANGE if `due`
 * is BEL_NEVER, BEL_EINVAL for a kind without a meaning or a repeat without a period,
 * BEL_EFULL, BEL_ENOMEM, BEL_EBUSY (see above), BEL_ECLOSED.
 */
BEL_CHECKED int bel_runtime_schedule(struct bel_runtime *runtime,
                                     const struct bel_schedule *schedule, bel_timer_t *out);

/* The same, `delay_ns` from now instead of at `schedule->due`: never early, and
 * BEL_ERANGE if the delay is too large to represent. */
BEL_CHECKED int bel_runtime_schedule_after(struct bel_runtime *runtime, uint64_t delay_ns,
                                           const struct bel_schedule *schedule, bel_timer_t *out);

/* The same, for an instant of the wall clock, `schedule->wall_ms`. A snapshot keeps that
 * instead of the time that remains. It is turned into `due` here, once: setting the clock
 * later does not move it. If it repeats, each ring sets it to the wall time of the next. */
BEL_CHECKED int bel_runtime_schedule_wall(struct bel_runtime *runtime,
                                          const struct bel_schedule *schedule, bel_timer_t *out);

/* Seconds as a delay: NaN and what is not positive is 0. Returns 0, or BEL_ERANGE for
 * what is too large to represent, infinity included, and leaves `*out` alone. */
BEL_CHECKED int bel_delay_from_seconds(double seconds, uint64_t *out_ns);

/* Ends a pending timer: true if it was this call that did so, and then it does not ring,
 * or ring again. False if it has rung or ended before, or rings right now for the last
 * time, or is not this runtime's. It never waits, except at most a millisecond for a
 * worker that has more than its share of cancelled timers to clear away. */
bool bel_runtime_cancel(struct bel_runtime *runtime, bel_timer_t timer);

/* The same, and waits until its callback is not running. Returns 0 if this call ended
 * it, BEL_ESTALE if it was not pending, BEL_EBUSY from inside its own callback. Two
 * callbacks that wait for each other wait for ever. */
BEL_CHECKED int bel_runtime_cancel_sync(struct bel_runtime *runtime, bel_timer_t timer);

/* Moves a pending timer to `due`, earlier or later; its handle stays. Returns 0; or
 * BEL_ESTALE if it is not pending, BEL_EBUSY if it rings right now and will again,
 * BEL_ERANGE, BEL_ECLOSED. If two move a timer at the same moment, one comes last. */
BEL_CHECKED int bel_runtime_reschedule(struct bel_runtime *runtime, bel_timer_t timer,
                                       struct bel_boot due);

/* Whether a timer is pending. */
bool bel_runtime_is_pending(const struct bel_runtime *runtime, bel_timer_t timer);

/*
 * Workers.
 */

/* Starts threads that are workers until shutdown, and waits until they are. Returns 0, or
 * BEL_EFULL, BEL_ENOMEM or BEL_ECLOSED and none was started. */
BEL_CHECKED int bel_runtime_start(struct bel_runtime *runtime, unsigned count);

/* Makes the calling thread a worker. Returns 0 and sets `*out`; or BEL_EBUSY if it is one
 * already, BEL_EFULL, BEL_ENOMEM, BEL_ECLOSED. A thread that ends leaves by itself. */
BEL_CHECKED int bel_worker_enter(struct bel_runtime *runtime, struct bel_worker **out);

/* The calling thread is a worker no longer and its timers go to the others. Returns 0, or
 * BEL_EBUSY from inside a callback. */
BEL_CHECKED int bel_worker_leave(struct bel_worker *worker);

/* Worker's thread only, and not from inside a callback: takes in what others sent and
 * rings up to `rings_max` timers that are due. Returns how many. It does a bounded amount
 * of other work; when it has not come to an end, bel_worker_next() is not after now. */
size_t bel_worker_poll(struct bel_worker *worker, size_t rings_max);

/* Worker's thread only: when to poll again if nothing is sent: BEL_NEVER or a time. */
struct bel_boot bel_worker_next(const struct bel_worker *worker);

/* Worker's thread only: sleeps until there is something to poll for, or until `until`.
 * False if the runtime is being shut down: then leave. */
bool bel_worker_wait(struct bel_worker *worker, struct bel_boot until);

/* Polls and waits until shutdown, then leaves. */
void bel_worker_run(struct bel_worker *worker);

/* A descriptor that is readable when there is something to poll for, for a program with
 * a loop of its own: wait for it, then poll. -1 if there is none to be had. From the
 * first call on the metronome watches over this worker. */
int bel_worker_fd(struct bel_worker *worker);

/* With BEL_METRONOME_MANUAL: wakes workers with something due and publishes the time, as the
 * metronome does. On a clock of the program's that is what wakes workers that sleep: call it
 * when that has moved. Returns when to call again if nothing is scheduled meanwhile. */
struct bel_boot bel_runtime_tick(struct bel_runtime *runtime);

/*
 * Inboxes: what rang, in the order in which it rang.
 */

/* Makes an inbox, which lives as long as the runtime. Returns 0, BEL_ENOMEM or BEL_EIO. */
BEL_CHECKED int bel_inbox_create(struct bel_runtime *runtime, struct bel_inbox **out);

/* One thread at a time: takes up to `max` events and returns how many. */
size_t bel_inbox_take(struct bel_inbox *inbox, struct bel_event *out, size_t max);

/* Readable while there are events. It is the inbox's: do not read from or close it. */
int bel_inbox_fd(const struct bel_inbox *inbox);

/*
 * Shutdown, snapshot, statistics.
 */

enum bel_shutdown {
    BEL_SHUTDOWN_KEEP,    /* timers stay pending, for a snapshot or the next worker */
    BEL_SHUTDOWN_FIRE,    /* all pending timers ring now, in order, on this thread */
    BEL_SHUTDOWN_MIGRATE, /* they go to another runtime, under new handles */
    BEL_SHUTDOWN_DISCARD, /* they end */
};

/* Waits until every worker has left, and then deals with what is pending. bel_worker_run()
 * leaves on its own; a loop of the program's is told by bel_worker_wait(), which with an
 * `until` of 0 does not sleep, and its descriptor becomes readable for that. The runtime
 * can be used again. Returns 0; BEL_EINVAL for a migration without a destination (or to
 * itself); BEL_EBUSY from inside a callback; BEL_ENOMEM, and all stay pending; or what
 * scheduling in `into` failed with, and the rest stays pending. */
BEL_CHECKED int bel_runtime_shutdown(struct bel_runtime *runtime, enum bel_shutdown how,
                                     struct bel_runtime *into);

/* Writes down every pending timer, sorted, without stopping anyone. Each is as it was at
 * some moment of the call. Returns 0 and `*out_bytes` of memory at `*out`, which the
 * caller frees with free(); or BEL_ENOMEM. */
BEL_CHECKED int bel_runtime_snapshot(const struct bel_runtime *runtime, void **out,
                                     size_t *out_bytes);

/* Schedules what a snapshot holds, on any machine: delays with the time that remained,
 * instants for their wall time. Returns 0; or, and nothing is scheduled: BEL_ECORRUPT if
 * it is not a whole snapshot, BEL_EINVAL for a kind without a meaning or a newer version;
 * or BEL_EFULL or BEL_ENOMEM, and what was scheduled so far and has not rung is cancelled. */
BEL_CHECKED int bel_runtime_restore(struct bel_runtime *runtime, const void *snapshot,
                                    size_t bytes);

struct bel_runtime_stats {
    uint64_t pending; /* scheduled - ended - cancelled; of a worker, as of its last poll */
    uint64_t scheduled;
    uint64_t fired;     /* rings; those of timers that repeat included */
    uint64_t ended;     /* timers that rang for the last time */
    uint64_t cancelled; /* or discarded, or migrated to another runtime */
    uint64_t rescheduled;
    uint64_t stale;         /* entries that came up after their timer had ended or moved */
    uint64_t adopted;       /* timers that came from a worker that had left */
    uint64_t garbage;       /* cancelled timers whose memory is still to be given back */
    uint64_t stale_entries; /* in the wheels, as of their workers' last polls */
    uint64_t inbox;         /* timers sent to workers and not taken in yet */
    uint64_t unowned;       /* timers that wait for a worker to be there */
    uint64_t workers;
    uint64_t lateness_p50_ns, lateness_p99_ns, lateness_max_ns; /* now - due at the ring */
    uint64_t metronome_turns;
    uint64_t metronome_wakes;        /* of workers */
    uint64_t metronome_missed;       /* turns that came more than 1 ms late */
    uint64_t metronome_drift_max_ns; /* the latest of them */
    uint64_t self_helped;            /* polls that found the published time stale */
};

/* Any time, without stopping anyone: each number is whole, and pending never negative.
 * With NULL for the worker: of all, those that have left included. */
void bel_runtime_stats(struct bel_runtime *runtime, const struct bel_worker *worker,
                       struct bel_runtime_stats *out);

#pragma GCC visibility pop
#endif
