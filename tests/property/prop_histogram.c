/* SPDX-License-Identifier: MIT */

/*
 * The histogram compared with a sorted array: every quantile is at least the value at its rank and
 * at most a 32nd above it. Values are of every magnitude, or clustered around one; they are
 * recorded into two histograms that are merged at the end.
 */
#include "core/histogram.h"
#include "property.h"

#include <stdlib.h>
#include <string.h>

enum {
    VALUES_MAX = 3000,
    CASES = 150,
};

static const uint32_t quantiles[] = {0,      1,      1000,   100000, 250000, 500000,
                                     750000, 900000, 990000, 999000, 999999, 1000000};

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void check_quantile(const struct bel_histogram *h, const uint64_t *sorted, size_t count,
                           uint32_t millionths)
{
    size_t rank = (count * millionths + 999999) / 1000000; /* counted from 1 */
    uint64_t want = sorted[rank == 0 ? 0 : rank - 1];
    uint64_t got = bel__histogram_quantile(h, millionths);
    CHECK(got >= want);
    CHECK(got - want <= want / 32);
    CHECK(got <= sorted[count - 1]);
    if (millionths == 0 || millionths == 1000000) CHECK_EQ(got, want);
}

static void run_case(uint64_t seed)
{
    static struct bel_histogram a, b;
    static uint64_t values[VALUES_MAX];
    uint64_t random_state = seed, sum = 0;
    size_t count = 1 + random_below(&random_state, VALUES_MAX);
    uint64_t crowd = random_magnitude(&random_state) / 2;
    bel__histogram_init(&a);
    bel__histogram_init(&b);
    for (size_t i = 0; i < count; i++) {
        values[i] = random_magnitude(&random_state);
        if (seed % 2 == 0) values[i] = crowd + values[i] % (crowd / 8 + 1);
        sum = values[i] > UINT64_MAX - sum ? UINT64_MAX : sum + values[i];
        bel__histogram_record(random_below(&random_state, 2) ? &a : &b, values[i]);
    }
    bel__histogram_merge(&a, &b);
    qsort(values, count, sizeof values[0], compare);

    CHECK_EQ(bel__histogram_count(&a), count);
    CHECK_EQ(bel__histogram_sum(&a), sum);
    CHECK_EQ(bel__histogram_min(&a), values[0]);
    CHECK_EQ(bel__histogram_max(&a), values[count - 1]);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        check_quantile(&a, values, count, quantiles[i]);
    }
    for (int i = 0; i < 20; i++) {
        check_quantile(&a, values, count, (uint32_t)random_below(&random_state, 1000001));
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "distributions");
}
