/* SPDX-License-Identifier: MIT */

/*
 * The timer is set before each sleep and not cleared afterwards. At worst the next sleep ends at
 * once, which is harmless: every caller of bel__alarm_wait() tolerates an early return.
 */
#include "core/alarm.h"

#include "core/units.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int bel__alarm_init(struct bel_alarm *alarm)
{
    alarm->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    alarm->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (alarm->event_fd >= 0 && alarm->timer_fd >= 0) return 0;
    bel__alarm_finish(alarm);
    return BEL_EIO;
}

void bel__alarm_finish(struct bel_alarm *alarm)
{
    if (alarm->event_fd >= 0) (void)close(alarm->event_fd);
    if (alarm->timer_fd >= 0) (void)close(alarm->timer_fd);
    *alarm = (struct bel_alarm){-1, -1};
}

void bel__alarm_ring(const struct bel_alarm *alarm)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written = write(alarm->event_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: the counter is at its maximum,
                                                         so it is set anyway */
    (void)written;
    errno = saved;
}

void bel__alarm_clear(const struct bel_alarm *alarm)
{
    uint64_t rings;
    ssize_t bytes = read(alarm->event_fd, &rings, sizeof rings);
    (void)bytes; /* nothing to read: the alarm was not rung */
}

void bel__alarm_set(const struct bel_alarm *alarm, struct bel_boot until)
{
    struct itimerspec at = {0}; /* disarms the timer */
    if (until.ns != BEL_NEVER) {
        at.it_value = (struct timespec){(time_t)(until.ns / NS_PER_S), (long)(until.ns % NS_PER_S)};
        if (until.ns == 0) at.it_value.tv_nsec = 1;
    }
    int err = timerfd_settime(alarm->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    assert(err == 0);
    (void)err;
}

/* Sleeps until one of the descriptors is readable; poll() ignores those that are negative. */
static void sleep_on(const struct bel_alarm *alarm, int timer_fd, int other_fd)
{
    struct pollfd fds[] = {{.fd = alarm->event_fd, .events = POLLIN},
                           {.fd = timer_fd, .events = POLLIN},
                           {.fd = other_fd, .events = POLLIN}};
    while (poll(fds, 3, -1) < 0 && errno == EINTR) {}
    bel__alarm_clear(alarm);
}

void bel__alarm_sleep(const struct bel_alarm *alarm)
{
    sleep_on(alarm, alarm->timer_fd, -1);
}

void bel__alarm_wait_with(const struct bel_alarm *alarm, struct bel_boot until, int fd)
{
    bool is_timed = until.ns != BEL_NEVER;
    if (is_timed) bel__alarm_set(alarm, until);
    sleep_on(alarm, is_timed ? alarm->timer_fd : -1, fd);
}

void bel__alarm_wait(const struct bel_alarm *alarm, struct bel_boot until)
{
    bel__alarm_wait_with(alarm, until, -1);
}

int bel__alarm_watch_clock(void)
{
    /* Two thousand years ahead: only setting the clock ends it. */
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)1 << 36}};
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) return -1;
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) == 0) return fd;
    (void)close(fd);
    return -1;
}

void bel__alarm_unwatch_clock(int fd)
{
    if (fd >= 0) (void)close(fd);
}
