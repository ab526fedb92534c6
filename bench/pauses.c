/* SPDX-License-Identifier: MIT */

/*
 * pauses: the longest single call, with the memory reserved beforehand.
 *
 * Every call is timed by the cycle counter, which includes interrupts and other programs.
 * Reading the thread's CPU time is too slow for every call, so it is read once per group
 * of short calls, and again when a call seems to be the longest so far. The CPU time of
 * the group is an upper bound for that call; ticks beyond it were spent by others. Page
 * faults are counted as well: memory was reserved, so an engine should have none.
 *
 * memory: schedule N timers far away, cancel them all, schedule N others. The freed
 * memory must be reused.
 */
#include "deck.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
    GROUP = 16,
    LONG_NS = 2000,
    RESTARTS_PER_MS = 1000,
    RESTART_MS = 41 * 1000, /* a timeout, and ten seconds to see its clean-up */
};

struct meter {
    double ticks_per_ns;
    uint64_t start;      /* ticks at the start of the current call */
    uint64_t group_cpu;  /* when the group began */
    uint64_t long_ticks; /* a call longer than this ends its group */
    uint64_t calls;
    uint64_t worst_ticks;
    uint64_t worst_cpu; /* ticks too */
    uint64_t faults;    /* page faults before the phase */
};

static uint64_t count_faults(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

static struct meter meter_start(double ticks_per_ns)
{
    return (struct meter){.ticks_per_ns = ticks_per_ns,
                          .long_ticks = (uint64_t)(LONG_NS * ticks_per_ns),
                          .faults = count_faults()};
}

static inline void meter_begin(struct meter *meter)
{
    if (meter->calls++ % GROUP == 0) meter->group_cpu = bench_cpu_ns();
    meter->start = bench_ticks();
}

static inline void meter_end(struct meter *meter)
{
    uint64_t ticks = bench_ticks() - meter->start;
    if (ticks > meter->long_ticks) meter->calls = 0;
    if (ticks <= meter->worst_cpu) return;
    if (ticks > meter->worst_ticks) meter->worst_ticks = ticks;
    double cpu_ns = (double)(bench_cpu_ns() - meter->group_cpu);
    uint64_t cpu = (uint64_t)(cpu_ns * meter->ticks_per_ns);
    if (cpu > ticks) cpu = ticks;
    if (cpu > meter->worst_cpu) meter->worst_cpu = cpu;
}

static void meter_report(struct meter *meter, const char *phase)
{
    struct engine_stats stats = {0};
    double us = meter->ticks_per_ns * 1000;
    engine_read_stats(&stats);
    bench_report_pause(&(struct bench_pause){
        .phase = phase,
        .tick_us = (double)meter->worst_ticks / us,
        .cpu_us = (double)meter->worst_cpu / us,
        .faults = count_faults() - meter->faults,
        .touched_max = stats.touched_max,
    });
    *meter = meter_start(meter->ticks_per_ns);
}

static void schedule_all(struct meter *meter, const struct deck *deck)
{
    for (uint32_t id = 0; id < deck->timers; id++) {
        meter_begin(meter);
        engine_schedule(id, deck->dues[id]);
        meter_end(meter);
    }
}

static void poll_all(struct meter *meter)
{
    bool again = true;
    while (again) {
        meter_begin(meter);
        again = engine_poll();
        meter_end(meter);
    }
}

static void fire_all(struct meter *meter, const struct deck *deck)
{
    bench_fired_len = 0;
    for (uint32_t i = 0; i < deck->polls_len; i++) {
        bench_set_now(deck_poll_time(deck, i));
        poll_all(meter);
    }
    bench_audit.lost += deck->timers - bench_fired_len;
    bench_fired_len = 0;
}

static uint64_t due_from(uint32_t bits)
{
    return bench_now + UINT64_C(25000) * BENCH_MS +
           (uint64_t)bench_scale(bits, 10 * 1000 * 1000) * BENCH_US;
}

static void restart_all(struct meter *meter, struct bench_random *random, uint32_t timers)
{
    for (uint32_t ms = 0; ms < RESTART_MS; ms++) {
        for (uint32_t i = 0; i < RESTARTS_PER_MS; i++) {
            uint64_t bits = bench_random_next(random);
            uint32_t id = bench_scale((uint32_t)(bits >> 32), timers);
            meter_begin(meter);
            engine_restart(id, due_from((uint32_t)bits));
            meter_end(meter);
        }
        bench_set_now(bench_now + BENCH_MS);
        poll_all(meter);
        while (bench_fired_len > 0) {
            uint32_t id = bench_fired_ids[--bench_fired_len];
            meter_begin(meter);
            engine_schedule(id, due_from((uint32_t)bench_random_next(random)));
            meter_end(meter);
        }
    }
}

void bench_run_pauses(const struct bench_options *options)
{
    struct bench_random random = {options->seed};
    struct meter meter = meter_start(bench_ticks_per_ns());
    struct deck deck = {0};
    deck_init(&deck, options);
    bench_warm_memory(options->timers);

    engine_open(options->timers);
    engine_reserve(options->timers);
    deck_deal_spread(&deck, &random);
    meter = meter_start(meter.ticks_per_ns);
    schedule_all(&meter, &deck);
    meter_report(&meter, "W1 schedule");
    fire_all(&meter, &deck);
    meter_report(&meter, "W1 fire");
    for (uint32_t id = 0; id < deck.timers; id++) {
        deck.dues[id] = due_from((uint32_t)bench_random_next(&random));
    }
    schedule_all(&meter, &deck);
    restart_all(&meter, &random, deck.timers);
    meter_report(&meter, "W2 restart");
    engine_close();

    engine_open(options->timers);
    engine_reserve(options->timers);
    deck_deal_crowded(&deck, &random);
    meter = meter_start(meter.ticks_per_ns);
    schedule_all(&meter, &deck);
    meter_report(&meter, "W4 schedule");
    fire_all(&meter, &deck);
    meter_report(&meter, "W4 fire");
    engine_close();
    deck_finish(&deck);
}

void bench_run_memory(const struct bench_options *options)
{
    struct bench_random random = {options->seed};
    uint32_t timers = options->timers;
    uint64_t base = bench_rss_bytes();
    engine_open(timers);
    for (uint32_t id = 0; id < timers; id++) {
        uint64_t days = 30 + bench_scale((uint32_t)bench_random_next(&random), 335);
        uint64_t delay = bench_hour_delay((uint32_t)bench_random_next(&random));
        engine_schedule(id, bench_now + days * 24 * BENCH_HOUR_MS * BENCH_MS + delay);
    }
    uint64_t first = bench_rss_bytes() - base;
    for (uint32_t id = 0; id < timers; id++)
        engine_cancel(id);
    uint64_t empty = bench_rss_bytes() - base;
    for (uint32_t id = 0; id < timers; id++) {
        uint32_t bits = (uint32_t)bench_random_next(&random);
        engine_schedule(id, bench_now + bench_hour_delay(bits));
    }
    uint64_t second = bench_rss_bytes() - base;
    bench_set_now(bench_now + UINT64_C(3600001) * BENCH_MS);
    if (engine_traits.is_exact) {
        engine_fire();
        bench_audit.lost += timers - bench_fired_len;
    }
    engine_close();
    (void)printf("{\"first\": %.2f, \"empty\": %.2f, \"second\": %.2f, \"growth\": %.2f}\n",
                 (double)first / timers, (double)empty / timers, (double)second / timers,
                 ((double)second / (double)first - 1) * 100);
}
