/* SPDX-License-Identifier: MIT */

/*
 * Virtual time for libraries that read the clock and sleep themselves. The program
 * defines the functions of the C library for that, and the unmodified shared libraries
 * bind to them: the clock returns bench_now, and a sleep advances it.
 *
 * The clock is half a microsecond ahead. Due times are whole microseconds, so for every
 * engine, whether it tests `due <= now` (libevent, libuv) or `due < now` (libev), the
 * same timers are due.
 */
#include "virtual.h"

#include "engine.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

static struct timespec virtual_time;

void bench_set_now(uint64_t now)
{
    uint64_t shown = now + BENCH_AHEAD_NS;
    bench_now = now;
    virtual_time = (struct timespec){(time_t)(shown / 1000000000), (long)(shown % 1000000000)};
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    *out = virtual_time;
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    *out = (struct timeval){virtual_time.tv_sec, virtual_time.tv_nsec / 1000};
    return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int events_max, int timeout_ms)
{
    (void)fd, (void)events, (void)events_max;
    if (timeout_ms < 0) abort(); /* no timer is left: the program would wait forever */
    if (timeout_ms > 0) bench_set_now(bench_now + (uint64_t)timeout_ms * BENCH_MS);
    return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int events_max, int timeout_ms,
                const sigset_t *signals)
{
    (void)signals;
    return epoll_wait(fd, events, events_max, timeout_ms);
}
