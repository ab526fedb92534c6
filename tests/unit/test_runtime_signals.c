/* SPDX-License-Identifier: MIT */

/*
 * Scheduling and cancelling in signal handlers. A thread uses the runtime continuously and is
 * interrupted every few microseconds, so that almost every instruction is interrupted at some time.
 * Thread and handler keep counts, which must match the counters of the runtime exactly. An alarm
 * ends a case that blocks.
 */
#include "belfry/runtime.h"

#include "../check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define HOUR (3600 * UINT64_C(1000000000))

enum {
    KIND = 1,
    SIGNALS = 20000,
    KEPT = 16, /* timers that the handler keeps */
    HELD = 64, /* timers that the interrupted thread keeps */
    PATIENCE_S = 100,
};

static struct bel_runtime *runtime, *other;
static struct bel_worker *worker;
static timer_t storm;
static volatile bool is_stormy;
static atomic_uint rung;
static sem_t rang, done; /* posted by a timer; by a handler */

/* Counts of successful operations. */
struct tally {
    uint64_t scheduled, cancelled, busy;
};

static struct tally by_thread;                           /* of the thread itself */
static struct tally by_handler;                          /* of the handler on that thread */
static bel_timer_t kept[KEPT];                           /* of the handler */
static _Atomic bel_timer_t held[HELD];                   /* cancelled by both */
static atomic_uint handled;                              /* signals */
static void (*volatile on_signal)(struct bel_runtime *); /* what the handler does */
static atomic_int answer;

static void ring(void *context, const struct bel_event *event)
{
    (void)context, (void)event;
    atomic_fetch_add(&rung, 1);
}

static void ring_and_post(void *context, const struct bel_event *event)
{
    (void)context, (void)event;
    CHECK(sem_post(&rang) == 0);
}

/* Sends this thread a signal in 1 to 20 us. */
static void send_next(unsigned number)
{
    struct itimerspec in = {.it_value = {.tv_nsec = 1000 + number * 7919 % 19000}};
    CHECK(timer_settime(storm, 0, &in, NULL) == 0);
}

static void handle(int signal)
{
    int saved = errno;
    (void)signal;
    on_signal(runtime);
    unsigned number = atomic_fetch_add(&handled, 1) + 1;
    if (is_stormy && number < SIGNALS) send_next(number);
    CHECK(sem_post(&done) == 0);
    errno = saved;
}

static int schedule(struct bel_runtime *where, uint64_t delay_ns, struct tally *tally,
                    bel_timer_t *out)
{
    struct bel_schedule options = {.due = {bel_clock_boot(bel_clock_system()).ns + delay_ns},
                                   .kind = KIND,
                                   .priority = BEL_PRIORITY_DEFAULT};
    int err = bel_runtime_schedule(where, &options, out);
    if (err == 0) tally->scheduled++;
    if (err == BEL_EBUSY) tally->busy++;
    return err;
}

static void cancel(struct bel_runtime *where, bel_timer_t timer, struct tally *tally)
{
    if (bel_runtime_cancel(where, timer)) tally->cancelled++;
}

/* In the handler: schedules one timer, cancels one of its own, and cancels one of the interrupted
 * thread. */
static void schedule_and_cancel(struct bel_runtime *where)
{
    unsigned turn = atomic_load(&handled);
    bel_timer_t *mine = &kept[turn % KEPT];
    cancel(where, *mine, &by_handler);
    *mine = BEL_TIMER_NONE;
    int err = schedule(where, turn % 3 == 0 ? 0 : HOUR, &by_handler, mine);
    CHECK(err == 0 || err == BEL_EBUSY);
    cancel(where, atomic_load(&held[turn % HELD]), &by_handler);
}

static void open_all(void)
{
    (void)alarm(PATIENCE_S);
    by_thread = by_handler = (struct tally){0};
    for (unsigned i = 0; i < KEPT; i++) {
        kept[i] = BEL_TIMER_NONE;
    }
    for (unsigned i = 0; i < HELD; i++) {
        atomic_store(&held[i], BEL_TIMER_NONE);
    }
    atomic_store(&rung, 0);
    atomic_store(&handled, 0);
    on_signal = schedule_and_cancel;
    CHECK(sem_init(&rang, 0, 0) == 0);
    CHECK(sem_init(&done, 0, 0) == 0);
    CHECK(bel_runtime_create(NULL, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_on(runtime, KIND + 1, ring_and_post, NULL) == 0);
}

static void close_all(void)
{
    bel_runtime_destroy(runtime);
    (void)sem_destroy(&rang);
    (void)sem_destroy(&done);
}

static void await(sem_t *sem)
{
    while (sem_wait(sem) != 0) {}
}

/* Interrupts a thread until its handler has run. The thread sanitizer delays a signal until the
 * thread's next call, and sometimes loses it if that call blocks. */
static void interrupt(pthread_t thread)
{
    struct timespec until;
    do {
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
        CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
        until.tv_sec++;
    } while (sem_timedwait(&done, &until) != 0);
}

/* Runs `turn` continuously while signals arrive. */
static void under_signals(void (*turn)(unsigned number))
{
    bel_timer_t first;
    unsigned number = 0;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = gettid();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &storm) == 0);
    CHECK(schedule(runtime, HOUR, &by_thread, &first) ==
          0); /* the thread has now used the runtime */
    is_stormy = true;
    send_next(0);
    while (atomic_load(&handled) < SIGNALS) {
        turn(number++);
    }
    is_stormy = false;
    CHECK(timer_delete(storm) == 0);
}

/* No thread works any more: the counters of the runtime must match. */
static void agree(void)
{
    struct bel_runtime_stats stats;
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK_NOTE("%" PRIu64 " of %d signals met a busy library", by_handler.busy, SIGNALS);
    CHECK_EQ(stats.scheduled, by_thread.scheduled + by_handler.scheduled);
    CHECK_EQ(stats.cancelled, by_thread.cancelled + by_handler.cancelled);
    CHECK_EQ(stats.ended, atomic_load(&rung));
    CHECK_EQ(stats.pending, stats.scheduled - stats.cancelled - stats.ended);
    CHECK(stats.unowned >= stats.pending); /* some may be cancelled and not reclaimed */
    CHECK_EQ(stats.inbox, 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL) == 0);
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK_EQ(stats.pending, 0);
    CHECK_EQ(stats.scheduled, stats.ended + stats.cancelled);
}

static void use_timers(unsigned number)
{
    _Atomic bel_timer_t *mine = &held[number % HELD];
    bel_timer_t timer = atomic_load(mine);
    if (number % 3 == 0) {
        struct bel_boot due = {bel_clock_boot(bel_clock_system()).ns + 2 * HOUR};
        int err = bel_runtime_reschedule(runtime, timer, due);
        CHECK(err == 0 || err == BEL_ESTALE);
    }
    cancel(runtime, timer, &by_thread);
    CHECK(schedule(runtime, number % 5 == 0 ? 0 : HOUR, &by_thread, &timer) == 0);
    atomic_store(mine, timer);
}

static void use_and_poll(unsigned number)
{
    use_timers(number);
    (void)bel_worker_poll(worker, 100);
    (void)bel_worker_next(worker);
}

static void a_worker_that_is_interrupted_loses_nothing(void)
{
    open_all();
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    under_signals(use_and_poll);
    CHECK(bel_worker_leave(worker) == 0);
    agree();
    close_all();
}

static void a_thread_that_is_no_worker_and_interrupted_loses_nothing(void)
{
    open_all();
    CHECK(bel_runtime_start(runtime, 1) == 0);
    under_signals(use_timers);
    agree();
    close_all();
}

static void come_and_go(unsigned number)
{
    struct bel_runtime_stats stats;
    use_timers(number);
    if (number % 8 == 0) {
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        (void)bel_worker_poll(worker, 1);
        CHECK(bel_worker_leave(worker) == 0);
    }
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK(stats.ended <= stats.scheduled);
    CHECK(bel_runtime_cancel_sync(runtime, BEL_TIMER_NONE) == BEL_ESTALE);
}

/* Timers without an owner are dealt with a lock held; so are the seats of workers. */
static void a_handler_never_waits_for_what_its_own_thread_holds(void)
{
    open_all();
    under_signals(come_and_go);
    agree();
    close_all();
}

static void shut_down(unsigned number)
{
    use_timers(number);
    if (number % 64 != 0) return;
    struct bel_runtime_stats before, after;
    bel_runtime_stats(runtime, NULL, &before);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL) == 0);
    bel_runtime_stats(runtime, NULL, &after);
    by_thread.cancelled = after.cancelled - by_handler.cancelled; /* as it says */
    CHECK(after.cancelled >= before.cancelled);
}

static void a_shutdown_that_is_interrupted_counts_every_timer(void)
{
    open_all();
    under_signals(shut_down);
    struct bel_runtime_stats stats;
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL) == 0);
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK_EQ(stats.pending, 0);
    CHECK_EQ(stats.unowned, 0);
    CHECK_EQ(stats.scheduled, by_thread.scheduled + by_handler.scheduled);
    CHECK_EQ(stats.cancelled, stats.scheduled);
    close_all();
}

/* A thread with two runtimes searches for one of them; the handler for the other. */
static void use_both(unsigned number)
{
    bel_timer_t timer;
    struct tally there = {0};
    use_timers(number);
    CHECK(schedule(other, HOUR, &there, &timer) == 0);
    CHECK(bel_runtime_cancel(other, timer));
}

static void two_runtimes_on_one_thread_are_told_apart(void)
{
    struct bel_runtime_stats stats;
    open_all();
    CHECK(bel_runtime_create(NULL, &other) == 0);
    CHECK(bel_runtime_on(other, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    under_signals(use_both);
    agree();
    bel_runtime_stats(other, NULL, &stats);
    CHECK_EQ(stats.pending, 0);
    CHECK_EQ(stats.scheduled, stats.cancelled);
    bel_runtime_destroy(other);
    close_all();
}

static void schedule_and_post(struct bel_runtime *where)
{
    bel_timer_t timer;
    struct bel_schedule options = {.kind = KIND + 1, .due = {1}};
    atomic_store(&answer, bel_runtime_schedule(where, &options, &timer));
}

static void *work(void *arg)
{
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK(sem_post(arg) == 0);
    bel_worker_run(worker);
    return NULL;
}

/* The handler interrupts the sleep, or runs just before it. */
static void a_sleeping_worker_rings_what_a_handler_scheduled(void)
{
    enum {
        ROUNDS = 1000
    };
    pthread_t target;
    sem_t entered;
    open_all();
    CHECK(sem_init(&entered, 0, 0) == 0);
    on_signal = schedule_and_post;
    CHECK(pthread_create(&target, NULL, work, &entered) == 0);
    await(&entered);
    for (unsigned i = 0; i < ROUNDS; i++) {
        do {
            interrupt(target);
            CHECK(atomic_load(&answer) == 0 || atomic_load(&answer) == BEL_EBUSY);
        } while (atomic_load(&answer) == BEL_EBUSY);
        await(&rang);
    }
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    CHECK(pthread_join(target, NULL) == 0);
    close_all();
}

static pthread_t handler_thread;

static void note_thread(struct bel_runtime *where)
{
    (void)where;
    handler_thread = pthread_self();
}

/* A signal for the process goes to a thread of the program, and waits for one. */
static void the_metronome_takes_no_signals(void)
{
    sigset_t set, before;
    open_all();
    on_signal = note_thread;
    CHECK(bel_worker_enter(runtime, &worker) == 0); /* and the metronome is running */
    CHECK(sigemptyset(&set) == 0 && sigaddset(&set, SIGUSR1) == 0);
    for (unsigned i = 0; i < 100; i++) {
        CHECK(pthread_sigmask(SIG_BLOCK, &set, &before) == 0);
        CHECK(kill(getpid(), SIGUSR1) == 0);
        for (unsigned k = 0; k < 100; k++) {
            (void)sched_yield(); /* other threads would have time to take it */
        }
        CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
        await(&done);
        CHECK(pthread_equal(handler_thread, pthread_self()));
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

int main(void)
{
    struct sigaction action = {.sa_handler = handle};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    RUN(a_worker_that_is_interrupted_loses_nothing);
    RUN(a_thread_that_is_no_worker_and_interrupted_loses_nothing);
    RUN(a_handler_never_waits_for_what_its_own_thread_holds);
    RUN(a_shutdown_that_is_interrupted_counts_every_timer);
    RUN(two_runtimes_on_one_thread_are_told_apart);
    RUN(a_sleeping_worker_rings_what_a_handler_scheduled);
    RUN(the_metronome_takes_no_signals);
    return 0;
}
