/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: lines that say what a timer is, why it is not running and when it will, for a person who
 * has to act on it. The first line is the state. Then come the reasons for waiting and what can be
 * done about them. History comes last.
 */
#include "belfry/instant.h"
#include "core/units.h"
#include "core/utf8.h"
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/jobs/task.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan_rule.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    LINES_MAX = 40,
    LINE_BYTES = 700,
    TEXT_BYTES = 128,   /* text from users in one line, at most */
    SEEN_MAX = 100000,  /* timers counted ahead of one, at most */
    LEASES_MAX = 10000, /* leases counted for a share, at most */
    COMING_MAX = 3,     /* times of a plan listed, at most */
    NAMED_MAX = 5,      /* tasks listed that a task waits for */
};

struct telling {
    struct bel_engine *engine;
    struct bel_found *found;
    struct bel_view *lines;
    size_t count;
    int err; /* the first error; no line is added after it */
};

/* Short texts that are inserted into lines. */
struct when {
    char text[BEL_INSTANT_BYTES];
};

struct span {
    char text[BEL_DURATION_BYTES];
};

struct words {
    char text[TEXT_BYTES + 4];
};

static struct when at(int64_t ms)
{
    struct when when = {0};
    (void)bel_instant_print((struct bel_wall){ms}, when.text, sizeof when.text);
    return when;
}

/* Prints a duration. From a minute on, rounds to seconds. */
static struct span lasting(uint64_t ms)
{
    struct span span = {0};
    if (ms >= MS_PER_MINUTE) ms = (ms + 500) / 1000 * 1000;
    (void)bel_duration_print(ms, span.text, sizeof span.text);
    return span;
}

/* Returns text from a user without control characters, shortened. */
static struct words said(struct bel_view view)
{
    struct words words;
    const char *text = view.data;
    size_t bytes = bel__utf8_head(view, TEXT_BYTES).bytes;
    for (size_t i = 0; i < bytes; i++) {
        bool is_control = (unsigned char)text[i] < ' ' || text[i] == 0x7f;
        words.text[i] = text[i];
        if (is_control) words.text[i] = ' ';
    }
    (void)snprintf(words.text + bytes, sizeof words.text - bytes, "%s",
                   view.bytes > bytes ? "..." : "");
    return words;
}

static uint64_t distance(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static void say(struct telling *telling, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct telling *telling, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    if (telling->err || telling->count == LINES_MAX) return;
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (bytes < 0) return;
    struct bel_view view = {line, (size_t)bytes < sizeof line ? (size_t)bytes : sizeof line - 1};
    view = bel__answer_copy(telling->engine, view);
    if (view.data == NULL) {
        telling->err = BEL_ENOMEM;
        return;
    }
    telling->lines[telling->count++] = view;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* --- what several states have in common --- */

static void tell_pause(struct telling *telling)
{
    const struct bel_topic_state *topic = telling->found->topic;
    if (!topic->is_paused) return;
    say(telling, "The topic %.*s is paused: no timer is delivered until RESUME %.*s.",
        (int)topic->name_bytes, topic->name, (int)topic->name_bytes, topic->name);
}

static void tell_expiry(struct telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    if (record->expires_ms == 0) return;
    uint64_t wall = bel__lane_wall(&telling->engine->now, record->expires_lane, record->expires_at);
    say(telling, "The timer expires at %s unless a worker claims it first.",
        at((int64_t)wall).text);
}

static void tell_outcomes(struct telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    if (record->attempts > 0 || record->crashes > 0) {
        say(telling, "So far it has failed %" PRIu64 " time%s and lost %" PRIu64 " lease%s.",
            record->attempts, plural(record->attempts), record->crashes, plural(record->crashes));
    }
    for (size_t i = record->outcomes_count; i-- > 0;) {
        const struct bel_outcome *outcome = &record->outcomes[i];
        say(telling, "  %s %s%s%s", at(outcome->at.ms).text,
            outcome->kind == BEL_OUTCOME_FAILED ? "failed" : "crashed",
            outcome->reason.bytes > 0 ? ": " : "", said(outcome->reason).text);
    }
}

static void tell_occurrence(struct telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    if (record->kind != BEL_RECORD_TIMER || record->plan == 0) return;
    say(telling, "It is an occurrence of the plan %s, for %s.",
        said(bel__occurrence_plan(record->id)).text, at((int64_t)record->nominal).text);
}

/* --- scheduled --- */

static void tell_scheduled(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_times *now = &telling->engine->now;
    struct bel_place place = bel__place_of(&found->key);
    uint64_t left = distance(bel__lane_now(now, place.lane), place.time);
    say(telling, "It is scheduled: due at %s, in %s.",
        at(bel__timer_due(telling->engine, found)).text, lasting(left).text);
    if (found->record.attempts > 0) {
        say(telling, "Waiting for attempt %" PRIu64 ".", found->record.attempts + 1);
    }
    if (place.lane == BEL_LANE_ENGINE) {
        say(telling, "The timer waits for a delay, which is measured by elapsed time.");
    } else {
        say(telling, "The timer waits for a wall-clock time: setting the clock changes the wait.");
    }
    tell_pause(telling);
    tell_expiry(telling);
}

/* --- jobs --- */

/* Tells why no task of the timer's job starts. */
static void tell_held_job(struct telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    unsigned holds = bel__job_holds(&telling->engine->job_marks, record->job.number);
    struct bel_job_found job;
    if (record->job.number == 0) return;
    if (holds & BEL_HOLD_ENDING) say(telling, "The job is being cancelled.");
    if (holds & BEL_HOLD_PAUSED) {
        say(telling, "The job %s is paused; JOB RESUME lets its tasks start.",
            said(record->group).text);
    }
    if (!(holds & BEL_HOLD_PACING)) return;
    int err = bel__job_load(telling->engine, record->job.number, &job);
    if (err) {
        telling->err = err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
        return;
    }
    say(telling, "The job paces itself: no task of it starts before %s.",
        at((int64_t)bel__lane_wall(&telling->engine->now, BEL_LANE_ENGINE, job.row.paced_until))
            .text);
}

/* --- ready --- */

/* Returns whether the next claim gets the timer. */
static bool is_next(const struct telling *telling)
{
    const struct bel_topic_state *topic = telling->found->topic;
    struct bel_pick next;
    return !topic->is_paused &&
           bel__picker_pick(&topic->picker, bel__topic_settings(topic)->concurrency,
                            topic->numbers[BEL_NUMBER_SHARES], &next) &&
           next.ready.sequence == bel__place_of(&telling->found->key).sequence;
}

/* Tells how many timers of the same group are ahead. Groups take turns, so others do not count. */
static void tell_line(struct telling *telling)
{
    const struct bel_topic_state *topic = telling->found->topic;
    struct bel_place place = bel__place_of(&telling->found->key);
    struct bel_standing standing = bel__ready_standing(telling->engine, &telling->found->record);
    struct bel_ready own = bel__ready_of(&place, &telling->found->record);
    bool has_shares = topic->numbers[BEL_NUMBER_SHARES] > 1;
    const char *line = has_shares ? "the same group" : "the topic";
    const char *turns = has_shares ? "; groups take turns" : "";
    uint64_t ahead = bel__picker_ahead(&topic->picker, &standing, &own, SEEN_MAX);
    if (ahead == SEEN_MAX) {
        say(telling, "At least %" PRIu64 " timers of %s are ahead%s.", ahead, line, turns);
    } else if (ahead > 0) {
        say(telling, "%" PRIu64 " timer%s of %s %s ahead%s.", ahead, plural(ahead), line,
            ahead == 1 ? "is" : "are", turns);
    } else if (has_shares) {
        say(telling, "The timer is the first of its group%s.",
            is_next(telling) ? " and the next of the topic" : turns);
    } else {
        say(telling, "The timer is the first of the topic.");
    }
}

/* Returns whether a due timer is in memory. */
static bool is_loaded(const struct bel_found *found)
{
    uint8_t lane = bel__place_of(&found->key).lane;
    return bel__key_compare(&found->key, &found->topic->loaded[lane]) < 0;
}

/* Returns how many leases the timer's share has, counting up to LEASES_MAX. */
static uint64_t count_leases_of_share(struct telling *telling)
{
    struct bel_engine *engine = telling->engine;
    const struct bel_topic_state *topic = telling->found->topic;
    struct bel_place start = {.table = BEL_TABLE_LEASES, .topic = topic->number};
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    uint64_t count = 0;
    int err = topic->leased == 0 ? BEL_ENOTFOUND : bel__store_seek(engine->store, &from, &cursor);
    for (int i = 0; err == 0 && i < LEASES_MAX;
         i++, err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        struct bel_found leased;
        if (place.table != start.table || place.topic != start.topic) return count;
        struct bel_key key = bel__key_in(&cursor.key, BEL_TABLE_TIMERS);
        err = bel__timer_load(engine, &key, &leased);
        if (err) break;
        bool is_same = (leased.record.job.number != 0) == (telling->found->record.job.number != 0);
        count += is_same && bel__view_equal(leased.record.group, telling->found->record.group);
    }
    if (err != 0 && err != BEL_ENOTFOUND) telling->err = err;
    return count;
}

/* Tells how many leases the share has: shares with fewer leases come first. */
static void tell_share(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    uint32_t concurrency = bel__topic_settings(found->topic)->concurrency;
    uint64_t shares = found->topic->numbers[BEL_NUMBER_SHARES];
    uint64_t leases = count_leases_of_share(telling);
    bool has_group = found->record.group.bytes > 0;
    if (shares < 2) return;
    uint64_t limit = concurrency > 0 ? 2 * (uint64_t)concurrency / shares : UINT64_MAX;
    if (limit < 2) limit = 2;
    say(telling, "%s%s hold%s %" PRIu64 " lease%s. %" PRIu64 " groups of the topic have work.",
        has_group ? "The group " : "Timers without a group, which count as one group,",
        said(found->record.group).text, has_group ? "s" : "", leases, plural(leases), shares);
    if (leases >= limit) {
        say(telling, "A group may hold at most %" PRIu64 ": a lease of this group must end first.",
            limit);
    } else if (leases > 0) {
        say(telling, "Groups with fewer leases come first.");
    }
}

/* Tells why a resource that the timer needs is closed. */
static void tell_closed(struct telling *telling, const struct bel_closed *closed)
{
    const struct bel_limits *limits = &closed->resource->limits;
    const struct bel_times *now = &telling->engine->now;
    struct words name = said(bel__resource_name(closed->resource));
    struct when until = at(closed->until == BEL_NEVER
                               ? 0
                               : (int64_t)bel__lane_wall(now, BEL_LANE_ENGINE, closed->until));
    switch (closed->by) {
    case BEL_CLOSED_BY_LIMIT:
        say(telling, "The resource %s is limited until %s; LIMIT %s CLEAR ends it.", name.text,
            until.text, name.text);
        break;
    case BEL_CLOSED_BY_BREAKER:
        if (limits->has_probe) {
            say(telling,
                "The circuit breaker of %s is half open: one timer is tried, and its success lets "
                "the others run.",
                name.text);
        } else {
            say(telling, "The circuit breaker of %s is open until %s, after failures.", name.text,
                until.text);
        }
        break;
    case BEL_CLOSED_BY_RATE:
        say(telling, "The rate of %s allows the next delivery at %s.", name.text, until.text);
        break;
    case BEL_CLOSED_BY_CONCURRENCY:
        say(telling,
            "All %" PRIu64 " leases of the resource %s are taken: the timer waits for one to end.",
            limits->concurrency, name.text);
        break;
    default:
        break;
    }
}

/* Tells which of the resources that the timer needs are closed: first those that are limited, then
 * by breaker, rate and concurrency, and last `*`. */
static void tell_resources(struct telling *telling)
{
    struct bel_engine *engine = telling->engine;
    struct bel_closed closed;
    for (int by = BEL_CLOSED_BY_LIMIT; by <= BEL_CLOSED_BY_CONCURRENCY; by++) {
        struct bel_resource *resource = bel__resource_find(engine, telling->found->record.resource);
        for (; resource != NULL; resource = resource->above) {
            closed.resource = resource;
            closed.by = bel__limits_closed(&resource->limits, engine->now.engine, resource->leases,
                                           &closed.until);
            if ((int)closed.by == by) tell_closed(telling, &closed);
        }
    }
    if (bel__resources_are_closed(engine, &closed)) tell_closed(telling, &closed);
}

static void tell_limits(struct telling *telling)
{
    struct bel_topic_state *topic = telling->found->topic;
    uint32_t concurrency = bel__topic_settings(topic)->concurrency;
    if (concurrency > 0 && topic->leased >= concurrency) {
        say(telling,
            "All leases of the topic are taken: the timer waits for a lease to end (concurrency "
            "%" PRIu32 ").",
            concurrency);
    } else if (concurrency > 0) {
        say(telling, "%" PRIu64 " of the topic's %" PRIu32 " leases %s taken (concurrency).",
            topic->leased, concurrency, topic->leased == 1 ? "is" : "are");
    }
    if (!is_loaded(telling->found)) {
        say(telling,
            "More timers are ready than are kept in memory (%" PRIu32
            " per topic): the timer is loaded when those ahead are claimed.",
            telling->engine->ready_max);
    }
}

static void tell_workers(struct telling *telling)
{
    const struct bel_topic_state *topic = telling->found->topic;
    if (topic->is_paused) return;
    if (!bel__list_is_empty(&topic->waiters)) {
        say(telling, "Workers are waiting for timers of the topic.");
        return;
    }
    say(telling,
        "No worker is waiting; the timer is delivered to a later claim. %" PRIu64
        " timer%s of the topic %s leased.",
        topic->leased, plural(topic->leased), topic->leased == 1 ? "is" : "are");
}

/* Tells the level of pressure, which delays the starts of tasks of jobs and nothing else. */
static void tell_pressure(struct telling *telling)
{
    const struct bel_pressure_state *state = &telling->engine->stats.pressure;
    if (state->level == BEL_PRESSURE_NONE) return;
    say(telling,
        "The pressure is %s (%s): two tasks of one job start at least %s apart; other timers are "
        "delivered as usual%s.",
        bel_pressure_level_name(state->level), bel_pressure_cause_name(state->cause),
        lasting(bel__pressure_pace_ms(state->level)).text,
        state->level == BEL_PRESSURE_CRITICAL ? ", and new ones are refused" : "");
}

static void tell_ready(struct telling *telling)
{
    int64_t due = bel__timer_due(telling->engine, telling->found);
    uint64_t age = distance((uint64_t)due, (uint64_t)telling->engine->now.wall);
    say(telling, "It is ready: due since %s, for %s.", at(due).text, lasting(age).text);
    tell_held_job(telling);
    tell_pause(telling);
    tell_resources(telling);
    tell_limits(telling);
    tell_share(telling);
    tell_line(telling);
    tell_workers(telling);
    tell_pressure(telling);
    tell_expiry(telling);
}

/* --- leased, blocked --- */

static struct words worker_of(struct telling *telling)
{
    struct bel_key key = bel__key_in(&telling->found->key, BEL_TABLE_LEASES);
    struct bel_lease_row row = {0};
    struct bel_view value;
    int err = bel__store_get(telling->engine->store, &key, &value);
    if (err == 0) err = bel__lease_read(value, &row);
    if (err) telling->err = err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return said(row.worker.bytes > 0 ? row.worker : BEL_VIEW("a worker without a name"));
}

static void tell_leased(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_lease *lease = found->lease;
    uint64_t left = distance(telling->engine->now.open_up, lease->end);
    uint32_t crashes = bel__topic_settings(found->topic)->crashes;
    say(telling, "It is leased: %s has it for another %s of %s.", worker_of(telling).text,
        lasting(left).text, lasting(lease->lease_ms).text);
    say(telling, "This is attempt %" PRIu64 ".", found->record.attempts + 1);
    say(telling,
        "If the lease ends first, the timer is ready again; that would be lost lease %" PRIu64
        " of the %" PRIu32 " that make the timer dead.",
        found->record.crashes + 1, crashes);
}

/* Tells whether occurrences of a plan are unfinished, and how many are blocked. */
static void tell_unfinished(struct telling *telling, struct bel_view plan)
{
    struct bel_occurrences found;
    int err = bel__occurrences_look(telling->engine, telling->found->topic, plan, BEL_LOOK_BLOCKED,
                                    &found);
    if (err) telling->err = err;
    if (err || !found.has_any) return;
    say(telling, "The plan has unfinished occurrences (blocked: %" PRIu64 ").", found.blocked);
}

/* Returns the id of a task. */
static struct words task_id(struct telling *telling, uint64_t job, uint32_t task)
{
    struct bel_task_row row;
    struct bel_found found;
    int err = bel__task_load(telling->engine, job, task, &row);
    if (err == 0) err = bel__timer_load(telling->engine, &row.key, &found);
    if (err) telling->err = err;
    return err ? (struct words){{0}} : said(bel__task_id(&found.record));
}

/* Names the tasks that a blocked task waits for, of the first edges. */
static void tell_dependencies(struct telling *telling, const struct bel_edge_list *list)
{
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    size_t count = 0, named = 0;
    int err = bel__edges_get(telling->engine, list, 0, edges, &count);
    for (size_t i = 0; i < count && err == 0 && named < NAMED_MAX; i++) {
        struct bel_task_row row;
        err = bel__task_load(telling->engine, list->job, edges[i].task, &row);
        if (err != 0 || bel__task_row_state(&row) >= BEL_DONE) continue;
        say(telling, "  %s, which is %s (on %s)", task_id(telling, list->job, edges[i].task).text,
            bel__task_row_state(&row) == BEL_BLOCKED ? "blocked, too" : "not finished",
            bel_edge_policy_name(edges[i].on));
        named++;
    }
    if (err) telling->err = err;
}

static void tell_blocked_task(struct telling *telling)
{
    const struct bel_task_of *of = &telling->found->record.job;
    struct bel_task_row row;
    int err = bel__task_load(telling->engine, of->number, of->index, &row);
    if (err) {
        telling->err = err;
        return;
    }
    say(telling,
        "It is blocked: %" PRIu64 " of the %" PRIu64 " task%s that it comes after %s not "
        "ended:",
        row.open, row.after_count, plural(row.after_count), row.open == 1 ? "has" : "have");
    struct bel_edge_list list = {of->number, BEL_EDGES_AFTER, of->index, row.after_count};
    if (list.count > 0) tell_dependencies(telling, &list);
}

static void tell_blocked(struct telling *telling)
{
    if (telling->found->record.job.number != 0) {
        tell_blocked_task(telling);
        tell_held_job(telling);
        return;
    }
    say(telling,
        "It is blocked: the occurrence waits until the previous ones have finished (OVERLAP "
        "queue).");
    tell_unfinished(telling, bel__occurrence_plan(telling->found->record.id));
}

/* --- ended --- */

static void tell_retention(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_settings *settings = bel__topic_settings(found->topic);
    bool is_well = found->state == BEL_DONE || found->state == BEL_CANCELLED;
    uint64_t retention = is_well ? settings->retention_ms : settings->retention_dead_ms;
    if (retention == BEL_RETENTION_FOREVER) {
        say(telling, "The timer is kept until it is purged.");
        return;
    }
    uint64_t end = bel__place_of(&found->key).time + retention;
    say(telling, "The timer is kept until %s.", at((int64_t)end).text);
}

/* Returns whether the timer expired when it failed: its next attempt would have come too late. */
static bool has_failed_at(const struct bel_record *record, uint64_t finished)
{
    if (record->outcomes_count == 0) return false;
    const struct bel_outcome *last = &record->outcomes[record->outcomes_count - 1];
    return last->kind == BEL_OUTCOME_FAILED && (uint64_t)last->at.ms == finished;
}

static void tell_expired(struct telling *telling)
{
    const struct bel_record *record = &telling->found->record;
    uint64_t finished = bel__place_of(&telling->found->key).time;
    struct when due = at((int64_t)record->due);
    if (has_failed_at(record, finished)) {
        say(telling,
            "The last attempt failed, and the timer would have expired before the next one.");
    } else if (record->due > finished) {
        say(telling, "The timer was due at %s and expired before that.", due.text);
    } else if (record->attempts > 0) {
        say(telling,
            "An attempt failed, the retry was due at %s, and no worker claimed it in time.",
            due.text);
    } else if (record->crashes > 0) {
        say(telling,
            "The timer was due at %s, its lease was lost, and no worker claimed it again in time.",
            due.text);
    } else {
        say(telling, "The timer was due at %s, and no worker claimed it in time.", due.text);
    }
}

static void tell_ended(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    struct bel_view reason = found->record.reason;
    bool is_task = found->record.job.number != 0;
    say(telling, "It is %s, since %s%s%s.", bel_state_name(found->state),
        at((int64_t)bel__place_of(&found->key).time).text, reason.bytes > 0 ? ": " : "",
        said(reason).text);
    if (found->state == BEL_DEAD && !is_task) {
        say(telling, "REVIVE makes the timer due now with 0 attempts; PURGE deletes it.");
    }
    if (found->state == BEL_EXPIRED) tell_expired(telling);
    if (is_task) {
        say(telling, "The task is kept as long as its job %s.", said(found->record.group).text);
    } else {
        tell_retention(telling);
    }
}

/* --- plans --- */

static const char *const overlaps[] = {
    [BEL_OVERLAP_SKIP] =
        "An occurrence is skipped while the previous one is unfinished (OVERLAP skip).",
    [BEL_OVERLAP_QUEUE] =
        "An occurrence waits until the previous one has finished (OVERLAP queue).",
    [BEL_OVERLAP_ALLOW] = "Occurrences may run at the same time (OVERLAP allow).",
};

static const char *const misfires[] = {
    [BEL_MISFIRE_SKIP] = "Missed times are skipped (MISFIRE skip).",
    [BEL_MISFIRE_LAST] = "Of the missed times, the last one is run late (MISFIRE last).",
    [BEL_MISFIRE_ALL] = "All missed times are run late (MISFIRE all).",
};

/* Lists the times after the next one. */
static void tell_coming(struct telling *telling, const struct bel_plan *plan)
{
    const struct bel_found *found = telling->found;
    const struct bel_recurrence *rule = &found->record.rule;
    struct bel_wall next = {(int64_t)found->plan.next};
    uint64_t used = bel__plan_used(&found->plan) + 1;
    if (rule->mode == BEL_PLAN_DELAY) {
        say(telling, "The following time is one period after that occurrence has finished.");
        return;
    }
    for (int i = 1; i < COMING_MAX; i++, used++) {
        if (rule->count > 0 && used >= rule->count) break;
        int err = bel_plan_next(plan, next, 0, &next);
        if (err == BEL_ENOMEM) telling->err = err;
        if (err) break;
        say(telling, "  then %s", at(next.ms + (int64_t)bel__plan_place(&found->record)).text);
    }
}

static void tell_rule(struct telling *telling)
{
    char sentence[LINE_BYTES - TEXT_BYTES];
    struct bel_plan *plan;
    int err = bel__plan_of(telling->engine, &telling->found->record, &plan, NULL);
    if (err == BEL_EINVAL) {
        say(telling, "The rule of the plan or its time zone %s is not valid any more.",
            said(telling->found->record.rule.zone).text);
        return;
    }
    if (err) {
        telling->err = err;
        return;
    }
    (void)bel_plan_explain(plan, sentence, sizeof sentence);
    say(telling, "Its rule: %s", sentence);
    if (telling->found->state < BEL_DONE && telling->found->plan.has_next) {
        tell_coming(telling, plan);
    }
    bel_plan_destroy(plan);
}

static void tell_numbers(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    bool has_ended = found->state >= BEL_DONE;
    uint64_t made = has_ended ? found->record.made : found->plan.made;
    uint64_t skipped = has_ended ? found->record.skipped : found->plan.skipped;
    uint64_t missed = has_ended ? found->record.missed : found->plan.missed;
    uint64_t count = found->record.rule.count;
    say(telling, "%" PRIu64 " occurrence%s created.", made, made == 1 ? " was" : "s were");
    say(telling, "%" PRIu64 " were skipped by OVERLAP, %" PRIu64 " were missed.", skipped, missed);
    if (count == 0) return;
    uint64_t used = has_ended ? made + skipped + missed : bel__plan_used(&found->plan);
    say(telling, "%" PRIu64 " of %" PRIu64 " times have passed (COUNT).",
        used < count ? used : count, count);
}

static void tell_plan(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    const struct bel_recurrence *rule = &found->record.rule;
    uint64_t place = bel__plan_place(&found->record), rings = found->plan.next + place;
    uint64_t left = distance((uint64_t)telling->engine->now.wall, rings);
    if (found->plan.has_next) {
        say(telling, "It is a plan: its next time is %s, in %s.", at((int64_t)rings).text,
            lasting(left).text);
    } else {
        say(telling, "It is a plan: its next time is one period after the current occurrence has "
                     "finished.");
    }
    tell_rule(telling);
    if (rule->spread_ms > 0) {
        say(telling, "Each time is shifted by %s within the %s window (SPREAD).",
            lasting(place).text, lasting(rule->spread_ms).text);
    }
    tell_unfinished(telling, found->record.id);
    say(telling, "%s", overlaps[rule->overlap]);
    say(telling, "%s", misfires[rule->misfire]);
    tell_numbers(telling);
    tell_pause(telling);
}

/* --- the command --- */

static void tell(struct telling *telling)
{
    const struct bel_found *found = telling->found;
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    if (found->state >= BEL_DONE) {
        tell_ended(telling);
        if (is_plan) tell_rule(telling);
        if (is_plan) tell_numbers(telling);
    } else if (is_plan) {
        tell_plan(telling);
        return;
    } else if (found->state == BEL_BLOCKED) {
        tell_blocked(telling);
    } else if (found->state == BEL_LEASED) {
        tell_leased(telling);
    } else if (found->state == BEL_READY) {
        tell_ready(telling);
    } else {
        tell_scheduled(telling);
    }
    tell_occurrence(telling);
    tell_outcomes(telling);
}

int bel__do_explain(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_target *target = &request->command.target;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(target->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, target->topic);
    struct bel_found found;
    int err = bel__timer_find(engine, topic, target->id, &found);
    if (err == BEL_ENOTFOUND) {
        return bel__refuse(reply, err, "no timer '%s' in topic '%.*s'", said(target->id).text,
                           (int)target->topic.bytes, (const char *)target->topic.data);
    }
    if (err) return err;
    struct telling telling = {.engine = engine, .found = &found};
    telling.lines = bel__answer_take(engine, LINES_MAX * sizeof telling.lines[0]);
    if (telling.lines == NULL) return BEL_ENOMEM;
    tell(&telling);
    if (telling.err) return telling.err;
    reply->names.items = telling.lines;
    reply->names.count = telling.count;
    return 0;
}
