/* SPDX-License-Identifier: MIT */

/*
 * libev: its loop keeps due times as a double, to the nanosecond, and sleeps in
 * epoll_wait(), rounded up to milliseconds. A delay counts from the time at which the
 * loop last read the clock. Here the clock is read just before that, so that no timer
 * is early.
 */
#include "lateness.h"

#include <ev.h>
#include <stdio.h>

const struct engine_traits engine_traits = {.name = "libev", .resolution_ns = 1};

static struct ev_loop *loop;
static ev_timer *timers;

const char *engine_version(void)
{
    static char text[32];
    (void)snprintf(text, sizeof text, "%d.%d", ev_version_major(), ev_version_minor());
    return text;
}

static void rang(struct ev_loop *of, ev_timer *timer, int events)
{
    (void)of, (void)events;
    bench_rang((uint32_t)(timer - timers));
}

void engine_open(uint32_t count)
{
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    timers = bench_caller_alloc(count, sizeof *timers);
    if (loop == NULL) bench_fail("cannot start");
}

void engine_schedule(uint32_t id, uint64_t due)
{
    uint64_t now = bench_clock_ns();
    ev_now_update(loop);
    ev_timer_init(&timers[id], rang, (ev_tstamp)(due - now) * 1e-9, 0.);
    ev_timer_start(loop, &timers[id]);
}

void engine_run(void)
{
    (void)ev_run(loop, 0);
}
