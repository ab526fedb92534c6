/* SPDX-License-Identifier: MIT */
#ifndef BEL_TELLING_STEPS_H
#define BEL_TELLING_STEPS_H

/*
 * steps - the steps of an AGENDA, and the coming times of plans in them.
 *
 *     err = bel__steps_divide(&steps, command, now, reply);
 *     bel__steps_begin(&steps, items);                steps.count items
 *     bel__steps_add(&steps, due, 1);                 a timer
 *     steps.slice_left = 100;                         times of plans that may take now
 *     err = bel__steps_add_plan(&steps, &coming);     a plan
 */

#include "belfry/backend.h"
#include "belfry/plan.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_steps {
    struct bel_agenda_step *items;
    size_t count;
    int64_t from, to, step; /* `to` is the end of the last step */
    uint32_t times_left;    /* times of plans that may still be computed */
    uint32_t slice_left;    /* of these, before bel__steps_add_plan() returns */
};

/* Divides the period of a command into steps. Returns 0; or BEL_EINVAL, with the error in the
 * reply. */
BEL_CHECKED int bel__steps_divide(struct bel_steps *steps, const struct bel_agenda *command,
                                  struct bel_wall now, struct bel_reply *reply);

/* Sets the memory of the steps, which become empty. */
void bel__steps_begin(struct bel_steps *steps, struct bel_agenda_step *items);

/* Returns whether all steps are whole hours. */
bool bel__steps_have_hours(const struct bel_steps *steps);

/* Adds what is due at a time, if it is in one of the steps. */
void bel__steps_add(struct bel_steps *steps, int64_t wall_ms, uint64_t count);

/* The current hour of a plan. Private. */
struct bel_coming_hour {
    int64_t start;      /* nominal; INT64_MIN before the first hour */
    uint64_t counts[2]; /* times visited in this hour, by the hour in which they ring */
    bool is_whole;      /* is visited completely, and has no unusual times */
    bool has_full;      /* an earlier hour was whole, with these counts: */
    uint64_t full_counts[2];
};

/* A plan that has a next time. */
struct bel_coming {
    const struct bel_recurrence *rule;
    const struct bel_plan *plan; /* NULL: only the next time is known */
    const struct bel_zone *zone; /* of the plan */
    int64_t at;                  /* the next time, nominal */
    int64_t place;               /* place in the spread window: delay of each ring */
    uint64_t used;               /* of the rule's count, before the next time */
    bool is_begun;               /* private, as are the following; false at first */
    uint64_t left;
    int64_t before; /* the time before `at` */
    struct bel_coming_hour hour;
};

/* Adds the times of a plan. Returns 0; BEL_EBUSY if the slice ends before: call again with the same
 * struct, in which rule, plan and zone may have been set anew; BEL_EFULL if there are too many; or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__steps_add_plan(struct bel_steps *steps, struct bel_coming *coming);

#endif
