/* SPDX-License-Identifier: MIT */

/*
 * Several workers, each a thread that executes tasks one at a time (actor.h), on a fake clock, so
 * that operations on the timers of other threads are tested in a known order. Races have their own
 * tests (prop_runtime, tests/interleave).
 */
#include "belfry/runtime.h"

#include "../actor.h"

#include <stdatomic.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND = 1,
    ACTORS = 3,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct actor actors[ACTORS];
static struct bel_worker *workers[ACTORS];
static size_t polled[ACTORS];
static atomic_uint rung[64]; /* by user word */
static uint64_t order[64];   /* the user words in the order of the rings, up to 64 */
static atomic_uint rings;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    atomic_fetch_add(&rung[event->user % 64], 1);
    order[atomic_fetch_add(&rings, 1) % 64] = event->user;
}

static void open_all(void)
{
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    for (unsigned i = 0; i < ACTORS; i++) {
        actor_start(&actors[i]);
        workers[i] = NULL;
    }
    atomic_store(&rings, 0);
    for (unsigned i = 0; i < 64; i++) {
        atomic_store(&rung[i], 0);
    }
}

static void close_all(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        actor_stop(&actors[i]); /* those that are workers leave by ending */
    }
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

static void enter_task(void *arg)
{
    unsigned *index = arg;
    CHECK(bel_worker_enter(runtime, &workers[*index]) == 0);
}

static void leave_task(void *arg)
{
    unsigned *index = arg;
    CHECK(bel_worker_leave(workers[*index]) == 0);
    workers[*index] = NULL;
}

static void poll_task(void *arg)
{
    unsigned *index = arg;
    struct bel_worker *worker = workers[*index];
    do {
        polled[*index] += bel_worker_poll(worker, 1000);
    } while (bel_worker_next(worker).ns <= now());
}

static void enter(unsigned index)
{
    actor_do(&actors[index], enter_task, &index);
}

static void leave(unsigned index)
{
    actor_do(&actors[index], leave_task, &index);
}

static size_t poll_one(unsigned index)
{
    polled[index] = 0;
    actor_do(&actors[index], poll_task, &index);
    return polled[index];
}

static bel_timer_t schedule_on(struct bel_worker *worker, uint64_t delay, uint64_t user)
{
    bel_timer_t timer;
    struct bel_schedule options = {.due = {now() + delay},
                                   .kind = KIND,
                                   .user = user,
                                   .worker = worker,
                                   .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    return timer;
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static uint64_t pending_on(unsigned index)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, workers[index], &out);
    return out.pending;
}

static void a_timer_sent_to_a_worker_rings_there(void)
{
    open_all();
    enter(0);
    enter(1);
    (void)schedule_on(workers[1], MS, 1);
    CHECK_EQ(stats().inbox, 1);
    bel_clock_fake_advance(fake, MS);
    CHECK_EQ(poll_one(0), 0);
    CHECK_EQ(poll_one(1), 1);
    CHECK_EQ(stats().inbox, 0);
    close_all();
}

static void any_worker_means_one_that_polls(void)
{
    open_all();
    enter(0);
    enter(1);
    for (unsigned i = 0; i < 10; i++) {
        (void)schedule_on(NULL, MS, i);
    }
    CHECK_EQ(stats().shared, 10);
    CHECK_EQ(poll_one(0), 0);
    bel_clock_fake_advance(fake, MS);
    CHECK_EQ(poll_one(1), 10);
    CHECK_EQ(poll_one(0), 0);
    close_all();
}

/* The own timers of a worker and those for any worker ring by their dues. */
static void own_timers_and_those_for_any_worker_ring_in_the_order_of_their_dues(void)
{
    open_all();
    enter(0);
    for (unsigned i = 0; i < 10; i++) {
        (void)schedule_on(i % 3 == 0 ? NULL : workers[0], (10 - i) * MS, 10 - i);
    }
    bel_clock_fake_advance(fake, S);
    CHECK_EQ(poll_one(0), 10);
    for (unsigned i = 1; i <= 10; i++) {
        CHECK_EQ(order[i - 1], i);
    }
    close_all();
}

static void cancel_from_any_thread_is_true_once_then_false(void)
{
    open_all();
    enter(0);
    bel_timer_t in_wheel = schedule_on(workers[0], S, 1);
    (void)poll_one(0);
    bel_timer_t in_inbox = schedule_on(workers[0], S, 2);
    CHECK(bel_runtime_cancel(runtime, in_wheel));
    CHECK(!bel_runtime_cancel(runtime, in_wheel));
    CHECK(bel_runtime_cancel(runtime, in_inbox));
    CHECK(!bel_runtime_cancel(runtime, in_inbox));
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().garbage, 2);
    bel_clock_fake_advance(fake, S);
    CHECK_EQ(poll_one(0), 0);
    CHECK_EQ(stats().garbage, 0);
    CHECK_EQ(pending_on(0), 0);
    close_all();
}

static void a_stale_entry_fires_nothing_and_its_garbage_returns_to_zero(void)
{
    open_all();
    enter(0);
    bel_timer_t timers[32];
    for (unsigned i = 0; i < 32; i++) {
        timers[i] = schedule_on(workers[0], MS, i);
    }
    (void)poll_one(0);
    for (unsigned i = 0; i < 32; i++) {
        CHECK(bel_runtime_cancel(runtime, timers[i]));
    }
    CHECK_EQ(stats().garbage, 32);
    bel_clock_fake_advance(fake, MS);
    CHECK_EQ(poll_one(0), 0);
    CHECK_EQ(stats().garbage, 0);
    CHECK_EQ(stats().cancelled, 32);
    close_all();
}

static void a_timer_can_be_moved_from_another_thread_earlier_and_later(void)
{
    open_all();
    enter(0);
    bel_timer_t later = schedule_on(workers[0], 10 * MS, 1);
    bel_timer_t earlier = schedule_on(workers[0], 90 * MS, 2);
    (void)poll_one(0);
    CHECK(bel_runtime_reschedule(runtime, later, (struct bel_boot){now() + 50 * MS}) == 0);
    CHECK(bel_runtime_reschedule(runtime, earlier, (struct bel_boot){now() + 5 * MS}) == 0);
    CHECK(bel_runtime_reschedule(runtime, earlier, (struct bel_boot){now() + 6 * MS}) == 0);
    bel_clock_fake_advance(fake, 20 * MS);
    CHECK_EQ(poll_one(0), 1);
    CHECK_EQ(atomic_load(&rung[2]), 1);
    bel_clock_fake_advance(fake, 30 * MS);
    CHECK_EQ(poll_one(0), 1);
    CHECK_EQ(atomic_load(&rung[1]), 1);
    CHECK(bel_runtime_reschedule(runtime, later, (struct bel_boot){now()}) == BEL_ESTALE);
    close_all();
}

static void an_entry_that_comes_up_while_its_move_is_in_the_inbox_rings_nothing(void)
{
    open_all();
    enter(0);
    bel_timer_t timer = schedule_on(workers[0], MS, 1);
    (void)poll_one(0);
    bel_clock_fake_advance(fake, MS);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + S}) == 0);
    CHECK_EQ(poll_one(0), 0);
    bel_clock_fake_advance(fake, S);
    CHECK_EQ(poll_one(0), 1);
    close_all();
}

static void a_worker_leaves_and_its_timers_ring_exactly_once_elsewhere(void)
{
    open_all();
    enter(0);
    enter(1);
    (void)schedule_on(workers[0], 10 * MS, 10);
    (void)schedule_on(workers[0], 20 * MS, 20);
    (void)poll_one(0);
    leave(0);
    bel_clock_fake_advance(fake, 15 * MS);
    CHECK_EQ(poll_one(1), 1);
    bel_clock_fake_advance(fake, 15 * MS);
    CHECK_EQ(poll_one(1), 1);
    CHECK_EQ(atomic_load(&rung[10]), 1);
    CHECK_EQ(atomic_load(&rung[20]), 1);
    CHECK_EQ(stats().adopted, 2);
    CHECK_EQ(stats().pending, 0);
    close_all();
}

static void a_thread_that_ends_without_leaving_loses_nothing(void)
{
    open_all();
    enter(0);
    enter(1);
    bel_timer_t timer = schedule_on(workers[0], 10 * MS, 1); /* still in its inbox */
    actor_stop(&actors[0]);
    actor_start(&actors[0]);
    CHECK_EQ(stats().workers, 1);
    CHECK(bel_runtime_is_pending(runtime, timer));
    bel_clock_fake_advance(fake, 10 * MS);
    CHECK_EQ(poll_one(1), 1);
    close_all();
}

static void an_entry_in_migration_can_be_cancelled_and_moved(void)
{
    open_all();
    enter(0);
    bel_timer_t cancelled = schedule_on(workers[0], 10 * MS, 1);
    bel_timer_t moved = schedule_on(workers[0], 10 * MS, 2);
    bel_timer_t kept = schedule_on(workers[0], 10 * MS, 3);
    (void)poll_one(0);
    leave(0);
    CHECK_EQ(stats().unowned, 3);
    CHECK(bel_runtime_cancel(runtime, cancelled));
    CHECK(!bel_runtime_cancel(runtime, cancelled));
    CHECK(bel_runtime_reschedule(runtime, moved, (struct bel_boot){now() + 30 * MS}) == 0);
    enter(1);
    CHECK_EQ(stats().unowned, 0);
    bel_clock_fake_advance(fake, 10 * MS);
    CHECK_EQ(poll_one(1), 1);
    CHECK_EQ(atomic_load(&rung[3]), 1);
    bel_clock_fake_advance(fake, 20 * MS);
    CHECK_EQ(poll_one(1), 1);
    CHECK_EQ(atomic_load(&rung[2]), 1);
    CHECK(!bel_runtime_cancel(runtime, kept));
    CHECK_EQ(stats().pending, 0);
    close_all();
}

static void the_timers_of_a_thread_that_ended_ring_wherever_a_worker_polls(void)
{
    enum {
        TIMERS = 45
    };
    unsigned index = 0;
    open_all();
    struct actor leaver;
    actor_start(&leaver);
    actor_do(&leaver, enter_task, &index);
    for (unsigned i = 0; i < TIMERS; i++) {
        (void)schedule_on(workers[0], (1 + i % 3) * MS, i);
    }
    actor_do(&leaver, poll_task, &index);
    for (unsigned i = 0; i < ACTORS; i++) {
        enter(i);
    }
    actor_stop(&leaver);
    CHECK_EQ(stats().shared, TIMERS);
    for (unsigned i = 0; i < ACTORS; i++) {
        bel_clock_fake_advance(fake, MS);
        CHECK_EQ(poll_one(i), TIMERS / 3);
    }
    for (unsigned i = 0; i < TIMERS; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    close_all();
}

static void timers_scheduled_before_any_worker_exists_ring_after_the_first_registers(void)
{
    open_all();
    (void)schedule_on(NULL, MS, 1);
    (void)schedule_on(NULL, 2 * MS, 2);
    bel_clock_fake_advance(fake, S);
    CHECK_EQ(stats().unowned, 2);
    enter(0);
    CHECK_EQ(poll_one(0), 2);
    CHECK_EQ(stats().unowned, 0);
    close_all();
}

static void a_schedule_on_a_worker_that_has_left_goes_to_another(void)
{
    open_all();
    enter(0);
    struct bel_worker *gone = workers[0];
    leave(0);
    (void)schedule_on(gone, MS, 1);
    CHECK_EQ(stats().unowned, 1);
    enter(1);
    bel_clock_fake_advance(fake, MS);
    CHECK_EQ(poll_one(1), 1);
    close_all();
}

static void dropping_the_handle_does_not_drop_the_timer(void)
{
    open_all();
    enter(0);
    (void)schedule_on(workers[0], MS, 1);
    bel_clock_fake_advance(fake, MS);
    CHECK_EQ(poll_one(0), 1);
    close_all();
}

static void a_metronome_that_stood_still_for_ten_seconds_loses_no_tick(void)
{
    open_all();
    enter(0);
    for (unsigned i = 0; i < 60; i++) {
        (void)schedule_on(workers[0], i * (100 * MS), i);
    }
    (void)poll_one(0);
    struct bel_boot next = bel_runtime_tick(runtime);
    CHECK(next.ns <= now() + 100 * MS);
    bel_clock_fake_advance(fake, 10 * S); /* no tick meanwhile */
    (void)bel_runtime_tick(runtime);
    CHECK_EQ(stats().metronome_missed, 1);
    CHECK(stats().metronome_drift_max_ns >= 9 * S);
    CHECK_EQ(poll_one(0), 59); /* one was due at once */
    for (unsigned i = 0; i < 60; i++) {
        CHECK_EQ(atomic_load(&rung[i]), 1);
    }
    CHECK(stats().lateness_max_ns >= 9 * S);
    close_all();
}

/* A callback that waits for the test. */
static atomic_int stage;

static void ring_slowly(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
    atomic_store(&stage, 1);
    while (atomic_load(&stage) != 2) {}
    atomic_fetch_add(&rung[0], 1);
}

static bel_timer_t waited_for;
static int wait_result;

static void cancel_sync_task(void *arg)
{
    (void)arg;
    wait_result = bel_runtime_cancel_sync(runtime, waited_for);
    CHECK_EQ(atomic_load(&rung[0]), 1); /* the callback has returned */
}

static void cancel_sync_waits_for_a_running_callback(void)
{
    unsigned index = 0;
    open_all();
    CHECK(bel_runtime_on(runtime, 2, ring_slowly, NULL) == 0);
    enter(0);
    struct bel_schedule options = {.due = {now()}, .kind = 2, .worker = workers[0]};
    CHECK(bel_runtime_schedule(runtime, &options, &waited_for) == 0);
    atomic_store(&stage, 0);
    actor_begin(&actors[0], poll_task, &index);
    while (atomic_load(&stage) != 1) {}
    CHECK(!bel_runtime_cancel(runtime, waited_for));
    actor_begin(&actors[1], cancel_sync_task, NULL);
    atomic_store(&stage, 2);
    actor_await(&actors[1]);
    actor_await(&actors[0]);
    CHECK(wait_result == BEL_ESTALE);
    close_all();
}

static void a_repeating_timer_cancelled_while_it_rings_does_not_ring_again(void)
{
    unsigned index = 0;
    open_all();
    CHECK(bel_runtime_on(runtime, 2, ring_slowly, NULL) == 0);
    enter(0);
    struct bel_schedule options = {
        .due = {now()}, .kind = 2, .worker = workers[0], .repeat = BEL_RATE_SKIP, .period_ns = MS};
    CHECK(bel_runtime_schedule(runtime, &options, &waited_for) == 0);
    atomic_store(&stage, 0);
    actor_begin(&actors[0], poll_task, &index);
    while (atomic_load(&stage) != 1) {}
    CHECK(bel_runtime_reschedule(runtime, waited_for, (struct bel_boot){now()}) == BEL_EBUSY);
    CHECK(bel_runtime_cancel(runtime, waited_for));
    CHECK(!bel_runtime_cancel(runtime, waited_for));
    CHECK(!bel_runtime_is_pending(runtime, waited_for));
    atomic_store(&stage, 2);
    actor_await(&actors[0]);
    bel_clock_fake_advance(fake, S);
    CHECK_EQ(poll_one(0), 0);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().cancelled, 1);
    CHECK_EQ(stats().fired, 1);
    close_all();
}

static void handles_of_a_record_used_again_are_told_apart(void)
{
    open_all();
    enter(0);
    bel_timer_t first = schedule_on(workers[0], S, 1);
    CHECK(bel_runtime_cancel(runtime, first));
    (void)poll_one(0);
    for (unsigned i = 0; i < 1000; i++) {
        bel_timer_t timer = schedule_on(workers[0], S, 2);
        CHECK(timer != first);
        CHECK(!bel_runtime_cancel(runtime, first));
        CHECK(bel_runtime_cancel(runtime, timer));
        (void)poll_one(0);
    }
    close_all();
}

int main(void)
{
    RUN(a_timer_sent_to_a_worker_rings_there);
    RUN(any_worker_means_one_that_polls);
    RUN(own_timers_and_those_for_any_worker_ring_in_the_order_of_their_dues);
    RUN(cancel_from_any_thread_is_true_once_then_false);
    RUN(a_stale_entry_fires_nothing_and_its_garbage_returns_to_zero);
    RUN(a_timer_can_be_moved_from_another_thread_earlier_and_later);
    RUN(an_entry_that_comes_up_while_its_move_is_in_the_inbox_rings_nothing);
    RUN(a_worker_leaves_and_its_timers_ring_exactly_once_elsewhere);
    RUN(a_thread_that_ends_without_leaving_loses_nothing);
    RUN(an_entry_in_migration_can_be_cancelled_and_moved);
    RUN(the_timers_of_a_thread_that_ended_ring_wherever_a_worker_polls);
    RUN(timers_scheduled_before_any_worker_exists_ring_after_the_first_registers);
    RUN(a_schedule_on_a_worker_that_has_left_goes_to_another);
    RUN(dropping_the_handle_does_not_drop_the_timer);
    RUN(a_metronome_that_stood_still_for_ten_seconds_loses_no_tick);
    RUN(cancel_sync_waits_for_a_running_callback);
    RUN(a_repeating_timer_cancelled_while_it_rings_does_not_ring_again);
    RUN(handles_of_a_record_used_again_are_told_apart);
    return 0;
}
