/* SPDX-License-Identifier: MIT */

/*
 * One run: one engine, one workload, one process, in real time. Prints one JSON object
 * for bench/runtime.py.
 *
 *     late    timers at random times in a window, scheduled before it begins; records
 *             how late each rings
 *     idle    one timer, due in an hour; counts how often the process wakes meanwhile
 *
 * A wakeup is a voluntary context switch: a thread that has slept and runs again. The
 * main thread only waits for the end, so its usage is not counted.
 */
#include "lateness.h"

#include "harness.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SECOND_NS UINT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS)

/* From the start to the first due time: time to schedule all timers and to begin to wait. */
#define LEAD_NS (SECOND_NS / 5)

/* A timer that has not rung this long after the last due time is lost. */
#define GRACE_NS (10 * SECOND_NS)

#define NOT_RUNG INT64_MIN

struct options {
    const char *workload;
    uint32_t timers;
    uint64_t seed;
    uint64_t window_ns; /* for idle: how long to measure */
};

struct usage {
    uint64_t wakeups, cpu_ns;
};

static uint32_t timer_count;
static uint64_t *dues;   /* by id */
static int64_t *late_ns; /* by id; written by the thread that rings the timer */
static atomic_uint rang; /* number of timers that have rung */
static sem_t all_have_rung;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

uint64_t bench_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

struct timespec bench_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
}

void bench_rang(uint32_t id)
{
    uint64_t now = bench_clock_ns();
    if (id >= timer_count) bench_fail("rang a timer that does not exist");
    if (late_ns[id] != NOT_RUNG) bench_fail("rang a timer twice");
    late_ns[id] = (int64_t)(now - dues[id]);
    /* Releases late_ns[id]; acquires those before it, so that the last one releases all
     * of them to wait_until_all_have_rung(). */
    if (atomic_fetch_add_explicit(&rang, 1, memory_order_acq_rel) + 1 == timer_count) {
        (void)sem_post(&all_have_rung);
    }
}

/* Returns the usage so far of all threads except this one. */
static struct usage read_usage(void)
{
    struct rusage all, own;
    (void)getrusage(RUSAGE_THREAD, &own);
    (void)getrusage(RUSAGE_SELF, &all);
    uint64_t own_ns = read_clock(CLOCK_THREAD_CPUTIME_ID); /* first, so that it is smaller */
    uint64_t all_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    return (struct usage){(uint64_t)(all.ru_nvcsw - own.ru_nvcsw), all_ns - own_ns};
}

static struct usage usage_since(struct usage before)
{
    struct usage now = read_usage();
    /* Both samples contain this thread's time between its two clock reads, which varies. */
    uint64_t cpu_ns = now.cpu_ns > before.cpu_ns ? now.cpu_ns - before.cpu_ns : 0;
    return (struct usage){now.wakeups - before.wakeups, cpu_ns};
}

static void open_engine(uint32_t timers)
{
    timer_count = timers;
    dues = bench_alloc(timers, sizeof *dues);
    late_ns = bench_alloc(timers, sizeof *late_ns);
    for (uint32_t id = 0; id < timers; id++)
        late_ns[id] = NOT_RUNG;
    if (sem_init(&all_have_rung, 0, 0) != 0) bench_fail("cannot create a semaphore");
    engine_open(timers);
}

/* Schedules a timer to what the engine can tell apart, never before `due`. */
static void schedule(uint32_t id, uint64_t due)
{
    uint64_t resolution = engine_traits.resolution_ns;
    dues[id] = (due + resolution - 1) / resolution * resolution;
    engine_schedule(id, dues[id]);
}

static void *run_engine(void *unused)
{
    engine_run();
    return unused;
}

static void start_engine(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_engine, NULL) != 0) bench_fail("cannot create a thread");
    (void)pthread_detach(thread);
}

static void sleep_for(uint64_t ns)
{
    struct timespec until = bench_timespec(bench_clock_ns() + ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

static void wait_until_all_have_rung(uint64_t limit)
{
    struct timespec until = bench_timespec(limit);
    /* Pairs with the last one's increment in bench_rang(): all of late_ns is there. */
    while (atomic_load_explicit(&rang, memory_order_acquire) < timer_count) {
        int err = sem_clockwait(&all_have_rung, CLOCK_MONOTONIC, &until);
        if (err != 0 && errno != EINTR) bench_fail("lost a timer");
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The value that `percent` of the sorted ones do not exceed. */
static double quantile_us(uint32_t percent)
{
    uint32_t rank = (uint32_t)(((uint64_t)timer_count * percent + 99) / 100);
    return (double)late_ns[rank - 1] / BENCH_US;
}

static void report_late(struct usage used)
{
    uint32_t early = 0;
    qsort(late_ns, timer_count, sizeof *late_ns, compare);
    while (early < timer_count && late_ns[early] < 0)
        early++;
    (void)printf("{\"engine\": \"%s\", \"version\": \"%s\", \"workload\": \"late\", "
                 "\"timers\": %u, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, "
                 "\"early\": %u, \"wakeups\": %llu, \"cpu_ms\": %.2f}\n",
                 engine_traits.name, engine_version(), timer_count, quantile_us(50),
                 quantile_us(99), quantile_us(100), early, (unsigned long long)used.wakeups,
                 (double)used.cpu_ns / BENCH_MS);
}

static void run_late(const struct options *options)
{
    struct bench_random random = {options->seed};
    open_engine(options->timers);
    uint64_t first = bench_clock_ns() + LEAD_NS;
    for (uint32_t id = 0; id < options->timers; id++)
        schedule(id, first + bench_random_next(&random) % options->window_ns);

    struct usage before = read_usage();
    start_engine();
    if (bench_clock_ns() >= first) bench_fail("too slow to schedule");
    wait_until_all_have_rung(first + options->window_ns + GRACE_NS);
    report_late(usage_since(before));
}

static void run_idle(const struct options *options)
{
    open_engine(1);
    schedule(0, bench_clock_ns() + HOUR_NS);
    start_engine();
    sleep_for(LEAD_NS);

    struct usage before = read_usage();
    sleep_for(options->window_ns);
    struct usage used = usage_since(before);
    if (atomic_load_explicit(&rang, memory_order_relaxed) != 0) bench_fail("rang an hour early");
    (void)printf("{\"engine\": \"%s\", \"version\": \"%s\", \"workload\": \"idle\", "
                 "\"seconds\": %.1f, \"wakeups\": %llu, \"cpu_ms\": %.2f}\n",
                 engine_traits.name, engine_version(), (double)options->window_ns / SECOND_NS,
                 (unsigned long long)used.wakeups, (double)used.cpu_ns / BENCH_MS);
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"workload", required_argument, NULL, 'w'},
        {"n", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"window-ms", required_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {"late", 2000, 1, 4 * SECOND_NS};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (name == 'w') options.workload = optarg;
        if (name == 'n') options.timers = (uint32_t)bench_parse_number(optarg, BENCH_TIMERS_MAX);
        if (name == 's') options.seed = bench_parse_number(optarg, UINT32_MAX);
        if (name == 't') options.window_ns = bench_parse_number(optarg, BENCH_HOUR_MS) * BENCH_MS;
        if (name == '?') exit(2);
    }
    if (options.timers == 0 || options.window_ns == 0)
        bench_fail("expected at least one timer and a window above 0");
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    if (strcmp(options.workload, "late") == 0) {
        run_late(&options);
    } else if (strcmp(options.workload, "idle") == 0) {
        run_idle(&options);
    } else {
        bench_fail("unknown workload");
    }
    return 0;
}
