/* SPDX-License-Identifier: MIT */
#ifndef BEL_DRIVER_H
#define BEL_DRIVER_H

/*
 * driver - a thread that turns a backend, for programs whose threads want to ask it things.
 *
 *     any thread                         the driver's thread
 *     ----------                         -------------------
 *     submit, call ----> queue --------> backend: a turn takes all that have come
 *                                           |
 *     call returns <---- done <-------------'   sleeps until something is due, or submitted
 *
 *     bel_driver_start(bel_engine_backend(engine), NULL, &driver);
 *     err = bel_driver_call(driver, &request);
 *     ...
 *     bel_driver_destroy(driver);
 *     bel_engine_close(engine);
 *
 * While it runs, the backend belongs to the driver's thread; only `done`, which is called there,
 * may use it directly. What `done` does holds up everybody else, so it is short. Requests that come
 * while a turn is under way share the next one, and with that its commit. A driver that has
 * nothing to do does not wake up.
 *
 * Threads: any thread may call anything but bel_driver_destroy() at any time.
 */

#include "belfry/backend.h"
#include "belfry/clock.h"
#include "belfry/error.h"

#pragma GCC visibility push(default)

struct bel_driver; /* opaque */

/* Starts a driver of a backend, which is borrowed. With a clock other than the system's, time does
 * not wake it: call bel_driver_wake() after the clock was moved. NULL: the system's. Returns 0 and
 * sets `*out`, before the first turn; or returns BEL_ENOMEM, or BEL_EIO if there are no descriptors
 * left. */
BEL_CHECKED int bel_driver_start(struct bel_backend *backend, const struct bel_clock *clock,
                                 struct bel_driver **out);

/* Submits a request and returns at once; `done` is called on the driver's thread. Requests of
 * one thread are taken in the order of their submission. Such a request is not withdrawn by hand.
 * Returns 0; or BEL_ECLOSED if the driver was stopped, and the request is as before. */
BEL_CHECKED int bel_driver_submit(struct bel_driver *driver, struct bel_request *request);

/* Submits a request and sleeps until it is done. `done` is called as above, before this returns,
 * but may be NULL here, and neither submits nor frees the request. Returns the reply's error, 0 if
 * it has none; or BEL_ECLOSED if the driver was stopped, or BEL_EBUSY if this is its own thread,
 * and then it is not done. */
BEL_CHECKED int bel_driver_call(struct bel_driver *driver, struct bel_request *request);

/* Makes it take a turn soon: the clock was moved, or answers of the backend can leave (`wake` of
 * struct bel_engine_options). Also from a signal handler. */
void bel_driver_wake(struct bel_driver *driver);

/* From here on no claim waits: those that do, and those that would, are answered with nothing. So
 * workers that wait for work come back, and those that have some can still finish it. */
void bel_driver_drain(struct bel_driver *driver);

/* Refuses what is submitted from here on, finishes what was submitted before, and ends the thread.
 * Claims that wait are answered with nothing, as by a drain. Then the backend is the caller's
 * again. Returns 0, also if it was stopped before; or BEL_EBUSY if this is its own thread. */
BEL_CHECKED int bel_driver_stop(struct bel_driver *driver);

/* Stops a driver and frees it; NULL is allowed. No other thread may use it any more, and this is
 * not its own. */
void bel_driver_destroy(struct bel_driver *driver);

#pragma GCC visibility pop
#endif
