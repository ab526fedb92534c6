/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_H
#define BEL_PLAN_H

/*
 * plan - when is the next time?
 *
 *     5m, PT5M, @every 5m                every five minutes
 *     0 9 * * 1-5, @daily                a cron rule (belfry/cron.h)
 *     FREQ=WEEKLY;BYDAY=MO,WE            a recurrence rule (belfry/rrule.h)
 *
 * A plan is a pure function: of the rule, the last nominal time and how many there were. It
 * reads no clock and no TZ, and may be asked by any number of threads. A nominal time is
 * when the rule says; moving it within a window (belfry/spread.h) and making up for missed
 * ones (belfry/misfire.h) is done to it afterwards.
 *
 *     bel_plan_create("0 9 * * 1-5", 11, &(struct bel_plan_options){.zone = bangkok}, &plan, &why);
 *     while (bel_plan_next(plan, at, made++, &at) == 0) ...
 */

#include "belfry/backoff.h"
#include "belfry/clock.h"
#include "belfry/cron.h"
#include "belfry/duration.h"
#include "belfry/error.h"
#include "belfry/misfire.h"
#include "belfry/rrule.h"
#include "belfry/spread.h"
#include "belfry/text.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct bel_plan; /* opaque, immutable */

enum bel_plan_kind {
    BEL_PLAN_EVERY,
    BEL_PLAN_CRON,
    BEL_PLAN_RRULE,
};

/* What an interval is counted from. */
enum bel_plan_mode {
    BEL_PLAN_RATE,  /* the nominal time before: it does not drift */
    BEL_PLAN_DELAY, /* the end of what the time before has started */
};

struct bel_plan_options {
    const struct bel_zone *zone; /* borrowed, must outlive the plan; NULL: UTC */
    enum bel_gap gap;
    enum bel_fold fold;
    enum bel_plan_mode mode; /* of intervals only */
    bool has_start;          /* else an interval starts a period after `now`, a recurrence rule
                                with the first whole second that is not before it */
    bool has_until;
    struct bel_wall now;   /* when the plan is made */
    struct bel_wall start; /* the first nominal time, whatever the rule says of it */
    struct bel_wall until; /* there is none after it */
    uint64_t count;        /* nor after so many; 0: no such limit */
    uint64_t seed;         /* for H in a cron rule: a hash of what the plan is for */
};

/* Reads a rule and makes a plan; NULL options are the defaults. Returns 0 and sets `*out`; or
 * BEL_ENOMEM; or BEL_EINVAL, and `*why`, unless it is NULL, says where and what was
 * expected. */
BEL_CHECKED int bel_plan_create(const char *text, size_t bytes,
                                const struct bel_plan_options *options, struct bel_plan **out,
                                struct bel_text_error *why);

/* Frees a plan; NULL is allowed. */
void bel_plan_destroy(struct bel_plan *plan);

enum bel_plan_kind bel_plan_kind(const struct bel_plan *plan);

/* The first nominal time after `after`, if there were `made` before it. Returns 0; or
 * BEL_ERANGE if there is none, it is past `until`, or all have been made; or BEL_ENOMEM, which
 * only a recurrence rule does. In mode delay, `after` is when the one before ended. */
BEL_CHECKED int bel_plan_next(const struct bel_plan *plan, struct bel_wall after, uint64_t made,
                              struct bel_wall *out);

/* The plan as an English sentence. Returns the length it needs, and writes what fits, as
 * snprintf does. */
size_t bel_plan_explain(const struct bel_plan *plan, char *out, size_t room);

/* What clock changes do to the plan: the first note about one after `*at`, up to `to`, and
 * `*at` is moved there; false if there is none. A note is a line like "2026-03-29: 02:30 does
 * not exist, runs at 03:00". What does not fit is cut off. */
bool bel_plan_note(const struct bel_plan *plan, struct bel_wall *at, struct bel_wall to, char *out,
                   size_t room);

#pragma GCC visibility pop
#endif
