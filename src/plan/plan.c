/* SPDX-License-Identifier: MIT */

/*
 * A plan is one of three kinds of rules, an optional first time, and an optional end, which is a
 * time or a count.
 */
#include "belfry/plan.h"

#include "core/units.h"
#include "plan/civil.h"
#include "plan/plan.h"
#include "plan/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool begins_with(const char *text, size_t bytes, const char *prefix)
{
    size_t length = strlen(prefix);
    return bytes >= length && strncasecmp(text, prefix, length) == 0;
}

/* Reads an interval, with or without "@every " before it. */
static int read_every(struct bel_plan *plan, const char *text, size_t bytes,
                      struct bel_text_error *why)
{
    size_t skip = begins_with(text, bytes, "@every ") ? strlen("@every ") : 0;
    int err = bel_duration_parse(text + skip, bytes - skip, &plan->period_ms, why);
    if (err) {
        if (why != NULL) why->position += skip;
        return err;
    }
    if (plan->period_ms == 0) return bel__text_refuse(why, skip, "an interval of at least 1 ms");
    plan->kind = BEL_PLAN_EVERY;
    return 0;
}

/* Returns whether a text can only be a duration: one word that begins with a digit or a P, and not
 * a time of day. */
static bool looks_like_duration(const char *text, size_t bytes)
{
    if (bytes == 0 || memchr(text, ' ', bytes) != NULL) return false;
    if (memchr(text, '\t', bytes) != NULL || memchr(text, ':', bytes) != NULL) return false;
    return (text[0] >= '0' && text[0] <= '9') || text[0] == 'P';
}

/* Returns whether a text can only be a recurrence rule: NAME= comes first, or RRULE: or DTSTART. */
static bool looks_like_rrule(const char *text, size_t bytes)
{
    size_t name = 0;
    while (name < bytes && isalpha((unsigned char)text[name])) {
        name++;
    }
    if (begins_with(text, bytes, "DTSTART")) return true;
    return begins_with(text, bytes, "RRULE:") || (name > 0 && name < bytes && text[name] == '=');
}

static int read_rule(struct bel_plan *plan, const char *text, size_t bytes,
                     struct bel_text_error *why)
{
    if (begins_with(text, bytes, "@every ") || looks_like_duration(text, bytes)) {
        return read_every(plan, text, bytes, why);
    }
    if (looks_like_rrule(text, bytes)) return bel__plan_read_rrule(plan, text, bytes, why);
    plan->kind = BEL_PLAN_CRON;
    return bel_cron_parse(text, bytes, plan->options.seed, &plan->cron, why);
}

int bel_plan_create(const char *text, size_t bytes, const struct bel_plan_options *options,
                    struct bel_plan **out, struct bel_text_error *why)
{
    static const struct bel_plan_options defaults = {0};
    struct bel_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return BEL_ENOMEM;
    plan->options = options != NULL ? *options : defaults;
    if (plan->options.zone == NULL) plan->options.zone = bel_zone_utc();
    int err = read_rule(plan, text, bytes, why);
    if (err == 0 && plan->options.mode == BEL_PLAN_DELAY && plan->kind != BEL_PLAN_EVERY) {
        err = bel__text_refuse(why, 0,
                               "an interval: only intervals can be counted from the end of a run");
    }
    if (err) {
        bel_plan_destroy(plan);
        return err;
    }
    *out = plan;
    return 0;
}

void bel_plan_destroy(struct bel_plan *plan)
{
    if (plan == NULL) return;
    bel__plan_free_rrule(plan);
    free(plan);
}

enum bel_plan_kind bel_plan_kind(const struct bel_plan *plan)
{
    return plan->kind;
}

void bel__plan_refuse_kind(enum bel_plan_kind wanted, struct bel_text_error *why)
{
    static const char *const expected[] = {
        [BEL_PLAN_EVERY] = "an interval such as 5m (EVERY); other rules are CRON or RRULE",
        [BEL_PLAN_CRON] = "a cron rule (CRON); an interval is EVERY, a recurrence rule RRULE",
        [BEL_PLAN_RRULE] = "a recurrence rule (RRULE); an interval is EVERY, a cron rule CRON",
    };
    (void)bel__text_refuse(why, 0, "%s", expected[wanted]);
}

/* Adds milliseconds. Returns 0, or BEL_ERANGE on overflow. */
static int add_ms(int64_t ms, uint64_t more, int64_t *out)
{
    struct bel_wall sum;
    int err = bel_wall_add((struct bel_wall){ms}, more, &sum);
    if (err == 0) *out = sum.ms;
    return err;
}

static int next_every(const struct bel_plan *plan, int64_t after, int64_t *out)
{
    const struct bel_plan_options *options = &plan->options;
    int64_t first = options->start.ms;
    if (!options->has_start) {
        int err = add_ms(options->now.ms, plan->period_ms, &first);
        if (err) return err;
    }
    if (after < first) {
        *out = first;
        return 0;
    }
    if (options->mode == BEL_PLAN_DELAY) return add_ms(after, plan->period_ms, out);
    uint64_t passed = (uint64_t)after - (uint64_t)first; /* fits for any signs */
    return add_ms(after, plan->period_ms - passed % plan->period_ms, out);
}

/* Finds the next time of a cron rule or a recurrence rule, which count in seconds. */
static int next_by_seconds(const struct bel_plan *plan, int64_t after, int64_t *out)
{
    const struct bel_plan_options *options = &plan->options;
    int64_t utc = floor_div(after, MS_PER_S), next;
    if (options->has_start && after < options->start.ms) {
        *out = options->start.ms;
        return 0;
    }
    if (plan->kind == BEL_PLAN_RRULE) {
        int err = bel__plan_next_rrule(plan, utc, &next);
        if (err) return err;
    } else {
        struct bel_zone_when when = {options->zone, options->gap, options->fold};
        if (!bel_cron_next(&plan->cron, &when, utc, &next)) return BEL_ERANGE;
    }
    *out = next * MS_PER_S;
    return 0;
}

int bel_plan_next(const struct bel_plan *plan, struct bel_wall after, uint64_t made,
                  struct bel_wall *out)
{
    const struct bel_plan_options *options = &plan->options;
    int64_t next;
    if (options->count > 0 && made >= options->count) return BEL_ERANGE;
    int err = plan->kind == BEL_PLAN_EVERY ? next_every(plan, after.ms, &next)
                                           : next_by_seconds(plan, after.ms, &next);
    if (err) return err;
    if (options->has_until && next > options->until.ms) return BEL_ERANGE;
    assert(next > after.ms);
    out->ms = next;
    return 0;
}
