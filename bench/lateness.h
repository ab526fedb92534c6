/* SPDX-License-Identifier: MIT */
#ifndef BENCH_LATENESS_H
#define BENCH_LATENESS_H

/*
 * lateness - how late timers ring, in real time.
 *
 * The programs of engine.h run on virtual time, as fast as they can; these wait, and
 * what counts is when a waiting thread is woken and how often. An adapter defines of
 * engine.h only
 *
 *     engine_traits        the name, and what dues are rounded up to
 *     engine_version()
 *     engine_open()        the main thread calls it, and then, for each timer,
 *     engine_schedule()    with a due by bench_clock_ns(), some time ahead
 *
 * and engine_run() below, and calls bench_rang() from wherever its timers ring.
 */

#include "engine.h"

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds; and such an instant for the calls that sleep until it. */
uint64_t bench_clock_ns(void);
struct timespec bench_timespec(uint64_t ns);

/* A timer rings: called once for each, by any thread. */
void bench_rang(uint32_t id);

/* Rings timers as they become due, until the process ends. It has a thread of its own,
 * and starts when all are scheduled. Returns at once if the engine brings its threads. */
void engine_run(void);

#endif
