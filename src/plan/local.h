/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_LOCAL_H
#define BEL_PLAN_LOCAL_H

/*
 * local - from the local times that a rule names to the next instant. Local times are
 * counted in seconds as if they were UTC.
 */

#include "belfry/zone.h"

#define LOCAL_NONE INT64_MIN

struct local_rule {
    /* The first local time after `local` that the rule names; LOCAL_NONE if there is none. */
    int64_t (*next)(void *context, int64_t local);
    void *context;
    bool is_real_time; /* it takes each time as the clocks show it: neither gaps nor folds */
    enum bel_gap gap;
    enum bel_fold fold;
};

/* The first instant after `utc` that a rule names in a zone. False if there is none before
 * the year 10,000. */
bool bel__local_next(const struct local_rule *rule, const struct bel_zone *zone, int64_t utc,
                     int64_t *out);

#endif
