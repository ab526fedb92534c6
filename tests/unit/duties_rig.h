/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_DUTIES_RIG_H
#define BEL_TESTS_DUTIES_RIG_H

/*
 * duties_rig - duties on a runtime with a fake clock and one worker, for the tests of duties.
 */

#include "belfry/duties.h"

#include "../check.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

enum {
    KIND_FIRST = 100,
    LOG_MAX = 4096,
};

static struct bel_clock_fake *fake;
static struct bel_runtime *runtime;
static struct bel_worker *worker;
static struct bel_duties *duties;
static struct bel_duty_event came[LOG_MAX]; /* since the last pass() */

static void open_with(struct bel_duties_options options)
{
    CHECK(bel_clock_fake_create((struct bel_wall){0}, &fake) == 0);
    bel_clock_fake_advance(fake, 10 * S);
    struct bel_runtime_options how = {.clock = bel_clock_fake_clock(fake),
                                      .metronome = BEL_METRONOME_MANUAL};
    CHECK(bel_runtime_create(&how, &runtime) == 0);
    CHECK(bel_worker_enter(runtime, &worker) == 0);
    options.kind_first = KIND_FIRST;
    CHECK(bel_duties_create(runtime, &options, &duties) == 0);
}

static void open_all(void)
{
    open_with((struct bel_duties_options){0});
}

static void close_all(void)
{
    struct bel_runtime_stats stats;
    bel_duties_destroy(duties);
    bel_runtime_stats(runtime, NULL, &stats);
    CHECK_EQ(stats.pending, 0);
    CHECK(bel_worker_leave(worker) == 0);
    bel_runtime_destroy(runtime);
    bel_clock_fake_destroy(fake);
}

static uint64_t now(void)
{
    return bel_clock_boot(bel_clock_fake_clock(fake)).ns;
}

/* Lets time pass and timers ring, without taking their events. */
static void let_ring(uint64_t ns)
{
    bel_clock_fake_advance(fake, ns);
    (void)bel_worker_poll(worker, LOG_MAX);
}

static size_t take(void)
{
    return bel_duties_take(duties, came, LOG_MAX);
}

static size_t pass(uint64_t ns)
{
    let_ring(ns);
    return take();
}

#endif
