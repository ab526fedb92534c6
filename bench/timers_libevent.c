/* SPDX-License-Identifier: MIT */

/*
 * libevent: relative timers in a binary heap of pointers, in microseconds. The caller
 * keeps a struct event. A restart adds the pending event again, which moves it.
 */
#include "engine.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

const struct engine_traits engine_traits = {.name = "libevent", .resolution_ns = BENCH_US};

static struct event_base *base;
static struct event *timers;

const char *engine_version(void)
{
    return event_get_version();
}

static void fired(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct event *event = arg;
    const struct timeval *at = &event->ev_timeout;
    uint64_t us = (uint64_t)at->tv_sec * 1000000 + (uint64_t)at->tv_usec;
    bench_fired((uint32_t)(event - timers), us * BENCH_US);
}

void engine_open(uint32_t count)
{
    struct event_config *config = event_config_new();
    if (config == NULL) bench_fail("cannot start");
    (void)event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    base = event_base_new_with_config(config);
    event_config_free(config);
    timers = bench_caller_alloc(count, sizeof *timers);
    if (base == NULL) bench_fail("cannot start");
}

void engine_close(void)
{
    event_base_free(base);
    free(timers);
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
    struct event *event = &timers[id];
    if (event->ev_base == NULL) (void)event_assign(event, base, -1, 0, fired, event);
    engine_restart(id, due);
}

void engine_cancel(uint32_t id)
{
    (void)event_del(&timers[id]);
}

void engine_restart(uint32_t id, uint64_t due)
{
    uint64_t us = (due - bench_now) / BENCH_US;
    struct timeval delay = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    (void)event_add(&timers[id], &delay);
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
    (void)event_base_loop(base, EVLOOP_NONBLOCK);
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
        (void)event_base_loop(base, EVLOOP_ONCE);
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
