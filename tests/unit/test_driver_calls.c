/* SPDX-License-Identifier: MIT */

/* The usual requests as functions, with an engine in memory and a clock that the test moves. */
#include "belfry/driver.h"
#include "belfry/engine.h"

#include "../check.h"

#include <string.h>

#define START ((struct bel_wall){INT64_C(1767225600000)})
#define MS    UINT64_C(1000000)
#define HOUR  UINT64_C(3600000) /* ms */

static struct bel_clock_fake *fake;
static struct bel_engine *engine;
static struct bel_driver *driver;

static void start(void)
{
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

static void timers_are_scheduled_claimed_failed_and_acknowledged(void)
{
    struct bel_delivery *due = NULL;
    bool was_there = false;
    start();
    CHECK(bel_driver_schedule(driver, "mail", "a", BEL_VIEW("one\0two"), 0) == 0);
    CHECK(bel_driver_schedule(driver, "mail", "b", BEL_VIEW("later"), HOUR) == 0);
    CHECK(bel_driver_schedule(driver, "mail", NULL, BEL_VIEW(""), HOUR) == 0);
    CHECK(bel_driver_schedule(driver, "no topic", "a", BEL_VIEW(""), 0) == BEL_EINVAL);
    CHECK(bel_driver_cancel(driver, "mail", "b", &was_there) == 0 && was_there);
    CHECK(bel_driver_cancel(driver, "mail", "b", &was_there) == 0 && !was_there);
    CHECK(bel_driver_cancel(driver, "mail", "b", NULL) == 0);

    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due != NULL);
    CHECK(strcmp(due->id.data, "a") == 0 && strcmp(due->topic.data, "mail") == 0);
    CHECK(due->payload.bytes == 7 && memcmp(due->payload.data, "one\0two", 8) == 0);
    CHECK_EQ(due->attempt, 1);
    CHECK(bel_driver_fail(driver, due, "the relay is down") == 0);
    CHECK(bel_driver_fail(driver, due, NULL) == BEL_ESTALE);
    CHECK(bel_driver_ack(driver, due) == BEL_ESTALE);
    bel_delivery_destroy(due);

    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due == NULL); /* it is retried later */
    bel_clock_fake_advance(fake, 30 * 1000 * MS);
    bel_driver_wake(driver);
    CHECK(bel_driver_claim(driver, "mail", 0, &due) == 0 && due != NULL);
    CHECK_EQ(due->attempt, 2);
    CHECK(bel_driver_ack(driver, due) == 0);
    bel_delivery_destroy(due);
    bel_delivery_destroy(NULL);
    CHECK(bel_driver_stop(driver) == 0);
    CHECK(bel_driver_claim(driver, "mail", 0, &due) == BEL_ECLOSED);
    end();
}

int main(void)
{
    RUN(timers_are_scheduled_claimed_failed_and_acknowledged);
    return 0;
}
