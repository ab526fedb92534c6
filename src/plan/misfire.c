/* SPDX-License-Identifier: MIT */

/*
 * A plan can only return the next time, but the last missed times are needed. To find the last time
 * before an end, probe from a point before it: if the next time after the probe is not before the
 * end, nothing is in between, and the next probe goes back twice as far.
 *
 *     after ....x.....x.........x.................end
 *                                            p        nothing between p and end
 *                                       p             nothing
 *                            p                        nothing
 *                     p                               found one; more may follow: bisect
 *
 * The first step is the distance between the last two times found. If the times are evenly spaced,
 * the first probe succeeds.
 */
#include "belfry/misfire.h"

#include <assert.h>

enum {
    STRIDE_MS = 1000 /* first step before two times are known; any number works */
};

static bool next_before(const struct bel_misfire_plan *plan, int64_t after, int64_t end,
                        int64_t *out)
{
    struct bel_wall found;
    if (!plan->next(plan->context, (struct bel_wall){after}, &found)) return false;
    assert(found.ms > after);
    if (found.ms >= end) return false;
    *out = found.ms;
    return true;
}

/* Returns the distance of two instants; `from` is not later. */
static uint64_t distance(int64_t from, int64_t to)
{
    assert(from <= to);
    return (uint64_t)to - (uint64_t)from;
}

static int64_t back(int64_t from, uint64_t ms)
{
    return (int64_t)((uint64_t)from - ms);
}

static int64_t forward(int64_t from, uint64_t ms)
{
    return (int64_t)((uint64_t)from + ms);
}

/* Finds the last time after `after` and before `end`. Sets `*stride` to a step with which the first
 * probe would have found it. Each iteration doubles or halves a distance of less than 2^64. */
static bool last_before(const struct bel_misfire_plan *plan, int64_t after, int64_t end,
                        uint64_t *stride, int64_t *out)
{
    int64_t high = end, found = end; /* no time is after `high` and before the end */
    for (uint64_t step = *stride;; step *= 2) {
        bool is_first = step >= distance(after, end) || step > UINT64_MAX / 2;
        int64_t probe = is_first ? after : back(end, step);
        if (next_before(plan, probe, end, &found)) break;
        if (is_first) return false;
        high = probe;
    }
    for (int64_t probe = found, later = 0; found < high;) {
        if (next_before(plan, probe, end, &later)) {
            found = later;
        } else {
            high = probe;
        }
        probe = forward(found, distance(found, high) / 2);
    }
    *stride = distance(found, end) + 1;
    *out = found;
    return true;
}

static uint32_t count_before(const struct bel_misfire_plan *plan, int64_t after, int64_t end)
{
    uint32_t count = 0;
    for (int64_t at = after; count < BEL_MISFIRE_COUNT_MAX && next_before(plan, at, end, &at);) {
        count++;
    }
    return count;
}

static void reverse(struct bel_wall *times, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct bel_wall time = times[i];
        times[i] = times[count - 1 - i];
        times[count - 1 - i] = time;
    }
}

static uint32_t made_max(enum bel_misfire policy, uint32_t all_max)
{
    if (policy == BEL_MISFIRE_ALL) return all_max;
    return policy == BEL_MISFIRE_LAST ? 1 : 0;
}

struct bel_misfire_result bel_misfire_choose(enum bel_misfire policy, uint32_t all_max,
                                             const struct bel_misfire_plan *plan,
                                             struct bel_misfire_range range,
                                             struct bel_wall *out_times)
{
    struct bel_misfire_result result = {0};
    uint64_t stride = STRIDE_MS;
    assert(all_max <= BEL_MISFIRE_MAX);
    assert(range.after.ms <= range.until.ms && range.until.ms < INT64_MAX);

    int64_t end = range.until.ms + 1;
    uint32_t count_max = made_max(policy, all_max);
    while (result.made_count < count_max && last_before(plan, range.after.ms, end, &stride, &end)) {
        out_times[result.made_count++].ms = end;
    }
    reverse(out_times, result.made_count);

    result.skipped_count = count_before(plan, range.after.ms, end);
    result.has_next = plan->next(plan->context, range.until, &result.next);
    return result;
}
