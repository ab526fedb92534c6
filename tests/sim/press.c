/* SPDX-License-Identifier: MIT */

/*
 * Samples of pressure for the engine and the model, near the bounds of the levels. They come from
 * chance of their own, so that a seed is the same history otherwise.
 */
#include "world.h"

#include <inttypes.h>

enum {
    NEAR_CRITICAL = 8, /* of the uses below, the last ones */
    PRESS_EVERY = 3,   /* turns */
};

/* Thousandths, at and around the bounds up to which a level rises and below which it falls. */
static const uint64_t uses[] = {0,   449, 450, 451, 500, 501, 650, 651, 700, 701, 800,
                                801, 850, 851, 899, 900, 901, 902, 949, 950, 951, 1000};

static struct bel_pressure_use draw_use(uint64_t *random)
{
    struct bel_pressure_use use = {.limit = 1000};
    size_t count = sizeof uses / sizeof uses[0];
    size_t first = random_below(random, 2) == 0 ? 0 : count - NEAR_CRITICAL;
    if (random_below(random, 2) == 0) return use;
    use.used = uses[first + random_below(random, count - first)];
    use.is_unreadable = random_below(random, 30) == 0;
    return use;
}

/* Gives a sample to both sides. */
static void give(struct world *world, const struct bel_pressure_sample *sample)
{
    const struct bel_pressure_state *state = &bel_engine_stats(world->engine)->pressure;
    (void)bel_engine_pressure(world->engine, sample);
    if (world->judge != NULL) judge_press(world->judge, sample);
    say(world, "      pressure: %s by %s\n", bel_pressure_level_name(state->level),
        bel_pressure_cause_name(state->cause));
}

void press_draw(struct world *world)
{
    uint64_t *random = &world->press_random;
    if (!world->config.has_pressure || random_below(random, PRESS_EVERY) > 0) return;
    struct bel_pressure_sample sample;
    sample.memory = draw_use(random);
    sample.disk = draw_use(random);
    sample.commit = draw_use(random);
    give(world, &sample);
}

void press_end(struct world *world)
{
    if (world->config.has_pressure) give(world, &(struct bel_pressure_sample){0});
}
