/* SPDX-License-Identifier: MIT */

/*
 * The newest times are kept in a ring as large as the policy chooses:
 *
 *     x x x x x x x x [ a b c d ]      visited: 12; the ring has 4, so 8 were skipped for good
 *
 * If the slice ends before the range does, those in the ring are visited again by the next slice.
 */
#include "plan/misfire_slice.h"

#include <assert.h>

uint32_t bel__misfire_made_max(enum bel_misfire policy)
{
    if (policy == BEL_MISFIRE_ALL) return BEL_MISFIRE_MAX;
    return policy == BEL_MISFIRE_LAST ? 1 : 0;
}

static void reverse(struct bel_wall *times, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct bel_wall time = times[i];
        times[i] = times[count - 1 - i];
        times[count - 1 - i] = time;
    }
}

/* Brings a ring whose oldest time is at `first` into the order of time. */
static void straighten(struct bel_wall *times, uint32_t count, uint32_t first)
{
    assert(first < count);
    reverse(times, first);
    reverse(times + first, count - first);
    reverse(times, count);
}

struct bel_misfire_slice bel__misfire_slice(enum bel_misfire policy, uint64_t left,
                                            uint32_t visits_max,
                                            const struct bel_misfire_plan *plan,
                                            struct bel_misfire_range range,
                                            struct bel_wall out_times[BEL_MISFIRE_MAX])
{
    struct bel_misfire_slice slice = {.is_last = true};
    uint32_t window = bel__misfire_made_max(policy);
    uint64_t visited = 0;
    struct bel_wall at = range.after, next;
    assert(visits_max > 0);
    for (;; visited++, at = next) {
        slice.is_used_up = visited == left;
        if (slice.is_used_up || !plan->next(plan->context, at, &next)) break;
        assert(next.ms > at.ms);
        slice.has_next = next.ms > range.until.ms;
        slice.next = next;
        if (slice.has_next) break;
        slice.is_last = visited < (uint64_t)visits_max + window;
        if (!slice.is_last) break;
        if (window > 0) out_times[visited % window] = next;
    }
    uint32_t kept = visited < window ? (uint32_t)visited : window;
    slice.skipped_count = visited - kept;
    if (kept > 0 && visited > window) {
        straighten(out_times, kept, (uint32_t)(visited % window));
    }
    if (slice.is_last) {
        slice.made_count = kept;
        return slice;
    }
    slice.has_next = true;
    if (kept > 0) slice.next = out_times[0];
    return slice;
}
