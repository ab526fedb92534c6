/* SPDX-License-Identifier: MIT */

/*
 * Belfry's wheel. The caller keeps the handles in a table by id, whose cache misses and
 * memory count as the engine's.
 */
#include "belfry/version.h"
#include "belfry/wheel.h"
#include "engine.h"

#include <stdlib.h>

enum {
    BATCH_MAX = 64,
};

const struct engine_traits engine_traits = {.name = "belfry",
                                            .resolution_ns = 1,
                                            .is_exact = true,
                                            .garbage = ENGINE_GARBAGE_BY_TIME,
                                            .has_batches = true};

static struct bel_wheel *wheel;
static bel_timer_t *handles;

const char *engine_version(void)
{
    return bel_version();
}

void engine_open(uint32_t timers)
{
    struct bel_wheel_options options = {.now = bench_now};
    handles = bench_caller_alloc(timers, sizeof *handles);
    if (bel_wheel_create(&options, &wheel) != 0) bench_fail("cannot start");
}

void engine_close(void)
{
    bel_wheel_destroy(wheel);
    free(handles);
}

void engine_reserve(uint32_t timers)
{
    if (bel_wheel_reserve(wheel, timers) != 0) bench_fail("cannot reserve");
}

struct engine_objects engine_caller_objects(void)
{
    return (struct engine_objects){(const char *)handles, sizeof *handles};
}

void engine_schedule(uint32_t id, uint64_t due)
{
    if (bel_wheel_arm(wheel, due, BEL_PRIORITY_DEFAULT, id, &handles[id]) != 0) {
        bench_fail("cannot arm");
    }
}

void engine_cancel(uint32_t id)
{
    if (!bel_wheel_cancel(wheel, handles[id])) bench_fail("cannot cancel");
}

void engine_restart(uint32_t id, uint64_t due)
{
    if (bel_wheel_rearm(wheel, handles[id], due) != 0) bench_fail("cannot rearm");
}

void engine_restart_many(const uint32_t *ids, const uint64_t *dues, uint32_t count)
{
    struct bel_rearm moves[BATCH_MAX];
    if (count > BATCH_MAX) bench_fail("batch too large");
    for (uint32_t i = 0; i < count; i++) {
        moves[i] = (struct bel_rearm){.timer = handles[ids[i]], .due = dues[i]};
    }
    if (bel_wheel_rearm_many(wheel, moves, count) != count) bench_fail("cannot rearm");
}

void engine_expect(uint32_t id)
{
    bel_wheel_expect(wheel, handles[id]);
}

void engine_fire(void)
{
    struct bel_wheel_timer timer;
    do {
        while (bel_wheel_pop(wheel, bench_now, &timer)) {
            bench_fired((uint32_t)timer.user, timer.due);
        }
    } while (bel_wheel_next(wheel) <= bench_now); /* one call does a bounded amount of work */
}

bool engine_poll(void)
{
    struct bel_wheel_timer timer;
    if (!bel_wheel_pop(wheel, bench_now, &timer)) return bel_wheel_next(wheel) <= bench_now;
    bench_fired((uint32_t)timer.user, timer.due);
    return true;
}

void engine_fire_next(void)
{
    uint32_t before = bench_fired_count();
    while (bench_fired_count() == before) {
        uint64_t next = bel_wheel_next(wheel);
        if (next > bench_now) bench_set_now((next + BENCH_MS - 1) / BENCH_MS * BENCH_MS);
        engine_fire();
    }
}

void engine_read_stats(struct engine_stats *out)
{
    struct bel_wheel_stats stats;
    bel_wheel_stats(wheel, &stats);
    *out = (struct engine_stats){.bytes = stats.bytes, .touched_max = stats.touched_max};
}
