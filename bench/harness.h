/* SPDX-License-Identifier: MIT */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

/*
 * harness - shared by the workloads: random numbers, real time, memory, the list of
 * fired timers, and the result.
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

/* Counts of errors in the order of firing; all zero for a correct engine. */
struct bench_audit {
    uint64_t early, late, inversions, ties, lost;
};

/* The longest call of a phase. */
struct bench_pause {
    const char *phase;
    double tick_us, cpu_us;
    uint64_t faults;
    uint32_t touched_max; /* the maximum so far */
};

struct bench_random {
    uint64_t state;
};

extern struct bench_audit bench_audit;

/* The ids that fired, in order. The workload empties it by setting the count to 0. */
extern uint32_t *bench_fired_ids;
extern uint32_t bench_fired_len;

/* splitmix64: two multiplications per number, and a state that stays in a register. */
static inline uint64_t bench_random_next(struct bench_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Scales `bits` to 0..limit-1. */
static inline uint32_t bench_scale(uint32_t bits, uint32_t limit)
{
    return (uint32_t)((uint64_t)bits * limit >> 32);
}

/* Returns a delay of 1 ms..1 h in whole microseconds, from 32 random bits. */
static inline uint64_t bench_hour_delay(uint32_t bits)
{
    return BENCH_MS + (uint64_t)bench_scale(bits, 3599999u * 1000) * BENCH_US;
}

static inline uint64_t bench_ceil_ms(uint64_t ns)
{
    return (ns + BENCH_MS - 1) / BENCH_MS * BENCH_MS;
}

/* Returns the CPU time of this thread, which other programs do not affect much. */
uint64_t bench_cpu_ns(void);

/* Return a cycle counter, and its ticks per nanosecond. */
uint64_t bench_ticks(void);
double bench_ticks_per_ns(void);

/* Returns the resident memory of the process, exact to the page. */
uint64_t bench_rss_bytes(void);

/*
 * Touches as much memory as any engine will need and frees it, so that the kernel has
 * the pages. On a virtual machine the first engine might otherwise wait for pages of
 * the host, at a hundred times the cost.
 */
void bench_warm_memory(uint32_t timers);

/* Allocates and touches memory. */
void *bench_alloc(size_t count, size_t bytes);

/* Parses a number of the command line, up to `max`. Exits on an error. */
uint64_t bench_parse_number(const char *text, uint64_t max);

/* Prints one result of this run. */
void bench_report(const char *workload, double ns_per_op, double bytes_per_timer);
void bench_report_pause(const struct bench_pause *pause);

void bench_run_fire(const struct bench_options *options);    /* W1, W1r, W4 */
void bench_run_restart(const struct bench_options *options); /* W2 and its variants */
void bench_run_mixed(const struct bench_options *options);   /* W3 */
void bench_run_order(const struct bench_options *options);
void bench_run_pauses(const struct bench_options *options);
void bench_run_memory(const struct bench_options *options);

/* Returns the memory per timer of an engine that uses `bytes` in total. A handle that the
 * caller keeps is not counted; a struct that it keeps for the library is. */
double bench_bytes_per_timer(uint64_t bytes, uint32_t timers);

/* Prefetches the object that the caller keeps for a timer. */
static inline void bench_touch(struct engine_objects objects, uint32_t id)
{
    const char *object = objects.first + id * objects.bytes;
    __builtin_prefetch(object, 1);
    if (objects.bytes > 8) __builtin_prefetch(object + objects.bytes - 1, 1);
}

#endif
