/* SPDX-License-Identifier: MIT */

/*
 * libuv: relative timers in a binary heap of nodes, in milliseconds, rounded up here so
 * that none is early. The caller keeps a uv_timer_t. A restart starts the active timer
 * again, which moves it.
 */
#include "engine.h"

#include <stdlib.h>
#include <uv.h>

const struct engine_traits engine_traits = {.name = "libuv", .resolution_ns = BENCH_MS};

static uv_loop_t loop;
static uv_timer_t *timers;

const char *engine_version(void)
{
    return uv_version_string();
}

static void fired(uv_timer_t *timer)
{
    bench_fired((uint32_t)(uintptr_t)timer->data, timer->timeout * BENCH_MS);
}

void engine_open(uint32_t count)
{
    timers = bench_caller_alloc(count, sizeof *timers);
    if (uv_loop_init(&loop) != 0) bench_fail("cannot start");
}

void engine_close(void)
{
    free(timers); /* the loop still points to them, but the process is about to end */
}

void engine_reserve(uint32_t count)
{
    (void)count;
}

struct engine_objects engine_caller_objects(void)
{
    return (struct engine_objects){(const char *)timers, sizeof *timers};
}

void engine_schedule(uint32_t id, uint64_t due)
{
    uv_timer_t *timer = &timers[id];
    if (timer->loop == NULL) {
        (void)uv_timer_init(&loop, timer);
        timer->data = (void *)(uintptr_t)id;
    }
    engine_restart(id, due);
}

void engine_cancel(uint32_t id)
{
    (void)uv_timer_stop(&timers[id]);
}

void engine_restart(uint32_t id, uint64_t due)
{
    uint64_t delay_ms = (due - bench_now + BENCH_MS - 1) / BENCH_MS;
    (void)uv_timer_start(&timers[id], fired, delay_ms, 0);
}

void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        engine_restart(ids[i], dues[i]);
}

void engine_expect(uint32_t id)
{
    (void)id; /* what the caller keeps is all there is */
}

void engine_fire(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

bool engine_poll(void)
{
    engine_fire();
    return false;
}

void engine_fire_next(void)
{
    uint32_t before = bench_fired_count();
    while (bench_fired_count() == before)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
