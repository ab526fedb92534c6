/* SPDX-License-Identifier: MIT */

/*
 * A worker that does not poll: it is in a long callback, or its program does something else. Timers
 * for any worker ring elsewhere, its own ones wait and are counted, and timers that are cancelled
 * meanwhile do not pile up.
 *
 * No case depends on the speed of the machine: a stuck worker is one that the test does not let go,
 * and an alarm ends a case that blocks.
 */
#include "belfry/runtime.h"

#include "../actor.h"
#include "../live.h"
#include "../random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND_COUNT = 1,
    KIND_BLOCK, /* its callback returns when the test says so */
    WORKERS = 4,
    TIMERS = 1000,
    GARBAGE_MAX = 64 * 1024,
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum {
    PAIRS = 150 * 1000,
    LOOK_EVERY = 8 * 1024,
};
#else
enum {
    PAIRS = 300 * 1000,
    LOOK_EVERY = 1024,
};
#endif

static sem_t blocked, unblock;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
    CHECK(sem_post(&rang) == 0);
}

static void ring_and_block(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
    CHECK(sem_post(&blocked) == 0);
    while (sem_wait(&unblock) != 0) {}
}

static void open_with(const struct bel_runtime_options *options)
{
    (void)alarm(PATIENCE_S);
    CHECK(sem_init(&rang, 0, 0) == 0);
    CHECK(sem_init(&blocked, 0, 0) == 0);
    CHECK(sem_init(&unblock, 0, 0) == 0);
    CHECK(bel_runtime_create(options, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND_COUNT, ring, NULL) == 0);
    CHECK(bel_runtime_on(runtime, KIND_BLOCK, ring_and_block, NULL) == 0);
}

/* Blocks `count` workers in callbacks. */
static void block_workers(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        (void)schedule(KIND_BLOCK, 0, 0);
    }
    for (unsigned i = 0; i < count; i++) {
        while (sem_wait(&blocked) != 0) {}
    }
}

static void unblock_workers(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(sem_post(&unblock) == 0);
    }
}

/* Timers for any worker. */

static void timers_for_any_worker_ring_although_all_but_one_are_stuck(void)
{
    for (unsigned stuck = 0; stuck < WORKERS; stuck++) {
        open_with(NULL);
        CHECK(bel_runtime_start(runtime, WORKERS) == 0);
        block_workers(stuck);
        for (unsigned i = 0; i < TIMERS; i++) {
            (void)schedule(KIND_COUNT, i * (10 * MS) / TIMERS, i);
        }
        await_rings(TIMERS);
        CHECK_EQ(stats().overdue, 0);
        unblock_workers(stuck);
        close_all();
    }
}

/* The timers are there before a worker gets stuck, so that it has been the one that looks. */
static void timers_scheduled_before_a_worker_got_stuck_ring_elsewhere(void)
{
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 2) == 0);
    for (unsigned i = 0; i < TIMERS; i++) {
        (void)schedule(KIND_COUNT, MS + i * (10 * MS) / TIMERS, i);
    }
    block_workers(1);
    await_rings(TIMERS);
    unblock_workers(1);
    close_all();
}

/* A worker that wakes up and then does not poll. */
static struct bel_worker *idler;

static void wait_task(void *arg)
{
    (void)arg;
    CHECK(bel_worker_enter(runtime, &idler) == 0);
    CHECK(bel_worker_wait(idler, (struct bel_boot){BEL_NEVER}));
}

static void a_timer_rings_elsewhere_if_the_worker_that_woke_up_for_it_does_not_poll(void)
{
    struct actor actor;
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    actor_start(&actor);
    for (unsigned i = 0; i < 20; i++) {
        actor_begin(&actor, wait_task, NULL);
        await_workers(2);
        (void)schedule(KIND_COUNT, MS, 1);
        await_rings(1);
        bel_timer_t wakes;
        struct bel_schedule options = {.kind = KIND_COUNT, .worker = idler};
        CHECK(bel_runtime_schedule_after(runtime, HOUR, &options, &wakes) == 0);
        actor_await(&actor);
        CHECK(bel_runtime_cancel(runtime, wakes));
        actor_stop(&actor); /* its thread ends, and leaves */
        actor_start(&actor);
        await_workers(1);
    }
    actor_stop(&actor);
    close_all();
}

/* What a stuck worker keeps is counted. */
static void overdue_timers_are_counted_where_they_are(void)
{
    struct bel_clock_fake *fake;
    struct bel_worker *worker;
    struct bel_runtime_stats own;
    struct actor other;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_advance(fake, S);
    open_with(&(struct bel_runtime_options){.clock = bel_clock_fake_clock(fake),
                                            .metronome = BEL_METRONOME_MANUAL});
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    actor_start(&other);
    CHECK_EQ(stats().overdue, 0);
    CHECK_EQ(stats().oldest_due.ns, BEL_NEVER);
    for (uint64_t i = 1; i <= 5; i++) { /* its own, due in 1 to 5 s */
        (void)schedule(KIND_COUNT, i * S, i);
    }
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    CHECK_EQ(stats().overdue, 0);
    bel_clock_fake_advance(fake, 2 * S + 2 * MS);
    CHECK_EQ(stats().overdue, 2);
    CHECK_EQ(stats().oldest_due.ns, 2 * S);
    bel_runtime_stats(runtime, worker, &own);
    CHECK_EQ(own.overdue, 2);
    CHECK_EQ(own.oldest_due.ns, 2 * S);
    CHECK_EQ(own.inbox, 0);
    CHECK_EQ(bel_worker_poll(worker, 10), 2);
    CHECK_EQ(stats().overdue, 0);
    CHECK_EQ(stats().oldest_due.ns, BEL_NEVER);
    CHECK(bel_worker_leave(worker) == 0);
    bel_clock_fake_advance(fake, S); /* now nobody polls: those that any worker may ring */
    CHECK_EQ(stats().overdue, 1);
    CHECK_EQ(stats().oldest_due.ns, 4 * S);
    actor_stop(&other);
    close_all();
    bel_clock_fake_destroy(fake);
}

/* Scheduled on a stuck worker, by the callback in which it is stuck and by another thread. */
static void schedule_and_block(void *context, const struct bel_event *event)
{
    (void)schedule(KIND_COUNT, 0, 1);
    ring_and_block(context, event);
}

static void timers_of_a_stuck_worker_are_overdue_until_it_polls(void)
{
    enum {
        KIND_SCHEDULE = 3
    };
    open_with(NULL);
    CHECK(bel_runtime_on(runtime, KIND_SCHEDULE, schedule_and_block, NULL) == 0);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    (void)schedule(KIND_SCHEDULE, 0, 0);
    while (sem_wait(&blocked) != 0) {}
    while (stats().overdue != 1) {} /* a millisecond later */
    CHECK(stats().oldest_due.ns <= bel_clock_boot(bel_clock_system()).ns - MS);
    unblock_workers(1);
    await_rings(1);
    CHECK_EQ(stats().overdue, 0);
    close_all();
}

/*
 * Cancelled timers.
 */

static uint64_t bound(uint64_t live)
{
    return live / 4 > GARBAGE_MAX ? live / 4 : GARBAGE_MAX;
}

/* Schedules and cancels again and again, with `live` further timers. */
static void make_garbage(struct bel_worker *worker, uint64_t live)
{
    uint64_t worst = 0, before = stats().pending;
    bel_timer_t timer;
    struct bel_schedule options = {.kind = KIND_COUNT, .worker = worker};
    for (uint64_t i = 0; i < live; i++) {
        CHECK(bel_runtime_schedule_after(runtime, HOUR, &options, &timer) == 0);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        CHECK(bel_runtime_schedule_after(runtime, HOUR, &options, &timer) == 0);
        CHECK(bel_runtime_cancel(runtime, timer));
        if (i % LOOK_EVERY != 0) continue;
        struct bel_runtime_stats now = stats();
        CHECK(now.garbage <= bound(now.pending));
        if (now.garbage > worst) worst = now.garbage;
    }
    CHECK_EQ(stats().pending, before + live);
    printf("     %d cancelled, at most %" PRIu64 " not cleared away\n", PAIRS, worst);
}

static void timers_cancelled_without_any_worker_leave_nothing(void)
{
    open_with(NULL);
    make_garbage(NULL, 0);
    CHECK_EQ(stats().garbage, 0);
    close_all();
}

static void timers_cancelled_while_all_workers_are_stuck_leave_nothing(void)
{
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    block_workers(1);
    make_garbage(NULL, TIMERS);
    CHECK_EQ(stats().garbage, 0);
    unblock_workers(1);
    close_all();
}

static struct bel_worker *stuck; /* of the actor's thread, which does not poll */

static void enter_task(void *arg)
{
    (void)arg;
    CHECK(bel_worker_enter(runtime, &stuck) == 0);
}

static void leave_task(void *arg)
{
    (void)arg;
    CHECK(bel_worker_leave(stuck) == 0);
}

static void poll_task(void *arg)
{
    (void)arg;
    do {
        CHECK_EQ(bel_worker_poll(stuck, 10), 0);
    } while (bel_worker_next(stuck).ns == 0);
}

static void timers_sent_to_a_stuck_worker_and_cancelled_are_bounded(void)
{
    static const uint64_t live[] = {0, 1000, 400000};
    struct actor actor;
    for (unsigned i = 0; i < 3; i++) {
        open_with(NULL);
        actor_start(&actor);
        actor_do(&actor, enter_task, NULL);
        make_garbage(stuck, live[i]);
        actor_do(&actor, poll_task, NULL);
        CHECK_EQ(stats().garbage, 0);
        CHECK_EQ(stats().inbox, 0);
        CHECK_EQ(stats().pending, live[i]);
        make_garbage(stuck, 0);
        actor_do(&actor, leave_task, NULL); /* in the middle of a sweep */
        CHECK_EQ(stats().garbage, 0);
        CHECK_EQ(stats().shared, live[i]);
        actor_stop(&actor);
        close_all();
    }
}

static void cancelled_timers_do_not_use_up_the_room_for_others(void)
{
    enum {
        TIMERS_MAX = 1000
    };
    struct actor actor;
    open_with(&(struct bel_runtime_options){.timers_max = TIMERS_MAX});
    make_garbage(NULL, 0);
    actor_start(&actor);
    actor_do(&actor, enter_task, NULL);
    make_garbage(stuck, TIMERS_MAX / 2);
    CHECK(stats().garbage <= TIMERS_MAX / 4 + 1);
    actor_stop(&actor);
    close_all();
}

/* The sweep keeps what is not cancelled, and its order. */
static uint64_t rung_next;

static void ring_in_order(void *context, const struct bel_event *event)
{
    (void)context;
    CHECK_EQ(event->user, rung_next);
    rung_next++;
}

static void poll_until_empty(void *arg)
{
    (void)arg;
    while (bel_worker_next(stuck).ns <= bel_clock_boot(bel_clock_system()).ns) {
        (void)bel_worker_poll(stuck, 1000);
    }
}

static void a_sweep_keeps_the_order_of_the_timers_that_are_not_cancelled(void)
{
    enum {
        KIND_ORDER = 3
    };
    struct actor actor;
    uint64_t random = 1, kept = 0;
    open_with(&(struct bel_runtime_options){.timers_max = 400});
    CHECK(bel_runtime_on(runtime, KIND_ORDER, ring_in_order, NULL) == 0);
    rung_next = 0;
    actor_start(&actor);
    actor_do(&actor, enter_task, NULL);
    for (unsigned i = 0; i < PAIRS; i++) {
        bel_timer_t timer; /* all with the same due */
        struct bel_schedule options = {
            .due = {1}, .kind = KIND_ORDER, .worker = stuck, .user = kept};
        CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
        if (kept < 5000 && random_below(&random, 100) == 0) {
            kept++;
        } else {
            CHECK(bel_runtime_cancel(runtime, timer));
        }
        if (random_below(&random, 50000) == 0) actor_do(&actor, poll_until_empty, NULL);
    }
    CHECK(stats().garbage <= 400 + stats().pending);
    actor_do(&actor, poll_until_empty, NULL);
    CHECK_EQ(rung_next, kept);
    actor_stop(&actor);
    close_all();
}

/*
 * The wait of a cancel. The clock advances by 100 us each time that it is read, and counts.
 */

struct counting_clock {
    struct bel_clock clock;
    atomic_uint_least64_t reads;
};

static struct bel_boot count_boot(const struct bel_clock *clock)
{
    struct counting_clock *counting = (struct counting_clock *)(uintptr_t)clock;
    return (struct bel_boot){S + atomic_fetch_add(&counting->reads, 1) * (MS / 10)};
}

static struct bel_mono count_mono(const struct bel_clock *clock)
{
    return (struct bel_mono){count_boot(clock).ns};
}

static struct bel_wall count_wall(const struct bel_clock *clock)
{
    return (struct bel_wall){(int64_t)(count_boot(clock).ns / MS)};
}

static bel_timer_t *own_timers;
static uint64_t own_count;

static void schedule_own_task(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < own_count; i++) {
        struct bel_schedule options = {.due = {HOUR + i}, .kind = KIND_COUNT};
        CHECK(bel_runtime_schedule(runtime, &options, &own_timers[i]) == 0);
    }
    CHECK_EQ(bel_worker_poll(stuck, 10), 0);
}

static void a_cancel_waits_for_a_stuck_worker_for_a_millisecond_and_only_once(void)
{
    static struct counting_clock clock = {
        .clock = {.mono = count_mono, .boot = count_boot, .wall = count_wall}};
    uint64_t most = 0, all = 0, reads;
    struct actor actor;
    own_count = 400 * 1000 / (PAIRS < 200 * 1000 ? 4 : 1);
    own_timers = calloc(own_count, sizeof *own_timers);
    CHECK(own_timers != NULL);
    open_with(
        &(struct bel_runtime_options){.clock = &clock.clock, .metronome = BEL_METRONOME_MANUAL});
    actor_start(&actor);
    actor_do(&actor, enter_task, NULL);
    actor_do(&actor, schedule_own_task, NULL);
    for (uint64_t i = 0; i < own_count; i++) {
        reads = atomic_load(&clock.reads);
        CHECK(bel_runtime_cancel(runtime, own_timers[i]));
        reads = atomic_load(&clock.reads) - reads;
        all += reads;
        if (reads > most) most = reads;
    }
    CHECK(most >= 2 && most <= 12); /* one to begin with, ten for a millisecond */
    CHECK_EQ(all, most);
    CHECK_EQ(stats().garbage, own_count);
    actor_do(&actor, poll_task, NULL);
    CHECK_EQ(stats().garbage, 0);
    actor_stop(&actor);
    close_all();
    free(own_timers);
}

/*
 * Shutdown.
 */

static void a_shutdown_with_a_deadline_is_called_off_while_a_worker_is_stuck(void)
{
    struct bel_boot past = {1}, soon;
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 2) == 0);
    (void)schedule(KIND_COUNT, HOUR, 1);
    block_workers(1);
    CHECK(bel_runtime_shutdown_until(runtime, BEL_SHUTDOWN_DISCARD, NULL, past) == BEL_EBUSY);
    soon.ns = bel_clock_boot(bel_clock_system()).ns + 20 * MS;
    CHECK(bel_runtime_shutdown_until(runtime, BEL_SHUTDOWN_DISCARD, NULL, soon) == BEL_EBUSY);
    CHECK(bel_clock_boot(bel_clock_system()).ns >= soon.ns);
    CHECK_EQ(stats().pending, 2); /* the one that rings, and the other */
    await_workers(1);
    unblock_workers(1);
    (void)schedule(KIND_COUNT, 0, 2); /* the worker that was stuck goes on */
    await_rings(1);
    soon.ns += HOUR;
    CHECK(bel_runtime_shutdown_until(runtime, BEL_SHUTDOWN_DISCARD, NULL, soon) == 0);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().workers, 0);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    close_all();
}

int main(void)
{
    RUN(timers_for_any_worker_ring_although_all_but_one_are_stuck);
    RUN(timers_scheduled_before_a_worker_got_stuck_ring_elsewhere);
    RUN(a_timer_rings_elsewhere_if_the_worker_that_woke_up_for_it_does_not_poll);
    RUN(overdue_timers_are_counted_where_they_are);
    RUN(timers_of_a_stuck_worker_are_overdue_until_it_polls);
    RUN(timers_cancelled_without_any_worker_leave_nothing);
    RUN(timers_cancelled_while_all_workers_are_stuck_leave_nothing);
    RUN(timers_sent_to_a_stuck_worker_and_cancelled_are_bounded);
    RUN(cancelled_timers_do_not_use_up_the_room_for_others);
    RUN(a_sweep_keeps_the_order_of_the_timers_that_are_not_cancelled);
    RUN(a_cancel_waits_for_a_stuck_worker_for_a_millisecond_and_only_once);
    RUN(a_shutdown_with_a_deadline_is_called_off_while_a_worker_is_stuck);
    return 0;
}
