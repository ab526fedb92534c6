/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_H
#define BEL_RUNTIME_H

/*
 * runtime - in-memory timers on many threads.
 *
 *     thread ---schedule---> worker: inbox --> wheel --> ring --> callback on the worker
 *     thread ---cancel-----> timer (one compare-and-swap)    '--> inbox of the program
 *
 * A thread becomes a worker by calling bel_worker_enter(). Each worker has its own wheel;
 * scheduling on itself and polling touch only its own memory. Any thread may schedule on any
 * worker, and cancel or move any timer by its handle. The result is final: if bel_runtime_cancel()
 * returns true, the timer does not ring.
 *
 *     static void ring(void *context, const struct bel_event *event) { ... }
 *
 *     bel_runtime_create(NULL, &runtime);
 *     bel_runtime_on(runtime, KIND_IDLE, ring, NULL);
 *     bel_runtime_start(runtime, 2);
 *     bel_runtime_schedule(runtime, &(struct bel_schedule){.due = due, .kind = KIND_IDLE,
 *         .priority = BEL_PRIORITY_DEFAULT, .user = conn_id}, &timer);
 *
 * The action of a timer is named by its kind, a small number, rather than by an address, so that
 * another process can restore pending timers from a snapshot.
 *
 * A timer for any worker is rung by one that polls: a worker that is stuck in a callback delays
 * only its own timers. No timer is lost: timers of a worker that leaves, or whose thread ends,
 * become timers for any worker; without workers they wait for the next one to enter. Order is exact
 * among the timers of a worker, and among those for any worker: (due, priority, order of
 * scheduling). A worker rings both by due.
 *
 * Threads: any function may be called on any thread unless its comment says otherwise. After fork()
 * the child has none of the threads: there the functions return BEL_ECLOSED, and the runtime can
 * only be destroyed. In a signal handler only bel_runtime_schedule() and bel_runtime_cancel() are
 * allowed, on a thread that has scheduled before or is a worker; bel_runtime_schedule() returns
 * BEL_EBUSY if the signal interrupted this library. Times are those of bel_clock_boot().
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/wheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_KINDS_MAX = 1024,  /* kinds are 0 to 1023 */
    BEL_WORKERS_MAX = 256, /* workers at the same time */
};

typedef uint16_t bel_kind_t;

struct bel_runtime; /* opaque: owns memory and threads */
struct bel_worker;  /* opaque: a thread's membership in a runtime */
struct bel_inbox;   /* opaque: a queue of events for the program's own loop */

/* When a timer rings again. */
enum bel_repeat {
    BEL_ONCE,       /* never */
    BEL_RATE_SKIP,  /* at the next due + n * period that is not past */
    BEL_RATE_BURST, /* at due + period, even if past: one ring for each period missed */
    BEL_RATE_DELAY, /* at due + period; if that is past, at now + period */
    BEL_DELAY,      /* one period after the callback has returned */
};

struct bel_schedule {
    struct bel_boot due;       /* a time in the past is due at once */
    uint64_t user;             /* the caller's word, returned in the event */
    uint64_t period_ns;        /* at least 1, if the timer repeats */
    struct bel_worker *worker; /* NULL: the calling worker; for other threads any worker */
    int64_t wall_ms;           /* see bel_runtime_schedule_wall() */
    bel_kind_t kind;
    uint8_t priority; /* 0 (first) to 255 (last); normally BEL_PRIORITY_DEFAULT */
    uint8_t repeat;   /* enum bel_repeat */
};

/* A timer that rang. */
struct bel_event {
    bel_timer_t timer;
    uint64_t user;
    struct bel_boot due;
    struct bel_boot now; /* when it was taken out; before `due` only in BEL_SHUTDOWN_FIRE */
    uint64_t missed;     /* periods left out since the last ring, BEL_RATE_SKIP and _DELAY */
    bel_kind_t kind;
    uint8_t priority;
};

typedef void bel_ring_fn(void *context, const struct bel_event *event);

enum bel_metronome {
    BEL_METRONOME_THREAD, /* a thread, started when it is first needed */
    BEL_METRONOME_MANUAL, /* no thread: the program calls bel_runtime_tick() */
};

struct bel_runtime_options {
    const struct bel_clock *clock; /* NULL: the system clock; another one requires
                                      BEL_METRONOME_MANUAL */
    /* Above this number of timers, scheduling may fail with BEL_EFULL; above it by 2^16, scheduling
     * does fail. The limit is not exact, because each thread holds a reserve. Events that wait in
     * an inbox count too. 0: 2^27. */
    uint32_t timers_max;
    uint32_t resolution_us; /* a worker is woken at most once per interval; 0: 50 */
    enum bel_metronome metronome;
};

/* Creates a runtime without workers; NULL options: the defaults. Returns 0 and sets `*out`; or
 * returns BEL_ENOMEM, BEL_EIO or BEL_EINVAL and leaves `*out` unchanged. */
BEL_CHECKED int bel_runtime_create(const struct bel_runtime_options *options,
                                   struct bel_runtime **out);

/* Stops the threads that bel_runtime_start() started, drops all timers and frees the runtime; NULL
 * is allowed. No other thread may be using the runtime or be one of its workers. */
void bel_runtime_destroy(struct bel_runtime *runtime);

/* Registers a callback for timers of a kind; it is called on the worker. Returns 0, or BEL_EINVAL
 * if the kind is too large or already registered. */
BEL_CHECKED int bel_runtime_on(struct bel_runtime *runtime, bel_kind_t kind, bel_ring_fn *ring,
                               void *context);

/* Registers an inbox of this runtime for timers of a kind, in place of a callback. */
BEL_CHECKED int bel_runtime_on_inbox(struct bel_runtime *runtime, bel_kind_t kind,
                                     struct bel_inbox *inbox);

/*
 * Schedules a timer. Returns 0 and sets `*out`; or, with nothing changed: BEL_ERANGE if `due` is
 * BEL_NEVER, BEL_EINVAL for an unregistered kind or a repeat without a period, BEL_EFULL,
 * BEL_ENOMEM, BEL_EBUSY (in a signal handler, see above), BEL_ECLOSED.
 */
BEL_CHECKED int bel_runtime_schedule(struct bel_runtime *runtime,
                                     const struct bel_schedule *schedule, bel_timer_t *out);

/* Like bel_runtime_schedule(), but due `delay_ns` from now; `schedule->due` is ignored. Never
 * early. Returns BEL_ERANGE if the delay is too large to represent. */
BEL_CHECKED int bel_runtime_schedule_after(struct bel_runtime *runtime, uint64_t delay_ns,
                                           const struct bel_schedule *schedule, bel_timer_t *out);

/* Like bel_runtime_schedule(), but due at `schedule->wall_ms` of the wall clock. The timer follows
 * the clock: when it is set, the metronome moves the timer, which then is due at the same wall
 * time, or at once if that is past. A snapshot stores the wall time instead of the remaining delay.
 * If the timer repeats, each ring sets its wall time to that of the next ring.
 * bel_runtime_reschedule() makes it an ordinary timer. */
BEL_CHECKED int bel_runtime_schedule_wall(struct bel_runtime *runtime,
                                          const struct bel_schedule *schedule, bel_timer_t *out);

/* Converts seconds to a delay in nanoseconds; NaN and negative numbers become 0. Returns 0; or
 * returns BEL_ERANGE, with `*out_ns` unchanged, for infinity and numbers too large to represent. */
BEL_CHECKED int bel_delay_from_seconds(double seconds, uint64_t *out_ns);

/* Cancels a pending timer. Returns true if this call ended the timer: it does not ring (again).
 * Returns false if the timer has rung or ended, is ringing for the last time, or is not of this
 * runtime. Does not block, except for at most a millisecond if a worker has too many cancelled
 * timers to reclaim, and then not again before that worker polls. */
bool bel_runtime_cancel(struct bel_runtime *runtime, bel_timer_t timer);

/* Like bel_runtime_cancel(), and waits until the callback of the timer is not running. Returns 0 if
 * this call ended the timer, BEL_ESTALE if it was not pending, BEL_EBUSY from inside its own
 * callback. Two callbacks that wait for each other deadlock. */
BEL_CHECKED int bel_runtime_cancel_sync(struct bel_runtime *runtime, bel_timer_t timer);

/* Moves a pending timer to `due`, earlier or later; its handle stays valid. Returns 0; or returns
 * BEL_ESTALE if it is not pending, BEL_EBUSY if it repeats and is ringing right now, BEL_ERANGE,
 * BEL_ECLOSED. If two threads move a timer at the same time, one of the two dues wins. */
BEL_CHECKED int bel_runtime_reschedule(struct bel_runtime *runtime, bel_timer_t timer,
                                       struct bel_boot due);

/* Returns whether a timer is pending. */
bool bel_runtime_is_pending(const struct bel_runtime *runtime, bel_timer_t timer);

/* A pending timer. */
struct bel_pending {
    bel_timer_t timer;
    uint64_t user;
    struct bel_boot due;
    uint64_t remaining_ns; /* until it is due; 0: it is due */
    uint64_t period_ns;    /* 0: it rings once */
    struct bel_wall wall;  /* if `is_wall`: see bel_runtime_schedule_wall() */
    bool is_wall;
    bel_kind_t kind;
    uint8_t priority;
    uint8_t repeat; /* enum bel_repeat */
};

/* Finds a pending timer. Returns false and leaves `*out` unchanged if it is not pending. If another
 * thread moves it at the same time, `*out` is from before or after. */
bool bel_runtime_find(const struct bel_runtime *runtime, bel_timer_t timer,
                      struct bel_pending *out);

/*
 * A walk visits every pending timer, in the order (due, priority). Opening one takes time and
 * memory (56 bytes a timer) proportional to the number of timers, and stops no thread: each timer
 * is visited as it was at some moment during that call. Afterwards it may ring, move or end.
 *
 *     err = bel_runtime_walk_open(runtime, &walk);
 *     while (bel_runtime_walk_next(walk, &timer)) show(&timer);
 *     bel_runtime_walk_close(walk);
 */
struct bel_runtime_walk;

/* Returns 0 and sets `*out`, or BEL_ENOMEM or BEL_ECLOSED. Close it before the runtime is
 * destroyed. */
BEL_CHECKED int bel_runtime_walk_open(const struct bel_runtime *runtime,
                                      struct bel_runtime_walk **out);
bool bel_runtime_walk_next(struct bel_runtime_walk *walk, struct bel_pending *out);

/* Frees a walk; NULL is allowed. */
void bel_runtime_walk_close(struct bel_runtime_walk *walk);

/*
 * Workers.
 */

/* Starts `count` threads that are workers until shutdown, and waits until all have entered. Returns
 * 0; or returns BEL_EFULL, BEL_ENOMEM or BEL_ECLOSED, and no thread was started. */
BEL_CHECKED int bel_runtime_start(struct bel_runtime *runtime, unsigned count);

/* Makes the calling thread a worker. Returns 0 and sets `*out`; or returns BEL_EBUSY if it already
 * is one, BEL_EFULL, BEL_ENOMEM, BEL_ECLOSED. A thread that ends leaves automatically. */
BEL_CHECKED int bel_worker_enter(struct bel_runtime *runtime, struct bel_worker **out);

/* Ends the calling thread's membership and passes its timers to the other workers. Returns 0, or
 * BEL_EBUSY from inside a callback. */
BEL_CHECKED int bel_worker_leave(struct bel_worker *worker);

/* Receives timers sent by other threads and rings up to `rings_max` due timers. Returns the number
 * of rings. Worker's thread only, and not from inside a callback. Other work per call is bounded
 * too; if some is left, bel_worker_next() returns a time that is not after now. */
size_t bel_worker_poll(struct bel_worker *worker, size_t rings_max);

/* Returns when to poll again if no timer is sent to this worker: a time or BEL_NEVER. Worker's
 * thread only. */
struct bel_boot bel_worker_next(const struct bel_worker *worker);

/* Sleeps until there is something to poll for, or until `until`. Returns false if the runtime is
 * shutting down: then leave. Worker's thread only. */
bool bel_worker_wait(struct bel_worker *worker, struct bel_boot until);

/* Polls and waits until shutdown, then leaves. */
void bel_worker_run(struct bel_worker *worker);

/* Returns a descriptor that is readable when there is something to poll for, or -1 if none is
 * available. For a program with its own event loop: wait until it is readable, then poll. From the
 * first call on, the metronome wakes this worker. */
int bel_worker_fd(struct bel_worker *worker);

/* Does the work of the metronome in BEL_METRONOME_MANUAL: moves timers for wall times if the wall
 * clock was set, wakes workers that have due timers and publishes the time. With a clock other than
 * the system clock this call is what wakes sleeping workers: call it after moving the clock.
 * Returns when to call again if nothing is scheduled meanwhile. */
struct bel_boot bel_runtime_tick(struct bel_runtime *runtime);

/*
 * Inboxes: queues of events, in the order in which the timers rang.
 */

/* Creates an inbox, which is valid as long as the runtime. Returns 0, BEL_ENOMEM or BEL_EIO. */
BEL_CHECKED int bel_inbox_create(struct bel_runtime *runtime, struct bel_inbox **out);

/* Takes up to `max` events and returns the number taken. One thread at a time. */
size_t bel_inbox_take(struct bel_inbox *inbox, struct bel_event *out, size_t max);

/* Returns a descriptor that is readable while there are events. The inbox owns it: do not read from
 * it or close it. */
int bel_inbox_fd(const struct bel_inbox *inbox);

/*
 * Shutdown, snapshot, statistics.
 */

enum bel_shutdown {
    BEL_SHUTDOWN_KEEP,    /* timers stay pending, for a snapshot or the next worker */
    BEL_SHUTDOWN_FIRE,    /* all pending timers ring now, in order, on the calling thread */
    BEL_SHUTDOWN_MIGRATE, /* timers move to another runtime and get new handles */
    BEL_SHUTDOWN_DISCARD, /* timers end without ringing */
};

/* Waits until every worker has left, then processes the pending timers as `how` says.
 * bel_worker_run() leaves automatically. The program's own loops learn of the shutdown from
 * bel_worker_wait(), which does not sleep if `until` is 0; their descriptors become readable.
 * Afterwards the runtime can be used again. Returns 0; BEL_EINVAL for a migration without a
 * destination or to itself; BEL_EBUSY from inside a callback; BEL_ENOMEM, and all timers stay
 * pending; or the error of scheduling in `into`, and the remaining timers stay pending. */
BEL_CHECKED int bel_runtime_shutdown(struct bel_runtime *runtime, enum bel_shutdown how,
                                     struct bel_runtime *into);

/* Like bel_runtime_shutdown(), but waits for the workers until `deadline` at most. Returns
 * BEL_EBUSY if one has not left by then, because it is stuck in a callback or does not poll. Then
 * the shutdown is called off: no timer has ended, the workers that are left go on, and the others
 * have left. */
BEL_CHECKED int bel_runtime_shutdown_until(struct bel_runtime *runtime, enum bel_shutdown how,
                                           struct bel_runtime *into, struct bel_boot deadline);

/* Serializes every pending timer, sorted, without stopping any thread. Each timer is recorded as it
 * was at some moment during the call. Returns 0 and sets `*out` to `*out_bytes` of memory, which
 * the caller frees with free(); or returns BEL_ENOMEM. */
BEL_CHECKED int bel_runtime_snapshot(const struct bel_runtime *runtime, void **out,
                                     size_t *out_bytes);

/* Schedules the timers of a snapshot, which may come from another machine: delays with their
 * remaining time, wall timers for their wall time. Returns 0; or, with nothing scheduled:
 * BEL_ECORRUPT if the snapshot is damaged or incomplete, BEL_EINVAL for an unregistered kind or a
 * newer version; or BEL_EFULL or BEL_ENOMEM, and the timers scheduled so far that have not rung are
 * cancelled. */
BEL_CHECKED int bel_runtime_restore(struct bel_runtime *runtime, const void *snapshot,
                                    size_t bytes);

/* A timer in a snapshot. */
struct bel_snapshot_timer {
    uint64_t user;
    uint64_t remaining_ns; /* when the snapshot was taken; 0: overdue, or a timer for a wall time */
    uint64_t overdue_ns;   /* when the snapshot was taken */
    uint64_t period_ns;
    struct bel_wall wall; /* if `is_wall` */
    bool is_wall;
    bel_kind_t kind;
    uint8_t priority;
    uint8_t repeat; /* enum bel_repeat */
};

/* Checks a snapshot and returns when it was taken and how many timers it has. Returns 0, or the
 * error of bel_runtime_restore() for its bytes. */
BEL_CHECKED int bel_snapshot_open(const void *snapshot, size_t bytes, struct bel_wall *out_taken,
                                  size_t *out_count);

/* Reads the timer number `index`, below the count, of a snapshot that bel_snapshot_open() has
 * accepted; they are sorted by due. */
void bel_snapshot_read(const void *snapshot, size_t index, struct bel_snapshot_timer *out);

struct bel_runtime_stats {
    uint64_t pending; /* scheduled - ended - cancelled; of a worker: at its last poll */
    uint64_t scheduled;
    uint64_t fired;     /* rings, including those of repeating timers */
    uint64_t ended;     /* timers that rang for the last time */
    uint64_t cancelled; /* cancelled, discarded, or migrated to another runtime */
    uint64_t rescheduled;
    uint64_t stale;         /* wheel entries found after their timer had ended or moved */
    uint64_t adopted;       /* timers of workers that left, which any worker may ring now */
    uint64_t garbage;       /* cancelled timers whose memory is not yet reclaimed; of a worker:
                               without those that it has not yet received */
    uint64_t stale_entries; /* in the wheels, at the last poll of each worker */
    uint64_t inbox;         /* timers sent to workers and not yet received */
    uint64_t shared;        /* timers that any worker may ring; NULL worker only */
    uint64_t unowned;       /* of these, the timers that wait for a worker to enter */
    uint64_t workers;
    uint64_t overdue;           /* pending timers that should have rung more than 1 ms ago */
    struct bel_boot oldest_due; /* the earliest due of these; BEL_NEVER if there is none */
    uint64_t lateness_p50_ns, lateness_p99_ns, lateness_max_ns; /* ring time - due */
    uint64_t metronome_turns;
    uint64_t metronome_wakes;        /* workers woken */
    uint64_t metronome_missed;       /* turns that were more than 1 ms late */
    uint64_t metronome_drift_max_ns; /* lateness of the latest turn */
    uint64_t self_helped;            /* polls that found the published time outdated */
};

/* Reads the statistics of a worker; NULL: of all, including those that have left. May be called
 * at any time and stops no thread: each number is consistent by itself, and pending is never
 * negative. If some timers may be overdue, the call looks at all timers. */
void bel_runtime_stats(struct bel_runtime *runtime, const struct bel_worker *worker,
                       struct bel_runtime_stats *out);

BEL_END_DECLARATIONS
#endif
