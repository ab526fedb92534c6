/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_CRON_H
#define BEL_PLAN_CRON_H

/*
 * What the files about cron share: the fields in the order of the text, and the calendar of
 * a rule without any zone.
 */

#include "belfry/cron.h"

#include "plan/local.h"

enum cron_field {
    CRON_SECOND,
    CRON_MINUTE,
    CRON_HOUR,
    CRON_DAY,
    CRON_MONTH,
    CRON_WEEKDAY,
    CRON_FIELDS,
};

#define CRON_NONE LOCAL_NONE

/* The first local time after `local` that the rule names, both counted as if local time
 * were UTC; CRON_NONE if there is none before the year 10,000. */
int64_t bel__cron_next_local(const struct bel_cron *cron, int64_t local);

/* Whether day and weekday both say something. */
static inline bool cron_either(const struct bel_cron *cron)
{
    return cron->star_steps[CRON_DAY] == 0 && cron->star_steps[CRON_WEEKDAY] == 0;
}

#endif
