/* SPDX-License-Identifier: MIT */

/*
 * What cancelled timers leave: records that the owner must reclaim, and stale entries in its wheel.
 * Both are limited to a quarter of the live timers or 64 K, whichever is more, even while one
 * thread cancels as fast as it can.
 */
#include "belfry/runtime.h"

#include "../check.h"
#include "../random.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define HOUR UINT64_C(3600000000000)

enum {
    KIND = 1,
    GARBAGE_MAX = 64 * 1024,
    LOOK_EVERY = 1024,
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum {
    STORM = 200 * 1000
};
#else
enum {
    STORM = 1000 * 1000
};
#endif

static struct bel_runtime *runtime;

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
}

static void open_runtime(const struct bel_runtime_options *options)
{
    CHECK(bel_runtime_create(options, &runtime) == 0);
    CHECK(bel_runtime_on(runtime, KIND, ring, NULL) == 0);
}

static struct bel_runtime_stats stats(void)
{
    struct bel_runtime_stats out;
    bel_runtime_stats(runtime, NULL, &out);
    return out;
}

static uint64_t bound(uint64_t live)
{
    return live / 4 > GARBAGE_MAX ? live / 4 : GARBAGE_MAX;
}

static void await_intake(void)
{
    while (stats().inbox + stats().unowned > 0) {
        (void)sched_yield();
    }
}

static void await_clearing(void)
{
    /* Below this a worker may stay asleep. */
    while (stats().garbage > GARBAGE_MAX / 2) {
        (void)sched_yield();
    }
}

static uint64_t timers_of_the_storm(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment */
    uint64_t scale = getenv("BEL_TEST_LONG") != NULL ? 10 : 1;
    return STORM * scale;
}

static bel_timer_t *schedule_storm(uint64_t count)
{
    uint64_t random = 1, now = bel_clock_boot(bel_clock_system()).ns;
    bel_timer_t *timers = calloc(count, sizeof *timers);
    CHECK(timers != NULL);
    for (uint64_t i = 0; i < count; i++) {
        struct bel_schedule options = {.kind = KIND,
                                       .due = {now + HOUR + random_below(&random, 1000 * HOUR)}};
        CHECK(bel_runtime_schedule(runtime, &options, &timers[i]) == 0);
    }
    return timers;
}

static void a_storm_of_remote_cancels_of_far_timers_keeps_garbage_bounded(void)
{
    uint64_t count = timers_of_the_storm(), worst = 0;
    open_runtime(NULL);
    CHECK(bel_runtime_start(runtime, 1) == 0);
    bel_timer_t *timers = schedule_storm(count);
    await_intake();
    for (uint64_t i = 0; i < count; i++) {
        CHECK(bel_runtime_cancel(runtime, timers[i]));
        if (i % LOOK_EVERY != 0) continue;
        struct bel_runtime_stats now = stats();
        /* A thread may have added up to this many between two checks. */
        CHECK(now.garbage <= bound(now.pending) + LOOK_EVERY);
        if (now.garbage > worst) worst = now.garbage;
    }
    await_clearing();
    CHECK_EQ(stats().pending, 0);
    CHECK_EQ(stats().cancelled, count);
    printf("     %" PRIu64 " cancelled, at most %" PRIu64 " not cleared away\n", count, worst);
    bel_runtime_destroy(runtime);
    free(timers);
}

static void stale_entries_in_a_wheel_stay_below_a_quarter_of_its_timers(void)
{
    struct bel_clock_fake *fake;
    struct bel_worker *worker;
    uint64_t count = STORM / 4, random = 2;
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    struct bel_runtime_options options = {.clock = bel_clock_fake_clock(fake),
                                          .metronome = BEL_METRONOME_MANUAL};
    open_runtime(&options);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    bel_timer_t *timers = calloc(count, sizeof *timers);
    CHECK(timers != NULL);
    for (uint64_t op = 0; op < 8 * count; op++) {
        uint64_t i = random_below(&random, count);
        (void)bel_runtime_cancel(runtime, timers[i]);
        struct bel_schedule schedule = {.kind = KIND,
                                        .due = {HOUR + random_below(&random, 1000 * HOUR)}};
        CHECK(bel_runtime_schedule(runtime, &schedule, &timers[i]) == 0);
        if (op % LOOK_EVERY != 0) continue;
        CHECK_EQ(bel_worker_poll(worker, 10), 0);
        CHECK(stats().stale_entries <= bound(stats().pending));
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK(bel_runtime_cancel(runtime, timers[i]) || timers[i] == BEL_TIMER_NONE);
        if (i % LOOK_EVERY != 0) continue;
        CHECK_EQ(bel_worker_poll(worker, 10), 0);
        CHECK(stats().stale_entries <= bound(stats().pending));
    }
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
    free(timers);
}

int main(void)
{
    RUN(a_storm_of_remote_cancels_of_far_timers_keeps_garbage_bounded);
    RUN(stale_entries_in_a_wheel_stay_below_a_quarter_of_its_timers);
    return 0;
}
