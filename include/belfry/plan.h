/* SPDX-License-Identifier: MIT */
#ifndef BEL_PLAN_H
#define BEL_PLAN_H

/*
 * plan - computes the next time of a recurrence rule.
 *
 *     5m, PT5M, @every 5m                every five minutes
 *     0 9 * * 1-5, @daily                a cron rule (belfry/cron.h)
 *     FREQ=WEEKLY;BYDAY=MO,WE            a recurrence rule (belfry/rrule.h)
 *
 * A plan is a pure function of the rule, the last nominal time and the number of nominal times so
 * far. It reads neither a clock nor TZ, and any number of threads may use it. A nominal time is the
 * time that the rule names. Moving it within a window (belfry/spread.h) and making up for missed
 * ones (belfry/misfire.h) are separate steps, applied to nominal times.
 *
 *     bel_plan_create("0 9 * * 1-5", 11, &(struct bel_plan_options){.zone = bangkok}, &plan, &why);
 *     while (bel_plan_next(plan, at, made++, &at) == 0) ...
 */

#include "belfry/backoff.h"
#include "belfry/clock.h"
#include "belfry/cron.h"
#include "belfry/declare.h"
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

BEL_BEGIN_DECLARATIONS

struct bel_plan; /* opaque, immutable */

enum bel_plan_kind {
    BEL_PLAN_EVERY,
    BEL_PLAN_CRON,
    BEL_PLAN_RRULE,
};

/* The start of an interval. */
enum bel_plan_mode {
    BEL_PLAN_RATE,  /* the previous nominal time: does not drift */
    BEL_PLAN_DELAY, /* the end of the previous occurrence */
};

struct bel_plan_options {
    const struct bel_zone *zone; /* borrowed, must outlive the plan; NULL: UTC */
    enum bel_gap gap;
    enum bel_fold fold;
    enum bel_plan_mode mode; /* for intervals only */
    bool has_start;          /* otherwise an interval starts one period after `now`, and a
                                recurrence rule at the first whole second not before `now` */
    bool has_until;
    struct bel_wall now;   /* when the plan is created */
    struct bel_wall start; /* the first nominal time, even if the rule does not match it */
    struct bel_wall until; /* no nominal time is after it */
    uint64_t count;        /* number of nominal times in total; 0: no limit */
    uint64_t seed;         /* for H in a cron rule: a hash of the name of the job */
};

/* Parses a rule and creates a plan; NULL options: the defaults. Returns 0 and sets `*out`; or
 * returns BEL_ENOMEM; or returns BEL_EINVAL and sets `*why`, unless `why` is NULL. */
BEL_CHECKED int bel_plan_create(const char *text, size_t bytes,
                                const struct bel_plan_options *options, struct bel_plan **out,
                                struct bel_text_error *why);

/* Frees a plan; NULL is allowed. */
void bel_plan_destroy(struct bel_plan *plan);

enum bel_plan_kind bel_plan_kind(const struct bel_plan *plan);

/* Finds the first nominal time later than `after`, given that `made` nominal times came before it.
 * Returns 0 and sets `*out`; or returns BEL_ERANGE if there is none, it is later than `until`, or
 * `count` is reached; or BEL_ENOMEM, only for recurrence rules. In BEL_PLAN_DELAY mode, `after` is
 * the end of the previous occurrence. */
BEL_CHECKED int bel_plan_next(const struct bel_plan *plan, struct bel_wall after, uint64_t made,
                              struct bel_wall *out);

/* Describes the plan as an English sentence. Like snprintf, writes what fits into `room` bytes and
 * returns the full length. */
size_t bel_plan_explain(const struct bel_plan *plan, char *out, size_t room);

/* Describes the effect of clock changes on the plan: writes a note about the first one later than
 * `*at` and up to `to`, sets `*at` to its time and returns true; or returns false if there is none.
 * A note is a line like "2026-03-29: 02:30 does not exist, runs at 03:00", truncated to fit. */
bool bel_plan_note(const struct bel_plan *plan, struct bel_wall *at, struct bel_wall to, char *out,
                   size_t room);

BEL_END_DECLARATIONS
#endif
