/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"

#include "../check.h"

#include <pthread.h>
#include <stdatomic.h>

static struct bel_histogram histogram, other;

static void setup(void)
{
    bel__histogram_init(&histogram);
    bel__histogram_init(&other);
}

static void an_empty_histogram_is_all_zero(void)
{
    setup();
    CHECK_EQ(bel__histogram_count(&histogram), 0);
    CHECK_EQ(bel__histogram_sum(&histogram), 0);
    CHECK_EQ(bel__histogram_min(&histogram), 0);
    CHECK_EQ(bel__histogram_max(&histogram), 0);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), 0);
}

static void one_value_is_all_its_quantiles(void)
{
    setup();
    bel__histogram_record(&histogram, 123456789);
    CHECK_EQ(bel__histogram_quantile(&histogram, 0), 123456789);
    CHECK_EQ(bel__histogram_quantile(&histogram, 1), 123456789);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), 123456789);
    CHECK_EQ(bel__histogram_quantile(&histogram, 1000000), 123456789);
}

static void small_values_are_exact(void)
{
    setup();
    for (uint64_t value = 0; value < 64; value++) {
        bel__histogram_record(&histogram, value);
    }
    CHECK_EQ(bel__histogram_quantile(&histogram, 0), 0);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), 31); /* the 32nd of 64 */
    CHECK_EQ(bel__histogram_quantile(&histogram, 984375), 62); /* the 63rd */
    CHECK_EQ(bel__histogram_quantile(&histogram, 984376), 63);
    CHECK_EQ(bel__histogram_sum(&histogram), 63 * 64 / 2);
}

static void large_values_are_right_to_one_part_in_32(void)
{
    for (unsigned bit = 6; bit < 64; bit++) {
        for (int step = -1; step <= 1; step++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)step;
            CHECK_NOTE("2^%u%+d", bit, step);
            setup();
            bel__histogram_record(&histogram, value);
            bel__histogram_record(&histogram, UINT64_MAX);
            uint64_t median = bel__histogram_quantile(&histogram, 500000);
            CHECK(median >= value);
            CHECK(median - value <= value / 32);
        }
    }
}

static void minimum_maximum_count_and_sum_are_exact(void)
{
    setup();
    bel__histogram_record(&histogram, 1000001);
    bel__histogram_record(&histogram, 77777);
    bel__histogram_record_many(&histogram, 500, 10);
    bel__histogram_record_many(&histogram, 3, 0);
    CHECK_EQ(bel__histogram_count(&histogram), 12);
    CHECK_EQ(bel__histogram_sum(&histogram), 1000001 + 77777 + 5000);
    CHECK_EQ(bel__histogram_min(&histogram), 500);
    CHECK_EQ(bel__histogram_max(&histogram), 1000001);
}

static void the_ends_of_the_range_are_values_too(void)
{
    setup();
    bel__histogram_record(&histogram, UINT64_MAX);
    CHECK_EQ(bel__histogram_min(&histogram), UINT64_MAX);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), UINT64_MAX);
    bel__histogram_record(&histogram, 0);
    CHECK_EQ(bel__histogram_min(&histogram), 0);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), 0);
    CHECK_EQ(bel__histogram_max(&histogram), UINT64_MAX);
}

static void what_would_overflow_stays_at_the_largest_number(void)
{
    setup();
    bel__histogram_record_many(&histogram, UINT64_MAX / 2, 3);
    CHECK_EQ(bel__histogram_sum(&histogram), UINT64_MAX);
    bel__histogram_record_many(&histogram, 1, UINT64_MAX);
    bel__histogram_record_many(&histogram, 1, UINT64_MAX);
    CHECK_EQ(bel__histogram_count(&histogram), UINT64_MAX);
    CHECK_EQ(bel__histogram_quantile(&histogram, 999999), 1);
    bel__histogram_merge(&other, &histogram);
    bel__histogram_merge(&other, &histogram);
    CHECK_EQ(bel__histogram_sum(&other), UINT64_MAX);
    CHECK_EQ(bel__histogram_count(&other), UINT64_MAX);
}

static void merging_is_recording_both(void)
{
    setup();
    bel__histogram_record(&histogram, 10);
    bel__histogram_record(&other, 20);
    bel__histogram_record(&other, 5000);
    bel__histogram_merge(&histogram, &other);
    CHECK_EQ(bel__histogram_count(&histogram), 3);
    CHECK_EQ(bel__histogram_sum(&histogram), 5030);
    CHECK_EQ(bel__histogram_min(&histogram), 10);
    CHECK_EQ(bel__histogram_max(&histogram), 5000);
    CHECK_EQ(bel__histogram_quantile(&histogram, 500000), 20);
    CHECK_EQ(bel__histogram_count(&other), 2);
}

static void merging_an_empty_one_changes_nothing(void)
{
    setup();
    bel__histogram_merge(&histogram, &other);
    CHECK_EQ(bel__histogram_count(&histogram), 0);
    CHECK_EQ(bel__histogram_min(&histogram), 0);
    bel__histogram_record(&histogram, 7);
    bel__histogram_merge(&histogram, &other);
    CHECK_EQ(bel__histogram_min(&histogram), 7);
    CHECK_EQ(bel__histogram_max(&histogram), 7);
}

static const uint64_t records = 20000;

static void *record_many_values(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < records; i++) {
        bel__histogram_record(&histogram, i * 1000);
    }
    return NULL;
}

static void another_thread_reads_numbers_that_only_grow(void)
{
    pthread_t writer;
    uint64_t count = 0, sum = 0, max = 0;
    setup();
    CHECK(pthread_create(&writer, NULL, record_many_values, NULL) == 0);
    while (count < records) {
        uint64_t sum_before = sum, max_before = max, count_before = count;
        count = bel__histogram_count(&histogram);
        sum = bel__histogram_sum(&histogram);
        max = bel__histogram_max(&histogram);
        CHECK(count >= count_before && sum >= sum_before && max >= max_before);
        CHECK(bel__histogram_quantile(&histogram, 990000) <= (records - 1) * 1000);
    }
    CHECK(pthread_join(writer, NULL) == 0);
}

int main(void)
{
    RUN(an_empty_histogram_is_all_zero);
    RUN(one_value_is_all_its_quantiles);
    RUN(small_values_are_exact);
    RUN(large_values_are_right_to_one_part_in_32);
    RUN(minimum_maximum_count_and_sum_are_exact);
    RUN(the_ends_of_the_range_are_values_too);
    RUN(what_would_overflow_stays_at_the_largest_number);
    RUN(merging_is_recording_both);
    RUN(merging_an_empty_one_changes_nothing);
    RUN(another_thread_reads_numbers_that_only_grow);
    return 0;
}
