/* SPDX-License-Identifier: MIT */
#include "belfry/spread.h"

#include "../check.h"

#include <string.h>

#define HOUR UINT64_C(3600000)

/* Computed by another implementation of SipHash-2-4. These numbers are a promise: a change
 * here moves every timer that its users have spread. */
static void an_id_keeps_its_place_for_ever(void)
{
    static const struct {
        const char *id;
        uint64_t hour, day, all;
    } rows[] = {
        {"", 36397, 873537, UINT64_C(186503746139808382)},
        {"a", 3139287, 75342910, UINT64_C(16086011528949219186)},
        {"nightly", 2805699, 67336794, UINT64_C(14376673740482660491)},
        {"report@eu-west/17", 189783, 4554799, UINT64_C(972467768205750440)},
        {"report@eu-west/18", 2049708, 49192992, UINT64_C(10502899895855784026)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = strlen(rows[i].id);
        CHECK_NOTE("id '%s'", rows[i].id);
        CHECK_EQ(bel_spread_offset(rows[i].id, bytes, HOUR), rows[i].hour);
        CHECK_EQ(bel_spread_offset(rows[i].id, bytes, 24 * HOUR), rows[i].day);
        CHECK_EQ(bel_spread_offset(rows[i].id, bytes, UINT64_MAX), rows[i].all);
    }
}

static void a_place_is_inside_the_window(void)
{
    for (uint64_t id = 0; id < 10000; id++) {
        CHECK_EQ(bel_spread_offset(&id, sizeof id, 0), 0);
        CHECK_EQ(bel_spread_offset(&id, sizeof id, 1), 0);
        CHECK(bel_spread_offset(&id, sizeof id, 7) < 7);
        CHECK(bel_spread_offset(&id, sizeof id, HOUR) < HOUR);
    }
    CHECK_EQ(bel_spread_offset(NULL, 0, HOUR), bel_spread_offset("", 0, HOUR));
}

/* 60,000 ids in 60 minutes: 1000 each; five standard deviations are about 160. */
static void places_fill_the_window_evenly(void)
{
    unsigned minutes[60] = {0};
    for (unsigned i = 0; i < 60000; i++) {
        char id[16];
        int bytes = snprintf(id, sizeof id, "timer-%u", i);
        minutes[bel_spread_offset(id, (size_t)bytes, HOUR) / (HOUR / 60)]++;
    }
    for (unsigned i = 0; i < 60; i++) {
        CHECK_NOTE("minute %u has %u", i, minutes[i]);
        CHECK(minutes[i] > 840 && minutes[i] < 1160);
    }
}

static void jitter_is_shorter_or_longer_by_up_to_its_share(void)
{
    CHECK_EQ(bel_spread_jitter(1000, 100, 0), 900);
    CHECK_EQ(bel_spread_jitter(1000, 100, UINT64_MAX), 1100);
    CHECK_EQ(bel_spread_jitter(1000, 100, UINT64_MAX / 2), 1000);
    CHECK_EQ(bel_spread_jitter(1000, 0, 0), 1000);
    CHECK_EQ(bel_spread_jitter(1000, 0, UINT64_MAX), 1000);
    CHECK_EQ(bel_spread_jitter(1000, BEL_SPREAD_WHOLE, 0), 0);
    CHECK_EQ(bel_spread_jitter(1000, BEL_SPREAD_WHOLE, UINT64_MAX), 2000);
    CHECK_EQ(bel_spread_jitter(0, BEL_SPREAD_WHOLE, UINT64_MAX), 0);
    CHECK_EQ(bel_spread_jitter(9, 100, UINT64_MAX), 9);
}

static void every_place_of_a_jitter_is_as_likely(void)
{
    unsigned places[5] = {0};
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t delay_ms = bel_spread_jitter(10, 200, i * (UINT64_MAX / 5000));
        CHECK(delay_ms >= 8 && delay_ms <= 12);
        places[delay_ms - 8]++;
    }
    for (unsigned i = 0; i < 5; i++) {
        CHECK(places[i] >= 999 && places[i] <= 1001);
    }
}

static void the_longest_delays_do_not_overflow(void)
{
    CHECK_EQ(bel_spread_jitter(UINT64_MAX, 0, UINT64_MAX), UINT64_MAX);
    CHECK_EQ(bel_spread_jitter(UINT64_MAX, 100, UINT64_MAX), UINT64_MAX);
    CHECK_EQ(bel_spread_jitter(UINT64_MAX, 100, 0), UINT64_MAX - UINT64_MAX / 10);
    CHECK_EQ(bel_spread_jitter(UINT64_MAX, BEL_SPREAD_WHOLE, 0), 0);
    CHECK_EQ(bel_spread_jitter(UINT64_MAX, BEL_SPREAD_WHOLE, UINT64_MAX), UINT64_MAX);
    CHECK_EQ(bel_spread_jitter(UINT64_MAX - 1, 1, UINT64_MAX), UINT64_MAX);
    CHECK_EQ(bel_spread_jitter(UINT64_C(1) << 63, BEL_SPREAD_WHOLE, 0), 0);
    CHECK_EQ(bel_spread_jitter(UINT64_C(1) << 63, BEL_SPREAD_WHOLE, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
    RUN(an_id_keeps_its_place_for_ever);
    RUN(a_place_is_inside_the_window);
    RUN(places_fill_the_window_evenly);
    RUN(jitter_is_shorter_or_longer_by_up_to_its_share);
    RUN(every_place_of_a_jitter_is_as_likely);
    RUN(the_longest_delays_do_not_overflow);
    return 0;
}
