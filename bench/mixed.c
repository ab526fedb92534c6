/* SPDX-License-Identifier: MIT */

/*
 * W3: a steady state of N timers with delays of 1 ms..1 h. Each step ends one timer and
 * schedules one. It alternates between cancelling a random timer and advancing the time
 * to the next due timer. So two steps are two schedules, a cancel and a fire; the result
 * is per operation.
 *
 * Time advances in whole milliseconds, like a loop that sleeps in epoll_wait, so one
 * sleep can fire several timers. The surplus counts for the following steps.
 */
#include "harness.h"

#include <string.h>

struct mix {
    struct bench_random random;
    uint32_t timers;
    uint32_t surplus; /* timers fired ahead of their step */
    uint64_t ops;
};

/* Returns whether an id is free: it has fired or was cancelled. The list of free ids is short. */
static bool is_free(uint32_t id)
{
    for (uint32_t i = 0; i < bench_fired_len; i++) {
        if (bench_fired_ids[i] == id) return true;
    }
    return false;
}

static void cancel_one(struct mix *mix, uint32_t bits)
{
    uint32_t id = bench_scale(bits, mix->timers);
    while (is_free(id))
        id = id + 1 == mix->timers ? 0 : id + 1;
    engine_cancel(id);
    bench_fired_ids[bench_fired_len++] = id;
    mix->ops++;
}

static void fire_one(struct mix *mix)
{
    if (mix->surplus > 0) {
        mix->surplus--;
        return;
    }
    uint32_t before = bench_fired_len;
    engine_fire_next();
    uint32_t fired = bench_fired_len - before;
    if (fired == 0) bench_fail("fired no timer although one was due");
    mix->surplus = fired - 1;
    mix->ops += fired;
}

static void run_steps(struct mix *mix, uint32_t steps)
{
    struct engine_objects objects = engine_caller_objects();
    uint64_t next = bench_random_next(&mix->random);
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t bits = next;
        next = bench_random_next(&mix->random);
        if (i % 2 == 0) {
            cancel_one(mix, (uint32_t)(bits >> 32));
        } else { /* prefetch the object that is cancelled next */
            bench_touch(objects, bench_scale((uint32_t)(next >> 32), mix->timers));
            fire_one(mix);
        }
        uint32_t id = bench_fired_ids[--bench_fired_len];
        engine_schedule(id, bench_now + bench_hour_delay((uint32_t)bits));
        mix->ops++;
    }
}

/* An engine that keeps garbage collects it about every 2 N steps, and is measured over
 * that. One without garbage is in its steady state from the start. */
static uint32_t warmup_steps(const struct bench_options *options)
{
    if (engine_traits.garbage != ENGINE_GARBAGE_NONE) return options->timers;
    return options->timers / 8;
}

static uint32_t measured_steps(const struct bench_options *options)
{
    uint32_t steps = options->is_quick ? 400 * 1000 : 2000 * 1000;
    if (engine_traits.garbage == ENGINE_GARBAGE_NONE) return steps;
    return steps < 2 * options->timers ? 2 * options->timers : steps;
}

static void drain(const struct mix *mix)
{
    if (engine_traits.is_null || (mix->timers > 100 * 1000 && !engine_traits.is_exact)) return;
    uint32_t pending = mix->timers - bench_fired_len;
    bench_fired_len = 0;
    bench_set_now(bench_now + UINT64_C(3600001) * BENCH_MS);
    engine_fire();
    bench_audit.lost += pending - bench_fired_len;
}

void bench_run_mixed(const struct bench_options *options)
{
    struct mix mix = {.random = {options->seed}, .timers = options->timers};

    uint64_t rss = bench_rss_bytes();
    engine_open(mix.timers);
    for (uint32_t id = 0; id < mix.timers; id++) {
        uint32_t bits = (uint32_t)bench_random_next(&mix.random);
        engine_schedule(id, bench_now + bench_hour_delay(bits));
    }
    bench_fired_len = 0;
    run_steps(&mix, warmup_steps(options));
    mix.ops = 0;
    uint64_t start = bench_cpu_ns();
    run_steps(&mix, measured_steps(options));
    uint64_t spent = bench_cpu_ns() - start;
    rss = bench_rss_bytes() - rss;
    drain(&mix);
    engine_close();

    bench_report("W3", (double)spent / (double)mix.ops, bench_bytes_per_timer(rss, mix.timers));
}
