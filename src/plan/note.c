/* SPDX-License-Identifier: MIT */

/*
 * Describes a plan: the sentence, and a note for each clock change that affects it. The search goes
 * from change to change and checks whether the rule matches a local time that is skipped or occurs
 * twice.
 */
#include "core/units.h"
#include "plan/civil.h"
#include "plan/explain.h"
#include "plan/plan.h"
#include "plan/span.h"

#include <string.h>

static void put_date(struct writer *writer, int64_t local)
{
    struct civil_date date = civil_from_days(floor_div(local, SECONDS_PER_DAY));
    writer_padded(writer, (uint64_t)date.year, 4);
    writer_put(writer, '-');
    writer_padded(writer, date.month, 2);
    writer_put(writer, '-');
    writer_padded(writer, date.day, 2);
}

static void put_time(struct writer *writer, int64_t local)
{
    uint64_t second = (uint64_t)floor_mod(local, SECONDS_PER_DAY);
    writer_padded(writer, second / 3600, 2);
    writer_put(writer, ':');
    writer_padded(writer, second / 60 % 60, 2);
    if (second % 60 == 0) return;
    writer_put(writer, ':');
    writer_padded(writer, second % 60, 2);
}

static void explain_every(struct writer *writer, const struct bel_plan *plan)
{
    char period[BEL_DURATION_BYTES];
    (void)bel_duration_print(plan->period_ms, period, sizeof period);
    writer_text(writer, "Every ");
    writer_text(writer, period);
    if (plan->options.mode == BEL_PLAN_DELAY) {
        writer_text(writer, ", counted from the end of the previous run");
    }
}

size_t bel_plan_explain(const struct bel_plan *plan, char *out, size_t room)
{
    const struct bel_plan_options *options = &plan->options;
    struct writer writer;
    writer_begin(&writer, out, room);
    if (plan->kind == BEL_PLAN_EVERY) {
        explain_every(&writer, plan);
    } else if (plan->kind == BEL_PLAN_CRON) {
        bel__explain_cron(&writer, &plan->cron);
    } else {
        bel__explain_rrule(&writer, plan->rrule);
    }
    if (plan->kind != BEL_PLAN_EVERY) {
        writer_text(&writer, ", ");
        writer_text(&writer, bel_zone_name(options->zone));
        if (options->zone != bel_zone_utc()) writer_text(&writer, " time");
    }
    if (options->count > 0) {
        writer_text(&writer, ", at most ");
        writer_number(&writer, options->count);
        writer_text(&writer, options->count > 1 ? " times" : " time");
    }
    if (options->has_until) {
        int64_t until = floor_div(options->until.ms, MS_PER_S);
        writer_text(&writer, ", until ");
        put_date(&writer, until);
        writer_put(&writer, ' ');
        put_time(&writer, until);
        writer_text(&writer, " UTC");
    }
    writer_put(&writer, '.');
    return writer_end(&writer);
}

/* The first and the last local time from `from` to before `to` that match a rule. */
struct named {
    int64_t first, last;
};

/* Returns the first local time after `local` that the rule matches; CRON_NONE if there is none. */
static int64_t next_local(const struct bel_plan *plan, int64_t local)
{
    if (plan->kind == BEL_PLAN_CRON) return bel__cron_next_local(&plan->cron, local);
    return bel__rrule_local_after(plan->rrule, local);
}

/* Returns whether the rule follows real time, also through gaps and folds. */
static bool is_real_time(const struct bel_plan *plan)
{
    if (plan->kind == BEL_PLAN_CRON) return plan->cron.star_steps[CRON_HOUR] != 0;
    return bel__rrule_is_real_time(plan->rrule);
}

static bool find_named(const struct bel_plan *plan, int64_t from, int64_t to, struct named *out)
{
    int64_t local = next_local(plan, from - 1);
    if (local == CRON_NONE || local >= to) return false;
    *out = (struct named){local, local};
    /* A clock change is at most a day: a resolution of a minute is enough for the last time. */
    for (unsigned i = 0; i < SECONDS_PER_DAY / 60; i++) {
        local = next_local(plan, local - floor_mod(local, 60) + 59);
        if (local == CRON_NONE || local >= to) break;
        out->last = local;
    }
    return true;
}

static void put_named(struct writer *writer, const struct named *named)
{
    put_date(writer, named->first);
    writer_text(writer, ": ");
    put_time(writer, named->first);
    if (named->last == named->first) return;
    writer_text(writer, " to ");
    put_time(writer, named->last);
}

static void put_gap(struct writer *writer, const struct bel_plan *plan, const struct named *named,
                    int64_t end)
{
    bool is_one = named->first == named->last;
    put_named(writer, named);
    writer_text(writer, is_one ? " does not exist, " : " do not exist, ");
    if (plan->options.gap == BEL_GAP_SKIP) {
        writer_text(writer, is_one ? "does not run" : "do not run");
        return;
    }
    writer_text(writer, is_one ? "runs at " : "run once, at ");
    put_time(writer, end);
}

static void put_fold(struct writer *writer, const struct bel_plan *plan, const struct named *named)
{
    static const char *const passes[] = {"the first time", "the second time", "both times"};
    bool is_one = named->first == named->last;
    put_named(writer, named);
    writer_text(writer, is_one ? " occurs twice, runs " : " occur twice, run ");
    writer_text(writer, passes[is_real_time(plan) ? BEL_FOLD_BOTH : plan->options.fold]);
}

/* Writes the note about the change at the end of a span. Returns false if the change does not
 * matter. */
static bool put_note(struct writer *writer, const struct bel_plan *plan,
                     const struct zone_span *span)
{
    struct named named;
    int64_t before = span->end + span->offset, after = span->end + span->offset_after;
    if (after > before) {
        if (is_real_time(plan)) return false;
        if (!find_named(plan, before, after, &named)) return false;
        put_gap(writer, plan, &named, after);
        return true;
    }
    if (!find_named(plan, after, before, &named)) return false;
    put_fold(writer, plan, &named);
    return true;
}

bool bel_plan_note(const struct bel_plan *plan, struct bel_wall *at, struct bel_wall to, char *out,
                   size_t room)
{
    if (plan->kind == BEL_PLAN_EVERY) return false;
    int64_t utc = floor_div(at->ms, MS_PER_S), last = floor_div(to.ms, MS_PER_S);
    while (utc <= last) {
        struct zone_span span = bel__zone_span(plan->options.zone, utc);
        if (span.end > last) return false;
        struct writer writer;
        writer_begin(&writer, out, room);
        utc = span.end;
        if (!put_note(&writer, plan, &span)) continue;
        (void)writer_end(&writer);
        at->ms = span.end * MS_PER_S;
        return true;
    }
    return false;
}
