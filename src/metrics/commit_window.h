/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_COMMIT_WINDOW_H
#define BEL_METRICS_COMMIT_WINDOW_H

/*
 * commit_window - how long changes took to become durable in the last ten seconds.
 *
 * A ring of ten histograms of a second each, with buckets of 10 ms: the bounds of the levels of
 * pressure (belfry/pressure.h) for a limit of 1 s are bounds of buckets.
 */

#include "belfry/clock.h"

#include <stdint.h>

enum {
    BEL_COMMIT_SLOTS = 10,
    BEL_COMMIT_BUCKET_MS = 10,
    BEL_COMMIT_BUCKETS = 129, /* the last is above all bounds: more than 1,280 ms */
    BEL_COMMIT_LIMIT_MS = 1000,
};

/* Starts zeroed. */
struct bel_commit_window {
    uint32_t counts[BEL_COMMIT_SLOTS][BEL_COMMIT_BUCKETS];
    uint64_t numbers[BEL_COMMIT_SLOTS]; /* of the second that a slot counts, from 1 */
};

void bel__commit_window_record(struct bel_commit_window *window, uint64_t ns, struct bel_mono now);

/* Returns the smallest bound of a bucket, in ms, that 99 % of the durations do not exceed; 0 if
 * there were none. */
uint64_t bel__commit_window_p99_ms(const struct bel_commit_window *window, struct bel_mono now);

#endif
