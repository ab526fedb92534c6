/* SPDX-License-Identifier: MIT */
#ifndef BEL_LOCAL_CREW_H
#define BEL_LOCAL_CREW_H

/*
 * local_crew - a crew without a server: its hands work on the timers of a driver in this process.
 *
 *     struct bel_crew_options options = {.topics = topics, .topics_count = 1, .work = mail};
 *     err = bel_local_crew_start(driver, &options, &crew);
 *     ...
 *     err = bel_crew_stop(crew, 15000);
 *     bel_crew_destroy(crew);
 *     bel_driver_destroy(driver);
 *
 * Everything else is as described in belfry/crew.h: hands, leases and their extension, reports,
 * `told`, and stopping.
 *
 * Threads: as for a crew.
 */

#include "belfry/crew.h"
#include "belfry/declare.h"
#include "belfry/driver.h"

BEL_BEGIN_DECLARATIONS

/* Starts a crew for the timers of a driver, which must outlive the crew. Stop the crew before the
 * driver: after bel_driver_drain() or bel_driver_stop() the crew reports trouble, pauses, and
 * tries again. Of `client` in the options only the clock is used, and `address` not at all; the
 * clock must be that of the driver. Returns 0 and sets `*out`, or returns BEL_ENOMEM. */
BEL_CHECKED int bel_local_crew_start(struct bel_driver *driver,
                                     const struct bel_crew_options *options, struct bel_crew **out);

BEL_END_DECLARATIONS
#endif
