/* SPDX-License-Identifier: MIT */
#ifndef BEL_EXAMPLES_ECHO_H
#define BEL_EXAMPLES_ECHO_H

/*
 * echo - what the three servers have in common: their command line and their timers. Every
 * connection has one, which rings when there was no line for a while; and one beats.
 *
 *     server [port [idle ms [statistics ms]]]
 */

#include <belfry/runtime.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KIND_IDLE,
    KIND_STATISTICS,
    LINE_BYTES = 4096,
};

struct options {
    uint16_t port; /* 0: any that is free */
    uint64_t idle_ns, statistics_ns;
};

struct totals {
    uint64_t connections; /* now */
    uint64_t lines, idle; /* ever */
};

static inline struct options read_options(int argc, char **argv)
{
    uint64_t numbers[] = {0, 30000, 10000};
    for (int i = 1; i < argc && i <= 3; i++) {
        numbers[i - 1] = strtoull(argv[i], NULL, 10);
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return (struct options){(uint16_t)numbers[0], numbers[1] * 1000000, numbers[2] * 1000000};
}

static inline void print_statistics(const struct totals *totals)
{
    (void)printf("%" PRIu64 " connections, %" PRIu64 " lines, %" PRIu64 " idle\n",
                 totals->connections, totals->lines, totals->idle);
}

/* For what cannot go wrong once the server is running, and ends it if it does. */
static inline void must(int error, const char *what)
{
    if (error) errx(1, "%s: %s", what, bel_error_text(error));
}

static inline void schedule_statistics(struct bel_runtime *runtime, const struct options *options)
{
    bel_timer_t timer;
    struct bel_schedule schedule = {.kind = KIND_STATISTICS,
                                    .priority = BEL_PRIORITY_DEFAULT,
                                    .repeat = BEL_RATE_SKIP,
                                    .period_ns = options->statistics_ns};
    must(bel_runtime_schedule_after(runtime, options->statistics_ns, &schedule, &timer),
         "statistics");
}

static inline bel_timer_t schedule_idle(struct bel_runtime *runtime, const struct options *options,
                                        const void *connection)
{
    bel_timer_t timer;
    struct bel_schedule schedule = {
        .kind = KIND_IDLE, .priority = BEL_PRIORITY_DEFAULT, .user = (uintptr_t)connection};
    must(bel_runtime_schedule_after(runtime, options->idle_ns, &schedule, &timer), "idle");
    return timer;
}

/* There was a line. False if it came too late: the timer has rung. */
static inline bool postpone_idle(struct bel_runtime *runtime, const struct options *options,
                                 bel_timer_t timer)
{
    struct bel_boot due = {bel_clock_boot(bel_clock_system()).ns + options->idle_ns};
    return bel_runtime_reschedule(runtime, timer, due) == 0;
}

static inline void *connection_of(const struct bel_event *event)
{
    return (void *)(uintptr_t)event->user;
}

/* An idle timer has rung: or BEL_SHUTDOWN_FIRE has made it, before its time. */
static inline void count_idle(struct totals *totals, const struct bel_event *event)
{
    totals->idle += event->now.ns >= event->due.ns;
}

#endif
