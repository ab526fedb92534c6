/* SPDX-License-Identifier: MIT */

/*
 * Repeating timers: the arithmetic alone, compared with a loop over single periods; then in a
 * runtime with one worker, on a fake clock.
 */
#include "belfry/runtime.h"

#include "runtime/repeat.h"

#include "../check.h"
#include "../random.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MS   UINT64_C(1000000)
#define S    (1000 * MS)
#define LAST (BEL_NEVER - 1) /* instant */

enum {
    KIND = 7,
    KIND_BOXED = 8,
    LOG_MAX = 4096,
    BEATS = 1000,
    CASES = 2000,
    ROUNDS = 500,
    POLLS_MAX = 10000000, /* while another thread runs */
};

static const enum bel_repeat rates[] = {BEL_RATE_SKIP, BEL_RATE_BURST, BEL_RATE_DELAY};

/*
 * The arithmetic.
 */

static uint64_t next_of(enum bel_repeat repeat, uint64_t due, uint64_t period, uint64_t now)
{
    struct beat beat = {due, period, now, now, repeat};
    return bel__repeat_next(&beat);
}

static uint64_t missed_of(enum bel_repeat repeat, uint64_t due, uint64_t period, uint64_t now)
{
    struct beat beat = {due, period, now, now, repeat};
    return bel__repeat_missed(&beat);
}

static void a_ring_in_time_is_followed_by_the_next_beat(void)
{
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(next_of(rates[i], 100, 10, 100), 110);
        CHECK_EQ(next_of(rates[i], 100, 10, 109), 110);
        CHECK_EQ(missed_of(rates[i], 100, 10, 109), 0);
    }
    CHECK_EQ(next_of(BEL_DELAY, 100, 10, 109), 119);
}

static void a_beat_that_is_due_at_the_ring_has_passed(void)
{
    CHECK_EQ(missed_of(BEL_RATE_SKIP, 100, 10, 110), 1);
    CHECK_EQ(next_of(BEL_RATE_SKIP, 100, 10, 110), 120);
    CHECK_EQ(next_of(BEL_RATE_BURST, 100, 10, 110), 110);
    CHECK_EQ(next_of(BEL_RATE_DELAY, 100, 10, 110), 120);
    CHECK_EQ(missed_of(BEL_RATE_BURST, 100, 10, 110), 0);
    CHECK_EQ(missed_of(BEL_DELAY, 100, 10, 110), 0);
}

static void a_ring_before_its_due_misses_nothing(void)
{
    CHECK_EQ(missed_of(BEL_RATE_SKIP, 100, 10, 0), 0);
    CHECK_EQ(next_of(BEL_RATE_SKIP, 100, 10, 0), 110);
    CHECK_EQ(next_of(BEL_RATE_DELAY, 100, 10, 0), 110);
}

static void what_would_be_after_the_last_instant_is_the_last_instant(void)
{
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(next_of(rates[i], LAST, 1, LAST), LAST);
        CHECK_EQ(next_of(rates[i], LAST - 1, 1, LAST - 1), LAST);
        CHECK_EQ(next_of(rates[i], LAST - 1, 2, LAST - 1), LAST);
        CHECK_EQ(next_of(rates[i], 0, LAST, 0), LAST);
        CHECK_EQ(next_of(rates[i], 0, UINT64_MAX, LAST), LAST);
        CHECK_EQ(next_of(rates[i], 1, LAST, 5), LAST);
    }
    CHECK_EQ(next_of(BEL_DELAY, 0, 1, LAST), LAST);
    CHECK_EQ(next_of(BEL_DELAY, 0, UINT64_MAX, 0), LAST);
    CHECK_EQ(missed_of(BEL_RATE_SKIP, 0, 1, LAST), LAST);
    CHECK_EQ(next_of(BEL_RATE_SKIP, 0, 1, LAST), LAST);
    CHECK_EQ(next_of(BEL_RATE_SKIP, 0, 2, LAST), LAST);
    CHECK_EQ(missed_of(BEL_RATE_SKIP, 0, UINT64_MAX, LAST), 0);
}

static uint64_t after(uint64_t time, uint64_t span)
{
    return span > LAST - time ? LAST : time + span;
}

/* Compares with a loop over single periods. */
static void check_beat(const struct beat *beat)
{
    uint64_t passed = beat->due, missed = 0;
    bool leaves_out = beat->repeat == BEL_RATE_SKIP || beat->repeat == BEL_RATE_DELAY;
    while (leaves_out && beat->now - passed >= beat->period_ns) {
        passed += beat->period_ns;
        missed++;
    }
    CHECK_EQ(bel__repeat_missed(beat), missed);
    uint64_t next = bel__repeat_next(beat);
    if (beat->repeat == BEL_DELAY) {
        CHECK_EQ(next, after(beat->end, beat->period_ns));
    } else if (beat->repeat == BEL_RATE_DELAY && missed > 0) {
        CHECK_EQ(next, after(beat->now, beat->period_ns));
    } else {
        CHECK_EQ(next, after(passed, beat->period_ns));
    }
}

static void random_beats_agree_with_a_loop(void)
{
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        uint64_t state = seed;
        CHECK_NOTE("seed %" PRIu64, seed);
        uint64_t base = random_below(&state, 2) == 0 ? 0 : LAST - 600;
        struct beat beat = {.due = base + random_below(&state, 200)};
        beat.period_ns = 1 + random_below(&state, 40);
        beat.now = beat.due + random_below(&state, 300);
        beat.end = beat.now + random_below(&state, 100);
        beat.repeat = (enum bel_repeat)(BEL_RATE_SKIP + random_below(&state, 4));
        check_beat(&beat);
        beat.period_ns = random_u64(&state) >> random_below(&state, 12) | UINT64_C(1) << 40;
        check_beat(&beat);
    }
    CHECK_NOTE("%s", "");
}

/*
 * In a runtime.
 */

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_inbox *inbox;
static struct bel_event rung[LOG_MAX];
static size_t rung_count;
static uint64_t start;

/* What a callback does besides recording its event. */
static uint64_t work_ns;
static bool cancels, moves, asks_to_wait;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    CHECK(rung_count < LOG_MAX);
    rung[rung_count++] = *event;
    if (work_ns > 0) bel_clock_fake_advance(fake, work_ns);
    CHECK(bel_runtime_is_pending(runtime, event->timer));
    if (moves) CHECK(bel_runtime_reschedule(runtime, event->timer, event->due) == BEL_EBUSY);
    if (asks_to_wait) CHECK(bel_runtime_cancel_sync(runtime, event->timer) == BEL_EBUSY);
    if (!cancels) return;
    CHECK(bel_runtime_cancel(runtime, event->timer));
    CHECK(!bel_runtime_cancel(runtime, event->timer));
    CHECK(!bel_runtime_is_pending(runtime, event->timer));
    CHECK(bel_runtime_reschedule(runtime, event->timer, event->due) == BEL_ESTALE);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

static struct bel_runtime *make_runtime(uint32_t timers_max)
{
    struct bel_runtime *made;
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .timers_max = timers_max,
                                          .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&options, &made) == 0);
    CHECK(bel_runtime_on(made, KIND, ring, NULL) == 0);
    return made;
}

static void open_with(uint32_t timers_max)
{
    CHECK(bel_clock_fake_create((struct bel_wall){1000000}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    runtime = make_runtime(timers_max);
    CHECK(bel_inbox_create(runtime, &inbox) == 0);
    CHECK(bel_runtime_on_inbox(runtime, KIND_BOXED, inbox) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    rung_count = 0;
    work_ns = 0;
    cancels = moves = asks_to_wait = false;
    start = now();
}

static void open_all(void)
{
    open_with(0);
}

static void close_all(void)
{
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static size_t pass(uint64_t ns)
{
    bel_clock_fake_advance(fake, ns);
    return bel_worker_poll(worker, LOG_MAX);
}

/* First due in 10 ms, then with a period of 10 ms. */
static bel_timer_t repeat(bel_kind_t kind, enum bel_repeat how)
{
    bel_timer_t timer = BEL_TIMER_NONE;
    struct bel_schedule options = {.due = {now() + 10 * MS},
                                   .period_ns = 10 * MS,
                                   .kind = kind,
                                   .user = 42,
                                   .repeat = (uint8_t)how};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    return timer;
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static void a_fixed_rate_does_not_drift_over_a_thousand_late_rings(void)
{
    for (unsigned i = 0; i < 3; i++) {
        uint64_t state = i;
        open_all();
        bel_timer_t timer = repeat(KIND, rates[i]);
        for (uint64_t beat = 1; beat <= BEATS; beat++) {
            uint64_t late = random_below(&state, 10 * MS);
            CHECK_EQ(pass(start + beat * 10 * MS + late - now()), 1);
            CHECK_EQ(rung[beat - 1].due.ns, start + beat * 10 * MS);
            CHECK_EQ(rung[beat - 1].now.ns, now());
            CHECK_EQ(rung[beat - 1].missed, 0);
            CHECK_EQ(rung[beat - 1].timer, timer);
        }
        CHECK_EQ(stats().fired, BEATS);
        CHECK_EQ(stats().scheduled, 1);
        CHECK_EQ(stats().pending, 1);
        close_all();
    }
}

static void skip_leaves_out_what_was_missed_and_keeps_the_beat(void)
{
    open_all();
    (void)repeat(KIND, BEL_RATE_SKIP);
    CHECK_EQ(pass(35 * MS), 1); /* two and a half periods late */
    CHECK_EQ(rung[0].due.ns, start + 10 * MS);
    CHECK_EQ(rung[0].missed, 2);
    CHECK_EQ(pass(5 * MS - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(rung[1].due.ns, start + 40 * MS);
    CHECK_EQ(rung[1].missed, 0);
    CHECK_EQ(pass(3600 * S), 1);
    CHECK_EQ(rung[2].missed, 359999);
    close_all();
}

static void burst_rings_for_each_beat_that_was_missed(void)
{
    open_all();
    (void)repeat(KIND, BEL_RATE_BURST);
    CHECK_EQ(pass(35 * MS), 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(rung[i].due.ns, start + (i + 1) * (10 * MS));
        CHECK_EQ(rung[i].now.ns, now());
        CHECK_EQ(rung[i].missed, 0);
    }
    CHECK_EQ(pass(5 * MS), 1);
    close_all();
}

static void a_burst_leaves_room_for_others_between_polls(void)
{
    open_all();
    (void)repeat(KIND, BEL_RATE_BURST);
    bel_clock_fake_advance(fake, 100 * MS);
    for (unsigned i = 1; i <= 10; i++) {
        CHECK(bel_worker_next(worker).ns <= now());
        CHECK_EQ(bel_worker_poll(worker, 1), 1);
        CHECK_EQ(rung[i - 1].due.ns, start + i * (10 * MS));
    }
    CHECK_EQ(bel_worker_poll(worker, 1), 0);
    close_all();
}

static void delay_starts_the_beat_anew_when_one_was_missed(void)
{
    open_all();
    (void)repeat(KIND, BEL_RATE_DELAY);
    CHECK_EQ(pass(19 * MS), 1); /* late, but none was missed */
    CHECK_EQ(rung[0].missed, 0);
    CHECK_EQ(pass(1 * MS), 1);
    CHECK_EQ(pass(25 * MS), 1);
    CHECK_EQ(rung[2].due.ns, start + 30 * MS);
    CHECK_EQ(rung[2].missed, 1);
    CHECK_EQ(pass(10 * MS - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(rung[3].due.ns, start + 55 * MS);
    close_all();
}

static void a_fixed_delay_counts_from_the_end_of_the_callback(void)
{
    open_all();
    work_ns = 7 * MS;
    (void)repeat(KIND, BEL_DELAY);
    CHECK_EQ(pass(12 * MS), 1); /* 2 late, and it takes 7 */
    CHECK_EQ(rung[0].now.ns, start + 12 * MS);
    CHECK_EQ(now(), start + 19 * MS);
    CHECK_EQ(pass(10 * MS - 1), 0);
    CHECK_EQ(pass(1), 1);
    CHECK_EQ(rung[1].due.ns, start + 29 * MS);
    CHECK_EQ(rung[1].missed, 0);
    close_all();
}

static void a_rate_does_not_wait_for_a_slow_callback(void)
{
    open_all();
    work_ns = 7 * MS;
    (void)repeat(KIND, BEL_RATE_SKIP);
    CHECK_EQ(pass(10 * MS), 1);
    CHECK_EQ(pass(3 * MS), 1);
    CHECK_EQ(rung[1].due.ns, start + 20 * MS);
    close_all();
}

static void the_handle_stays_valid_over_beats(void)
{
    open_all();
    bel_timer_t timer = repeat(KIND, BEL_RATE_SKIP);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_EQ(pass(10 * MS), 1);
        CHECK_EQ(rung[i].timer, timer);
        CHECK_EQ(rung[i].user, 42);
        CHECK(bel_runtime_is_pending(runtime, timer));
    }
    close_all();
}

static void cancel_from_inside_its_own_callback_stops_it(void)
{
    static const enum bel_repeat all[] = {BEL_RATE_SKIP, BEL_RATE_BURST, BEL_RATE_DELAY, BEL_DELAY};
    for (unsigned i = 0; i < 4; i++) {
        open_all();
        cancels = true;
        bel_timer_t timer = repeat(KIND, all[i]);
        CHECK_EQ(pass(100 * MS), 1);
        CHECK(!bel_runtime_is_pending(runtime, timer));
        CHECK(!bel_runtime_cancel(runtime, timer));
        CHECK_EQ(pass(S), 0);
        CHECK_EQ(stats().cancelled, 1);
        CHECK_EQ(stats().ended, 0);
        CHECK_EQ(stats().pending, 0);
        CHECK(bel_worker_next(worker).ns == BEL_NEVER);
        close_all();
    }
}

static void cancel_between_beats_stops_it(void)
{
    open_all();
    bel_timer_t timer = repeat(KIND, BEL_RATE_BURST);
    CHECK_EQ(pass(15 * MS), 1);
    CHECK(bel_runtime_cancel(runtime, timer));
    CHECK(!bel_runtime_cancel(runtime, timer));
    CHECK_EQ(pass(S), 0);
    CHECK_EQ(stats().pending, 0);
    close_all();
}

static void to_move_it_while_it_rings_is_too_busy(void)
{
    open_all();
    moves = asks_to_wait = true;
    bel_timer_t timer = repeat(KIND, BEL_RATE_SKIP);
    CHECK_EQ(pass(10 * MS), 1);
    CHECK(bel_runtime_is_pending(runtime, timer));
    CHECK_EQ(pass(10 * MS), 1);
    CHECK_EQ(stats().rescheduled, 0);
    close_all();
}

static void a_move_between_beats_moves_all_that_follow(void)
{
    open_all();
    bel_timer_t timer = repeat(KIND, BEL_RATE_SKIP);
    CHECK_EQ(pass(10 * MS), 1);
    CHECK(bel_runtime_reschedule(runtime, timer, (struct bel_boot){start + 23 * MS}) == 0);
    CHECK_EQ(pass(12 * MS), 0);
    CHECK_EQ(pass(1 * MS), 1);
    CHECK_EQ(pass(10 * MS), 1);
    CHECK_EQ(rung[2].due.ns, start + 33 * MS);
    CHECK_EQ(rung[2].timer, timer);
    close_all();
}

static void the_beat_goes_on_when_its_worker_has_left(void)
{
    open_all();
    bel_timer_t timer = repeat(KIND, BEL_RATE_SKIP);
    CHECK_EQ(pass(10 * MS), 1);
    CHECK(bel_worker_leave(worker) == 0);
    bel_clock_fake_advance(fake, 25 * MS);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(pass(0), 1);
    CHECK_EQ(rung[1].timer, timer);
    CHECK_EQ(rung[1].due.ns, start + 20 * MS);
    CHECK_EQ(rung[1].missed, 1);
    close_all();
}

static void a_period_without_end_rings_once_and_stays_pending(void)
{
    open_all();
    bel_timer_t timer;
    struct bel_schedule options = {
        .due = {now()}, .period_ns = UINT64_MAX, .kind = KIND, .repeat = BEL_RATE_SKIP};
    CHECK(bel_runtime_schedule(runtime, &options, &timer) == 0);
    CHECK_EQ(pass(0), 1);
    CHECK_EQ(pass(3600 * S), 0);
    CHECK(bel_runtime_is_pending(runtime, timer));
    CHECK(bel_runtime_cancel(runtime, timer));
    close_all();
}

static void beats_wait_in_an_inbox_in_order(void)
{
    static struct bel_event events[LOG_MAX];
    open_all();
    bel_timer_t timer = repeat(KIND_BOXED, BEL_RATE_SKIP);
    for (unsigned i = 0; i < 500; i++) {
        CHECK_EQ(pass(10 * MS), 1);
    }
    CHECK_EQ(pass(35 * MS), 1);
    CHECK_EQ(bel_inbox_take(inbox, events, LOG_MAX), 501);
    for (unsigned i = 0; i < 501; i++) {
        CHECK_EQ(events[i].timer, timer);
        CHECK_EQ(events[i].kind, KIND_BOXED);
        CHECK_EQ(events[i].user, 42);
        CHECK_EQ(events[i].due.ns, start + (i + 1) * (10 * MS));
        CHECK_EQ(events[i].missed, i == 500 ? 2 : 0);
    }
    CHECK_EQ(events[500].now.ns, now());
    CHECK_EQ(bel_inbox_take(inbox, events, LOG_MAX), 0);
    CHECK(bel_runtime_is_pending(runtime, timer));
    close_all();
}

static void cancel_leaves_in_the_inbox_what_has_rung(void)
{
    struct bel_event events[4];
    open_all();
    bel_timer_t timer = repeat(KIND_BOXED, BEL_RATE_BURST);
    CHECK_EQ(pass(25 * MS), 2);
    CHECK(bel_runtime_cancel(runtime, timer));
    CHECK_EQ(pass(S), 0);
    CHECK_EQ(bel_inbox_take(inbox, events, 4), 2);
    CHECK_EQ(events[1].due.ns, start + 20 * MS);
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().fired, 2);
    close_all();
}

static void a_fixed_delay_into_an_inbox_counts_from_the_delivery(void)
{
    struct bel_event events[4];
    open_all();
    (void)repeat(KIND_BOXED, BEL_DELAY);
    CHECK_EQ(pass(14 * MS), 1);
    CHECK_EQ(pass(9 * MS), 0);
    CHECK_EQ(pass(1 * MS), 1);
    CHECK_EQ(bel_inbox_take(inbox, events, 4), 2);
    CHECK_EQ(events[1].due.ns, start + 24 * MS);
    close_all();
}

static void an_instant_that_repeats_goes_on_to_the_wall_time_of_its_next_beat(void)
{
    open_all();
    bel_timer_t timer;
    struct bel_schedule options = {.wall_ms = 1000000 + 10000 + 60000,
                                   .period_ns = 60 * S,
                                   .kind = KIND,
                                   .repeat = BEL_RATE_SKIP};
    CHECK(bel_runtime_schedule_wall(runtime, &options, &timer) == 0);
    CHECK_EQ(pass(60 * S + MS / 2), 1);
    struct bel_runtime *first = runtime;
    runtime = make_runtime(0); /* which is given the wall time, not the due */
    bel_clock_fake_step(fake, -20000);
    CHECK(bel_runtime_shutdown(first, BEL_SHUTDOWN_MIGRATE, runtime) == 0);
    bel_runtime_destroy(first);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    CHECK_EQ(pass(79 * S), 0);
    CHECK_EQ(pass(S), 1);
    close_all();
}

/* The timer that the other thread is to cancel and wait for; BEL_TIMER_NONE afterwards. */
static _Atomic bel_timer_t to_end;

static void *end_it(void *arg)
{
    for (unsigned i = 0; i < ROUNDS;) {
        bel_timer_t timer = atomic_load_explicit(&to_end, memory_order_acquire);
        if (timer == BEL_TIMER_NONE) continue;
        CHECK(bel_runtime_cancel_sync(runtime, timer) == 0);
        atomic_store_explicit(&to_end, BEL_TIMER_NONE, memory_order_release);
        i++;
    }
    return arg;
}

static void who_waits_for_its_end_is_told_though_there_is_no_room_for_its_event(void)
{
    pthread_t thread;
    bel_timer_t timer = BEL_TIMER_NONE, last = BEL_TIMER_NONE;
    open_with(1);
    struct bel_schedule options = {.due = {LAST}, .kind = KIND};
    while (bel_runtime_schedule(runtime, &options, &timer) == 0) {
        last = timer;
    }
    CHECK(bel_runtime_cancel(runtime, last)); /* room for one timer, and not for its events */
    CHECK(pthread_create(&thread, NULL, end_it, NULL) == 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_NOTE("round %u", i);
        timer = repeat(KIND_BOXED, BEL_RATE_SKIP);
        CHECK_EQ(pass(10 * MS), 0);
        CHECK(bel_runtime_is_pending(runtime, timer));
        atomic_store_explicit(&to_end, timer, memory_order_release);
        for (unsigned polls = 0; polls < POLLS_MAX; polls++) {
            (void)bel_worker_poll(worker, LOG_MAX);
            if (atomic_load_explicit(&to_end, memory_order_acquire) == BEL_TIMER_NONE) break;
            (void)sched_yield();
        }
        CHECK(atomic_load_explicit(&to_end, memory_order_acquire) == BEL_TIMER_NONE);
        (void)bel_worker_poll(worker, LOG_MAX); /* reclaims it */
    }
    CHECK(pthread_join(thread, NULL) == 0);
    close_all();
}

int main(void)
{
    RUN(a_ring_in_time_is_followed_by_the_next_beat);
    RUN(a_beat_that_is_due_at_the_ring_has_passed);
    RUN(a_ring_before_its_due_misses_nothing);
    RUN(what_would_be_after_the_last_instant_is_the_last_instant);
    RUN(random_beats_agree_with_a_loop);
    RUN(a_fixed_rate_does_not_drift_over_a_thousand_late_rings);
    RUN(skip_leaves_out_what_was_missed_and_keeps_the_beat);
    RUN(burst_rings_for_each_beat_that_was_missed);
    RUN(a_burst_leaves_room_for_others_between_polls);
    RUN(delay_starts_the_beat_anew_when_one_was_missed);
    RUN(a_fixed_delay_counts_from_the_end_of_the_callback);
    RUN(a_rate_does_not_wait_for_a_slow_callback);
    RUN(the_handle_stays_valid_over_beats);
    RUN(cancel_from_inside_its_own_callback_stops_it);
    RUN(cancel_between_beats_stops_it);
    RUN(to_move_it_while_it_rings_is_too_busy);
    RUN(a_move_between_beats_moves_all_that_follow);
    RUN(the_beat_goes_on_when_its_worker_has_left);
    RUN(a_period_without_end_rings_once_and_stays_pending);
    RUN(beats_wait_in_an_inbox_in_order);
    RUN(cancel_leaves_in_the_inbox_what_has_rung);
    RUN(a_fixed_delay_into_an_inbox_counts_from_the_delivery);
    RUN(an_instant_that_repeats_goes_on_to_the_wall_time_of_its_next_beat);
    RUN(who_waits_for_its_end_is_told_though_there_is_no_room_for_its_event);
    return 0;
}
