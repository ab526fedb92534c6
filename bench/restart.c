/* SPDX-License-Identifier: MIT */

/*
 * W2: idle timeouts. N timers are pending, and a random one is restarted to end 25 to
 * 35 s from now, a million times a virtual second; every virtual millisecond the
 * engine is asked what is due, as an event loop would. The few that do end start
 * again and count as restarts.
 *
 * W2 restarts in the way the library has for it, W2pair by cancel and schedule, W2b in
 * batches. A whole timeout goes by before the measurement, so that the clean-up of what
 * restarts leave behind is inside it. With --quick that is so only for an engine whose
 * garbage lives that long.
 */
#include "harness.h"

#include <string.h>

enum {
    RESTARTS_PER_MS = 1000,
    BATCH = 64,
    AHEAD = 16,                /* operations between touching a caller's object and using it */
    WARMUP = 31 * 1000 * 1000, /* restarts: one timeout and a second */
};

typedef void restart_fn(struct bench_random *random, uint32_t timers, uint32_t count);

static uint64_t due_from(uint32_t bits)
{
    const uint32_t spread_us = 10 * 1000 * 1000;
    return bench_now + UINT64_C(25000) * BENCH_MS +
           (uint64_t)bench_scale(bits, spread_us) * BENCH_US;
}

/* The random number of operation i, while the caller turns to the object of a later one. */
static uint64_t next_bits(struct bench_random *random, uint32_t timers, uint64_t *ring, uint32_t i)
{
    uint64_t bits = ring[i % AHEAD];
    uint64_t later = ring[i % AHEAD] = bench_random_next(random);
    bench_touch(engine_caller_object(bench_scale((uint32_t)(later >> 32), timers)));
    return bits;
}

static void fill_ring(struct bench_random *random, uint64_t *ring)
{
    for (uint32_t i = 0; i < AHEAD; i++) {
        ring[i] = bench_random_next(random);
    }
}

static void restart_native(struct bench_random *random, uint32_t timers, uint32_t count)
{
    uint64_t ring[AHEAD];
    fill_ring(random, ring);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = next_bits(random, timers, ring, i);
        engine_restart(bench_scale((uint32_t)(bits >> 32), timers), due_from((uint32_t)bits));
    }
}

static void restart_pair(struct bench_random *random, uint32_t timers, uint32_t count)
{
    uint64_t ring[AHEAD];
    fill_ring(random, ring);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = next_bits(random, timers, ring, i);
        uint32_t id = bench_scale((uint32_t)(bits >> 32), timers);
        engine_cancel(id);
        engine_schedule(id, due_from((uint32_t)bits));
    }
}

static void restart_batch(struct bench_random *random, uint32_t timers, uint32_t count)
{
    uint32_t ids[BATCH];
    uint64_t dues[BATCH];
    while (count > 0) {
        uint32_t len = count < BATCH ? count : BATCH;
        for (uint32_t i = 0; i < len; i++) {
            uint64_t bits = bench_random_next(random);
            ids[i] = bench_scale((uint32_t)(bits >> 32), timers);
            dues[i] = due_from((uint32_t)bits);
        }
        engine_restart_many(ids, dues, len);
        count -= len;
    }
}

/* Restarts for that many virtual milliseconds; returns how many timers ended. */
static uint64_t run_ms(restart_fn *restart, struct bench_random *random, uint32_t timers,
                       uint32_t ms)
{
    uint64_t ended = 0;
    for (uint32_t i = 0; i < ms; i++) {
        restart(random, timers, RESTARTS_PER_MS);
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

/* Restarts before the measurement. --quick stops where the engine is in its steady state. */
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

/* Several collections, for an engine that has them. */
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

/* Lets everything end. Too slow for a library's millions, whose W1 shows the same. */
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
    if (restart == restart_batch && !engine_traits.has_batches) bench_fail("has no batches");
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
    bench_report(options->workload, (double)spent / ops, (double)rss / timers);
}
