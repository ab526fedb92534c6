/* SPDX-License-Identifier: MIT */

/*
 * Three timelines, all driven by the boot clock:
 *
 *     engine    continues while the engine is closed, as far as the wall clock tells
 *     open      stands still while the engine is closed
 *     wall      the wall clock, which can be set
 *
 * Engine and open time are the boot clock plus a base that is chosen when the engine is opened.
 */
#include "engine/state/times.h"

#include "core/units.h"
#include "engine/state/state.h"

#include <assert.h>

enum {
    STEP_MS = 1000, /* how far wall and boot clock may drift apart before it counts as a step */
};

#define YEAR_10000_MS UINT64_C(253402300800000)

/* Returns wall - engine time in ms, rounded down: the milliseconds of the two begin at different
 * points, and what is due now must not be shown as due in the next millisecond. */
static int64_t difference(const struct bel_times *times, struct bel_now now)
{
    bool is_engine_ahead = now.boot.ns % NS_PER_MS > now.wall_rest_ns;
    return times->wall - (int64_t)times->engine - is_engine_ahead;
}

static void set(struct bel_times *times, struct bel_now now)
{
    uint64_t down = now.boot.ns / NS_PER_MS;
    uint64_t up = down + (now.boot.ns % NS_PER_MS != 0);
    times->wall = now.wall.ms < 0 ? 0 : now.wall.ms;
    times->engine = down + times->engine_base;
    times->engine_up = up + times->engine_base;
    times->open = down + times->open_base;
    times->open_up = up + times->open_base;
    times->boot = now.boot;
    times->real = now.real;
}

void bel__times_open(struct bel_times *times, struct bel_now now, uint64_t engine, uint64_t open)
{
    uint64_t boot = now.boot.ns / NS_PER_MS;
    uint64_t wall = now.wall.ms < 0 ? 0 : (uint64_t)now.wall.ms;
    uint64_t start = wall > engine ? wall : engine;
    *times = (struct bel_times){
        .engine_base = start - boot, /* may wrap around, and so may the sum */
        .open_base = open - boot,
        .open_start = open,
    };
    set(times, now);
    assert(times->engine >= engine && times->open == open);
    times->offset = difference(times, now);
}

bool bel__times_move(struct bel_times *times, struct bel_now now)
{
    assert(now.boot.ns >= times->boot.ns);
    int64_t wall_before = times->wall;
    uint64_t engine_before = times->engine;
    set(times, now);
    assert(times->engine >= engine_before && times->open >= times->open_start);
    int64_t moved = difference(times, now) - times->offset;
    bool is_step = moved > STEP_MS || moved < -STEP_MS || times->wall < wall_before;
    if (is_step) times->offset = difference(times, now);
    return is_step;
}

uint64_t bel__lane_now(const struct bel_times *times, uint8_t lane)
{
    assert(lane < BEL_LANES_TIMED);
    return lane == BEL_LANE_ENGINE ? times->engine : (uint64_t)times->wall;
}

uint64_t bel__lane_wall(const struct bel_times *times, uint8_t lane, uint64_t time)
{
    if (lane != BEL_LANE_ENGINE) return time;
    int64_t wall = (int64_t)time + times->offset;
    return wall < 0 ? 0 : (uint64_t)wall;
}

uint64_t bel__lane_time(const struct bel_times *times, uint8_t lane, struct bel_wall wall)
{
    int64_t ms = wall.ms < 0 ? 0 : wall.ms;
    if (lane == BEL_LANE_ENGINE) ms -= times->offset;
    return ms < 0 ? 0 : (uint64_t)ms;
}

bool bel__time_is_valid(uint64_t ms)
{
    return ms < YEAR_10000_MS;
}

int bel__times_after(const struct bel_times *times, uint64_t delay_ms, uint64_t *out)
{
    if (delay_ms >= YEAR_10000_MS) return BEL_EINVAL;
    uint64_t from = delay_ms == 0 ? times->engine : times->engine_up; /* not rounded up */
    if (!bel__time_is_valid(from + delay_ms)) return BEL_EINVAL;
    *out = from + delay_ms;
    return 0;
}

int bel__times_when(const struct bel_times *times, enum bel_when when, struct bel_wall at,
                    uint64_t delay_ms, struct bel_place *out)
{
    uint64_t time = at.ms < 0 ? 0 : (uint64_t)at.ms;
    bool is_wall = when == BEL_WHEN_AT;
    int err = is_wall ? 0 : bel__times_after(times, when == BEL_WHEN_IN ? delay_ms : 0, &time);
    if (err) return err;
    if (!bel__time_is_valid(time)) return BEL_EINVAL;
    out->lane = is_wall ? BEL_LANE_WALL : BEL_LANE_ENGINE;
    out->time = time;
    return 0;
}
