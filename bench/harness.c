/* SPDX-License-Identifier: MIT */

/*
 * One run: one engine, one workload, one number of timers, one process. Results are
 * printed as JSON objects, one per line, for bench/timers.py.
 *
 * The libraries compared with see the virtual time because the program defines
 * clock_gettime() and similar functions (virtual.c). So this file does not call them:
 * it uses system calls directly.
 */
#include "harness.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LARGE_PAGE = 2 << 20,
};

/* Far from 0, so that no due time is negative, and a whole millisecond. */
#define START_NS UINT64_C(1000000000000)

uint64_t bench_now;
uint32_t bench_polls_left;
struct bench_audit bench_audit;
uint32_t *bench_fired_ids;
uint32_t bench_fired_len;

static uint32_t fired_cap;
static uint64_t fired_last_due;

void bench_fired(uint32_t id, uint64_t due)
{
    if (bench_fired_len == fired_cap) bench_fail("fired more timers than there are");
    bench_audit.early += due > bench_now;
    bench_audit.inversions += due < fired_last_due;
    fired_last_due = due;
    bench_fired_ids[bench_fired_len++] = id;
}

uint32_t bench_fired_count(void)
{
    return bench_fired_len;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    (void)syscall(SYS_clock_gettime, clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t bench_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t bench_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return read_clock(CLOCK_MONOTONIC);
#endif
}

double bench_ticks_per_ns(void)
{
    uint64_t clock = read_clock(CLOCK_MONOTONIC), ticks = bench_ticks(), elapsed;
    do {
        elapsed = read_clock(CLOCK_MONOTONIC) - clock;
    } while (elapsed < 20 * BENCH_MS);
    return (double)(bench_ticks() - ticks) / (double)elapsed;
}

uint64_t bench_rss_bytes(void)
{
    /* smaps_rollup walks the page tables; statm is cached per CPU and may lag. */
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    unsigned long kb = 0;
    char line[256];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Rss:", 4) == 0) kb = strtoul(line + 4, NULL, 10);
    }
    if (kb == 0) bench_fail("cannot read /proc/self/smaps_rollup");
    (void)fclose(file);
    return (uint64_t)kb * 1024;
}

void *bench_map(size_t count, size_t bytes)
{
    size_t size = (count * bytes / LARGE_PAGE + 2) * LARGE_PAGE;
    char *p = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) bench_fail("out of memory");
    p += LARGE_PAGE - (uintptr_t)p % LARGE_PAGE;
    (void)madvise(p + LARGE_PAGE, size - LARGE_PAGE, MADV_HUGEPAGE);
    return p;
}

double bench_bytes_per_timer(uint64_t bytes, uint32_t timers)
{
    size_t kept = engine_caller_objects().bytes;
    size_t handle = kept == sizeof(uint64_t) ? kept : 0; /* otherwise it is the library's struct */
    return (double)bytes / timers - (double)handle;
}

void bench_report(const char *workload, double ns_per_op, double bytes_per_timer)
{
    (void)printf("{\"workload\": \"%s\", \"ns_per_op\": %.2f, \"bytes_per_timer\": %.1f}\n",
                 workload, ns_per_op, bytes_per_timer);
}

void bench_report_pause(const struct bench_pause *pause)
{
    (void)printf("{\"phase\": \"%s\", \"tick_us\": %.2f, \"cpu_us\": %.2f, \"faults\": %llu, "
                 "\"touched_max\": %u}\n",
                 pause->phase, pause->tick_us, pause->cpu_us, (unsigned long long)pause->faults,
                 pause->touched_max);
}

static char *touch(size_t bytes, int advice)
{
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) bench_fail("out of memory");
    (void)madvise(block, bytes, advice);
    for (size_t i = 0; i < bytes; i += BENCH_PAGE_BYTES)
        block[i] = 1;
    return block;
}

void bench_warm_memory(uint32_t timers)
{
    size_t small_bytes = (size_t)timers * 160 + LARGE_PAGE;
    size_t large_bytes = (size_t)timers * 64 + 8 * LARGE_PAGE;
    char *large = touch(large_bytes, MADV_HUGEPAGE);
    char *small = touch(small_bytes, MADV_NOHUGEPAGE);
    (void)munmap(small, small_bytes);
    (void)munmap(large, large_bytes);
}

static void report_audit(void)
{
    (void)printf("{\"engine\": \"%s\", \"version\": \"%s\", \"early\": %llu, \"late\": %llu, "
                 "\"inversions\": %llu, \"ties\": %llu, \"lost\": %llu}\n",
                 engine_traits.name, engine_version(), (unsigned long long)bench_audit.early,
                 (unsigned long long)bench_audit.late, (unsigned long long)bench_audit.inversions,
                 (unsigned long long)bench_audit.ties, (unsigned long long)bench_audit.lost);
    const struct bench_audit *a = &bench_audit;
    if (engine_traits.is_null) return;
    if (a->lost + a->early > 0) bench_fail("lost a timer, or fired one early");
    if (!engine_traits.is_exact) return;
    if (a->late + a->inversions + a->ties > 0) bench_fail("out of order");
}

static struct bench_options parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"workload", required_argument, NULL, 'w'}, {"n", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},     {"quick", no_argument, NULL, 'q'},
        {"steps", no_argument, NULL, 'p'},          {NULL, 0, NULL, 0},
    };
    struct bench_options options = {.workload = "W1", .timers = 1000, .seed = 1};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (name == 'w') options.workload = optarg;
        if (name == 'n') options.timers = (uint32_t)bench_parse_number(optarg, BENCH_TIMERS_MAX);
        if (name == 's') options.seed = bench_parse_number(optarg, UINT32_MAX);
        if (name == 'q') options.is_quick = true;
        if (name == 'p') options.is_stepped = true;
        if (name == '?') exit(2);
    }
    if (options.timers < 100) bench_fail("expected at least 100 timers");
    return options;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const struct bench_options *options);
    } workloads[] = {
        {"W1", bench_run_fire},       {"W2", bench_run_restart},    {"W2pair", bench_run_restart},
        {"W2h", bench_run_restart},   {"W2c", bench_run_restart},   {"W2b", bench_run_restart},
        {"W3", bench_run_mixed},      {"W4", bench_run_fire},       {"W1r", bench_run_fire},
        {"pauses", bench_run_pauses}, {"memory", bench_run_memory}, {"order", bench_run_order},
    };
    struct bench_options options = parse(argc, argv);
    fired_cap = options.timers;
    bench_fired_ids = bench_alloc(fired_cap, sizeof *bench_fired_ids);
    bench_set_now(START_NS);
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (strcmp(options.workload, workloads[i].name) != 0) continue;
        workloads[i].run(&options);
        report_audit();
        return 0;
    }
    bench_fail("unknown workload");
}
