/* SPDX-License-Identifier: MIT */
#ifndef BEL_CALENDAR_H
#define BEL_CALENDAR_H

/*
 * calendar - plans that ring in memory: a cron rule, a recurrence rule or an interval, in a time
 * zone, on the workers of a runtime.
 *
 *     static void report(void *context, const struct bel_plan_event *event) { ... }
 *
 *     bel_calendar_create(runtime, &(struct bel_calendar_options){.kind = KIND_PLANS}, &calendar);
 *     bel_runtime_schedule_plan(calendar, &(struct bel_plan_schedule){.rule = "0 9 * * 1-5",
 *         .options = {.zone = berlin}, .misfire = BEL_MISFIRE_LAST, .ring = report}, &id, &why);
 *
 * A plan rings at its nominal times by the wall clock. When the clock is set, the next ring moves:
 * back, and it comes later, and no nominal time rings twice; forward, and nominal times may have
 * been missed. A nominal time is missed if no worker came to it for BEL_CALENDAR_LATE_MS: because
 * the clock was set, the machine was suspended, or all workers were busy. The misfire policy
 * (belfry/misfire.h) says which missed times ring; the others are counted.
 *
 * Plans are in memory only. A snapshot of the runtime contains their timers, but not the plans:
 * after a restore, the timers of plans that no longer exist end without an effect. For plans that
 * survive a restart see belfry/engine.h.
 *
 * Threads: any function may be called on any thread, except as noted.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/duties.h"
#include "belfry/error.h"
#include "belfry/misfire.h"
#include "belfry/overlap.h"
#include "belfry/plan.h"
#include "belfry/runtime.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_CALENDAR_LATE_MS = 1000, /* a nominal time that is later than this is missed */
};

struct bel_calendar; /* opaque: owns memory */

struct bel_calendar_options {
    bel_kind_t kind;    /* of the timers of all plans; not registered before */
    uint32_t plans_max; /* scheduling fails with BEL_EFULL above this number; 0: 2^20 */
};

/* Creates a calendar without plans. Returns 0 and sets `*out`; or returns BEL_EINVAL if the kind is
 * too large or already registered, BEL_ENOMEM, BEL_EIO or BEL_ECLOSED. */
BEL_CHECKED int bel_calendar_create(struct bel_runtime *runtime,
                                    const struct bel_calendar_options *options,
                                    struct bel_calendar **out);

/* Ends all plans, waits for their callbacks and frees the calendar; NULL is allowed. Call it before
 * bel_runtime_destroy() and not from inside a callback of a plan; if a snapshot was restored, after
 * a shutdown, because timers of its kind may still be pending. */
void bel_calendar_destroy(struct bel_calendar *calendar);

/* A ring of a plan. */
struct bel_plan_event {
    uint64_t plan; /* its id */
    uint64_t user;
    struct bel_wall nominal; /* the time that the rule names */
    struct bel_wall now;     /* when it rang */
    uint64_t skipped;        /* missed nominal times that do not ring, since the last ring */
    bool is_last;            /* the plan ends with this ring */
};

typedef void bel_plan_ring_fn(void *context, const struct bel_plan_event *event);

struct bel_plan_schedule {
    const char *rule;                /* as for bel_plan_create() */
    size_t bytes;                    /* of `rule`; 0: it ends in 0 */
    struct bel_plan_options options; /* `now` is filled in; modes other than BEL_PLAN_RATE are
                                        invalid; the zone must outlive the plan */
    enum bel_misfire misfire;
    uint32_t misfire_max;   /* for BEL_MISFIRE_ALL: 1 to BEL_MISFIRE_MAX; 0: BEL_MISFIRE_MAX */
    bel_plan_ring_fn *ring; /* called on a worker, for one ring of a plan at a time */
    void *context;
    uint64_t user;
    struct bel_worker *worker; /* as in struct bel_schedule */
    uint8_t priority;
};

/* Schedules a plan. Returns 0 and sets `*out_id`, which is not 0; or, with nothing changed, returns
 * BEL_EINVAL and sets `*why`, unless `why` is NULL, if the rule is wrong; BEL_ERANGE if it has no
 * time ahead; BEL_EFULL, BEL_ENOMEM or BEL_ECLOSED. */
BEL_CHECKED int bel_runtime_schedule_plan(struct bel_calendar *calendar,
                                          const struct bel_plan_schedule *schedule,
                                          uint64_t *out_id, struct bel_text_error *why);

/* Ends a plan. Returns true if this call ended it: then its callback is not running, except that
 * the call comes from there, and does not start again. */
bool bel_calendar_cancel(struct bel_calendar *calendar, uint64_t id);

struct bel_plan_status {
    struct bel_wall next; /* nominal time of the next ring */
    uint64_t user;
    uint64_t rings;
    uint64_t skipped; /* missed nominal times that did not ring, in total */
    bool is_ringing;
};

/* Describes a plan. Returns false if it has ended. */
bool bel_calendar_find(struct bel_calendar *calendar, uint64_t id, struct bel_plan_status *out);

/* Returns the number of plans that have not ended. */
uint64_t bel_calendar_count(struct bel_calendar *calendar);

/*
 * The cron duty (belfry/duties.h) by a plan instead of a fixed period.
 */

/* A plan for ticks; borrowed, must be valid until the ticks end or are changed. */
struct bel_duty_plan {
    const struct bel_plan *plan;
    bool catches_up; /* deliver a tick for each nominal time missed; otherwise leave out those that
                        are more than BEL_CALENDAR_LATE_MS past, and count them */
};

/* Starts ticks of a schedule at the nominal times of a plan, or changes them; otherwise like
 * bel_duties_cron(). Returns BEL_ERANGE if the plan has no time ahead. */
BEL_CHECKED int bel_duties_cron_plan(struct bel_duties *duties, struct bel_duty_for schedule,
                                     struct bel_duty_plan *plan, enum bel_overlap overlap);

BEL_END_DECLARATIONS
#endif
