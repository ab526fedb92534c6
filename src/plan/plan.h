/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_PLAN_H
#define BEL_PLAN_PLAN_H

/*
 * The contents of a plan, and the refusal of a rule that is not of the kind that was asked for.
 */

#include "belfry/plan.h"

struct bel_rrule;

struct bel_plan {
    enum bel_plan_kind kind;
    struct bel_plan_options options; /* the zone is not NULL */
    uint64_t period_ms;              /* of an interval */
    struct bel_cron cron;
    struct bel_rrule *rrule;
};

/* Writes to `*why`, unless it is NULL, which kind of rule is wanted and which options the others
 * have. */
void bel__plan_refuse_kind(enum bel_plan_kind wanted, struct bel_text_error *why);

/* The recurrence rules of plans; plan_rrule.c. */
BEL_CHECKED int bel__plan_read_rrule(struct bel_plan *plan, const char *text, size_t bytes,
                                     struct bel_text_error *why);
void bel__plan_free_rrule(struct bel_plan *plan);
BEL_CHECKED int bel__plan_next_rrule(const struct bel_plan *plan, int64_t utc, int64_t *out);

#endif
