/* SPDX-License-Identifier: MIT */

/*
 * A sample updates the levels at once. Its depth is that of the topic that is closest to its
 * `depth`, as of the last turn; SCAN_MAX topics are looked at in one sample:
 *
 *     topics     0 ............ SCAN_MAX ............ 2 SCAN_MAX ....... count
 *     samples    |--- first ----|------ second -------|----- third -------|--- next search
 *
 * The worst of the search so far and of the complete search before counts, so that a level rises as
 * soon as its topic is met, and falls only after all topics were looked at.
 */
#include "engine/state/pressure.h"

#include "engine/state/state.h"

#include <assert.h>

enum {
    SCAN_MAX = 1 << 14, /* topics looked at in one sample: well under 1 ms */
    NAME_MAX = 40,      /* bytes of a topic's name in a message */
};

static struct bel_pressure_use depth_use(const struct bel_topic_state *topic)
{
    return (struct bel_pressure_use){
        .used = topic->numbers[BEL_NUMBER_PENDING] + topic->numbers[BEL_NUMBER_BLOCKED],
        .limit = bel__topic_settings(topic)->depth,
    };
}

/* Returns whether a topic that was critical still is, by its numbers of now: a timer that has ended
 * since the last sample makes room at once. */
static bool is_still_near(const struct bel_topic_state *topic)
{
    struct bel_pressure_use use = depth_use(topic);
    if (!topic->is_near_depth) return false;
    return bel__pressure_next(BEL_PRESSURE_CRITICAL, &use) == BEL_PRESSURE_CRITICAL;
}

/* Looks at one topic: notes whether it is near its depth, and whether it is the worst so far. */
static void look(struct bel_depth_scan *scan, struct bel_topic_state *topic)
{
    if (topic->settings == NULL && !topic->is_near_depth) return;
    struct bel_pressure_use use = depth_use(topic);
    enum bel_pressure_level before = BEL_PRESSURE_NONE;
    if (topic->is_near_depth) before = BEL_PRESSURE_CRITICAL;
    topic->is_near_depth = bel__pressure_next(before, &use) == BEL_PRESSURE_CRITICAL;
    if (bel__pressure_is_worse(&use, &scan->found)) scan->found = use;
}

static void scan_topics(struct bel_engine *engine)
{
    struct bel_depth_scan *scan = &engine->depth_scan;
    uint32_t count = engine->topics.count, left = count < SCAN_MAX ? count : SCAN_MAX;
    while (left-- > 0) {
        if (scan->next < count) {
            struct bel_topic_state *topic = bel__topic_at(&engine->topics, scan->next);
            if (topic != NULL) look(scan, topic);
            scan->next++;
        }
        if (scan->next < count) continue;
        scan->next = 0;
        scan->before = scan->found;
        scan->found = (struct bel_pressure_use){0};
    }
}

/* Returns the worst use of a depth that is known. */
static struct bel_pressure_use worst_depth(const struct bel_depth_scan *scan)
{
    return bel__pressure_is_worse(&scan->found, &scan->before) ? scan->found : scan->before;
}

bool bel__pressure_sample(struct bel_engine *engine, const struct bel_pressure_sample *sample)
{
    scan_topics(engine);
    const struct bel_pressure_use uses[BEL_PRESSURE_CAUSES] = {
        [BEL_PRESSURE_MEMORY] = sample->memory,
        [BEL_PRESSURE_DISK] = sample->disk,
        [BEL_PRESSURE_DEPTH] = worst_depth(&engine->depth_scan),
        [BEL_PRESSURE_COMMIT] = sample->commit,
    };
    bool needs_turn = bel__pressure_update(&engine->stats.pressure, uses);
    const enum bel_pressure_level *levels = engine->stats.pressure.levels;
    bool is_disk_short =
        levels[BEL_PRESSURE_DISK] == BEL_PRESSURE_CRITICAL || bel__store_is_disk_low(engine->store);
    if (levels[BEL_PRESSURE_MEMORY] >= BEL_PRESSURE_HIGH && bel__store_shed(engine->store)) {
        needs_turn = true;
    }
    if (is_disk_short && bel__store_free_pages(engine->store)) needs_turn = true;
    return needs_turn;
}

static int refuse_unreadable(struct bel_reply *reply, enum bel_pressure_cause cause)
{
    return bel__refuse(reply, BEL_EFULL,
                       "pressure is critical: the use of the %s cannot be measured; check the log",
                       bel_pressure_cause_name(cause));
}

static int refuse_depth(const struct bel_topic_state *topic, struct bel_reply *reply)
{
    return bel__refuse(reply, BEL_EFULL,
                       "pressure is critical: topic %.*s has over 90 %% of its depth of %llu; "
                       "claim its timers or raise the depth",
                       topic->name_bytes < NAME_MAX ? (int)topic->name_bytes : NAME_MAX,
                       topic->name, (unsigned long long)bel__topic_settings(topic)->depth);
}

static int refuse_shared(const struct bel_pressure_state *state, enum bel_pressure_cause cause,
                         struct bel_reply *reply)
{
    const struct bel_pressure_use *use = &state->uses[cause];
    unsigned percent = bel__pressure_percent(use);
    if (use->is_unreadable) return refuse_unreadable(reply, cause);
    if (cause == BEL_PRESSURE_MEMORY) {
        return bel__refuse(reply, BEL_EFULL,
                           "pressure is critical: %u %% of the memory limit is used; acknowledge, "
                           "cancel or purge timers, or raise --memory",
                           percent);
    }
    return bel__refuse(reply, BEL_EFULL,
                       "pressure is critical: %u %% of the disk is used; free space, purge timers, "
                       "or move the data to a larger disk",
                       percent);
}

int bel__pressure_check(struct bel_engine *engine, const struct bel_topic_state *topic,
                        struct bel_reply *reply)
{
    struct bel_pressure_state *state = &engine->stats.pressure;
    if (state->level < BEL_PRESSURE_CRITICAL) return 0;
    for (unsigned i = 0; i < BEL_PRESSURE_CAUSES; i++) {
        if (state->levels[i] < BEL_PRESSURE_CRITICAL) continue;
        bool is_depth = i == BEL_PRESSURE_DEPTH;
        if (is_depth && (topic == NULL || !is_still_near(topic))) continue;
        state->refusals++;
        return is_depth ? refuse_depth(topic, reply)
                        : refuse_shared(state, (enum bel_pressure_cause)i, reply);
    }
    return 0;
}
