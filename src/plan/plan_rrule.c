/* SPDX-License-Identifier: MIT */

/*
 * Recurrence rules in plans. The start of a rule is a local time: of the plan's first time if it is
 * given, otherwise of the plan's creation. A rule has a resolution of seconds, and COUNT counts its
 * start, so the start is rounded up to be not before the creation.
 */
#include "belfry/rrule.h"

#include "core/units.h"
#include "plan/civil.h"
#include "plan/plan.h"
#include "plan/text.h"

#include <string.h>

/* Returns the second in which the rule starts. */
static int64_t start_of(const struct bel_plan_options *options)
{
    if (options->has_start) return floor_div(options->start.ms, MS_PER_S);
    return floor_div(options->now.ms, MS_PER_S) + (options->now.ms % MS_PER_S != 0);
}

int bel__plan_read_rrule(struct bel_plan *plan, const char *text, size_t bytes,
                         struct bel_text_error *why)
{
    const struct bel_plan_options *options = &plan->options;
    struct bel_civil civil;
    plan->kind = BEL_PLAN_RRULE;
    if (bel_zone_civil(options->zone, start_of(options), &civil) != 0) {
        return bel__text_refuse(why, 0, "a start between the years -9999 and 9999");
    }
    return bel_rrule_parse(text, bytes, &civil, &plan->rrule, why);
}

void bel__plan_free_rrule(struct bel_plan *plan)
{
    bel_rrule_destroy(plan->rrule);
}

int bel__plan_next_rrule(const struct bel_plan *plan, int64_t utc, int64_t *out)
{
    const struct bel_plan_options *options = &plan->options;
    struct bel_zone_when when = {options->zone, options->gap, options->fold};
    return bel_rrule_next(plan->rrule, &when, utc, out);
}

const char *bel__plan_rrule_text(const struct bel_plan *plan)
{
    return bel_rrule_text(plan->rrule);
}
