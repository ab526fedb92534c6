/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_PRESSURE_H
#define BEL_STORE_PRESSURE_H

/*
 * pressure - computes the delay of a batch, so that the active delta does not fill up before the
 * checkpoint of the frozen delta has finished.
 *
 * While a checkpoint runs, the active delta fills. If it filled up first, all commits would stop
 * until the checkpoint ends. Instead each batch waits a little once the fill is ahead of the
 * progress:
 *
 *     fill
 *     15/16 |                  .-'
 *           |              .-'
 *           |          .-'      below the line: no delay
 *           |      .-'          above: a batch waits its share of the remaining time
 *       1/8 |  .-'
 *           '---------------------> progress of the checkpoint
 *
 * A batch that takes a hundredth of the remaining room waits a hundredth of the remaining time.
 */

#include <stdint.h>

enum {
    BEL_PRESSURE_PROGRESS_MAX = 1000,
};

/* The state at a commit. `fill`, `fill_max` and `batch` are in one unit of the caller's choice,
 * e.g. bytes of the log. */
struct bel_pressure {
    uint64_t fill, fill_max; /* of the active delta, the batch included */
    uint64_t batch;          /* the share of the batch in `fill` */
    unsigned progress;       /* of the checkpoint; BEL_PRESSURE_PROGRESS_MAX if none runs */
    uint64_t elapsed_ns;     /* since the checkpoint began */
    uint64_t expected_ns;    /* duration of the last checkpoint; 0: unknown */
};

/* Returns how long to delay the next batch, in nanoseconds. The caller stops waiting when the
 * checkpoint is finished. */
uint64_t bel__pressure_delay_ns(const struct bel_pressure *pressure);

#endif
