/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_HISTOGRAM_H
#define BEL_CORE_HISTOGRAM_H

/*
 * histogram - the distribution of 64-bit values, in a fixed 15 KiB.
 *
 * Values below 64 are stored exactly; larger ones to one part in 32. So a quantile is never below
 * the true one, and above it by less than 3.2 %. Minimum, maximum, count and sum are exact; on
 * overflow they stay at UINT64_MAX.
 *
 *     bel__histogram_record(&lateness, now - due);
 *     ...
 *     p99 = bel__histogram_quantile(&lateness, 990000);
 *
 * Threads: one thread records and merges. Any other may read meanwhile: each number is untorn, but
 * the numbers may be from different moments, for example a sum newer than the count. The writer
 * uses no lock and no locked instruction.
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

/* Initialises an empty histogram, before another thread can access it. */
void bel__histogram_init(struct bel_histogram *histogram);

/* Records `value` once, in constant time. Writer only. */
void bel__histogram_record(struct bel_histogram *histogram, uint64_t value);

/* Records `value` `times` times, which may be 0. Writer only. */
void bel__histogram_record_many(struct bel_histogram *histogram, uint64_t value, uint64_t times);

/* Adds everything that `from` has recorded to another histogram. Writer of `into` only. */
void bel__histogram_merge(struct bel_histogram *into, const struct bel_histogram *from);

/* All of these are 0 for an empty histogram. Count and quantile read all cells. */
uint64_t bel__histogram_count(const struct bel_histogram *histogram);
uint64_t bel__histogram_sum(const struct bel_histogram *histogram);
uint64_t bel__histogram_min(const struct bel_histogram *histogram);
uint64_t bel__histogram_max(const struct bel_histogram *histogram);

/* Returns a value that at least `millionths` of the values do not exceed: 500000 is the median, 0
 * the minimum and 1000000 the maximum, both exact. */
uint64_t bel__histogram_quantile(const struct bel_histogram *histogram, uint32_t millionths);

#endif
