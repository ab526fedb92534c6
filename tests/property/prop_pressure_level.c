/* SPDX-License-Identifier: MIT */

/*
 * Levels of pressure along random walks, compared with a model that knows the bounds as thousandths
 * and remembers the level. The limits are 1,000, so that the thousandths are exact.
 */
#include "backend/pressure.h"
#include "property.h"

enum {
    CASES = 300,
    STEPS = 400,
    LIMIT = 1000,
};

/* The level by the table of belfry/pressure.h. */
static int level_above(const int bounds[4], int used)
{
    int level = 0;
    for (int i = 0; i < 4; i++) {
        if (used > bounds[i]) level = i + 1;
    }
    return level;
}

static int model_next(int before, int used)
{
    static const int up[] = {500, 700, 850, 950}, down[] = {450, 650, 800, 900};
    int risen = level_above(up, used), fallen = level_above(down, used);
    if (risen > before) return risen;
    return fallen < before ? fallen : before;
}

static int walk(uint64_t *random, int used)
{
    if (random_below(random, 8) == 0) return (int)random_below(random, LIMIT + 100);
    used += (int)random_below(random, 61) - 30;
    return used < 0 ? 0 : used;
}

static void run_case(uint64_t seed)
{
    struct bel_pressure_state state = {0};
    int used[BEL_PRESSURE_CAUSES] = {0}, levels[BEL_PRESSURE_CAUSES] = {0};
    uint64_t random = seed;
    for (int step = 0; step < STEPS; step++) {
        struct bel_pressure_use uses[BEL_PRESSURE_CAUSES];
        int worst = 0;
        for (int i = 0; i < BEL_PRESSURE_CAUSES; i++) {
            used[i] = walk(&random, used[i]);
            uses[i] = (struct bel_pressure_use){.used = (uint64_t)used[i], .limit = LIMIT};
            uses[i].is_unreadable = random_below(&random, 40) == 0;
            levels[i] = uses[i].is_unreadable ? 4 : model_next(levels[i], used[i]);
            if (i == BEL_PRESSURE_COMMIT && levels[i] == 4) levels[i] = 3;
            if (levels[i] > worst) worst = levels[i];
        }
        enum bel_pressure_level before = state.level;
        CHECK(bel__pressure_update(&state, uses) == (state.level != before));
        CHECK((int)state.level == worst);
        CHECK((int)state.levels[state.cause] == worst);
        for (int i = 0; i < BEL_PRESSURE_CAUSES; i++) {
            CHECK((int)state.levels[i] == levels[i]);
        }
    }
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv, CASES, run_case, "walks");
}
