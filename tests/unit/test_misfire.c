/* SPDX-License-Identifier: MIT */
#include "belfry/misfire.h"

#include "../check.h"
#include "../random.h"

enum {
    TIMES_MAX = 3000,
};

/* A plan of times in a table, in order, or with a fixed period from the first one. */
struct fake {
    const int64_t *times;
    size_t count;
    int64_t first, period, last; /* if there is a period */
    unsigned calls;
};

static bool fake_next(void *context, struct bel_wall after, struct bel_wall *out)
{
    struct fake *fake = context;
    fake->calls++;
    if (fake->period > 0) {
        int64_t passed = after.ms < fake->first ? 0 : (after.ms - fake->first) / fake->period + 1;
        out->ms = fake->first + passed * fake->period;
        return out->ms <= fake->last;
    }
    size_t low = 0, high = fake->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (fake->times[middle] > after.ms) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == fake->count) return false;
    out->ms = fake->times[low];
    return true;
}

static struct bel_misfire_result choose(struct fake *fake, enum bel_misfire policy,
                                        uint32_t all_max, int64_t after, int64_t until,
                                        struct bel_wall *out_times)
{
    struct bel_misfire_plan plan = {.next = fake_next, .context = fake};
    struct bel_misfire_range range = {.after = {after}, .until = {until}};
    fake->calls = 0;
    return bel_misfire_choose(policy, all_max, &plan, range, out_times);
}

static const int64_t TABLE[] = {-50, 10, 20, 21, 22, 500, 100000};

static void skip_makes_none_and_counts_them(void)
{
    struct fake fake = {.times = TABLE, .count = 7};
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_SKIP, 1000, -50, 499, NULL);
    CHECK_EQ(result.made_count, 0);
    CHECK_EQ(result.skipped_count, 4);
    CHECK(result.has_next && result.next.ms == 500);
}

static void last_makes_the_newest(void)
{
    struct fake fake = {.times = TABLE, .count = 7};
    struct bel_wall times[1];
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_LAST, 1000, -51, 499, times);
    CHECK(result.made_count == 1 && times[0].ms == 22);
    CHECK_EQ(result.skipped_count, 4);
    CHECK(result.has_next && result.next.ms == 500);
}

static void all_makes_the_newest_up_to_a_number(void)
{
    struct fake fake = {.times = TABLE, .count = 7};
    struct bel_wall times[1000];
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_ALL, 3, -51, 600, times);
    CHECK_EQ(result.made_count, 3);
    CHECK(times[0].ms == 21 && times[1].ms == 22 && times[2].ms == 500);
    CHECK_EQ(result.skipped_count, 3);

    result = choose(&fake, BEL_MISFIRE_ALL, 1000, -51, 600, times);
    CHECK(result.made_count == 6 && result.skipped_count == 0);
    CHECK(times[0].ms == -50 && times[5].ms == 500);
    CHECK(result.has_next && result.next.ms == 100000);
}

static void the_range_has_its_end_but_not_its_start(void)
{
    struct fake fake = {.times = TABLE, .count = 7};
    struct bel_wall times[1000];
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_ALL, 1000, 10, 22, times);
    CHECK(result.made_count == 3 && times[0].ms == 20 && times[2].ms == 22);
    result = choose(&fake, BEL_MISFIRE_LAST, 1000, 10, 19, times);
    CHECK(result.made_count == 0 && result.skipped_count == 0);
    CHECK(result.has_next && result.next.ms == 20);
    result = choose(&fake, BEL_MISFIRE_LAST, 1000, 20, 20, times);
    CHECK(result.made_count == 0 && result.skipped_count == 0);
}

static void a_plan_may_have_an_end(void)
{
    struct fake fake = {.times = TABLE, .count = 7}, none = {.count = 0};
    struct bel_wall times[1000];
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_LAST, 0, 0, INT64_MAX - 1, times);
    CHECK(result.made_count == 1 && times[0].ms == 100000);
    CHECK(result.skipped_count == 5 && !result.has_next);
    result = choose(&none, BEL_MISFIRE_ALL, 1000, INT64_MIN, INT64_MAX - 1, times);
    CHECK(result.made_count == 0 && result.skipped_count == 0 && !result.has_next);
}

/* Every minute for thirty years. */
static void the_work_is_bounded_however_much_was_missed(void)
{
    struct fake fake = {.first = 0, .period = 60000, .last = INT64_MAX};
    struct bel_wall times[BEL_MISFIRE_MAX];
    int64_t until = INT64_C(30) * 365 * 86400 * 1000 + 1;
    struct bel_misfire_result result =
        choose(&fake, BEL_MISFIRE_ALL, BEL_MISFIRE_MAX, -1, until, times);
    CHECK_EQ(result.made_count, BEL_MISFIRE_MAX);
    CHECK(times[BEL_MISFIRE_MAX - 1].ms == until - 1);
    CHECK(times[0].ms == until - 1 - INT64_C(999) * 60000);
    CHECK_EQ(result.skipped_count, BEL_MISFIRE_COUNT_MAX);
    CHECK(result.has_next && result.next.ms == until - 1 + 60000);
    CHECK(fake.calls < BEL_MISFIRE_COUNT_MAX + 2 * BEL_MISFIRE_MAX + 100);

    result = choose(&fake, BEL_MISFIRE_LAST, 0, -1, until, times);
    CHECK(result.made_count == 1 && times[0].ms == until - 1);
    CHECK(fake.calls < BEL_MISFIRE_COUNT_MAX + 100);
}

/* Every millisecond of a year, then nothing for another year: the end of the cluster is found by
 * bisection. */
static void a_crowd_long_ago_is_not_walked_through(void)
{
    int64_t year = INT64_C(365) * 86400 * 1000;
    struct fake fake = {.first = 0, .period = 1, .last = year};
    struct bel_wall times[2];
    struct bel_misfire_result result = choose(&fake, BEL_MISFIRE_ALL, 2, -1, 2 * year, times);
    CHECK(result.made_count == 2 && times[0].ms == year - 1 && times[1].ms == year);
    CHECK(result.skipped_count == BEL_MISFIRE_COUNT_MAX && !result.has_next);
    CHECK(fake.calls < BEL_MISFIRE_COUNT_MAX + 2 * 128);
}

/* Times in clusters of every density: the results equal those of examining every time. */
static void the_answers_are_those_of_looking_at_every_time(void)
{
    static int64_t table[TIMES_MAX];
    static struct bel_wall times[BEL_MISFIRE_MAX];
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t state = seed;
        size_t count = random_below(&state, TIMES_MAX);
        int64_t at = -(int64_t)random_below(&state, 1000000000);
        uint64_t shift = 24;
        for (size_t i = 0; i < count; i++) {
            if (random_below(&state, 50) == 0) shift = random_below(&state, 32);
            at += 1 + (int64_t)random_below(&state, UINT64_C(1) << shift);
            table[i] = at;
        }
        size_t low = random_below(&state, count + 1);
        size_t high = low + random_below(&state, count + 1 - low);
        int64_t after = low == 0 ? -2000000000 : table[low - 1];
        int64_t until = high == low ? after : table[high - 1];
        uint32_t all_max = (uint32_t)random_below(&state, BEL_MISFIRE_MAX + 1);

        struct fake fake = {.times = table, .count = count};
        struct bel_misfire_result result =
            choose(&fake, BEL_MISFIRE_ALL, all_max, after, until, times);
        size_t missed = high - low, made = missed < all_max ? missed : all_max;
        CHECK_NOTE("seed %" PRIu64, seed);
        CHECK_EQ(result.made_count, made);
        CHECK_EQ(result.skipped_count, missed - made);
        for (size_t i = 0; i < made; i++) {
            CHECK(times[i].ms == table[high - made + i]);
        }
        CHECK(result.has_next == (high < count));
        CHECK(!result.has_next || result.next.ms == table[high]);
        CHECK(fake.calls <= 128 * (made + 1) + missed + 2);
    }
}

static void the_ends_of_time_are_no_exception(void)
{
    static const int64_t table[] = {INT64_MIN + 1, INT64_MIN + 2, 0, INT64_MAX - 1, INT64_MAX};
    struct fake fake = {.times = table, .count = 5};
    struct bel_wall times[1000];
    struct bel_misfire_result result =
        choose(&fake, BEL_MISFIRE_ALL, 1000, INT64_MIN, INT64_MAX - 1, times);
    CHECK(result.made_count == 4 && result.skipped_count == 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK(times[i].ms == table[i]);
    }
    CHECK(result.has_next && result.next.ms == INT64_MAX);
}

int main(void)
{
    RUN(skip_makes_none_and_counts_them);
    RUN(last_makes_the_newest);
    RUN(all_makes_the_newest_up_to_a_number);
    RUN(the_range_has_its_end_but_not_its_start);
    RUN(a_plan_may_have_an_end);
    RUN(the_work_is_bounded_however_much_was_missed);
    RUN(a_crowd_long_ago_is_not_walked_through);
    RUN(the_answers_are_those_of_looking_at_every_time);
    RUN(the_ends_of_time_are_no_exception);
    return 0;
}
