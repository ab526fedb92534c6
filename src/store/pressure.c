/* SPDX-License-Identifier: MIT */

/*
 * The time that is left is guessed twice: from how far the checkpoint has come in the time so
 * far, and from how long the last one took. From a tenth of the way on only the first counts;
 * before, both do. If nothing is known, a default stands in, which is slow.
 *
 * A guess that is too short lets the delta fill too early. What is left of it then shrinks
 * faster than the time, and the waits grow by themselves; but the last few batches would wait
 * for all. So the room is taken to be a little less than it is:
 *
 *     0                                        15/16    1
 *     |------------- fill -----|------ room ------|--|  |
 *                                            1/32 of it all, to stay above nothing
 */
#include "store/pressure.h"

#include <assert.h>

enum {
    FREE_SHARE = 8,     /* 1/8 is free before anybody waits */
    RESERVE_SHARE = 16, /* 1/16 is kept for guesses that were wrong */
    TRUST = 10,         /* the checkpoint's own pace counts alone from 1/10 of the way on */
};

#define EXPECTED_DEFAULT_NS UINT64_C(4000000000)
#define DELAY_MAX_NS        UINT64_C(4000000000)

/* a * b / c, for numbers whose product may be too large. */
static uint64_t share(uint64_t a, uint64_t b, uint64_t c)
{
    assert(c > 0);
    double quotient = (double)a * (double)b / (double)c;
    return quotient >= 1e18 ? UINT64_C(1000000000000000000) : (uint64_t)quotient;
}

uint64_t bel__pressure_remaining_ns(const struct bel_pressure *pressure)
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

/* Where the line is at this progress. */
static uint64_t line_of(const struct bel_pressure *pressure)
{
    uint64_t first = pressure->fill_max / FREE_SHARE;
    uint64_t last = pressure->fill_max - pressure->fill_max / RESERVE_SHARE;
    return first + share(last - first, pressure->progress, BEL_PRESSURE_PROGRESS_MAX);
}

/* The room that there is taken to be. */
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
    uint64_t delay = share(bel__pressure_remaining_ns(pressure), pressure->batch,
                           room_of(pressure) + pressure->batch);
    return delay < DELAY_MAX_NS ? delay : DELAY_MAX_NS;
}
