/* SPDX-License-Identifier: MIT */

/*
 * libuv: its loop sleeps in epoll_pwait() and counts whole milliseconds of
 * CLOCK_MONOTONIC, so due times are rounded up to milliseconds.
 */
#include "lateness.h"

#include <uv.h>

const struct engine_traits engine_traits = {.name = "libuv", .resolution_ns = BENCH_MS};

static uv_loop_t loop;
static uv_timer_t *timers;

const char *engine_version(void)
{
    return uv_version_string();
}

static void rang(uv_timer_t *timer)
{
    bench_rang((uint32_t)(timer - timers));
}

void engine_open(uint32_t count)
{
    timers = bench_caller_alloc(count, sizeof *timers);
    if (uv_loop_init(&loop) != 0) bench_fail("cannot start");
}

void engine_schedule(uint32_t id, uint64_t due)
{
    (void)uv_timer_init(&loop, &timers[id]);
    (void)uv_timer_start(&timers[id], rang, due / BENCH_MS - uv_now(&loop), 0);
}

void engine_run(void)
{
    (void)uv_run(&loop, UV_RUN_DEFAULT);
}
