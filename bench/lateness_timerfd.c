/* SPDX-License-Identifier: MIT */

/*
 * A timerfd for each timer, and one thread in epoll_wait(). The kernel keeps the timers,
 * to the nanosecond and without timer slack. Each timer costs a descriptor, and two
 * system calls to ring.
 */
#include "lateness.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,
};

const struct engine_traits engine_traits = {.name = "timerfd", .resolution_ns = 1};

static int poll_fd;
static int *timer_fds; /* by id */

const char *engine_version(void)
{
    return "own";
}

void engine_open(uint32_t count)
{
    struct rlimit files;
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);

    timer_fds = bench_caller_alloc(count, sizeof *timer_fds);
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poll_fd < 0) bench_fail("cannot start");
}

void engine_schedule(uint32_t id, uint64_t due)
{
    struct itimerspec when = {.it_value = bench_timespec(due)};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = id};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) != 0 ||
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        bench_fail("cannot create a timerfd");
    }
    timer_fds[id] = fd;
}

void engine_run(void)
{
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(poll_fd, events, EVENTS_MAX, -1);
        if (count < 0 && errno != EINTR) bench_fail("cannot wait");
        for (int i = 0; i < count; i++) {
            uint32_t id = events[i].data.u32;
            uint64_t expirations;
            if (read(timer_fds[id], &expirations, sizeof expirations) > 0) bench_rang(id);
        }
    }
}
