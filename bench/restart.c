/* SPDX-License-Identifier: MIT */

/*
 * W2: idle timeouts. N timers are pending, and a random one is restarted, due in 25 to
 * 35 s, a million times per virtual second. The engine is polled every virtual
 * millisecond, as in an event loop. The few timers that fire are scheduled again and
 * count as restarts.
 *
 * W2 restarts with the library's own function, W2pair by cancel and schedule, W2b in
 * batches. The object that the caller keeps is prefetched, as if the caller had it at hand;
 * not in W2c, where nothing is prefetched. In W2h the engine too is told some operations
 * ahead which timer comes. A whole timeout passes before the measurement, so that the measurement
 * includes collecting the garbage of restarts. With --quick that holds only for an
 * engine whose garbage lives that long.
 */
#include "harness.h"

#include <string.h>

enum {
    RESTARTS_PER_MS = 1000,
    BATCH = 64,
    AHEAD = 16,                /* operations between the prefetch of an object and its use */
    WARMUP = 31 * 1000 * 1000, /* restarts: one timeout and a second */
};

/* The restarts of one millisecond, chosen before they are measured. */
struct hand {
    uint32_t ids[RESTARTS_PER_MS + 2 * AHEAD]; /* the last 2 AHEAD are only prefetched */
    uint64_t dues[RESTARTS_PER_MS];
};

typedef void restart_fn(const struct hand *hand);

static uint64_t due_from(uint32_t bits)
{
    const uint32_t spread_us = 10 * 1000 * 1000;
    return bench_now + UINT64_C(25000) * BENCH_MS +
           (uint64_t)bench_scale(bits, spread_us) * BENCH_US;
}

static void deal(struct hand *hand, struct bench_random *random, uint32_t timers)
{
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
        uint64_t bits = bench_random_next(random);
        hand->ids[i] = bench_scale((uint32_t)(bits >> 32), timers);
        hand->dues[i] = due_from((uint32_t)bits);
    }
}

static void restart_native(const struct hand *hand)
{
    struct engine_objects objects = engine_caller_objects();
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
        bench_touch(objects, hand->ids[i + AHEAD]);
        engine_restart(hand->ids[i], hand->dues[i]);
    }
}

static void restart_cold(const struct hand *hand)
{
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
        engine_restart(hand->ids[i], hand->dues[i]);
    }
}

static void restart_expected(const struct hand *hand)
{
    struct engine_objects objects = engine_caller_objects();
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
        bench_touch(objects, hand->ids[i + 2 * AHEAD]);
        engine_expect(hand->ids[i + AHEAD]);
        engine_restart(hand->ids[i], hand->dues[i]);
    }
}

static void restart_pair(const struct hand *hand)
{
    struct engine_objects objects = engine_caller_objects();
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
        bench_touch(objects, hand->ids[i + AHEAD]);
        engine_cancel(hand->ids[i]);
        engine_schedule(hand->ids[i], hand->dues[i]);
    }
}

static void restart_batch(const struct hand *hand)
{
    struct engine_objects objects = engine_caller_objects();
    for (uint32_t i = 0; i < RESTARTS_PER_MS; i += BATCH) {
        uint32_t len = i + BATCH < RESTARTS_PER_MS ? BATCH : RESTARTS_PER_MS - i;
        for (uint32_t j = i + BATCH; j < i + 2 * BATCH && j < RESTARTS_PER_MS; j++) {
            bench_touch(objects, hand->ids[j]);
        }
        engine_restart_many(hand->ids + i, hand->dues + i, len);
    }
}

/* Restarts timers for a number of virtual milliseconds. Returns the number of fired timers. */
static uint64_t run_ms(restart_fn *restart, struct bench_random *random, uint32_t timers,
                       uint32_t ms)
{
    static struct hand hand;
    uint64_t ended = 0;
    for (uint32_t i = 0; i < ms; i++) {
        deal(&hand, random, timers);
        restart(&hand);
        bench_set_now(bench_now + BENCH_MS);
        engine_fire();
        ended += bench_fired_len;
        while (bench_fired_len > 0) {
            uint32_t id = bench_fired_ids[--bench_fired_len];
            engine_schedule(id, due_from((uint32_t)bench_random_next(random)));
        }
    }
    return ended;
}

/* Returns the warm-up before the measurement. --quick ends it at the engine's steady state. */
static uint32_t warmup_ms(const struct bench_options *options)
{
    uint64_t restarts = WARMUP;
    if (options->is_quick && engine_traits.garbage == ENGINE_GARBAGE_NONE) {
        restarts = options->timers / 2 + 100 * 1000;
    }
    if (options->is_quick && engine_traits.garbage == ENGINE_GARBAGE_BY_COUNT) {
        restarts = UINT64_C(3) * options->timers + 100 * 1000;
    }
    if (restarts > WARMUP) restarts = WARMUP;
    return (uint32_t)(restarts / RESTARTS_PER_MS);
}

/* Returns the measured time: several garbage collections, for an engine that has them. */
static uint32_t measured_ms(const struct bench_options *options)
{
    uint32_t few = options->timers < 1000 * 1000 ? 1000 : 500;
    switch (engine_traits.garbage) {
    case ENGINE_GARBAGE_NONE:
        return options->is_quick ? few : 8000;
    case ENGINE_GARBAGE_BY_COUNT:
        return options->is_quick ? 1000 + options->timers / 250 : WARMUP / RESTARTS_PER_MS;
    default:
        return options->is_quick ? 8400 : WARMUP / RESTARTS_PER_MS;
    }
}

/* Lets all timers fire. Skipped for millions of timers of a slow library; W1 shows the same. */
static void drain(uint32_t timers)
{
    if (engine_traits.is_null || (timers > 100 * 1000 && !engine_traits.is_exact)) return;
    bench_set_now(bench_now + UINT64_C(36000) * BENCH_MS);
    engine_fire();
    bench_audit.lost += timers - bench_fired_len;
}

void bench_run_restart(const struct bench_options *options)
{
    restart_fn *restart = restart_native;
    if (strcmp(options->workload, "W2pair") == 0) restart = restart_pair;
    if (strcmp(options->workload, "W2b") == 0) restart = restart_batch;
    if (strcmp(options->workload, "W2h") == 0) restart = restart_expected;
    if (strcmp(options->workload, "W2c") == 0) restart = restart_cold;
    if (restart == restart_batch && !engine_traits.has_batches)
        bench_fail("the engine has no batches");
    struct bench_random random = {options->seed};
    uint32_t timers = options->timers, ms = measured_ms(options);

    uint64_t rss = bench_rss_bytes();
    engine_open(timers);
    for (uint32_t id = 0; id < timers; id++) {
        engine_schedule(id, due_from((uint32_t)bench_random_next(&random)));
    }
    (void)run_ms(restart, &random, timers, warmup_ms(options));
    uint64_t start = bench_cpu_ns();
    uint64_t ended = run_ms(restart, &random, timers, ms);
    uint64_t spent = bench_cpu_ns() - start;
    rss = bench_rss_bytes() - rss;
    drain(timers);
    engine_close();

    double ops = (double)ended + (double)ms * RESTARTS_PER_MS;
    bench_report(options->workload, (double)spent / ops, bench_bytes_per_timer(rss, timers));
}
