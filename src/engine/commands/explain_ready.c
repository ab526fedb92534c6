/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN of a ready timer. What holds it back is told in a fixed order, the first that holds in
 * line 1:
 *
 *     the job     is being cancelled, is paused
 *     the topic   is paused
 *     the job     paces itself, is delayed under pressure
 *     a resource  is limited; its breaker is open; its rate is used up; its leases are taken;
 *                 first the timer's own, then those above it
 *     *           for any of these
 *     the topic   has all its leases; the share has all of its; the timer is not in memory
 *     workers     none is waiting
 *
 * Then come the place of the timer among others, the pressure and its expiry.
 */
#include "belfry/instant.h"
#include "core/view.h"
#include "engine/commands/explaining.h"
#include "engine/jobs/job.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    SEEN_MAX = 100000, /* timers counted ahead of one, at most */
};

static struct bel_view name_of(const struct bel_topic_state *topic)
{
    return (struct bel_view){topic->name, topic->name_bytes};
}

static struct bel_view text_of(const char *text)
{
    return (struct bel_view){text, strlen(text)};
}

void bel__tell_pause(struct bel_explaining *about)
{
    if (about->found->topic->is_paused) bel__tell_paused(&about->telling);
}

/* --- jobs --- */

static unsigned holds_of(const struct bel_explaining *about)
{
    return bel__job_holds(&about->engine->job_marks, about->found->record.job.number);
}

static void tell_stopped_job(struct bel_explaining *about)
{
    const struct bel_record *record = &about->found->record;
    struct bel_reason reason = {.word = "ended", .by = record->group};
    if (holds_of(about) & BEL_HOLD_ENDING) {
        bel__hold(&about->telling, &reason, "the job %s is being cancelled.",
                  bel__said(record->group).text);
    }
    reason.word = "job paused";
    if (holds_of(about) & BEL_HOLD_PAUSED) {
        bel__hold(&about->telling, &reason,
                  "the job %s is paused; JOB RESUME lets its tasks start.",
                  bel__said(record->group).text);
    }
}

/* Tells until when a job waits between its tasks. Its own pace begins when none of its tasks is
 * leased; pressure delays the next start from the moment of a start. */
static void tell_paced_job(struct bel_explaining *about)
{
    const struct bel_record *record = &about->found->record;
    const struct bel_pressure_state *pressure = &about->engine->stats.pressure;
    struct bel_job_found job;
    if (!(holds_of(about) & BEL_HOLD_PACING)) return;
    int err = bel__job_load(about->engine, record->job.number, &job);
    if (err) {
        about->telling.err = err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        return;
    }
    uint64_t wall = bel__lane_wall(&about->engine->now, BEL_LANE_ENGINE, job.row.paced_until);
    struct bel_reason reason = {
        .word = "pacing", .by = record->group, .has_until = true, .until = {(int64_t)wall}};
    bool is_own =
        job.row.pace_ms > 0 && bel__job_leases(&about->engine->job_marks, record->job.number) == 0;
    if (is_own) {
        bel__hold(&about->telling, &reason,
                  "the job %s paces itself: no task of it starts before %s.",
                  bel__said(record->group).text, bel__when((int64_t)wall).text);
        return;
    }
    reason.word = "pressure";
    if (pressure->level != BEL_PRESSURE_NONE) {
        reason.by = text_of(bel_pressure_cause_name(pressure->cause));
    }
    bel__hold(&about->telling, &reason,
              "pressure delays the tasks of the job %s: none of them starts before %s.",
              bel__said(record->group).text, bel__when((int64_t)wall).text);
}

void bel__tell_held_job(struct bel_explaining *about)
{
    tell_stopped_job(about);
    tell_paced_job(about);
}

/* --- resources --- */

/* Returns limits of which only one kind is left. */
static struct bel_limits only(const struct bel_limits *limits, enum bel_closed_by kind)
{
    struct bel_limits left = *limits;
    if (kind != BEL_CLOSED_BY_LIMIT) left.until = 0;
    if (kind != BEL_CLOSED_BY_BREAKER) left.is_open = left.has_probe = false;
    if (kind != BEL_CLOSED_BY_RATE) left.rate_count = 0;
    if (kind != BEL_CLOSED_BY_CONCURRENCY) left.concurrency = 0;
    return left;
}

static void tell_breaker(struct bel_explaining *about, const struct bel_reason *reason,
                         const char *name)
{
    uint64_t now = (uint64_t)about->engine->now.wall;
    if (!reason->has_until) {
        bel__hold(&about->telling, reason,
                  "the breaker of resource %s is half open: one timer is tried, and its success "
                  "lets the others start.",
                  name);
        return;
    }
    bel__hold(&about->telling, reason,
              "the breaker of resource %s is open until %s, in %s, after failures; LIMIT %s CLEAR "
              "closes it.",
              name, bel__when(reason->until.ms).text,
              bel__lasting(bel__distance(now, (uint64_t)reason->until.ms)).text, name);
}

static void tell_closed(struct bel_explaining *about, const struct bel_closed *closed,
                        const struct bel_reason *reason)
{
    const struct bel_limits *limits = &closed->resource->limits;
    struct bel_said name = bel__said(bel__resource_name(closed->resource));
    uint64_t left = closed->until - about->engine->now.engine;
    switch (closed->by) {
    case BEL_CLOSED_BY_LIMIT:
        bel__hold(&about->telling, reason,
                  "the resource %s is limited until %s, in %s; LIMIT %s CLEAR ends this.",
                  name.text, bel__when(reason->until.ms).text, bel__lasting(left).text, name.text);
        break;
    case BEL_CLOSED_BY_BREAKER:
        tell_breaker(about, reason, name.text);
        break;
    case BEL_CLOSED_BY_RATE:
        bel__hold(&about->telling, reason,
                  "the resource %s has used up its rate of %" PRIu64
                  "/%s; the next delivery is possible at %s.",
                  name.text, limits->rate_count, bel__lasting(limits->rate_ms).text,
                  bel__when(reason->until.ms).text);
        break;
    default:
        bel__hold(&about->telling, reason,
                  "the resource %s has %" PRIu64 " of %" PRIu64
                  " leases (CONCURRENCY): one of them must end first.",
                  name.text, closed->resource->leases, limits->concurrency);
        break;
    }
}

/* Returns whether a resource that is closed holds the timer back: a timer that is not due yet only
 * if it is known to be closed for longer than that. */
static bool holds_back(const struct bel_explaining *about, const struct bel_reason *reason)
{
    if (about->found->state != BEL_SCHEDULED) return true;
    return reason->has_until && reason->until.ms > about->telling.timer->due.ms;
}

/* Tells if a resource is closed by a limit of one kind. Returns whether it is. */
static bool tell_resource(struct bel_explaining *about, struct bel_resource *resource,
                          enum bel_closed_by kind)
{
    static const char *const words[] = {
        [BEL_CLOSED_BY_LIMIT] = "limited",
        [BEL_CLOSED_BY_BREAKER] = "breaker",
        [BEL_CLOSED_BY_RATE] = "rate",
        [BEL_CLOSED_BY_CONCURRENCY] = "resource concurrency",
    };
    const struct bel_times *now = &about->engine->now;
    struct bel_limits limits = only(&resource->limits, kind);
    struct bel_closed closed = {.resource = resource};
    closed.by = bel__limits_closed(&limits, now->engine, resource->leases, &closed.until);
    if (closed.by == BEL_CLOSED_BY_NOTHING) return false;
    assert(closed.by == kind);
    bool is_all = resource == about->engine->resources.all;
    struct bel_reason reason = {.word = is_all ? "*" : words[kind],
                                .by = bel__resource_name(resource),
                                .has_until = closed.until != BEL_NEVER};
    if (reason.has_until) {
        reason.until.ms = (int64_t)bel__lane_wall(now, BEL_LANE_ENGINE, closed.until);
    }
    if (!holds_back(about, &reason)) return false;
    tell_closed(about, &closed, &reason);
    return true;
}

/* Returns the timer's resource, or the nearest above it that is in memory: one that is not has no
 * limits. */
static struct bel_resource *nearest_resource(const struct bel_explaining *about)
{
    struct bel_view name = about->found->record.resource;
    struct bel_resource *resource = bel__resource_find(about->engine, name);
    while (resource == NULL && name.bytes > 0) {
        const char *slash = memrchr(name.data, '/', name.bytes);
        name.bytes = slash == NULL ? 0 : (size_t)(slash - (const char *)name.data);
        resource = bel__resource_find(about->engine, name);
    }
    return resource;
}

bool bel__tell_resources(struct bel_explaining *about)
{
    static const enum bel_closed_by kinds[] = {BEL_CLOSED_BY_LIMIT, BEL_CLOSED_BY_BREAKER,
                                               BEL_CLOSED_BY_RATE, BEL_CLOSED_BY_CONCURRENCY};
    struct bel_resource *all = about->engine->resources.all;
    struct bel_resource *own = nearest_resource(about);
    bool is_closed = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (struct bel_resource *at = own; at != NULL; at = at->above) {
            if (at != all && tell_resource(about, at, kinds[i])) is_closed = true;
        }
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (tell_resource(about, all, kinds[i])) is_closed = true;
    }
    return is_closed;
}

/* --- the topic --- */

/* Returns whether the timer's share has as many leases as it may; see picker.c. */
static bool is_share_full(const struct bel_topic_state *topic, uint64_t leases, uint64_t *limit)
{
    uint32_t concurrency = bel__topic_settings(topic)->concurrency;
    uint64_t shares = topic->numbers[BEL_NUMBER_SHARES];
    if (concurrency == 0 || shares < 2) return false;
    *limit = 2 * (uint64_t)concurrency / shares;
    if (*limit < 2) *limit = 2;
    return leases >= *limit;
}

static uint64_t leases_of_share(const struct bel_explaining *about)
{
    struct bel_standing share = bel__ready_share(&about->found->record);
    return bel__picker_leases(&about->found->topic->picker, &share);
}

/* Returns what the timer's share is called: a task's is its job. */
static const char *share_word(const struct bel_explaining *about)
{
    return about->found->record.job.number != 0 ? "job" : "group";
}

static void tell_topic(struct bel_explaining *about)
{
    const struct bel_found *found = about->found;
    uint32_t concurrency = bel__topic_settings(found->topic)->concurrency;
    struct bel_reason reason = {.word = "topic concurrency", .by = name_of(found->topic)};
    uint64_t limit = 0;
    if (concurrency > 0 && found->topic->leased >= concurrency) {
        bel__hold(&about->telling, &reason,
                  "all leases of the topic are taken: the timer waits for a lease to end "
                  "(concurrency %" PRIu32 ").",
                  concurrency);
    }
    reason = (struct bel_reason){.word = "share", .by = found->record.group};
    if (is_share_full(found->topic, leases_of_share(about), &limit)) {
        bel__hold(&about->telling, &reason,
                  "a %s may hold at most %" PRIu64 " leases: a lease of this %s must end first.",
                  share_word(about), limit, share_word(about));
    }
    uint8_t lane = bel__place_of(&found->key).lane;
    reason = (struct bel_reason){.word = "not loaded", .by = name_of(found->topic)};
    if (bel__key_compare(&found->key, &found->topic->loaded[lane]) >= 0) {
        bel__hold(&about->telling, &reason,
                  "more timers are ready than are kept in memory (%" PRIu32
                  " per topic): the timer is loaded when those ahead are claimed.",
                  about->engine->ready_max);
    }
}

static void tell_workers(struct bel_explaining *about)
{
    const struct bel_topic_state *topic = about->found->topic;
    bel__tell_workers(&about->telling, !bel__list_is_empty(&topic->waiters), topic->leased);
}

/* --- the place of a timer --- */

static void tell_leases(struct bel_explaining *about)
{
    const struct bel_topic_state *topic = about->found->topic;
    uint32_t concurrency = bel__topic_settings(topic)->concurrency;
    if (concurrency == 0 || topic->leased >= concurrency) return;
    bel__say(&about->telling,
             "%" PRIu64 " of the topic's %" PRIu32 " leases %s taken (concurrency).", topic->leased,
             concurrency, topic->leased == 1 ? "is" : "are");
}

/* Tells how many leases the share has: shares with fewer leases come first. */
static void tell_share(struct bel_explaining *about)
{
    const struct bel_found *found = about->found;
    uint64_t shares = found->topic->numbers[BEL_NUMBER_SHARES], limit = 0;
    uint64_t leases = leases_of_share(about);
    bool is_job = found->record.job.number != 0, has_group = found->record.group.bytes > 0;
    if (shares < 2) return;
    bel__say(&about->telling,
             "%s%s hold%s %" PRIu64 " lease%s. %" PRIu64 " groups and jobs of the topic have work.",
             is_job      ? "The job "
             : has_group ? "The group "
                         : "Timers without a group, which count as one group,",
             bel__said(found->record.group).text, has_group ? "s" : "", leases, bel__plural(leases),
             shares);
    if (leases > 0 && !is_share_full(found->topic, leases, &limit)) {
        bel__say(&about->telling, "Groups and jobs with fewer leases come first.");
    }
    if (is_job) {
        bel__say(&about->telling,
                 "More urgent jobs come first; waiting does not make a job more urgent.");
    }
}

/* Returns whether the next claim gets the timer. */
static bool is_next(const struct bel_explaining *about)
{
    const struct bel_topic_state *topic = about->found->topic;
    struct bel_pick next;
    return !topic->is_paused &&
           bel__picker_pick(&topic->picker, bel__topic_settings(topic)->concurrency,
                            topic->numbers[BEL_NUMBER_SHARES], &next) &&
           next.ready.sequence == bel__place_of(&about->found->key).sequence;
}

/* Tells how many timers of the same share are ahead. Shares take turns, so others do not count. */
static void tell_line(struct bel_explaining *about)
{
    const struct bel_topic_state *topic = about->found->topic;
    struct bel_place place = bel__place_of(&about->found->key);
    struct bel_standing standing = bel__ready_standing(about->engine, &about->found->record);
    struct bel_ready own = bel__ready_of(&place, &about->found->record);
    bool has_shares = topic->numbers[BEL_NUMBER_SHARES] > 1;
    const char *same = has_shares ? "same " : "", *line = has_shares ? share_word(about) : "topic";
    const char *turns = has_shares ? "; groups and jobs take turns" : "";
    uint64_t ahead = bel__picker_ahead(&topic->picker, &standing, &own, SEEN_MAX);
    if (ahead == SEEN_MAX) {
        bel__say(&about->telling, "At least %" PRIu64 " timers of the %s%s are ahead%s.", ahead,
                 same, line, turns);
    } else if (ahead > 0) {
        bel__say(&about->telling, "%" PRIu64 " timer%s of the %s%s %s ahead%s.", ahead,
                 bel__plural(ahead), same, line, ahead == 1 ? "is" : "are", turns);
    } else if (has_shares) {
        bel__say(&about->telling, "The timer is the first of its %s%s.", line,
                 is_next(about) ? " and the next of the topic" : turns);
    } else {
        bel__say(&about->telling, "The timer is the first of the topic.");
    }
}

/* Tells the level of pressure, which delays the starts of tasks of jobs and nothing else. */
static void tell_pressure(struct bel_explaining *about)
{
    const struct bel_pressure_state *state = &about->engine->stats.pressure;
    if (state->level == BEL_PRESSURE_NONE) return;
    bel__say(&about->telling,
             "The pressure is %s (%s): two tasks of one job start at least %s apart; other timers "
             "are delivered as usual%s.",
             bel_pressure_level_name(state->level), bel_pressure_cause_name(state->cause),
             bel__lasting(bel__pressure_pace_ms(state->level)).text,
             state->level == BEL_PRESSURE_CRITICAL ? ", and new ones are refused" : "");
}

void bel__tell_ready(struct bel_explaining *about)
{
    tell_stopped_job(about);
    bel__tell_pause(about);
    tell_paced_job(about);
    bool is_closed = bel__tell_resources(about);
    tell_topic(about);
    tell_workers(about);
    tell_leases(about);
    tell_share(about);
    if (!is_closed && holds_of(about) == 0) tell_line(about);
    tell_pressure(about);
    bel__tell_expiry(&about->telling);
}
