/* SPDX-License-Identifier: MIT */

/*
 * The remaining time of a checkpoint is estimated in two ways: from its progress so far, and from
 * the duration of the last checkpoint. Above 10 % progress only the first estimate counts; below,
 * a mix of both. Without either, a slow default is used.
 *
 * An estimate that is too short lets the delta fill too early. The room then shrinks faster than
 * the remaining time, so the delays grow by themselves, but the last few batches would wait for the
 * rest. So a little less room is assumed than there is:
 *
 *     0                                        15/16    1
 *     |------------- fill -----|------ room ------|--|  |
 *                                            1/32 of the total, so that room is never 0
 */
#include "store/pressure.h"

#include <assert.h>

enum {
    FREE_SHARE = 8,     /* no delays below a fill of 1/8 */
    RESERVE_SHARE = 16, /* 1/16 is reserved for wrong estimates */
    TRUST = 10,         /* from 1/10 progress on, only the checkpoint's own pace counts */
};

#define EXPECTED_DEFAULT_NS UINT64_C(4000000000)
#define DELAY_MAX_NS        UINT64_C(4000000000)

/* Returns a * b / c, at most 1e18, also if the product overflows 64 bits. */
static uint64_t share(uint64_t a, uint64_t b, uint64_t c)
{
    assert(c > 0);
    double quotient = (double)a * (double)b / (double)c;
    return quotient >= 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)quotient;
}

/* Returns the estimated remaining time of the checkpoint. */
static uint64_t remaining_ns(const struct bel_pressure *pressure)
{
    uint64_t progress = pressure->progress;
    assert(progress <= BEL_PRESSURE_PROGRESS_MAX);
    uint64_t left = BEL_PRESSURE_PROGRESS_MAX - progress;
    uint64_t expected = pressure->expected_ns > 0 ? pressure->expected_ns : EXPECTED_DEFAULT_NS;
    if (progress == 0) return expected > pressure->elapsed_ns ? expected : pressure->elapsed_ns;

    uint64_t by_last = share(expected, left, BEL_PRESSURE_PROGRESS_MAX);
    uint64_t by_pace = share(pressure->elapsed_ns, left, progress);
    uint64_t trust = TRUST * progress;
    if (trust > BEL_PRESSURE_PROGRESS_MAX) trust = BEL_PRESSURE_PROGRESS_MAX;
    return share(by_pace, trust, BEL_PRESSURE_PROGRESS_MAX) +
           share(by_last, BEL_PRESSURE_PROGRESS_MAX - trust, BEL_PRESSURE_PROGRESS_MAX);
}

/* Returns the fill up to which there is no delay at this progress: the line in pressure.h. */
static uint64_t line_of(const struct bel_pressure *pressure)
{
    uint64_t first = pressure->fill_max / FREE_SHARE;
    uint64_t last = pressure->fill_max - pressure->fill_max / RESERVE_SHARE;
    return first + share(last - first, pressure->progress, BEL_PRESSURE_PROGRESS_MAX);
}

/* Returns the room that is assumed. */
static uint64_t room_of(const struct bel_pressure *pressure)
{
    uint64_t fill = pressure->fill, end = pressure->fill_max;
    uint64_t reserve = end / RESERVE_SHARE;
    if (fill >= end) return 0;
    return fill < end - reserve ? end - reserve - fill + reserve / 2 : (end - fill) / 2;
}

uint64_t bel__pressure_delay_ns(const struct bel_pressure *pressure)
{
    assert(pressure->progress <= BEL_PRESSURE_PROGRESS_MAX);
    assert(pressure->batch <= pressure->fill);
    if (pressure->progress == BEL_PRESSURE_PROGRESS_MAX) return 0;
    if (pressure->fill <= line_of(pressure) || pressure->batch == 0) return 0;
    uint64_t delay =
        share(remaining_ns(pressure), pressure->batch, room_of(pressure) + pressure->batch);
    return delay < DELAY_MAX_NS ? delay : DELAY_MAX_NS;
}
