/* SPDX-License-Identifier: MIT */

/*
 * A cron rule has equally many times in each hour that it names, except near a change of the zone's
 * offset. So for steps of whole hours, the times of one such hour are counted and reused for the
 * others. If times are moved, an hour of the rule falls into two steps:
 *
 *     nominal      |      09:00      |
 *     rings               |      09:25      |
 *     steps        |   09:00   |   10:00    |
 */
#include "telling/steps.h"

#include "core/units.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    STEPS_MAX = 10000,
    TIMES_MAX = 10 * 1000 * 1000, /* times of plans */
    STEPS_OF_TIME = 16,           /* steps of an interval that take as long as one time, about */
    DAY_MS = 24 * MS_PER_HOUR,
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
};

/* The range of valid times: the years 1 to 9999. */
#define TIME_MIN_MS INT64_C(-62135596800000)
#define TIME_MAX_MS INT64_C(253402300799999)

static int64_t clamp(int64_t ms)
{
    if (ms < TIME_MIN_MS) return TIME_MIN_MS;
    return ms > TIME_MAX_MS ? TIME_MAX_MS : ms;
}

static int64_t round_down(int64_t ms, int64_t unit)
{
    int64_t rest = ms % unit;
    return ms - (rest < 0 ? rest + unit : rest);
}

int bel__steps_divide(struct bel_steps *steps, const struct bel_agenda *command,
                      struct bel_wall now, struct bel_reply *reply)
{
    int64_t from = clamp(command->has_from ? command->from.ms : now.ms);
    int64_t to = command->has_to ? clamp(command->to.ms) : from + DAY_MS;
    if (command->step_ms > (uint64_t)TIME_MAX_MS) {
        (void)snprintf(reply->why, sizeof reply->why, "the step is too long");
        return reply->err = BEL_EINVAL;
    }
    steps->step = command->step_ms == 0 ? MS_PER_HOUR : (int64_t)command->step_ms;
    bool is_empty = to <= from;
    if (steps->step % MS_PER_HOUR == 0) from = round_down(from, MS_PER_HOUR);
    int64_t count = is_empty ? 0 : (to - from + steps->step - 1) / steps->step;
    if (count > STEPS_MAX) {
        (void)snprintf(reply->why, sizeof reply->why,
                       "at most %d steps are possible: give a longer STEP", STEPS_MAX);
        return reply->err = BEL_EINVAL;
    }
    steps->count = (size_t)count;
    steps->from = from;
    steps->to = from + count * steps->step;
    return 0;
}

void bel__steps_begin(struct bel_steps *steps, struct bel_agenda_step *items)
{
    steps->items = items;
    steps->times_left = steps->slice_left = TIMES_MAX;
    for (size_t i = 0; i < steps->count; i++) {
        struct bel_wall start = {steps->from + (int64_t)i * steps->step};
        items[i] = (struct bel_agenda_step){.start = start};
    }
}

bool bel__steps_have_hours(const struct bel_steps *steps)
{
    return steps->step % MS_PER_HOUR == 0;
}

void bel__steps_add(struct bel_steps *steps, int64_t wall_ms, uint64_t count)
{
    if (wall_ms < steps->from || wall_ms >= steps->to) return;
    steps->items[(wall_ms - steps->from) / steps->step].count += count;
}

/* --- plans --- */

/* Counts times as computed. */
static void spend(struct bel_steps *steps, uint32_t times)
{
    steps->times_left -= times < steps->times_left ? times : steps->times_left;
    steps->slice_left -= times < steps->slice_left ? times : steps->slice_left;
}

/* Adds `count` rings at intervals of `period`, step by step. */
static void add_interval(struct bel_steps *steps, int64_t at, int64_t period, uint64_t count)
{
    uint32_t visited = 0;
    assert(period > 0 && at >= steps->from);
    for (; at < steps->to && count > 0; visited++) {
        int64_t end = steps->from + ((at - steps->from) / steps->step + 1) * steps->step;
        uint64_t here = (uint64_t)((end - at + period - 1) / period);
        if (here > count) here = count;
        bel__steps_add(steps, at, here);
        at += (int64_t)here * period;
        count -= here;
    }
    spend(steps, visited / STEPS_OF_TIME);
}

/* Returns 0, or why no further time may be computed. */
static int check_left(const struct bel_steps *steps)
{
    if (steps->times_left == 0) return BEL_EFULL;
    return steps->slice_left == 0 ? BEL_EBUSY : 0;
}

/* Moves to the next time of a plan. Skips the times before the period if the rule has no count. */
static int move(struct bel_steps *steps, struct bel_coming *coming)
{
    struct bel_wall after = {coming->at}, next;
    int64_t from = steps->from - coming->place;
    if (coming->rule->count == 0 && after.ms < from - 1) after.ms = from - 1;
    if (coming->left == 0) return BEL_ERANGE;
    int err = check_left(steps);
    if (err) return err;
    spend(steps, 1);
    err = bel_plan_next(coming->plan, after, 0, &next);
    if (err) return err;
    coming->at = next.ms;
    coming->left--;
    return next.ms + coming->place < steps->to ? 0 : BEL_ERANGE;
}

/* Adds the remaining times of an interval; `first` is the time before the current one. */
static void add_rest(struct bel_steps *steps, const struct bel_coming *coming, int64_t first)
{
    int64_t period = coming->at - first;
    uint64_t count = coming->left < UINT64_MAX ? coming->left + 1 : UINT64_MAX;
    if (coming->rule->has_until) {
        uint64_t until = (uint64_t)((coming->rule->until.ms - coming->at) / period) + 1;
        if (until < count) count = until;
    }
    add_interval(steps, coming->at + coming->place, period, count);
}

/* Returns whether an hour is like any other hour of the rule: a cron rule without a count, an
 * offset of whole hours, and no offset change within a day. */
static bool is_usual(const struct bel_steps *steps, const struct bel_coming *coming, int64_t start)
{
    const struct bel_recurrence *rule = coming->rule;
    int64_t second = start / 1000, change;
    if (rule->kind != BEL_PLAN_CRON || rule->count > 0 || steps->step % MS_PER_HOUR != 0) {
        return false;
    }
    if (rule->has_until && rule->until.ms < start + MS_PER_HOUR) return false;
    if (bel_zone_offset(coming->zone, second) % HOUR_S != 0) return false;
    return !bel_zone_next_change(coming->zone, second - DAY_S, &change) || change > second + DAY_S;
}

/* Adds the current time of a plan. If the counts of a whole hour are known, adds the whole hour. */
static void add_time(struct bel_steps *steps, struct bel_coming *coming)
{
    struct bel_coming_hour *hour = &coming->hour;
    int64_t start = round_down(coming->at, MS_PER_HOUR);
    int64_t first = round_down(start + coming->place, MS_PER_HOUR); /* first hour of its rings */
    if (start != hour->start) {
        bool is_first = hour->start == INT64_MIN; /* may begin in the middle of the hour */
        if (hour->is_whole) memcpy(hour->full_counts, hour->counts, sizeof hour->counts);
        hour->has_full = hour->has_full || hour->is_whole;
        hour->start = start;
        memset(hour->counts, 0, sizeof hour->counts);
        hour->is_whole = !is_first && is_usual(steps, coming, start);
    }
    if (hour->is_whole && hour->has_full) {
        bel__steps_add(steps, first, hour->full_counts[0]);
        bel__steps_add(steps, first + MS_PER_HOUR, hour->full_counts[1]);
        coming->at = start + MS_PER_HOUR - 1;
        hour->is_whole = false;
        return;
    }
    hour->counts[coming->at + coming->place >= first + MS_PER_HOUR]++;
    bel__steps_add(steps, coming->at + coming->place, 1);
}

/* Adds the times after the first one. Returns BEL_ERANGE at the end, or an error of
 * check_left(). */
static int add_times(struct bel_steps *steps, struct bel_coming *coming)
{
    for (;;) {
        int err = move(steps, coming);
        if (err) return err;
        bool is_inside = coming->before >= steps->from - coming->place; /* and so is `at` */
        if (is_inside && coming->rule->kind == BEL_PLAN_EVERY) {
            add_rest(steps, coming, coming->before);
            return BEL_ERANGE;
        }
        coming->before = coming->at;
        add_time(steps, coming);
    }
}

/* Adds the first time of a plan that has not begun. */
static void begin(struct bel_steps *steps, struct bel_coming *coming)
{
    spend(steps, 1);
    bel__steps_add(steps, coming->at + coming->place, 1);
    coming->is_begun = true;
    coming->before = INT64_MIN;
    coming->hour = (struct bel_coming_hour){.start = INT64_MIN};
    coming->left = UINT64_MAX;
    if (coming->rule->count > 0) {
        uint64_t used = coming->used + 1;
        coming->left = coming->rule->count > used ? coming->rule->count - used : 0;
    }
}

int bel__steps_add_plan(struct bel_steps *steps, struct bel_coming *coming)
{
    if (!coming->is_begun) {
        if (coming->at + coming->place >= steps->to) return 0;
        int err = check_left(steps);
        if (err) return err;
        begin(steps, coming);
    }
    if (coming->plan == NULL) return 0;
    int err = add_times(steps, coming);
    return err == BEL_ERANGE ? 0 : err;
}
