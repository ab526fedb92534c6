/* SPDX-License-Identifier: MIT */

/*
 * Sleeping threads are woken: by the clock, by other threads, by the metronome. On the real clock,
 * but nothing depends on the speed of the machine: a case waits for an event, and "in time" means
 * long before the hour for which other timers are due. A lost wakeup blocks its case, which an
 * alarm ends.
 */
#include "belfry/runtime.h"

#include "../actor.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#define MS   UINT64_C(1000000)
#define S    (1000 * MS)
#define HOUR (3600 * S)

enum {
    KIND = 1,
    KIND_INBOX,
    ROUNDS = 20,
    PATIENCE_S = 60,
};

static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_inbox *inbox;
static struct bel_event last;
static sem_t rang;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    last = *event;
    CHECK(sem_post(&rang) == 0);
}

static void open_with(const struct bel_runtime_options *options)
{
    (void)alarm(PATIENCE_S);
    CHECK(sem_init(&rang, 0, 0) == 0);
    CHECK(bel_runtime_create(options, &runtime) == 0);
    CHECK(bel_inbox_create(runtime, &inbox) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_on_inbox(runtime, KIND_INBOX, inbox) == 0);
}

static void close_all(void)
{
    bel_runtime_destroy(runtime);
    (void)sem_destroy(&rang);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_system()).ns;
}

static bel_timer_t schedule(bel_kind_t kind, uint64_t delay_ns)
{
    bel_timer_t timer;
    struct bel_schedule options = {.kind = kind, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule_after(runtime, delay_ns, &options, &timer) == 0);
    return timer;
}

static void await_ring_in_time(void)
{
    while (sem_wait(&rang) != 0) {}
    CHECK(last.now.ns >= last.due.ns);
    CHECK(last.now.ns - last.due.ns < PATIENCE_S * S);
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static void await_intake(void)
{
    while (stats().inbox > 0) {
        (void)sched_yield();
    }
}

static void a_worker_asleep_for_an_hour_rings_a_timer_added_for_10_ms_in_time(void)
{
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    (void)schedule(KIND, HOUR);
    for (unsigned i = 0; i < ROUNDS; i++) {
        await_intake(); /* it has received the timer that is due in an hour, and sleeps or is
                           about to */
        (void)schedule(KIND, 10 * MS);
        await_ring_in_time();
    }
    CHECK_EQ(stats().pending, 1);
    close_all();
}

static void a_worker_asleep_for_an_hour_rings_a_timer_moved_to_10_ms_in_time(void)
{
    open_with(NULL);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        bel_timer_t timer = schedule(KIND, HOUR);
        await_intake();
        CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + 10 * MS}) == 0);
        await_ring_in_time();
    }
    close_all();
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, timeout_ms) == 1;
}

/* A loop of the program: polls when the descriptor is readable, until a timer has rung. */
static void loop_until_rung(int fd)
{
    for (size_t rings = 0; rings == 0;) {
        CHECK(is_readable(fd, PATIENCE_S * 1000));
        rings = bel_worker_poll(worker, 10);
    }
    await_ring_in_time();
}

static void wait_for_a_moment(void)
{
    CHECK(bel_worker_wait(worker, (struct bel_boot){now() + MS}));
}

static void a_loop_of_the_program_learns_of_timers_scheduled_between_polls(void)
{
    open_with(NULL);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule(KIND, HOUR);
    int fd = bel_worker_fd(worker);
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_EQ(bel_worker_poll(worker, 10), 0);
        bel_timer_t moved = schedule(KIND, 2 * HOUR);
        (void)schedule(KIND, 10 * MS);
        loop_until_rung(fd);
        CHECK(bel_runtime_reschedule(runtime, moved, (struct bel_boot){now() + 10 * MS}) == 0);
        loop_until_rung(fd);
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void a_worker_that_has_waited_can_go_over_to_a_loop_of_the_program(void)
{
    open_with(NULL);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    wait_for_a_moment();
    int fd = bel_worker_fd(worker);
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    (void)schedule(KIND, 10 * MS);
    loop_until_rung(fd);
    wait_for_a_moment(); /* and again, with and without a poll */
    (void)schedule(KIND, 10 * MS);
    loop_until_rung(fd);
    wait_for_a_moment();
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    (void)schedule(KIND, 10 * MS);
    loop_until_rung(fd);
    (void)schedule(KIND, 10 * MS);
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    wait_for_a_moment();
    loop_until_rung(fd);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void schedule_task(void *arg)
{
    uint64_t *delay = arg;
    struct bel_schedule options = {
        .due = {now() + *delay}, .kind = KIND, .priority = BEL_PRIORITY_DEFAULT, .worker = worker};
    bel_timer_t timer;
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
}

static void a_loop_of_the_program_learns_of_timers_that_others_send(void)
{
    struct actor other;
    uint64_t delays[] = {0, MS, 10 * MS};
    open_with(NULL);
    actor_start(&other);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule(KIND, HOUR);
    int fd = bel_worker_fd(worker);
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (is_readable(fd, 0)) {
            CHECK_EQ(bel_worker_poll(worker, 10), 0);
        }
        actor_begin(&other, schedule_task, &delays[i % 3]);
        loop_until_rung(fd);
        actor_await(&other);
    }
    actor_stop(&other);
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void a_descriptor_is_readable_while_there_is_something_to_poll_for(void)
{
    open_with(NULL);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    int fd = bel_worker_fd(worker);
    for (unsigned i = 0; i < 3; i++) {
        (void)schedule(KIND, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        CHECK(is_readable(fd, 0));
        CHECK_EQ(bel_worker_poll(worker, 1), 1);
    }
    while (is_readable(fd, 0)) { /* in vain at most a few times */
        CHECK_EQ(bel_worker_poll(worker, 1), 0);
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void an_inbox_is_readable_while_there_are_events(void)
{
    struct bel_event event;
    open_with(NULL);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    int fd = bel_inbox_fd(inbox);
    CHECK(!is_readable(fd, 0));
    CHECK_EQ(bel_inbox_take(inbox, &event, 1), 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 3; i++) {
            (void)schedule(KIND_INBOX, 0);
        }
        CHECK_EQ(bel_worker_poll(worker, 2), 2);
        CHECK(is_readable(fd, 0));
        CHECK_EQ(bel_inbox_take(inbox, &event, 0), 0);
        CHECK(is_readable(fd, 0));
        CHECK_EQ(bel_inbox_take(inbox, &event, 1), 1);
        CHECK(is_readable(fd, 0));
        CHECK_EQ(bel_worker_poll(worker, 10), 1);
        CHECK_EQ(bel_inbox_take(inbox, &event, 1), 1);
        CHECK(is_readable(fd, 0));
        CHECK_EQ(bel_inbox_take(inbox, &event, 1), 1);
        CHECK(!is_readable(fd, 0));
        CHECK_EQ(bel_inbox_take(inbox, &event, 1), 0);
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

/* The first poll after a wait does not tell the metronome, so the next one reads the clock
 * itself. */
static void who_has_waited_and_then_polls_now_and_then_is_not_late(void)
{
    open_with(NULL);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)schedule(KIND, 5 * MS);
        uint64_t due = now() + 5 * MS; /* or earlier: the thread may have been preempted */
        wait_for_a_moment();
        size_t rings = bel_worker_poll(worker, 10);
        while (now() < due + MS) {}
        rings += bel_worker_poll(worker, 10);
        CHECK_EQ(rings, 1);
        await_ring_in_time();
    }
    CHECK(bel_worker_leave(worker) == 0);
    close_all();
}

static void shutdown_task(void *arg)
{
    (void)arg;
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
}

static void a_loop_of_the_program_is_told_of_a_shutdown(void)
{
    struct actor other;
    open_with(NULL);
    actor_start(&other);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule(KIND, HOUR);
    int fd = bel_worker_fd(worker);
    while (is_readable(fd, 0)) {
        CHECK_EQ(bel_worker_poll(worker, 10), 0);
    }
    CHECK(bel_worker_wait(worker, (struct bel_boot){0}));
    actor_begin(&other, shutdown_task, NULL);
    CHECK(is_readable(fd, PATIENCE_S * 1000));
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    CHECK(!bel_worker_wait(worker, (struct bel_boot){0}));
    CHECK(bel_worker_leave(worker) == 0);
    actor_await(&other);
    actor_stop(&other);
    CHECK_EQ(stats().pending, 1);
    close_all();
}

static void a_worker_asleep_on_a_fake_clock_is_woken_by_a_tick(void)
{
    struct bel_clock_fake *fake;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    open_with(&options);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)schedule(KIND, HOUR);
        await_intake();
        bel_clock_fake_advance(fake, HOUR);
        (void)bel_runtime_tick(runtime);
        await_ring_in_time();
    }
    close_all();
    bel_clock_fake_destroy(fake);
}

static struct bel_clock_fake *fake_of_waiter;
static atomic_bool has_waited;

static void wait_task(void *arg)
{
    struct bel_boot *until = arg;
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    while (bel_clock_boot(bel_clock_fake_clock(fake_of_waiter)).ns < until->ns) {
        CHECK(bel_worker_wait(worker, *until));
    }
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
    atomic_store(&has_waited, true);
    while (bel_worker_poll(worker, 10) == 0) {
        CHECK(bel_worker_wait(worker, (struct bel_boot){BEL_NEVER}));
    }
    CHECK(bel_worker_leave(worker) == 0);
}

static void a_wait_on_a_fake_clock_ends_when_that_says_so(void)
{
    struct actor waiter;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake_of_waiter) == 0);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake_of_waiter),
                                          .metronome = BEL_METRONOME_MANUAL};
    open_with(&options);
    (void)schedule(KIND, HOUR);
    actor_start(&waiter);
    struct bel_boot until = {10 * S};
    atomic_store(&has_waited, false);
    actor_begin(&waiter, wait_task, &until);
    while (bel_runtime_tick(runtime).ns != until.ns) {
        (void)sched_yield();
    }
    bel_clock_fake_advance(fake_of_waiter, until.ns);
    (void)bel_runtime_tick(runtime);
    while (!atomic_load(&has_waited)) {
        (void)sched_yield();
    }
    bel_clock_fake_advance(fake_of_waiter, HOUR - until.ns);
    (void)bel_runtime_tick(runtime);
    actor_await(&waiter);
    actor_stop(&waiter);
    close_all();
    bel_clock_fake_destroy(fake_of_waiter);
}

static void a_thread_cannot_wait_for_a_clock_of_the_programs(void)
{
    struct bel_clock_fake *fake;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake)};
    CHECK(bel_runtime_create(&options, &runtime) == BEL_EINVAL);
    bel_clock_fake_destroy(fake);
}

int main(void)
{
    RUN(a_worker_asleep_for_an_hour_rings_a_timer_added_for_10_ms_in_time);
    RUN(a_worker_asleep_for_an_hour_rings_a_timer_moved_to_10_ms_in_time);
    RUN(a_loop_of_the_program_learns_of_timers_scheduled_between_polls);
    RUN(a_worker_that_has_waited_can_go_over_to_a_loop_of_the_program);
    RUN(a_loop_of_the_program_learns_of_timers_that_others_send);
    RUN(a_descriptor_is_readable_while_there_is_something_to_poll_for);
    RUN(an_inbox_is_readable_while_there_are_events);
    RUN(who_has_waited_and_then_polls_now_and_then_is_not_late);
    RUN(a_loop_of_the_program_is_told_of_a_shutdown);
    RUN(a_worker_asleep_on_a_fake_clock_is_woken_by_a_tick);
    RUN(a_wait_on_a_fake_clock_ends_when_that_says_so);
    RUN(a_thread_cannot_wait_for_a_clock_of_the_programs);
    return 0;
}
