/* SPDX-License-Identifier: MIT */

/*
 * Measures the cost of threads: the runtime compared with the bare wheel, and two threads compared
 * with one.
 *
 *     pair      N timers pending; schedules one and cancels the one scheduled 64 before, like
 *               timeouts of requests; on the owning thread
 *     churn     like pair, but cancels a random timer: each is a cache miss
 *     two       `pair` on two lanes at once: two workers of one runtime, or two processes
 *               with a bare wheel each
 *     cancel    one thread cancels timers that are in another thread's cache, one at a time
 *     schedule  one thread schedules timers of another, which polls, as fast as both can
 *
 * Lanes start together, by a word in shared memory.
 */
#include "harness.h"

#include "belfry/runtime.h"

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KIND = 1,
    LANES_MAX = 2,
    WINDOW = 64,  /* simulated requests in flight */
    ROUND = 4096, /* timers that move from one cache to the other per round */
};

#define BENCH_HOUR_NS UINT64_C(3600000000000)

const struct engine_traits engine_traits = {.name = "threads"};

struct options {
    const char *workload;
    bool is_wheel;
    uint32_t timers;
    uint32_t ops;
    uint64_t seed;
};

/* Shared by the lanes. */
struct shared {
    _Atomic uint32_t ready, done;
    double ns_per_op[LANES_MAX];
};

static struct shared *shared;
static struct bel_runtime *runtime;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Returns CPU time for a single lane, and elapsed time for several. */
static uint64_t lane_ns(uint32_t lanes)
{
    return lanes == 1 ? read_clock(CLOCK_THREAD_CPUTIME_ID) : clock_ns();
}

static void must(int err)
{
    if (err) bench_fail(bel_error_text(err));
}

static void ring(void *context, const struct bel_event *event)
{
    (void)context;
    (void)event;
}

/* Waits until all lanes have reached this point. */
static void meet(uint32_t lanes)
{
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < lanes) {}
}

/* One lane of churn. */
struct lane {
    const struct options *options;
    uint32_t lanes;
    uint32_t index;
    bool is_random;
};

/* Starts the measurement when all lanes are ready. */
static uint64_t begin(const struct lane *lane)
{
    meet(lane->lanes);
    return lane_ns(lane->lanes);
}

static uint64_t far(struct bench_random *random)
{
    return BENCH_HOUR_NS + bench_hour_delay((uint32_t)(bench_random_next(random) >> 32));
}

/* The timer that an operation replaces, and the due time of the new one. The first WINDOW timers
 * are those of requests; the others only stay pending. */
struct move {
    uint32_t id;
    uint64_t delay;
};

static struct move next_move(const struct lane *lane, struct bench_random *random, uint32_t op)
{
    uint64_t bits = bench_random_next(random);
    uint32_t id = bench_scale((uint32_t)bits, lane->options->timers);
    if (!lane->is_random) id = op % WINDOW;
    return (struct move){id, BENCH_HOUR_NS + bench_hour_delay((uint32_t)(bits >> 32))};
}

static double run_wheel(const struct lane *lane)
{
    const struct options *options = lane->options;
    struct bench_random random = {options->seed + lane->index};
    bel_timer_t *timers = bench_caller_alloc(options->timers, sizeof *timers);
    struct bel_wheel *wheel;
    must(bel_wheel_create(NULL, &wheel));
    for (uint32_t i = 0; i < options->timers; i++) {
        must(bel_wheel_arm(wheel, far(&random), 128, i, &timers[i]));
    }
    uint64_t start = 0;
    struct move move = next_move(lane, &random, 0), next;
    for (uint32_t op = 0; op < options->ops + options->timers; op++, move = next) {
        if (op == options->timers) start = begin(lane);
        next = next_move(lane, &random, op + 1);
        __builtin_prefetch(&timers[next.id], 1); /* a caller would have its object in the cache */
        if (!bel_wheel_cancel(wheel, timers[move.id])) bench_fail("lost a timer");
        must(bel_wheel_arm(wheel, move.delay, 128, move.id, &timers[move.id]));
    }
    double spent = (double)(lane_ns(lane->lanes) - start);
    bel_wheel_destroy(wheel);
    return spent / options->ops;
}

static double run_worker(const struct lane *lane)
{
    const struct options *options = lane->options;
    struct bench_random random = {options->seed + lane->index};
    bel_timer_t *timers = bench_caller_alloc(options->timers, sizeof *timers);
    struct bel_worker *worker;
    struct bel_schedule schedule = {.kind = KIND, .priority = 128};
    uint64_t now = bel_clock_boot(bel_clock_system()).ns;
    must(bel_worker_enter(runtime, &worker));
    for (uint32_t i = 0; i < options->timers; i++) {
        schedule.user = i;
        schedule.due.ns = now + far(&random);
        must(bel_runtime_schedule(runtime, &schedule, &timers[i]));
    }
    uint64_t start = 0;
    struct move move = next_move(lane, &random, 0), next;
    for (uint32_t op = 0; op < options->ops + options->timers; op++, move = next) {
        if (op == options->timers) start = begin(lane);
        next = next_move(lane, &random, op + 1);
        __builtin_prefetch(&timers[next.id], 1);
        if (!bel_runtime_cancel(runtime, timers[move.id])) bench_fail("lost a timer");
        schedule.user = move.id;
        schedule.due.ns = now + move.delay;
        must(bel_runtime_schedule(runtime, &schedule, &timers[move.id]));
    }
    double spent = (double)(lane_ns(lane->lanes) - start);
    must(bel_runtime_reschedule(runtime, timers[0], (struct bel_boot){now}));
    if (bel_worker_poll(worker, 1) != 1) bench_fail("a timer did not ring");
    return spent / options->ops;
}

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    shared->ns_per_op[lane->index] = lane->options->is_wheel ? run_wheel(lane) : run_worker(lane);
    /* A worker that leaves deals its timers out: not before all have been measured. */
    atomic_fetch_add(&shared->done, 1);
    while (atomic_load(&shared->done) < lane->lanes) {}
    return NULL;
}

/* Runs lanes: threads of one runtime, or processes. */
static void run_lanes(const struct options *options, uint32_t count)
{
    struct lane lanes[LANES_MAX];
    pthread_t threads[LANES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        lanes[i] = (struct lane){options, count, i, strcmp(options->workload, "churn") == 0};
        if (!options->is_wheel) {
            if (pthread_create(&threads[i], NULL, run_lane, &lanes[i]) != 0)
                bench_fail("cannot create a thread");
        } else if (fork() == 0) {
            (void)run_lane(&lanes[i]);
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int status = 0;
        if (!options->is_wheel) {
            (void)pthread_join(threads[i], NULL);
        } else if (wait(&status) < 0 || status != 0) {
            bench_fail("a lane failed");
        }
    }
    double rate = 0;
    for (uint32_t i = 0; i < count; i++) {
        rate += 1e9 / shared->ns_per_op[i];
    }
    printf("{\"workload\": \"%s\", \"mode\": \"%s\", \"ns_per_op\": %.2f, \"ops_per_s\": %.0f}\n",
           options->workload, options->is_wheel ? "wheel" : "runtime", shared->ns_per_op[0], rate);
}

/* The other thread of `cancel` and `schedule`. */
static struct bel_worker *other;
static _Atomic uint32_t touched, wanted;
static _Atomic bool ends;
static bel_timer_t round_timers[ROUND];

static void *own_and_touch(void *arg)
{
    struct bel_schedule schedule = {.kind = KIND, .priority = 128};
    (void)arg;
    must(bel_worker_enter(runtime, &other));
    uint64_t due = bel_clock_boot(bel_clock_system()).ns + BENCH_HOUR_NS;
    for (uint32_t round = 0; !atomic_load(&ends);) {
        if (atomic_load(&wanted) == round) {
            (void)bel_worker_poll(other, 100);
            continue;
        }
        for (uint32_t i = 0; i < ROUND; i++) {
            schedule.due.ns = due + i * 1000;
            must(bel_runtime_schedule(runtime, &schedule, &round_timers[i]));
        }
        atomic_store(&touched, ++round);
    }
    return NULL;
}

static void run_cancel(const struct options *options)
{
    pthread_t thread;
    uint64_t spent = 0;
    uint32_t rounds = options->ops / ROUND + 1, order[ROUND];
    struct bench_random random = {options->seed};
    for (uint32_t i = 0; i < ROUND; i++) {
        uint32_t at = bench_scale((uint32_t)(bench_random_next(&random) >> 32), i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    if (pthread_create(&thread, NULL, own_and_touch, NULL) != 0)
        bench_fail("cannot create a thread");
    for (uint32_t round = 1; round <= rounds; round++) {
        atomic_store(&wanted, round);
        while (atomic_load(&touched) < round) {}
        uint64_t start = clock_ns(), missed = 0;
        for (uint32_t i = 0; i < ROUND; i++) {
            /* Which one it is depends on how the last one went, so they cannot overlap. */
            volatile uint64_t one = !bel_runtime_cancel(runtime, round_timers[order[i] + missed]);
            missed += one;
        }
        spent += clock_ns() - start;
        if (missed > 0) bench_fail("a timer was not pending");
    }
    atomic_store(&ends, true);
    (void)pthread_join(thread, NULL);
    printf("{\"workload\": \"cancel\", \"mode\": \"runtime\", \"ns_per_op\": %.2f}\n",
           (double)spent / rounds / ROUND);
}

static void *own_and_poll(void *arg)
{
    (void)arg;
    must(bel_worker_enter(runtime, &other));
    atomic_store(&touched, 1);
    while (!atomic_load(&ends)) {
        (void)bel_worker_poll(other, 1000);
    }
    struct bel_runtime_stats stats;
    do {
        (void)bel_worker_poll(other, 1000);
        bel_runtime_stats(runtime, NULL, &stats);
    } while (stats.inbox > 0);
    return NULL;
}

static void run_schedule(const struct options *options)
{
    pthread_t thread;
    bel_timer_t timer;
    struct bench_random random = {options->seed};
    uint64_t now = bel_clock_boot(bel_clock_system()).ns;
    if (pthread_create(&thread, NULL, own_and_poll, NULL) != 0)
        bench_fail("cannot create a thread");
    while (atomic_load(&touched) == 0) {}
    struct bel_schedule schedule = {.kind = KIND, .priority = 128, .worker = other};
    uint64_t start = clock_ns();
    for (uint32_t i = 0; i < options->ops; i++) {
        schedule.due.ns = now + far(&random);
        must(bel_runtime_schedule(runtime, &schedule, &timer));
    }
    uint64_t sent = clock_ns() - start;
    atomic_store(&ends, true);
    (void)pthread_join(thread, NULL);
    uint64_t taken = clock_ns() - start;
    printf("{\"workload\": \"schedule\", \"mode\": \"runtime\", \"ns_per_op\": %.2f, "
           "\"ops_per_s\": %.0f, \"taken_per_s\": %.0f}\n",
           (double)sent / options->ops, 1e9 * options->ops / (double)sent,
           1e9 * options->ops / (double)taken);
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"workload", required_argument, NULL, 'w'}, {"mode", required_argument, NULL, 'm'},
        {"n", required_argument, NULL, 'n'},        {"ops", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, 's'},     {0}};
    struct options options = {.workload = "churn", .timers = 1000000, .ops = 2000000, .seed = 1};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (name) {
        case 'w':
            options.workload = optarg;
            break;
        case 'm':
            options.is_wheel = strcmp(optarg, "wheel") == 0;
            break;
        case 'n':
            options.timers = (uint32_t)bench_parse_number(optarg, 1 << 27);
            break;
        case 'o':
            options.ops = (uint32_t)bench_parse_number(optarg, 1 << 30);
            break;
        case 's':
            options.seed = bench_parse_number(optarg, UINT64_MAX);
            break;
        default:
            exit(2);
        }
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) bench_fail("out of memory");
    if (!options.is_wheel) {
        must(bel_runtime_create(NULL, &runtime));
        must(bel_runtime_on(runtime, KIND, ring, NULL));
    }
    if (strcmp(options.workload, "churn") == 0 || strcmp(options.workload, "pair") == 0) {
        run_lanes(&options, 1);
    } else if (strcmp(options.workload, "two") == 0) {
        run_lanes(&options, 2);
    } else if (strcmp(options.workload, "cancel") == 0) {
        run_cancel(&options);
    } else if (strcmp(options.workload, "schedule") == 0) {
        run_schedule(&options);
    } else {
        bench_fail("unknown workload");
    }
    return 0;
}
