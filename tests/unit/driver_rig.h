/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_DRIVER_RIG_H
#define BEL_TESTS_DRIVER_RIG_H

/*
 * driver_rig - a driver with an engine in memory and a clock that the test moves. A test that hangs
 * is ended by a signal.
 */

#include "belfry/driver.h"
#include "belfry/engine.h"

#include "../check.h"

#include <unistd.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)

enum {
    PATIENCE_S = 60,
};

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;

static void start(void)
{
    (void)alarm(PATIENCE_S);
    CHECK(bel_clock_fake_create(START, &fake) == 0);
    struct bel_engine_options options = {.now = bel_clock_now(bel_clock_fake_clock(fake))};
    CHECK(bel_engine_open(&options, &engine, NULL) == 0);
    CHECK(bel_driver_start(bel_engine_backend(engine), bel_clock_fake_clock(fake), &driver) == 0);
}

static void end(void)
{
    bel_driver_destroy(driver);
    bel_engine_close(engine);
    bel_clock_fake_destroy(fake);
}

#endif
