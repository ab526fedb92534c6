/* SPDX-License-Identifier: MIT */

/*
 * Start and shutdown while other threads use the timers: on a fake clock, with threads that execute
 * tasks one at a time (actor.h) where the order matters. An alarm ends a case that blocks.
 */
#include "belfry/runtime.h"

#include "../actor.h"
#include "runtime/worker.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define S UINT64_C(1000000000)

enum {
    KIND = 1,   /* counts in `rung` */
    KIND_OTHER, /* also counts in `rung` */
    KIND_SLOW,
    KIND_ASK,
    KIND_EXIT,
    KIND_RUN,
    ROUNDS = 300,
    PATIENCE_S = 100,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static atomic_uint rung;
static atomic_int stage;
static bel_timer_t timer; /* the timer under test */
static struct bel_event last;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    last = *event;
    atomic_fetch_add(&rung, 1);
}

static void ring_slowly(void *context, const struct bel_event *event)
{
    atomic_store(&stage, 1);
    while (atomic_load(&stage) != 2) {}
    ring(context, event);
}

static void ring_and_ask(void *context, const struct bel_event *event)
{
    struct bel_worker *worker;
    CHECK(bel_runtime_cancel_sync(runtime, event->timer) == BEL_EBUSY);
    CHECK(!bel_runtime_cancel(runtime, event->timer));
    CHECK(!bel_runtime_is_pending(runtime, event->timer));
    CHECK(bel_runtime_reschedule(runtime, event->timer, event->now) == BEL_ESTALE);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == BEL_EBUSY);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == BEL_EBUSY);
    CHECK(bel_worker_enter(runtime, &worker) == BEL_ECLOSED);
    CHECK(bel_runtime_start(runtime, 1) == BEL_ECLOSED);
    ring(context, event);
}

static void ring_and_exit(void *context, const struct bel_event *event)
{
    ring(context, event);
    pthread_exit(NULL);
}

static void ring_and_run(void *context, const struct bel_event *event)
{
    bel_worker_run(context != NULL ? *(struct bel_worker **)context : NULL);
    ring(context, event);
}

static struct bel_worker *worker;

static struct bel_runtime *make_runtime(void)
{
    struct bel_runtime *made;
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &made) == 0);
    CHECK(bel_runtime_on(made, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_OTHER, ring, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_SLOW, ring_slowly, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_ASK, ring_and_ask, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_EXIT, ring_and_exit, NULL) == 0);
    CHECK(bel_runtime_on(made, KIND_RUN, ring_and_run, &worker) == 0);
    return made;
}

static void open_all(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    runtime = make_runtime();
    atomic_store(&rung, 0);
    atomic_store(&stage, 0);
}

static void close_all(void)
{
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

static bel_timer_t schedule(bel_kind_t kind, uint64_t delay)
{
    bel_timer_t out;
    struct bel_schedule options = {
        .due = {now() + delay}, .kind = kind, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule(runtime, &options, &out) == 0);
    return out;
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    CHECK_EQ(out.scheduled, out.pending + out.ended + out.cancelled);
    return out;
}

static void shut_down_task(void *arg)
{
    const enum bel_shutdown *how = arg;
    CHECK(bel_runtime_shutdown(runtime, *how, NULL) == 0);
}

static void cancel_sync_task(void *arg)
{
    (void)arg;
    CHECK(bel_runtime_cancel_sync(runtime, timer) == BEL_ESTALE);
    CHECK_EQ(atomic_load(&rung), 1); /* the callback has returned */
}

static void cancel_sync_waits_for_a_callback_of_a_shutdown(void)
{
    struct actor closer, canceller;
    enum bel_shutdown how = BEL_SHUTDOWN_FIRE;
    open_all();
    actor_start(&closer);
    actor_start(&canceller);
    timer = schedule(KIND_SLOW, S);
    actor_begin(&closer, shut_down_task, &how);
    while (atomic_load(&stage) != 1) {}
    actor_begin(&canceller, cancel_sync_task, NULL);
    struct record *record = pool_find(&runtime->pool, timer);
    while ((word_load(&record->word) & WORD_WAITED) == 0) {}
    atomic_store(&stage, 2);
    actor_await(&canceller);
    actor_await(&closer);
    CHECK_EQ(stats().ended, 1);
    actor_stop(&closer);
    actor_stop(&canceller);
    close_all();
}

static void a_callback_of_a_shutdown_is_told_that_it_is_one(void)
{
    bel_timer_t again;
    open_all();
    (void)schedule(KIND_ASK, S);
    struct bel_schedule beat = {.kind = KIND_ASK, .repeat = BEL_RATE_SKIP, .period_ns = S};
    CHECK(bel_runtime_schedule(runtime, &beat, &again) == 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    CHECK_EQ(atomic_load(&rung), 2);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().ended, 2);
    close_all();
}

static void a_thread_that_ends_in_a_callback_of_a_shutdown_leaves_the_rest_pending(void)
{
    struct actor closer;
    enum bel_shutdown how = BEL_SHUTDOWN_FIRE;
    open_all();
    (void)schedule(KIND, S);
    (void)schedule(KIND_EXIT, 2 * S);
    (void)schedule(KIND, 3 * S);
    (void)schedule(KIND, 4 * S);
    actor_start(&closer);
    actor_begin(&closer, shut_down_task, &how);
    CHECK(pthread_join(closer.thread, NULL) == 0);
    CHECK_EQ(atomic_load(&rung), 2);
    CHECK_EQ(stats().pending, 2);
    CHECK_EQ(stats().unowned, 2);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    CHECK_EQ(atomic_load(&rung), 4);
    CHECK_EQ(stats().pending, 0);
    close_all();
}

static void shutdowns_at_the_same_time_come_one_after_the_other(void)
{
    struct actor closers[2];
    enum bel_shutdown ways[2] = {BEL_SHUTDOWN_KEEP, BEL_SHUTDOWN_DISCARD};
    open_all();
    for (unsigned i = 0; i < 2; i++) {
        actor_start(&closers[i]);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        CHECK(bel_runtime_start(runtime, 2) == 0);
        CHECK_EQ(stats().workers, 2);
        (void)schedule(KIND, S);
        for (unsigned i = 0; i < 2; i++) {
            actor_begin(&closers[i], shut_down_task, &ways[i]);
        }
        for (unsigned i = 0; i < 2; i++) {
            actor_await(&closers[i]);
        }
        CHECK_EQ(stats().workers, 0);
        CHECK_EQ(stats().pending, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        actor_stop(&closers[i]);
    }
    close_all();
}

static void *start_some(void *arg)
{
    int err = bel_runtime_start(runtime, 2);
    CHECK(err == 0 || err == BEL_ECLOSED);
    return arg;
}

static void starts_that_meet_shutdowns_leave_nobody_behind(void)
{
    pthread_t starters[2];
    open_all();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2; i++) {
            CHECK(pthread_create(&starters[i], NULL, start_some, NULL) == 0);
        }
        CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
        for (unsigned i = 0; i < 2; i++) {
            CHECK(pthread_join(starters[i], NULL) == 0);
        }
        CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
        CHECK_EQ(stats().workers, 0);
    }
    close_all();
}

static void a_start_that_fails_has_started_none(void)
{
    struct rlimit limit, few;
    open_all();
    CHECK(bel_runtime_start(runtime, BEL_WORKERS_MAX + 1) == BEL_EFULL);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* the lowest that is free */
    CHECK(fd >= 0);
    few = (struct rlimit){(rlim_t)fd + 2, limit.rlim_max}; /* descriptors for one worker only */
    CHECK(close(fd) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    int err = bel_runtime_start(runtime, 3);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(err == BEL_ENOMEM);
    CHECK_EQ(stats().workers, 0);
    CHECK(bel_runtime_start(runtime, 3) == 0);
    CHECK_EQ(stats().workers, 3);
    close_all();
}

/* The due of the last successful move. */
static atomic_ullong moved_to;

static void *move_until_stale(void *arg)
{
    uint64_t due = now() + S;
    atomic_store(&stage, 1);
    while (bel_runtime_reschedule(runtime, timer, (struct bel_boot){due}) == 0) {
        atomic_store(&moved_to, due++);
    }
    return arg;
}

static void a_move_during_a_migration_comes_along_or_is_refused(void)
{
    pthread_t mover;
    struct bel_runtime *into;
    open_all();
    into = make_runtime();
    CHECK(bel_worker_enter(into, &worker) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CHECK_NOTE("round %u", round);
        timer = schedule(KIND, 3600 * S);
        atomic_store(&moved_to, now() + 3600 * S);
        atomic_store(&stage, 0);
        CHECK(pthread_create(&mover, NULL, move_until_stale, NULL) == 0);
        while (atomic_load(&stage) != 1) {}
        CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_MIGRATE, into) == 0);
        CHECK(pthread_join(mover, NULL) == 0);
        bel_clock_fake_advance(fake, 3600 * S);
        CHECK_EQ(bel_worker_poll(worker, 10), 1);
        CHECK_EQ(last.due.ns, atomic_load(&moved_to));
    }
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(into);
    close_all();
}

static void a_migration_that_fails_leaves_the_rest_as_it_was(void)
{
    bel_timer_t beat, once;
    struct bel_runtime *into;
    open_all();
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &into) == 0);
    CHECK(bel_runtime_on(into, KIND, ring, NULL) == 0); /* no other kind is registered */
    (void)schedule(KIND, S);
    struct bel_schedule repeats = {
        .due = {now() + 2 * S}, .kind = KIND_OTHER, .repeat = BEL_RATE_SKIP, .period_ns = S};
    CHECK(bel_runtime_schedule(runtime, &repeats, &beat) == 0);
    once = schedule(KIND, 3 * S);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_MIGRATE, into) == BEL_EINVAL);
    CHECK_EQ(stats().pending, 2);
    CHECK_EQ(stats().cancelled, 1);
    CHECK(bel_runtime_is_pending(runtime, beat));
    CHECK(bel_runtime_reschedule(runtime, beat, (struct bel_boot){now()}) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(bel_worker_poll(worker, 10), 1);
    CHECK(bel_runtime_is_pending(runtime, beat)); /* it still repeats */
    CHECK(bel_runtime_cancel(runtime, beat));
    CHECK(bel_runtime_cancel(runtime, once));
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(into);
    close_all();
}

static void enter_task(void *arg)
{
    CHECK(bel_worker_enter(runtime, arg) == 0);
}

static void a_worker_whose_thread_is_gone_has_empty_statistics(void)
{
    struct actor actor;
    struct bel_worker *there;
    struct bel_runtime_stats out;
    open_all();
    actor_start(&actor);
    actor_do(&actor, enter_task, &there);
    actor_stop(&actor);
    bel_runtime_stats(runtime, there, &out);
    CHECK_EQ(out.pending, 0);
    CHECK_EQ(out.scheduled, 0);
    close_all();
}

static void a_worker_that_runs_inside_its_callback_stays_one(void)
{
    open_all();
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule(KIND_RUN, 0);
    CHECK_EQ(bel_worker_poll(worker, 10), 1);
    CHECK_EQ(atomic_load(&rung), 1);
    CHECK_EQ(stats().workers, 1);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void the_16_millionth_worker_has_a_name_of_its_own(void)
{
    open_all();
    runtime->roster.incarnations = UINT32_MAX >> INDEX_BITS;
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK(worker_id(worker) >= BEL_WORKERS_MAX); /* and not OWNER_SHARED */
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void the_handle_of_a_runtime_that_is_gone_cancels_nothing(void)
{
    open_all();
    for (unsigned i = 0; i < 100; i++) {
        bel_timer_t old = schedule(KIND, S);
        bel_runtime_destroy(runtime);
        runtime = make_runtime(); /* probably at the same address */
        timer = schedule(KIND, S);
        CHECK(!bel_runtime_is_pending(runtime, old));
        CHECK(!bel_runtime_cancel(runtime, old));
        CHECK(bel_runtime_cancel(runtime, timer));
    }
    close_all();
}

int main(void)
{
    RUN(cancel_sync_waits_for_a_callback_of_a_shutdown);
    RUN(a_callback_of_a_shutdown_is_told_that_it_is_one);
    RUN(a_thread_that_ends_in_a_callback_of_a_shutdown_leaves_the_rest_pending);
    RUN(shutdowns_at_the_same_time_come_one_after_the_other);
    RUN(starts_that_meet_shutdowns_leave_nobody_behind);
    RUN(a_start_that_fails_has_started_none);
    RUN(a_move_during_a_migration_comes_along_or_is_refused);
    RUN(a_migration_that_fails_leaves_the_rest_as_it_was);
    RUN(a_worker_whose_thread_is_gone_has_empty_statistics);
    RUN(a_worker_that_runs_inside_its_callback_stays_one);
    RUN(the_16_millionth_worker_has_a_name_of_its_own);
    RUN(the_handle_of_a_runtime_that_is_gone_cancels_nothing);
    return 0;
}
