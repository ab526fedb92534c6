/* SPDX-License-Identifier: MIT */
#ifndef BENCH_LATENESS_H
#define BENCH_LATENESS_H

/*
 * lateness - measures how late timers ring, in real time.
 *
 * The programs of engine.h run in virtual time, as fast as they can. These programs
 * really wait: they measure when a waiting thread is woken, and how often. Of engine.h
 * an adapter defines only
 *
 *     engine_traits        the name, and the resolution of due times
 *     engine_version()
 *     engine_open()        called by the main thread, followed for each timer by
 *     engine_schedule()    with a due time of bench_clock_ns(), in the future
 *
 * and engine_run() below. It calls bench_rang() for each timer that rings.
 */

#include "engine.h"

#include <stdint.h>
#include <time.h>

/* Return CLOCK_MONOTONIC in nanoseconds, and such a time as a timespec. */
uint64_t bench_clock_ns(void);
struct timespec bench_timespec(uint64_t ns);

/* Reports that a timer rings. Is called once for each timer, by any thread. */
void bench_rang(uint32_t id);

/* Rings timers as they become due, until the process ends. Runs in a thread of its own,
 * after all timers are scheduled. Returns at once if the engine has its own threads. */
void engine_run(void);

#endif
