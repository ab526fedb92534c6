/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_HISTOGRAM_H
#define BEL_CORE_HISTOGRAM_H

/*
 * histogram - how values are distributed, from 0 to the largest 64-bit number, in a
 * fixed 15 KiB.
 *
 * Values below 64 are kept exactly; above, a value is known to one part in 32. So a
 * quantile is never below the true one and above it by less than 3.2 % of it. Minimum,
 * maximum, count and sum are exact. What would overflow stays at the largest number.
 *
 *     bel__histogram_record(&lateness, now - due);
 *     ...
 *     p99 = bel__histogram_quantile(&lateness, 990000);
 *
 * Threads: one records and merges; any other may read meanwhile and sees each number
 * whole, but not all of one instant: a count read first may be less than the sum read
 * next accounts for. That costs the writer nothing: no lock, no locked instruction.
 */

#include <stdint.h>

enum {
    BEL_HISTOGRAM_BITS = 5, /* 32 cells for each power of two */
    BEL_HISTOGRAM_CELLS = (64 - BEL_HISTOGRAM_BITS + 1) << BEL_HISTOGRAM_BITS,
    BEL_HISTOGRAM_QUANTILE_MAX = 1000000, /* quantiles are in millionths */
};

/* A histogram. The fields are private. */
struct bel_histogram {
    _Atomic uint64_t sum, min, max;
    _Atomic uint64_t cells[BEL_HISTOGRAM_CELLS];
};

/* Makes an empty histogram, before another thread knows of it. */
void bel__histogram_init(struct bel_histogram *histogram);

/* Writer only: records `value` once, in constant time. */
void bel__histogram_record(struct bel_histogram *histogram, uint64_t value);

/* Writer only: records `value` so many times, of which there may be none. */
void bel__histogram_record_many(struct bel_histogram *histogram, uint64_t value, uint64_t times);

/* Writer of `into` only: adds all that `from`, another one, has recorded. */
void bel__histogram_merge(struct bel_histogram *into, const struct bel_histogram *from);

/* Of an empty histogram all of these are 0. The count and the quantile read all cells. */
uint64_t bel__histogram_count(const struct bel_histogram *histogram);
uint64_t bel__histogram_sum(const struct bel_histogram *histogram);
uint64_t bel__histogram_min(const struct bel_histogram *histogram);
uint64_t bel__histogram_max(const struct bel_histogram *histogram);

/* A value that at least `millionths` of the values do not exceed: 500000 is the median,
 * 0 the minimum and 1000000 the maximum, both exact. */
uint64_t bel__histogram_quantile(const struct bel_histogram *histogram, uint32_t millionths);

#endif
