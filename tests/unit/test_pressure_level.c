/* SPDX-License-Identifier: MIT */

/* Levels of pressure: the bounds, the hysteresis, the causes. */
#include "backend/pressure.h"

#include "../check.h"

static enum bel_pressure_level next(enum bel_pressure_level before, uint64_t used, uint64_t limit)
{
    return bel__pressure_next(before, &(struct bel_pressure_use){.used = used, .limit = limit});
}

static void a_bound_belongs_to_the_lower_level(void)
{
    static const struct {
        uint64_t used;
        enum bel_pressure_level level;
    } rows[] = {
        {0, BEL_PRESSURE_NONE},        {500, BEL_PRESSURE_NONE},      {501, BEL_PRESSURE_LOW},
        {700, BEL_PRESSURE_LOW},       {701, BEL_PRESSURE_MEDIUM},    {850, BEL_PRESSURE_MEDIUM},
        {851, BEL_PRESSURE_HIGH},      {950, BEL_PRESSURE_HIGH},      {951, BEL_PRESSURE_CRITICAL},
        {1000, BEL_PRESSURE_CRITICAL}, {2000, BEL_PRESSURE_CRITICAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("%u of 1000", (unsigned)rows[i].used);
        CHECK_EQ(next(BEL_PRESSURE_NONE, rows[i].used, 1000), rows[i].level);
    }
}

static void a_level_falls_five_points_below_its_bound(void)
{
    CHECK_EQ(next(BEL_PRESSURE_LOW, 451, 1000), BEL_PRESSURE_LOW);
    CHECK_EQ(next(BEL_PRESSURE_LOW, 450, 1000), BEL_PRESSURE_NONE);
    CHECK_EQ(next(BEL_PRESSURE_MEDIUM, 651, 1000), BEL_PRESSURE_MEDIUM);
    CHECK_EQ(next(BEL_PRESSURE_MEDIUM, 650, 1000), BEL_PRESSURE_LOW);
    CHECK_EQ(next(BEL_PRESSURE_HIGH, 801, 1000), BEL_PRESSURE_HIGH);
    CHECK_EQ(next(BEL_PRESSURE_HIGH, 800, 1000), BEL_PRESSURE_MEDIUM);
    CHECK_EQ(next(BEL_PRESSURE_CRITICAL, 901, 1000), BEL_PRESSURE_CRITICAL);
    CHECK_EQ(next(BEL_PRESSURE_CRITICAL, 900, 1000), BEL_PRESSURE_HIGH);
    CHECK_EQ(next(BEL_PRESSURE_CRITICAL, 480, 1000), BEL_PRESSURE_LOW); /* several at once */
    CHECK_EQ(next(BEL_PRESSURE_CRITICAL, 0, 1000), BEL_PRESSURE_NONE);
}

static void without_a_limit_there_is_no_pressure(void)
{
    CHECK_EQ(next(BEL_PRESSURE_CRITICAL, 1000, 0), BEL_PRESSURE_NONE);
}

static void what_cannot_be_measured_is_critical(void)
{
    struct bel_pressure_use use = {.used = 0, .limit = 1000, .is_unreadable = true};
    CHECK_EQ(bel__pressure_next(BEL_PRESSURE_NONE, &use), BEL_PRESSURE_CRITICAL);
    use.limit = 0;
    CHECK_EQ(bel__pressure_next(BEL_PRESSURE_NONE, &use), BEL_PRESSURE_CRITICAL);
}

static void numbers_may_be_of_any_size(void)
{
    CHECK_EQ(next(BEL_PRESSURE_NONE, UINT64_MAX, UINT64_MAX), BEL_PRESSURE_CRITICAL);
    CHECK_EQ(next(BEL_PRESSURE_NONE, UINT64_MAX / 2, UINT64_MAX), BEL_PRESSURE_NONE);
    CHECK_EQ(next(BEL_PRESSURE_NONE, UINT64_MAX, 1), BEL_PRESSURE_CRITICAL);
    CHECK_EQ(next(BEL_PRESSURE_NONE, 1, UINT64_MAX), BEL_PRESSURE_NONE);
    CHECK_EQ(next(BEL_PRESSURE_NONE, UINT64_C(1) << 56, UINT64_C(1) << 57), BEL_PRESSURE_NONE);
    CHECK_EQ(next(BEL_PRESSURE_NONE, (UINT64_C(1) << 56) + 1, UINT64_C(1) << 57), BEL_PRESSURE_LOW);
}

static void percents_are_rounded_up(void)
{
    CHECK_EQ(bel__pressure_percent(&(struct bel_pressure_use){500, 1000, false}), 50);
    CHECK_EQ(bel__pressure_percent(&(struct bel_pressure_use){501, 1000, false}), 51);
    CHECK_EQ(bel__pressure_percent(&(struct bel_pressure_use){1, 0, false}), 0);
    CHECK_EQ(bel__pressure_percent(&(struct bel_pressure_use){UINT64_MAX, 1, false}), 999);
}

static void the_worst_cause_counts_and_commits_are_at_most_high(void)
{
    struct bel_pressure_state state = {0};
    struct bel_pressure_use uses[BEL_PRESSURE_CAUSES] = {{0}};
    CHECK(!bel__pressure_update(&state, uses));
    uses[BEL_PRESSURE_COMMIT] = (struct bel_pressure_use){2000, 1000, false};
    uses[BEL_PRESSURE_DISK] = (struct bel_pressure_use){60, 100, false};
    CHECK(bel__pressure_update(&state, uses));
    CHECK(state.level == BEL_PRESSURE_HIGH && state.cause == BEL_PRESSURE_COMMIT);
    CHECK_EQ(state.levels[BEL_PRESSURE_DISK], BEL_PRESSURE_LOW);
    uses[BEL_PRESSURE_MEMORY] = (struct bel_pressure_use){96, 100, false};
    CHECK(bel__pressure_update(&state, uses));
    CHECK(state.level == BEL_PRESSURE_CRITICAL && state.cause == BEL_PRESSURE_MEMORY);
    CHECK(!bel__pressure_update(&state, uses));
    CHECK_EQ(state.changes, 2);
    CHECK_EQ(bel__pressure_pace_ms(BEL_PRESSURE_NONE), 0);
    CHECK_EQ(bel__pressure_pace_ms(BEL_PRESSURE_LOW), 2000);
    CHECK_EQ(bel__pressure_pace_ms(BEL_PRESSURE_MEDIUM), 10000);
    CHECK_EQ(bel__pressure_pace_ms(BEL_PRESSURE_HIGH), 30000);
    CHECK_EQ(bel__pressure_pace_ms(BEL_PRESSURE_CRITICAL), 30000);
}

int main(void)
{
    RUN(a_bound_belongs_to_the_lower_level);
    RUN(a_level_falls_five_points_below_its_bound);
    RUN(without_a_limit_there_is_no_pressure);
    RUN(what_cannot_be_measured_is_critical);
    RUN(numbers_may_be_of_any_size);
    RUN(percents_are_rounded_up);
    RUN(the_worst_cause_counts_and_commits_are_at_most_high);
    return 0;
}
