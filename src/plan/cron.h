/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_CRON_H
#define BEL_PLAN_CRON_H

/*
 * Shared by the cron files: the fields in the order of the text, and the calendar of a rule without
 * a zone.
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
    CRON_FIELDS, /* that every rule has, with seconds */
    CRON_YEAR = CRON_FIELDS,
};

enum {
    CRON_YEAR_MIN = 1970,
    CRON_YEAR_MAX = 2199,
};

#define CRON_NONE     LOCAL_NONE
#define CRON_STEP_MAX 255 /* past the end of every field; larger steps mean the same */

/* Returns the first local time after `local` that matches the rule, both counted as if local time
 * were UTC; CRON_NONE if there is none before the year 10,000. */
int64_t bel__cron_next_local(const struct bel_cron *cron, int64_t local);

/* Returns whether a year matches the rule. */
static inline bool cron_has_year(const struct bel_cron *cron, int32_t year)
{
    if (!cron->has_years) return true;
    if (year < CRON_YEAR_MIN || year > CRON_YEAR_MAX) return false;
    unsigned bit = (unsigned)(year - CRON_YEAR_MIN);
    return (cron->years[bit / 64] >> bit % 64 & 1) != 0;
}

/* Returns whether both day and weekday are restricted. */
static inline bool cron_either(const struct bel_cron *cron)
{
    return cron->star_steps[CRON_DAY] == 0 && cron->star_steps[CRON_WEEKDAY] == 0;
}

#endif
