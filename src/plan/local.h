/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_LOCAL_H
#define BEL_PLAN_LOCAL_H

/*
 * local - finds the next instant of a rule that is defined in local times. Local times are counted
 * in seconds as if they were UTC.
 */

#include "belfry/zone.h"

#define LOCAL_NONE INT64_MIN

struct local_rule {
    /* Returns the first local time after `local` that matches the rule; LOCAL_NONE if there is
     * none. */
    int64_t (*next)(void *context, int64_t local);
    void *context;
    bool is_real_time; /* follows real time: ignores gaps and folds */
    enum bel_gap gap;
    enum bel_fold fold;
};

/* Finds the first instant after `utc` that matches a rule in a zone. Returns false if there is none
 * before the year 10,000. */
bool bel__local_next(const struct local_rule *rule, const struct bel_zone *zone, int64_t utc,
                     int64_t *out);

#endif
