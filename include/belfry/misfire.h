/* SPDX-License-Identifier: MIT */
#ifndef BEL_MISFIRE_H
#define BEL_MISFIRE_H

/*
 * misfire - which missed times of a plan are made up for. Times are missed while the program is
 * down, or when the wall clock is set forward.
 *
 *     skip    none
 *     last    the newest
 *     all     the newest n, oldest first
 *
 * The other missed times are only counted. With `all` the oldest times are left out, because they
 * matter least by now. `last` is `all` with n = 1.
 *
 * A plan is any function that finds the next time. The work is bounded for every plan and every
 * length of absence: at most BEL_MISFIRE_COUNT_MAX calls to count, and per chosen time two calls if
 * the times are evenly spaced, otherwise at most about 128.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"

#include <stdbool.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_MISFIRE_MAX = 1000,        /* times that are chosen, at most */
    BEL_MISFIRE_COUNT_MAX = 10000, /* skipped times that are counted, at most */
};

enum bel_misfire {
    BEL_MISFIRE_SKIP,
    BEL_MISFIRE_LAST,
    BEL_MISFIRE_ALL,
};

/* A plan. `next` sets `*out` to the plan's first time after `after`, or returns false if there is
 * none. The same arguments must give the same result. */
struct bel_misfire_plan {
    bool (*next)(void *context, struct bel_wall after, struct bel_wall *out);
    void *context;
};

/* The missed times: later than `after`, up to and including `until`. */
struct bel_misfire_range {
    struct bel_wall after, until;
};

struct bel_misfire_result {
    uint32_t made_count;
    uint32_t skipped_count; /* BEL_MISFIRE_COUNT_MAX means at least that many */
    bool has_next;
    struct bel_wall next; /* the first time after the range, if has_next */
};

/* Chooses the missed times to make up for and writes them to `out_times`, oldest first: none for
 * `skip`, at most 1 for `last`, at most `all_max` for `all`. `out_times` must have room for them.
 * `all_max` is at most BEL_MISFIRE_MAX. */
struct bel_misfire_result bel_misfire_choose(enum bel_misfire policy, uint32_t all_max,
                                             const struct bel_misfire_plan *plan,
                                             struct bel_misfire_range range,
                                             struct bel_wall *out_times);

BEL_END_DECLARATIONS
#endif
