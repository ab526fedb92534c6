/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

/*
 * harness - what the workloads share: random numbers, real time, memory, the list of
 * what fired, and the result.
 */

#include "engine.h"

#include <stddef.h>

enum {
    BENCH_HOUR_MS = 3600 * 1000,
    BENCH_TIMERS_MAX = 1 << 24,
    BENCH_PAGE_BYTES = 4096,
};

struct bench_options {
    const char *workload;
    uint32_t timers;
    uint64_t seed;
    bool is_quick;
    bool is_stepped; /* W1 fires in steps of 1 ms instead of jumping */
};

/* What was wrong with the order; all zero for a perfect engine. */
struct bench_audit {
    uint64_t early, late, inversions, ties, lost;
};

/* The longest call of a phase. */
struct bench_pause {
    const char *phase;
    double tick_us, cpu_us;
    uint64_t faults;
    uint32_t touched_max; /* so far */
};

struct bench_random {
    uint64_t state;
};

extern struct bench_audit bench_audit;

/* The ids that fired, in order. The workload empties it by setting the count to 0. */
extern uint32_t *bench_fired_ids;
extern uint32_t bench_fired_len;

/* splitmix64: a multiplication or two a number, and no state that misses a cache. */
static inline uint64_t bench_random_next(struct bench_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* `bits` scaled to 0..limit-1. */
static inline uint32_t bench_scale(uint32_t bits, uint32_t limit)
{
    return (uint32_t)((uint64_t)bits * limit >> 32);
}

/* 1 ms..1 h in whole microseconds, from 32 random bits. */
static inline uint64_t bench_hour_delay(uint32_t bits)
{
    return BENCH_MS + (uint64_t)bench_scale(bits, 3599999u * 1000) * BENCH_US;
}

static inline uint64_t bench_ceil_ms(uint64_t ns)
{
    return (ns + BENCH_MS - 1) / BENCH_MS * BENCH_MS;
}

/* CPU time of this thread: what it costs, whatever else runs on the machine. */
uint64_t bench_cpu_ns(void);

/* A cycle counter, and how many of its ticks make a nanosecond. */
uint64_t bench_ticks(void);
double bench_ticks_per_ns(void);

/* Resident memory of the process, exact to the page. */
uint64_t bench_rss_bytes(void);

/*
 * Touches as much memory as any engine will want and gives it back, so that the pages
 * it then gets are the kernel's to give. On a virtual machine they may otherwise have
 * to come from the host, at a hundred times the cost, for whoever happens to be first.
 */
void bench_warm_memory(uint32_t timers);

/* Allocated and touched. */
void *bench_alloc(size_t count, size_t bytes);

/* An argument of the command line, up to `max`; anything else ends the program. */
uint64_t bench_parse_number(const char *text, uint64_t max);

/* Prints one result of this run. */
void bench_report(const char *workload, double ns_per_op, double bytes_per_timer);
void bench_report_pause(const struct bench_pause *pause);

void bench_run_fire(const struct bench_options *options);    /* W1, W4 */
void bench_run_restart(const struct bench_options *options); /* W2, W2pair, W2b */
void bench_run_mixed(const struct bench_options *options);   /* W3 */
void bench_run_order(const struct bench_options *options);
void bench_run_pauses(const struct bench_options *options);
void bench_run_memory(const struct bench_options *options);

/* What an engine takes for a timer, of `bytes` in all. The handle that a caller keeps is
 * its own; a struct that it keeps for the library is the library's. */
double bench_bytes_per_timer(uint64_t bytes, uint32_t timers);

/* Brings what the caller keeps for a timer into the cache. */
static inline void bench_touch(struct engine_objects objects, uint32_t id)
{
    const char *object = objects.first + id * objects.bytes;
    __builtin_prefetch(object, 1);
    if (objects.bytes > 8) __builtin_prefetch(object + objects.bytes - 1, 1);
}

#endif
