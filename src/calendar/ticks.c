/* SPDX-License-Identifier: MIT */

/*
 * The ticks of a cron duty at the nominal times of a plan. The duty asks for the next tick when it
 * has delivered one, so late ticks are left out there, or follow one after the other.
 */
#include "belfry/calendar.h"

/* A plan for bel_misfire_choose(), at a tick. */
struct place {
    const struct bel_plan *plan;
    uint64_t number;
};

static bool next_after(void *context, struct bel_wall after, struct bel_wall *out)
{
    const struct place *place = context;
    return bel_plan_next(place->plan, after, place->number, out) == 0;
}

static bool next_tick(void *context, const struct bel_duty_tick *last, struct bel_wall now,
                      struct bel_duty_tick *out)
{
    const struct bel_duty_plan *ticks = context;
    struct place place = {ticks->plan, last != NULL ? last->number + 1 : 0};
    struct bel_duty_tick next = {.number = place.number};
    if (!next_after(&place, last != NULL ? last->at : now, &next.at)) return false;
    int64_t late_ms = now.ms - BEL_CALENDAR_LATE_MS - 1;
    if (!ticks->catches_up && next.at.ms <= late_ms) {
        struct bel_misfire_range range = {{next.at.ms - 1}, {late_ms}};
        struct bel_misfire_plan plan = {next_after, &place};
        struct bel_misfire_result result =
            bel_misfire_choose(BEL_MISFIRE_SKIP, 0, &plan, range, NULL);
        if (!result.has_next) return false;
        next.at = result.next;
        next.missed = result.skipped_count;
        next.number += result.skipped_count;
        /* A plan with a count may have ended with the ticks that were left out. */
        place.number = next.number;
        if (!next_after(&place, (struct bel_wall){next.at.ms - 1}, &next.at)) return false;
    }
    *out = next;
    return true;
}

int bel_duties_cron_plan(struct bel_duties *duties, struct bel_duty_for schedule,
                         struct bel_duty_plan *plan, enum bel_overlap overlap)
{
    struct bel_duty_ticks ticks = {.overlap = overlap, .next = next_tick, .context = plan};
    return bel_duties_cron(duties, schedule, &ticks);
}
