/* SPDX-License-Identifier: MIT */

/*
 * What can be seen of the engine after a turn: whether it goes on or stops as it must, has done all
 * that was due, and asks for its next turn in time.
 */
#include "world.h"

#include "core/units.h"
#include "engine/engine.h"
#include "engine/jobs/state.h"
#include "store/state.h"

#include <inttypes.h>
#include <string.h>

bool watch_is_final(int err)
{
    return err == BEL_EIO || err == BEL_ECORRUPT;
}

bool watch_has_sync_failed(const struct world *world)
{
    return world->is_sync_armed && disk_plan(world->disk)->fail_sync_in == 0;
}

static bool watch_has_write_failed(const struct world *world)
{
    return world->is_write_armed && disk_plan(world->disk)->fail_write_in == 0;
}

/* Whether the turn has left something that was due for later, for want of room. */
bool watch_is_short(const struct bel_engine *engine)
{
    const struct bel_jobs *jobs = engine->jobs;
    if (jobs->follower != NULL || jobs->occurrence != NULL) return true; /* half made */
    if (jobs->retry > engine->now.engine) return true;
    if (jobs->next_sweep <= (uint64_t)engine->now.wall) return true;
    if (engine->load_left == 0 || !engine->migration.is_complete) return true;
    for (uint32_t i = 0; i < engine->topics.count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic == NULL) continue;
        if (topic->is_partial[0] || topic->is_partial[1] || topic->has_late_tick) return true;
        if (topic->is_expiry_behind) return true;
        if (topic->sweep_time <= (uint64_t)engine->now.wall + 1) return true;
    }
    return false;
}

/* Whether who adds may be refused: see store.c. */
bool watch_is_tight(const struct bel_engine *engine)
{
    return bel__log_free_count(engine->store->log) < 2;
}

bool run_is_down(const struct world *world)
{
    return disk_is_down(world->disk) || watch_has_sync_failed(world) ||
           watch_is_final(world->engine->broken) ||
           watch_is_final(bel__store_error(world->engine->store));
}

/* It has ended without a reason. */
void watch_reason(struct world *world)
{
    bool has_reason =
        disk_is_down(world->disk) || watch_has_sync_failed(world) || watch_has_write_failed(world);
    if (has_reason || !run_is_down(world)) return;
    world_fail(world, "broken", "the engine has given up: %s",
               bel_error_text(world->engine->broken));
}

/* An engine that does not stop when a sync has failed. */
void watch_stopped(struct world *world)
{
    if (!watch_has_sync_failed(world) || disk_is_down(world->disk)) return;
    if (watch_is_final(world->engine->broken)) return;
    if (watch_is_final(bel__store_error(world->engine->store))) return;
    world_fail(world, "sync", "the engine goes on after a sync has failed");
}

/* What a lazy store has written is durable when the interval is over. */
void watch_interval(struct world *world)
{
    uint64_t now_ns = disk_plan(world->disk)->mono_ns;
    uint64_t interval_ns = world->config.interval_ms * NS_PER_MS;
    bool is_all = world->synced >= world->engine->store->batch;
    if (is_all || !has_feature(world, FEATURE_LAZY) || interval_ns == 0 || run_is_down(world)) {
        world->unsynced_ns = UINT64_MAX;
        return;
    }
    if (world->unsynced_ns == UINT64_MAX) world->unsynced_ns = now_ns;
    if (now_ns - world->unsynced_ns < interval_ns) return;
    world_fail(world, "interval", "batch %" PRIu64 " is not durable after %" PRIu64 " ms",
               world->engine->store->batch, world->config.interval_ms);
}

void watch_next(struct world *world)
{
    if (world->judge == NULL || run_is_down(world)) return;
    struct bel_next want = judge_next(world->judge);
    if (world->next.due.ns > want.due.ns || world->next.wait.ns > want.wait.ns) {
        world_fail(world, "next", "the next turn is at %" PRIu64 ", and needed at %" PRIu64,
                   world->next.due.ns, want.due.ns);
    }
}

uint64_t watch_stage(const struct order *order)
{
    return order->request != NULL ? order->request->own.words[BEL_OWN_STAGE] : BEL_STAGE_ANSWERED;
}

static bool is_wait(const struct order *order)
{
    const struct bel_command *command = &order->requests[ENGINE_SIDE].command;
    return command->verb == BEL_VERB_CLAIM && command->claim.wait_ms > 0;
}

/* Whether a claim that waited got something in this turn. */
bool watch_is_wait_over(const struct world *world)
{
    for (size_t i = 0; i < world->told.count; i++) {
        if (is_wait(world->told.items[i])) return true;
    }
    for (size_t i = 0; i < world->asked.count; i++) { /* decided, and not yet told */
        const struct order *order = world->asked.items[i];
        if (is_wait(order) && watch_stage(order) == BEL_STAGE_ANSWERED) return true;
    }
    return false;
}

bool watch_is_refusal(const struct bel_reply *reply)
{
    if (reply->err == BEL_EFULL) {
        return strstr(reply->why, "depth") == NULL && strstr(reply->why, "pressure") == NULL;
    }
    return reply->err == BEL_ENOMEM || reply->err == BEL_EBUSY;
}
