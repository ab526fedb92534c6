/* SPDX-License-Identifier: MIT */

/*
 * Pressure, by the table of belfry/pressure.h: each cause, and each topic with a depth, remembers
 * its level. Numbers are small enough to be multiplied.
 */
#include "inside.h"

static int level_of(const struct bel_pressure_use *use, const uint64_t bounds[4])
{
    int level = 0;
    for (int i = 0; i < 4; i++) {
        if (use->used * 100 > use->limit * bounds[i]) level = i + 1;
    }
    return level;
}

static int next_level(int before, const struct bel_pressure_use *use)
{
    static const uint64_t up[] = {50, 70, 85, 95}, down[] = {45, 65, 80, 90};
    if (use->is_unreadable) return BEL_PRESSURE_CRITICAL;
    if (use->limit == 0) return BEL_PRESSURE_NONE;
    if (level_of(use, up) > before) return level_of(use, up);
    return level_of(use, down) < before ? level_of(use, down) : before;
}

/* Updates the level of each topic, and returns the use of the one that is closest to its depth. */
static struct bel_pressure_use press_topics(struct model *model)
{
    struct bel_pressure_use worst = {0};
    for (size_t i = 0; i < model->topics.count; i++) {
        struct topic *topic = model->topics.items[i];
        struct bel_pressure_use use = {.limit = topic->settings.depth};
        use.used = model_count_unfinished(model, topic);
        int before = topic->is_near_depth ? BEL_PRESSURE_CRITICAL : BEL_PRESSURE_NONE;
        topic->is_near_depth = next_level(before, &use) == BEL_PRESSURE_CRITICAL;
        if (use.limit == 0) continue;
        if (worst.limit == 0 || use.used * worst.limit > worst.used * use.limit) worst = use;
    }
    return worst;
}

void model_pressure(struct model *model, const struct bel_pressure_sample *sample)
{
    struct bel_pressure_use depth = press_topics(model);
    int *levels = model->pressure;
    levels[BEL_PRESSURE_MEMORY] = next_level(levels[BEL_PRESSURE_MEMORY], &sample->memory);
    levels[BEL_PRESSURE_DISK] = next_level(levels[BEL_PRESSURE_DISK], &sample->disk);
    levels[BEL_PRESSURE_DEPTH] = next_level(levels[BEL_PRESSURE_DEPTH], &depth);
    levels[BEL_PRESSURE_COMMIT] = next_level(levels[BEL_PRESSURE_COMMIT], &sample->commit);
    if (levels[BEL_PRESSURE_COMMIT] > BEL_PRESSURE_HIGH) {
        levels[BEL_PRESSURE_COMMIT] = BEL_PRESSURE_HIGH;
    }
}

bool model_is_pressed(struct model *model, const struct topic *topic)
{
    uint64_t used = topic != NULL ? model_count_unfinished(model, topic) : 0;
    return model->pressure[BEL_PRESSURE_MEMORY] == BEL_PRESSURE_CRITICAL ||
           model->pressure[BEL_PRESSURE_DISK] == BEL_PRESSURE_CRITICAL ||
           (topic != NULL && topic->is_near_depth && used * 100 > topic->settings.depth * 90 &&
            topic->settings.depth > 0);
}

void model_pressure_forget(struct model *model)
{
    for (size_t i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        model->pressure[i] = BEL_PRESSURE_NONE;
    }
    for (size_t i = 0; i < model->topics.count; i++) {
        struct topic *topic = model->topics.items[i];
        topic->is_near_depth = false;
    }
}
