/* SPDX-License-Identifier: MIT */

/*
 * libev: relative timers in a 4-ary heap, in seconds as a double. The caller keeps an
 * ev_timer. A restart is ev_timer_again() with the delay as the period. Such a timer
 * would repeat, so it is stopped when it fires.
 */
#include "engine.h"
#include "virtual.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

const struct engine_traits engine_traits = {.name = "libev", .resolution_ns = BENCH_US};

static struct ev_loop *loop;
static ev_timer *timers;

const char *engine_version(void)
{
    static char text[32];
    (void)snprintf(text, sizeof text, "%d.%d", ev_version_major(), ev_version_minor());
    return text;
}

/* Converts between a due time and seconds from bench_now, the current time of the loop. */
static ev_tstamp seconds_until(uint64_t due)
{
    return (ev_tstamp)(int64_t)(due - bench_now - BENCH_AHEAD_NS) * 1e-9;
}

static uint64_t due_after(ev_tstamp seconds)
{
    double us = seconds * 1e6 + (double)BENCH_AHEAD_NS / BENCH_US;
    return bench_now + (uint64_t)((int64_t)(us + (us < 0 ? -0.5 : 0.5)) * BENCH_US);
}

static void fired(struct ev_loop *of, ev_timer *timer, int events)
{
    (void)events;
    uint32_t id = (uint32_t)(uintptr_t)timer->data;
    if (timer->repeat > 0) {
        ev_tstamp period = timer->repeat;
        ev_timer_stop(of, timer);
        timer->repeat = 0;
        bench_fired(id, due_after(timer->at - period));
    } else {
        bench_fired(id, due_after(timer->at));
    }
}

void engine_open(uint32_t count)
{
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOTIMERFD);
    timers = bench_caller_alloc(count, sizeof *timers);
    if (loop == NULL) bench_fail("cannot start");
    ev_now_update(loop);
}

void engine_close(void)
{
    ev_loop_destroy(loop);
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
    ev_timer *timer = &timers[id];
    if (timer->cb == NULL) {
        ev_init(timer, fired);
        timer->data = (void *)(uintptr_t)id;
    }
    ev_timer_set(timer, seconds_until(due), 0.);
    ev_timer_start(loop, timer);
}

void engine_cancel(uint32_t id)
{
    ev_timer_stop(loop, &timers[id]);
}

void engine_restart(uint32_t id, uint64_t due)
{
    timers[id].repeat = seconds_until(due);
    ev_timer_again(loop, &timers[id]);
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
    ev_run(loop, EVRUN_NOWAIT);
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
        ev_run(loop, EVRUN_ONCE);
}

void engine_read_stats(struct engine_stats *out)
{
    (void)out;
}
