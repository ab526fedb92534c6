/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ALARM_H
#define BEL_CORE_ALARM_H

/*
 * alarm - sleeps until a time, or until another thread rings.
 *
 * An alarm has two descriptors. The eventfd can be rung by any thread and stays rung until it is
 * cleared. The timerfd is for the time: it supports the boot clock, which runs during suspend, and
 * the timer slack of the thread does not delay it.
 */

#include "belfry/clock.h"
#include "belfry/error.h"

#include <stdbool.h>

struct bel_alarm {
    int event_fd;
    int timer_fd;
};

/* Returns 0, or BEL_EIO if no file descriptor is available. */
BEL_CHECKED int bel__alarm_init(struct bel_alarm *alarm);
void bel__alarm_finish(struct bel_alarm *alarm);

/* Rings the alarm. Any thread may call it; async-signal-safe. */
void bel__alarm_ring(const struct bel_alarm *alarm);

/* Resets the alarm to not rung. */
void bel__alarm_clear(const struct bel_alarm *alarm);

/* Sets the time at which bel__alarm_sleep() ends; BEL_NEVER: none. Any thread may call it, also
 * while another one sleeps. */
void bel__alarm_set(const struct bel_alarm *alarm, struct bel_boot until);

/* Sleeps until the alarm is rung or the time that was set last, then clears the alarm. May return
 * early. */
void bel__alarm_sleep(const struct bel_alarm *alarm);

/* Sleeps until the alarm is rung or the system's boot clock reaches `until`, then clears the alarm.
 * May return early. */
void bel__alarm_wait(const struct bel_alarm *alarm, struct bel_boot until);

/* Like bel__alarm_wait(), and ends when `fd` is readable too; -1: none. */
void bel__alarm_wait_with(const struct bel_alarm *alarm, struct bel_boot until, int fd);

/* Returns a descriptor that is readable once the wall clock was set, and stays readable; or -1 if
 * none is available. */
int bel__alarm_watch_clock(void);
void bel__alarm_unwatch_clock(int fd);

#endif
