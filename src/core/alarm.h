/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ALARM_H
#define BEL_CORE_ALARM_H

/*
 * alarm - sleeping until a time or until rung, whichever comes first.
 *
 * Two descriptors: an eventfd that any thread may ring, which stays rung until it is
 * cleared, and a timerfd for the time, because that knows the clock that goes on while
 * the machine is suspended and is not delayed by the thread's timer slack.
 */

#include "belfry/clock.h"
#include "belfry/error.h"

#include <stdbool.h>

struct bel_alarm {
    int event_fd;
    int timer_fd;
};

/* Returns 0, or BEL_EIO if the system has no descriptors left. */
BEL_CHECKED int bel__alarm_init(struct bel_alarm *alarm);
void bel__alarm_finish(struct bel_alarm *alarm);

/* Any thread, signal handlers included. */
void bel__alarm_ring(const struct bel_alarm *alarm);

/* Makes it not rung. */
void bel__alarm_clear(const struct bel_alarm *alarm);

/* Sleeps until it is rung or the system's boot clock says `until`, and clears it. */
void bel__alarm_wait(const struct bel_alarm *alarm, struct bel_boot until);

#endif
