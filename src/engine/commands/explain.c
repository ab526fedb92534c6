/* SPDX-License-Identifier: MIT */

/*
 * EXPLAIN: lines that say what a timer is, why it is not running and when it will, for a person who
 * has to act on it. The first line is the state and the first reason for waiting. Then come the
 * other reasons and what can be done about them. History comes last. For programs, the first reason
 * is also given as a word.
 */
#include "core/view.h"
#include "engine/commands/commands.h"
#include "engine/commands/describe.h"
#include "engine/commands/explaining.h"
#include "engine/jobs/task.h"
#include "engine/state/occurrence.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    NAMED_MAX = 5, /* tasks listed that a task waits for */
};

/* --- scheduled --- */

static void tell_scheduled(struct bel_explaining *about)
{
    struct bel_place place = bel__place_of(&about->found->key);
    bel__tell_scheduled(&about->telling);
    if (place.lane == BEL_LANE_ENGINE) {
        bel__say(&about->telling,
                 "The timer waits for a delay, which is measured by elapsed time.");
    } else {
        bel__say(&about->telling,
                 "The timer waits for a wall-clock time: setting the clock changes the wait.");
    }
    bel__tell_held_job(about);
    bel__tell_pause(about);
    (void)bel__tell_resources(about);
    bel__tell_expiry(&about->telling);
}

/* --- leased, blocked --- */

static void tell_leased(struct bel_explaining *about)
{
    uint32_t crashes = bel__topic_settings(about->found->topic)->crashes;
    bel__tell_leased(&about->telling, about->found->lease->lease_ms, crashes);
}

/* Tells whether occurrences of a plan are unfinished, and how many are blocked. */
static void tell_unfinished(struct bel_explaining *about, struct bel_view plan)
{
    struct bel_occurrences found;
    int err =
        bel__occurrences_look(about->engine, about->found->topic, plan, BEL_LOOK_BLOCKED, &found);
    if (err) about->telling.err = err;
    if (err || !found.has_any) return;
    bel__tell_unfinished(&about->telling, found.blocked);
}

/* Returns the id of a task. */
static struct bel_said task_id(struct bel_explaining *about, uint64_t job, uint32_t task)
{
    struct bel_task_row row;
    struct bel_found found;
    int err = bel__task_load(about->engine, job, task, &row);
    if (err == 0) err = bel__timer_load(about->engine, &row.key, &found);
    if (err == 0) return bel__said(bel__task_id(&found.record));
    about->telling.err = err;
    return (struct bel_said){{0}};
}

/* Says that a task is blocked, and by how many. */
static void tell_open(struct bel_explaining *about, const struct bel_task_row *row)
{
    bel__say(&about->telling,
             "The task is blocked: %" PRIu64 " of the %" PRIu64 " task%s before it %s not ended:",
             row->open, row->after_count, bel__plural(row->after_count),
             row->open == 1 ? "has" : "have");
}

/* Names the tasks that a blocked task waits for, of the first edges; the only one in the line that
 * says so. */
static void tell_dependencies(struct bel_explaining *about, const struct bel_edge_list *list,
                              const struct bel_task_row *blocked)
{
    static const char *const musts[] = {[BEL_EDGE_SUCCESS] = "must succeed",
                                        [BEL_EDGE_ALWAYS] = "must end",
                                        [BEL_EDGE_FAILURE] = "must fail"};
    struct bel_edge edges[BEL_EDGES_OF_ROW];
    size_t count = 0, named = 0;
    int err = bel__edges_get(about->engine, list, 0, edges, &count);
    for (size_t i = 0; i < count && err == 0 && named < NAMED_MAX; i++) {
        struct bel_task_row row;
        err = bel__task_load(about->engine, list->job, edges[i].task, &row);
        if (err != 0 || bel__task_row_state(&row) >= BEL_DONE) continue;
        struct bel_said id = task_id(about, list->job, edges[i].task);
        struct bel_reason reason = {.word = "blocked", .by = {id.text, strlen(id.text)}};
        const char *state = bel__task_row_state(&row) == BEL_BLOCKED ? "blocked" : "not finished";
        if (named == 0) bel__give_reason(&about->telling, &reason);
        if (blocked->open == 1) {
            bel__say(&about->telling, "The task is blocked: it waits for %s (%s; %s).", id.text,
                     state, musts[edges[i].on]);
        } else {
            if (named == 0) tell_open(about, blocked);
            bel__say(&about->telling, "  %s (%s; %s)", id.text, state, musts[edges[i].on]);
        }
        named++;
    }
    if (named == 0) tell_open(about, blocked);
    if (err) about->telling.err = err;
}

static void tell_blocked_task(struct bel_explaining *about)
{
    const struct bel_task_of *of = &about->found->record.job;
    struct bel_task_row row;
    int err = bel__task_load(about->engine, of->number, of->index, &row);
    if (err) {
        about->telling.err = err;
        return;
    }
    struct bel_edge_list list = {of->number, BEL_EDGES_AFTER, of->index, row.after_count};
    if (list.count == 0) {
        tell_open(about, &row);
    } else {
        tell_dependencies(about, &list, &row);
    }
    struct bel_reason reason = {.word = "blocked", .by = about->found->record.group};
    if (about->telling.reason.word == NULL) bel__give_reason(&about->telling, &reason);
}

static void tell_blocked(struct bel_explaining *about)
{
    if (about->found->record.job.number != 0) {
        tell_blocked_task(about);
        if (about->telling.err == 0) bel__tell_held_job(about);
        return;
    }
    bel__tell_blocked(&about->telling);
    tell_unfinished(about, bel__occurrence_plan(about->found->record.id));
}

/* --- ended --- */

static void tell_retention(struct bel_explaining *about)
{
    const struct bel_found *found = about->found;
    const struct bel_settings *settings = bel__topic_settings(found->topic);
    bool is_well = found->state == BEL_DONE || found->state == BEL_CANCELLED;
    bel__tell_retention(&about->telling,
                        is_well ? settings->retention_ms : settings->retention_dead_ms);
}

static void tell_ended(struct bel_explaining *about)
{
    bel__tell_ended(&about->telling);
    if (about->found->record.job.number != 0) {
        bel__say(&about->telling, "The task is kept as long as its job %s.",
                 bel__said(about->found->record.group).text);
    } else {
        tell_retention(about);
    }
}

/* --- plans --- */

static void tell_rule(struct bel_explaining *about)
{
    struct bel_plan *plan = NULL;
    int err = bel__plan_of(about->engine, &about->found->record, &plan, NULL);
    if (err && err != BEL_EINVAL) {
        about->telling.err = err;
        return;
    }
    bel__tell_rule(&about->telling, plan, (int64_t)bel__plan_place(&about->found->record));
    bel_plan_destroy(plan);
}

static void tell_plan(struct bel_explaining *about)
{
    int64_t place_ms = (int64_t)bel__plan_place(&about->found->record);
    bel__tell_next(&about->telling, place_ms);
    tell_rule(about);
    bel__tell_spread(&about->telling, place_ms);
    tell_unfinished(about, about->found->record.id);
    bel__tell_policies(&about->telling);
    bel__tell_pause(about);
}

/* --- the command --- */

static void tell(struct bel_explaining *about)
{
    const struct bel_found *found = about->found;
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    if (found->state >= BEL_DONE) {
        tell_ended(about);
        if (is_plan) tell_rule(about);
        if (is_plan) bel__tell_numbers(&about->telling);
    } else if (is_plan) {
        tell_plan(about);
        return;
    } else if (found->state == BEL_BLOCKED) {
        tell_blocked(about);
    } else if (found->state == BEL_LEASED) {
        tell_leased(about);
    } else if (found->state == BEL_READY) {
        bel__tell_ready(about);
    } else {
        tell_scheduled(about);
    }
    bel__tell_occurrence(&about->telling);
    bel__tell_outcomes(&about->telling);
}

static enum bel_telling_subject subject_of(const struct bel_record *record)
{
    if (record->kind == BEL_RECORD_PLAN) return BEL_TELLING_PLAN;
    return record->job.number != 0 ? BEL_TELLING_TASK : BEL_TELLING_TIMER;
}

static struct bel_view copy(void *memory, struct bel_view text)
{
    return bel__answer_copy(memory, text);
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
        return bel__refuse(reply, err, "no timer '%s' in topic '%.*s'", bel__said(target->id).text,
                           (int)target->topic.bytes, (const char *)target->topic.data);
    }
    if (err) return err;
    struct bel_timer timer = {0};
    struct bel_explaining about = {.engine = engine, .found = &found};
    err = bel__describe(engine, &found, &timer);
    if (err) return err;
    about.telling = (struct bel_telling){.timer = &timer,
                                         .subject = subject_of(&found.record),
                                         .now = {engine->now.wall},
                                         .copy = copy,
                                         .memory = engine};
    about.telling.lines =
        bel__answer_take(engine, BEL_TELLING_LINES * sizeof about.telling.lines[0]);
    struct bel_reason *reason = bel__answer_take(engine, sizeof *reason);
    if (about.telling.lines == NULL || reason == NULL) return BEL_ENOMEM;
    tell(&about);
    if (about.telling.err) return about.telling.err;
    *reason = about.telling.reason;
    reply->names.reason = reason;
    reply->names.items = about.telling.lines;
    reply->names.count = about.telling.count;
    return 0;
}
