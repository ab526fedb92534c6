/* SPDX-License-Identifier: MIT */
#ifndef BEL_MISFIRE_H
#define BEL_MISFIRE_H

/*
 * misfire - what becomes of a plan's times that were missed, because nobody was there or
 * because the clock was put forward.
 *
 *     skip    none of them is made up for
 *     last    the newest
 *     all     the newest n, from old to new
 *
 * The rest is counted. If more were missed than are made, it is the oldest that are left out:
 * what they were for is the least worth now, and `last` is `all` with n = 1.
 *
 * A plan is a function that finds the next time, so that anything can be one. The work is
 * bounded, whatever the plan and however long nobody was there: BEL_MISFIRE_COUNT_MAX calls to
 * count, and for each time made two if times are evenly spaced and at most about 128 if not.
 */

#include "belfry/clock.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_MISFIRE_MAX = 1000,        /* times that are made, at most */
    BEL_MISFIRE_COUNT_MAX = 10000, /* times left out that are counted */
};

enum bel_misfire {
    BEL_MISFIRE_SKIP,
    BEL_MISFIRE_LAST,
    BEL_MISFIRE_ALL,
};

/* A plan. `next` sets `*out` to the plan's first time after `after`, or returns false if there
 * is none; the same question has the same answer. */
struct bel_misfire_plan {
    bool (*next)(void *context, struct bel_wall after, struct bel_wall *out);
    void *context;
};

/* The times that were missed: after `after`, up to and with `until`. */
struct bel_misfire_range {
    struct bel_wall after, until;
};

struct bel_misfire_result {
    uint32_t made_count;
    uint32_t skipped_count; /* times left out; at least so many if it is BEL_MISFIRE_COUNT_MAX */
    bool has_next;
    struct bel_wall next; /* the first time after the range; valid if there is one */
};

/* Chooses from the times that were missed those to make, and puts them into `out_times`, from
 * old to new: none for `skip`, at most 1 for `last`, at most `all_max` for `all`, for which
 * there must be room. `all_max` is at most BEL_MISFIRE_MAX. */
struct bel_misfire_result bel_misfire_choose(enum bel_misfire policy, uint32_t all_max,
                                             const struct bel_misfire_plan *plan,
                                             struct bel_misfire_range range,
                                             struct bel_wall *out_times);

#pragma GCC visibility pop
#endif
