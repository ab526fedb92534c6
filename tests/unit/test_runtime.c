/* SPDX-License-Identifier: MIT */

/*
 * One worker and its thread, on a fake clock: what a timer does without interference.
 */
#include "belfry/runtime.h"

#include "../check.h"

#include <math.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND = 7,
    LOG_MAX = 4096,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_event rung[LOG_MAX];
static size_t rung_count;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    if (rung_count < LOG_MAX) rung[rung_count] = *event;
    rung_count++;
}

static void open_runtime(void)
{
    CHECK(bel_clock_fake_create((struct bel_wall){1000000}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
    rung_count = 0;
}

static void open_all(void)
{
    open_runtime();
    CHECK(bel_worker_enter(runtime, &worker) == 0);
}

static void close_runtime(void)
{
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static void close_all(void)
{
    CHECK(bel_worker_leave(worker) == 0);
    close_runtime();
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

static size_t poll_all(void)
{
    return bel_worker_poll(worker, LOG_MAX);
}

static size_t pass(uint64_t ns)
{
    bel_clock_fake_advance(fake, ns);
    return poll_all();
}

static bel_timer_t schedule(uint64_t delay, uint64_t user)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    struct bel_schedule options = {
        .due = {now() + delay}, .kind = KIND, .user = user, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    CHECK(timer != BEL_TIMER_NONE);
    return timer;
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static void a_timer_due_exactly_now_rings(void)
{
    open_all();
    (void)schedule(5 * MS, 1);
    CHECK_EQ(pass(5 * MS - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(rung[0].user, 1);
    CHECK_EQ(rung[0].now.ns, rung[0].due.ns);
    CHECK_EQ(pass(S), 0);
    close_all();
}

/* More than a worker keeps of those that it has cancelled. */
static void a_timer_in_the_memory_of_a_cancelled_one_rings_when_it_is_due_itself(void)
{
    enum {
        COUNT = 40,
    };
    bel_timer_t timers[COUNT];
    open_all();
    for (unsigned count = 1; count <= COUNT; count++) {
        for (unsigned i = 0; i < count; i++) {
            timers[i] = schedule(5 * MS, 1);
        }
        for (unsigned i = 0; i < count; i++) {
            CHECK(bel_runtime_cancel(runtime, timers[i]));
            timers[i] = schedule(9 * MS, 2);
        }
        CHECK_EQ(pass(5 * MS), 0);
        CHECK_EQ(pass(4 * MS), count);
    }
    CHECK_EQ(stats().stale, 0);
    close_all();
}

static bel_timer_t rival;

static void cancel_rival(void *context, const struct bel_event *event)
{
    ring(context, event);
    CHECK(bel_runtime_cancel(runtime, rival));
    rival = schedule(S, 2);
}

static void a_callback_cancels_the_next_and_schedules_in_its_place(void)
{
    bel_timer_t timer;
    open_all();
    CHECK(bel_runtime_on(runtime, KIND + 1, cancel_rival, NULL) == 0);
    struct bel_schedule options = {.due = {now() + 5 * MS}, .kind = KIND + 1};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    rival = schedule(5 * MS, 1);
    CHECK_EQ(pass(5 * MS), 1);
    CHECK(bel_worker_next(worker).ns > now());
    CHECK(bel_runtime_cancel(runtime, rival));
    CHECK_EQ(bel_worker_next(worker).ns, BEL_NEVER);
    close_all();
}

static void timers_at_150_50_100_arrive_50_100_150(void)
{
    open_all();
    (void)schedule(150 * MS, 150);
    (void)schedule(50 * MS, 50);
    (void)schedule(100 * MS, 100);
    CHECK_EQ(pass(S), 3);
    CHECK_EQ(rung[0].user, 50);
    CHECK_EQ(rung[1].user, 100);
    CHECK_EQ(rung[2].user, 150);
    close_all();
}

static void five_timers_with_equal_due_arrive_in_insertion_order(void)
{
    open_all();
    for (uint64_t i = 0; i < 5; i++) {
        (void)schedule(50 * MS, i);
    }
    CHECK_EQ(pass(50 * MS), 5);
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_EQ(rung[i].user, i);
    }
    close_all();
}

static void a_lower_priority_number_goes_first_among_equals(void)
{
    open_all();
    bel_timer_t timer;
    for (unsigned i = 0; i < 4; i++) {
        struct bel_schedule options = {
            .due = {now() + MS}, .kind = KIND, .user = i, .priority = (uint8_t)(40 - 10 * i)};
        CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    }
    CHECK_EQ(pass(MS), 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(rung[i].user, 3 - i);
    }
    close_all();
}

static void a_delay_of_zero_negative_or_nan_rings_on_the_next_poll(void)
{
    static const double delays[] = {0.0, -0.0, -5.5, (double)NAN, -(double)INFINITY};
    open_all();
    struct bel_schedule options = {.kind = KIND};
    for (unsigned i = 0; i < 5; i++) {
        uint64_t delay = 99;
        bel_timer_t timer;
        CHECK(bel_delay_from_seconds(delays[i], &delay) == 0);
        CHECK_EQ(delay, 0);
        CHECK(bel_runtime_schedule_after(runtime, delay, &options, &timer) == 0);
        CHECK_EQ(poll_all(), 1);
    }
    close_all();
}

static void a_delay_too_large_to_represent_is_an_error_and_never_is_no_delay(void)
{
    open_all();
    uint64_t delay = 7;
    bel_timer_t timer = 3;
    struct bel_schedule options = {.kind = KIND, .due = {BEL_NEVER}};
    CHECK(bel_delay_from_seconds((double)INFINITY, &delay) == BEL_ERANGE);
    CHECK(bel_delay_from_seconds(1.9e10, &delay) == BEL_ERANGE);
    CHECK_EQ(delay, 7);
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == BEL_ERANGE);
    CHECK(bel_runtime_schedule_after(runtime, UINT64_MAX - 1, &options, &timer) == BEL_ERANGE);
    CHECK(bel_runtime_schedule_after(runtime, BEL_NEVER, &options, &timer) == BEL_ERANGE);
    CHECK_EQ(timer, 3);
    CHECK_EQ(stats().scheduled, 0);
    close_all();
}

static void cancel_is_true_only_for_the_pending_to_cancelled_transition(void)
{
    open_all();
    bel_timer_t cancelled = schedule(MS, 1), fired = schedule(MS, 2);
    CHECK(bel_runtime_cancel(runtime, cancelled));
    CHECK(!bel_runtime_cancel(runtime, cancelled));
    CHECK_EQ(pass(MS), 1);
    CHECK(!bel_runtime_cancel(runtime, fired));
    bel_timer_t drained = schedule(MS, 3);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    CHECK(!bel_runtime_cancel(runtime, drained));
    CHECK(!bel_runtime_cancel(runtime, BEL_TIMER_NONE));
    CHECK(!bel_runtime_cancel(runtime, UINT64_MAX));
    close_runtime();
}

static void the_handle_of_another_runtime_cancels_nothing(void)
{
    open_all();
    struct bel_runtime *other;
    bel_timer_t mine = schedule(MS, 1), theirs;
    CHECK(bel_runtime_create(NULL, &other) == 0);
    CHECK(bel_runtime_on(other, KIND, ring, NULL) == 0);
    struct bel_schedule options = {.kind = KIND, .due = {1}};
    CHECK(bel_runtime_schedule(other, &options, &theirs) == 0);
    CHECK(!bel_runtime_cancel(other, mine));
    CHECK(!bel_runtime_cancel(runtime, theirs));
    CHECK(bel_runtime_cancel(runtime, mine));
    CHECK(bel_runtime_cancel(other, theirs));
    bel_runtime_destroy(other);
    close_all();
}

static void rescheduling_keeps_the_handle_and_the_old_entry_never_fires(void)
{
    open_all();
    bel_timer_t timer = schedule(10 * MS, 1);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + 30 * MS}) == 0);
    CHECK_EQ(pass(10 * MS), 0);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + 5 * MS}) == 0);
    CHECK_EQ(pass(5 * MS), 1);
    CHECK_EQ(rung[0].timer, timer);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now()}) == BEL_ESTALE);
    CHECK(bel_runtime_reschedule(runtime, 12345, (struct bel_boot){now()}) == BEL_ESTALE);
    CHECK_EQ(pass(S), 0);
    CHECK_EQ(stats().rescheduled, 2);
    close_all();
}

static void a_clock_that_jumps_rings_everything_between_once_and_in_order(void)
{
    open_all();
    for (uint64_t i = 0; i < 120; i++) {
        (void)schedule((120 - i) * MS, 120 - i);
    }
    CHECK_EQ(pass(12 * MS), 12);
    CHECK_EQ(pass(108 * MS), 108);
    for (uint64_t i = 0; i < 120; i++) {
        CHECK_EQ(rung[i].user, i + 1);
    }
    close_all();
}

static void a_poll_budget_of_one_rings_the_first_then_the_second(void)
{
    open_all();
    (void)schedule(5 * MS, 5);
    (void)schedule(6 * MS, 6);
    bel_clock_fake_advance(fake, 10 * MS);
    CHECK_EQ(bel_worker_poll(worker, 1), 1);
    CHECK(bel_worker_next(worker).ns <= now());
    CHECK_EQ(bel_worker_poll(worker, 1), 1);
    CHECK_EQ(rung[0].user, 5);
    CHECK_EQ(rung[1].user, 6);
    close_all();
}

static void a_deadline_already_past_rings_on_the_next_poll(void)
{
    open_all();
    bel_timer_t timer;
    struct bel_schedule options = {.due = {now() - S}, .kind = KIND};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    CHECK_EQ(poll_all(), 1);
    close_all();
}

static void a_thousand_pending_timers_are_counted_exactly(void)
{
    static bel_timer_t timers[1000];
    open_all();
    for (uint64_t i = 0; i < 1000; i++) {
        timers[i] = schedule(S + i, i);
    }
    CHECK_EQ(stats().pending, 1000);
    for (unsigned i = 0; i < 1000; i += 2) {
        CHECK(bel_runtime_cancel(runtime, timers[i]));
    }
    CHECK_EQ(stats().pending, 500);
    CHECK_EQ(pass(2 * S), 500);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().scheduled, 1000);
    CHECK_EQ(stats().fired, 500);
    CHECK_EQ(stats().cancelled, 500);
    close_all();
}

static void scheduling_works_before_while_and_after_the_loop_runs(void)
{
    open_runtime();
    (void)schedule(MS, 1); /* there is no worker */
    CHECK_EQ(stats().unowned, 1);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(pass(MS), 1);
    (void)schedule(MS, 2);
    CHECK_EQ(pass(MS), 1);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == 0);
    (void)schedule(MS, 3);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(pass(MS), 1);
    CHECK_EQ(rung[2].user, 3);
    close_all();
}

static void scheduling_works_after_a_shutdown_that_left_nothing(void)
{
    static const enum bel_shutdown hows[] = {BEL_SHUTDOWN_FIRE, BEL_SHUTDOWN_DISCARD};
    for (size_t i = 0; i < 2; i++) {
        open_all();
        (void)schedule(2 * MS, 1);
        CHECK(bel_runtime_shutdown(runtime, hows[i], NULL) == 0);
        rung_count = 0;
        bel_timer_t timer = schedule(MS, 2);
        CHECK(bel_runtime_is_pending(runtime, timer));
        CHECK(bel_worker_enter(runtime, &worker) == 0);
        (void)schedule(2 * MS, 3);
        CHECK_EQ(pass(MS), 1);
        CHECK_EQ(pass(S), 1);
        CHECK_EQ(rung[0].user, 2);
        CHECK_EQ(rung[1].user, 3);
        CHECK_EQ(stats().pending, 0);
        close_all();
    }
}

static void shutdown_fire_delivers_3_4_5_8_at_once_and_nothing_is_left(void)
{
    open_all();
    (void)schedule(5 * S, 5);
    (void)schedule(3 * S, 3);
    (void)schedule(8 * S, 8);
    bel_timer_t cancelled = schedule(1 * S, 1);
    (void)schedule(4 * S, 4);
    CHECK(bel_runtime_cancel(runtime, cancelled));
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    CHECK_EQ(rung_count, 4);
    CHECK_EQ(rung[0].user, 3);
    CHECK_EQ(rung[1].user, 4);
    CHECK_EQ(rung[2].user, 5);
    CHECK_EQ(rung[3].user, 8);
    CHECK(rung[0].now.ns == now() && rung[0].due.ns == now() + 3 * S);
    CHECK_EQ(stats().pending, 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_FIRE, NULL) == 0);
    CHECK_EQ(rung_count, 4);
    close_runtime();
}

static void shutdown_discard_ends_timers_and_counts_them(void)
{
    open_all();
    bel_timer_t timer = schedule(S, 1);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_DISCARD, NULL) == 0);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().cancelled, 1);
    CHECK(!bel_runtime_cancel(runtime, timer));
    close_runtime();
}

static void shutdown_migrate_moves_timers_to_another_runtime(void)
{
    struct bel_runtime *other;
    struct bel_runtime_stats there;
    open_all();
    bel_timer_t first = schedule(S, 1);
    (void)schedule(2 * S, 2);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &other) == 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_MIGRATE, NULL) == BEL_EINVAL);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_MIGRATE, other) == BEL_EINVAL);
    CHECK_EQ(stats().pending, 2); /* the kind is not registered there: the timers stay */
    CHECK(bel_runtime_on(other, KIND, ring, NULL) == 0);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_MIGRATE, other) == 0);
    CHECK_EQ(stats().pending, 0);
    CHECK(!bel_runtime_cancel(runtime, first) && !bel_runtime_cancel(other, first));
    CHECK(bel_runtime_reschedule(runtime, first, (struct bel_boot){now()}) == BEL_ESTALE);
    CHECK(bel_runtime_reschedule(other, first, (struct bel_boot){now()}) == BEL_ESTALE);
    bel_runtime_stats(other, NULL, &there);
    CHECK_EQ(there.pending, 2);
    struct bel_worker *second;
    CHECK(bel_worker_enter(other, &second) == 0);
    bel_clock_fake_advance(fake, 2 * S);
    CHECK_EQ(bel_worker_poll(second, 10), 2);
    CHECK_EQ(rung[0].user, 1);
    CHECK_EQ(rung[1].user, 2);
    CHECK(bel_worker_leave(second) == 0);
    bel_runtime_destroy(other);
    close_runtime();
}

static void bad_use_has_an_answer_and_changes_nothing(void)
{
    open_all();
    bel_timer_t timer = 3;
    struct bel_worker *again;
    struct bel_runtime *none = NULL;
    struct bel_schedule unknown = {.kind = KIND + 1}, large = {.kind = BEL_KINDS_MAX},
                        beatless = {.kind = KIND, .repeat = BEL_RATE_SKIP},
                        odd = {.kind = KIND, .repeat = 9, .period_ns = 1};
    CHECK(bel_runtime_schedule(runtime, &unknown, &timer) == BEL_EINVAL);
    CHECK(bel_runtime_schedule(runtime, &large, &timer) == BEL_EINVAL);
    CHECK(bel_runtime_schedule(runtime, &beatless, &timer) == BEL_EINVAL);
    CHECK(bel_runtime_schedule(runtime, &odd, &timer) == BEL_EINVAL);
    CHECK_EQ(timer, 3);
    CHECK(bel_worker_enter(runtime, &again) == BEL_EBUSY);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == BEL_EINVAL);
    CHECK(bel_runtime_on(runtime, BEL_KINDS_MAX, ring, NULL) == BEL_EINVAL);
    CHECK(bel_runtime_on(runtime, 1, NULL, NULL) == BEL_EINVAL);
    struct bel_runtime_options options = {.timers_max = UINT32_MAX};
    CHECK(bel_runtime_create(&options, &none) == BEL_EINVAL);
    CHECK(none == NULL);
    bel_runtime_destroy(NULL);
    close_all();
}

static void one_million_schedule_and_cancel_pairs_leave_memory_where_it_was(void)
{
    open_all();
    for (unsigned i = 0; i < 1000; i++) {
        CHECK(bel_runtime_cancel(runtime, schedule(S + i, i)));
    }
    (void)poll_all();
    uint64_t before = stats().garbage;
    for (unsigned i = 0; i < 1000000; i++) {
        CHECK(bel_runtime_cancel(runtime, schedule(S + i, i)));
    }
    CHECK_EQ(stats().garbage, before);
    CHECK_EQ(stats().pending, 0);
    bel_timer_t last = schedule(S, 0);
    CHECK((uint32_t)last < 256); /* few records are reused */
    close_all();
}

/* Callbacks that use the runtime. */

static bel_timer_t own;
static int answer;

static void ring_and_cancel_itself(void *context, const struct bel_event *event)
{
    (void)context;
    CHECK(!bel_runtime_cancel(runtime, event->timer));
    answer = bel_runtime_cancel_sync(runtime, event->timer);
    CHECK(bel_worker_leave(worker) == BEL_EBUSY);
    CHECK(bel_runtime_shutdown(runtime, BEL_SHUTDOWN_KEEP, NULL) == BEL_EBUSY);
    CHECK_EQ(bel_worker_poll(worker, 10), 0);
}

static void cancel_sync_refuses_from_inside_the_callback(void)
{
    open_all();
    CHECK(bel_runtime_on(runtime, 1, ring_and_cancel_itself, NULL) == 0);
    struct bel_schedule options = {.due = {now()}, .kind = 1};
    CHECK(bel_runtime_schedule(runtime, &options, &own) == 0);
    CHECK_EQ(poll_all(), 1);
    CHECK(answer == BEL_EBUSY);
    CHECK(bel_runtime_cancel_sync(runtime, own) == BEL_ESTALE);
    bel_timer_t timer = schedule(S, 1);
    CHECK(bel_runtime_cancel_sync(runtime, timer) == 0);
    CHECK(bel_runtime_cancel_sync(runtime, timer) == BEL_ESTALE);
    close_all();
}

static void ring_and_schedule(void *context, const struct bel_event *event)
{
    (void)context;
    rung_count++;
    struct bel_schedule options = {.due = event->due, .kind = 1};
    if (rung_count < 3) CHECK(bel_runtime_schedule(runtime, &options, &own) == 0);
}

static void a_callback_may_schedule(void)
{
    open_all();
    CHECK(bel_runtime_on(runtime, 1, ring_and_schedule, NULL) == 0);
    struct bel_schedule options = {.due = {now()}, .kind = 1};
    CHECK(bel_runtime_schedule(runtime, &options, &own) == 0);
    CHECK_EQ(poll_all(), 3);
    CHECK_EQ(rung_count, 3);
    close_all();
}

static void a_pending_timer_can_be_found_and_one_that_ended_cannot(void)
{
    struct bel_pending found = {.user = 99};
    open_all();
    bel_timer_t timer = schedule(5 * S, 42);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK(found.timer == timer);
    CHECK_EQ(found.user, 42);
    CHECK_EQ(found.due.ns, now() + 5 * S);
    CHECK_EQ(found.remaining_ns, 5 * S);
    CHECK_EQ(found.kind, KIND);
    CHECK_EQ(found.priority, BEL_PRIORITY_DEFAULT);
    CHECK_EQ(found.repeat, BEL_ONCE);
    CHECK_EQ(found.period_ns, 0);
    CHECK(!found.is_wall);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){now() + S}) == 0);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK_EQ(found.remaining_ns, S);
    bel_clock_fake_advance(fake, 2 * S);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK_EQ(found.remaining_ns, 0);
    CHECK_EQ(poll_all(), 1);
    found.user = 99;
    CHECK(!bel_runtime_find(runtime, timer, &found));
    (void)schedule(S, 1); /* in its memory */
    CHECK(!bel_runtime_find(runtime, timer, &found));
    CHECK(!bel_runtime_find(runtime, BEL_TIMER_NONE, &found));
    CHECK(!bel_runtime_find(runtime, UINT64_MAX, &found));
    CHECK_EQ(found.user, 99);
    close_all();
}

static void a_walk_visits_every_pending_timer_in_the_order_of_their_dues(void)
{
    struct bel_runtime_walk *walk;
    struct bel_pending found;
    bel_timer_t timer;
    open_all();
    CHECK(bel_runtime_walk_open(runtime, &walk) == 0);
    CHECK(!bel_runtime_walk_next(walk, &found));
    bel_runtime_walk_close(walk);
    for (uint64_t i = 0; i < 1000; i++) {
        timer = schedule((1 + i * 7919 % 1000) * MS, i * 7919 % 1000);
        if (i % 10 == 0) CHECK(bel_runtime_cancel(runtime, timer));
    }
    struct bel_schedule beat = {
        .due = {now() + S}, .kind = KIND, .user = 5000, .repeat = BEL_RATE_SKIP, .period_ns = S};
    CHECK(bel_runtime_schedule(runtime, &beat, &timer) == 0);
    struct bel_schedule wall = {.wall_ms = 1000000 + 20000, .kind = KIND, .user = 5001};
    CHECK(bel_runtime_schedule_wall(runtime, &wall, &timer) == 0);
    CHECK(bel_runtime_walk_open(runtime, &walk) == 0);
    CHECK(bel_runtime_cancel(runtime, timer)); /* the walk is of the moment when it was opened */
    uint64_t count = 0, last = 0;
    while (bel_runtime_walk_next(walk, &found)) {
        CHECK(found.due.ns >= last);
        CHECK_EQ(found.remaining_ns, found.due.ns - now());
        CHECK_EQ(bel_runtime_is_pending(runtime, found.timer), found.user != 5001);
        if (found.user < 5000) CHECK_EQ(found.remaining_ns, (1 + found.user) * MS);
        if (found.user == 5000) CHECK_EQ(found.period_ns, S);
        CHECK_EQ(found.is_wall, found.user == 5001);
        if (found.is_wall) CHECK(found.wall.ms == 1000000 + 20000);
        last = found.due.ns;
        count++;
    }
    CHECK_EQ(count, 902);
    bel_runtime_walk_close(walk);
    bel_runtime_walk_close(NULL);
    close_all();
}

static bel_timer_t schedule_wall(int64_t wall_ms, uint64_t user)
{
    bel_timer_t timer;
    struct bel_schedule options = {
        .wall_ms = wall_ms, .kind = KIND, .user = user, .priority = BEL_PRIORITY_DEFAULT};
    CHECK(bel_runtime_schedule_wall(runtime, &options, &timer) == 0);
    return timer;
}

/* The wall clock is at 1,010 s after open_all(). */
static void a_timer_for_a_wall_time_follows_the_clock_when_it_is_set(void)
{
    struct bel_pending found;
    open_all();
    bel_timer_t timer = schedule_wall(1070000, 1); /* in a minute */
    bel_timer_t moved = schedule_wall(1070000, 2), plain = schedule(60 * S, 3);
    CHECK(bel_runtime_reschedule(runtime, moved, (struct bel_boot){now() + 60 * S}) == 0);
    (void)bel_runtime_tick(runtime);
    bel_clock_fake_step(fake, -30000); /* half a minute back */
    (void)bel_runtime_tick(runtime);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK(found.is_wall);
    CHECK_EQ(found.remaining_ns, 90 * S);
    CHECK(bel_runtime_find(runtime, moved, &found));
    CHECK_EQ(found.remaining_ns, 60 * S);
    bel_clock_fake_step(fake, 80000); /* and 80 s forward */
    (void)bel_runtime_tick(runtime);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK_EQ(found.remaining_ns, 10 * S);
    CHECK_EQ(pass(10 * S - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(rung[0].user, 1);
    (void)schedule_wall(1130000, 4);
    bel_clock_fake_step(fake, 3600000); /* past it: it is due at once */
    (void)bel_runtime_tick(runtime);
    CHECK_EQ(poll_all(), 1);
    CHECK_EQ(rung[1].user, 4);
    CHECK(bel_runtime_is_pending(runtime, plain));
    CHECK_EQ(pass(50 * S), 2);
    close_all();
}

static void suspend_and_time_that_passes_are_no_steps_of_the_clock(void)
{
    struct bel_pending found;
    open_all();
    bel_timer_t timer = schedule_wall(1070000, 1);
    for (unsigned i = 0; i < 30; i++) {
        bel_clock_fake_advance(fake, 999999999);
        bel_clock_fake_suspend(fake, 1);
        (void)bel_runtime_tick(runtime);
        CHECK(bel_runtime_find(runtime, timer, &found));
        CHECK_EQ(found.remaining_ns, (59 - i) * S);
    }
    CHECK_EQ(stats().rescheduled, 0);
    close_all();
}

/* Timers of others, of any worker and without a worker follow too. */
static void timers_for_wall_times_follow_wherever_they_are(void)
{
    open_runtime();
    (void)schedule_wall(1070000, 1); /* no worker yet */
    bel_clock_fake_step(fake, -60000);
    (void)bel_runtime_tick(runtime);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    (void)schedule_wall(1070000, 2); /* its own */
    struct bel_schedule beat = {.wall_ms = 1070000,
                                .kind = KIND,
                                .user = 3,
                                .repeat = BEL_RATE_SKIP,
                                .period_ns = 3600 * S};
    bel_timer_t timer;
    CHECK(bel_runtime_schedule_wall(runtime, &beat, &timer) == 0);
    CHECK_EQ(pass(60 * S), 0);
    bel_clock_fake_step(fake, 3600000);
    (void)bel_runtime_tick(runtime);
    CHECK_EQ(poll_all(), 3);
    struct bel_pending found; /* the next beat is an hour later, by both clocks */
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK_EQ(found.remaining_ns, 3600 * S);
    bel_clock_fake_step(fake, 1800000);
    (void)bel_runtime_tick(runtime);
    CHECK(bel_runtime_find(runtime, timer, &found));
    CHECK_EQ(found.remaining_ns, 1800 * S);
    close_all();
}

int main(void)
{
    RUN(a_timer_due_exactly_now_rings);
    RUN(a_timer_in_the_memory_of_a_cancelled_one_rings_when_it_is_due_itself);
    RUN(a_callback_cancels_the_next_and_schedules_in_its_place);
    RUN(timers_at_150_50_100_arrive_50_100_150);
    RUN(five_timers_with_equal_due_arrive_in_insertion_order);
    RUN(a_lower_priority_number_goes_first_among_equals);
    RUN(a_delay_of_zero_negative_or_nan_rings_on_the_next_poll);
    RUN(a_delay_too_large_to_represent_is_an_error_and_never_is_no_delay);
    RUN(cancel_is_true_only_for_the_pending_to_cancelled_transition);
    RUN(the_handle_of_another_runtime_cancels_nothing);
    RUN(rescheduling_keeps_the_handle_and_the_old_entry_never_fires);
    RUN(a_clock_that_jumps_rings_everything_between_once_and_in_order);
    RUN(a_poll_budget_of_one_rings_the_first_then_the_second);
    RUN(a_deadline_already_past_rings_on_the_next_poll);
    RUN(a_thousand_pending_timers_are_counted_exactly);
    RUN(scheduling_works_before_while_and_after_the_loop_runs);
    RUN(scheduling_works_after_a_shutdown_that_left_nothing);
    RUN(shutdown_fire_delivers_3_4_5_8_at_once_and_nothing_is_left);
    RUN(shutdown_discard_ends_timers_and_counts_them);
    RUN(shutdown_migrate_moves_timers_to_another_runtime);
    RUN(bad_use_has_an_answer_and_changes_nothing);
    RUN(one_million_schedule_and_cancel_pairs_leave_memory_where_it_was);
    RUN(cancel_sync_refuses_from_inside_the_callback);
    RUN(a_callback_may_schedule);
    RUN(a_pending_timer_can_be_found_and_one_that_ended_cannot);
    RUN(a_timer_for_a_wall_time_follows_the_clock_when_it_is_set);
    RUN(suspend_and_time_that_passes_are_no_steps_of_the_clock);
    RUN(timers_for_wall_times_follow_wherever_they_are);
    RUN(a_walk_visits_every_pending_timer_in_the_order_of_their_dues);
    return 0;
}
