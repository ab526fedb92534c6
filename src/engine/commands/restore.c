/* SPDX-License-Identifier: MIT */

/*
 * SCHEDULE of a whole timer: it is stored in the state that it has, with its counts and times.
 *
 *     check ---> topic ---> the id must be free ---> reserve ---> add
 *
 * A plan and its occurrences come in any order: they find each other by the id of the plan.
 */
#include "engine/commands/commands.h"
#include "engine/jobs/jobs.h"
#include "engine/rows/blob.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include "core/view.h"
#include "plan/backoff.h"

#include <assert.h>
#include <string.h>

/* A timer that is being restored. */
struct restoring {
    const struct bel_timer *timer;
    struct bel_schedule_spec spec; /* its body */
    struct bel_topic_state *topic;
    bool is_topic_new;
    struct bel_record record;
    struct bel_plan_state state; /* of an unfinished plan */
    struct bel_place place;
};

static bool is_plan(const struct bel_timer *timer)
{
    return timer->plan.rule.bytes > 0;
}

static bool is_occurrence(const struct bel_timer *timer)
{
    return timer->plan_id.bytes > 0;
}

/* Returns what SCHEDULE was given, as far as it is in the body of the record. The headers that name
 * plan and time are added whenever an occurrence is shown. */
static struct bel_schedule_spec body_of(const struct bel_timer *timer)
{
    struct bel_schedule_spec spec = {
        .topic = timer->topic,
        .payload = timer->payload,
        .plan = timer->plan,
        .group = timer->group,
        .resource = timer->resource,
        .correlation = timer->correlation,
        .headers = timer->headers,
        .headers_count = timer->headers_count,
        .retry = timer->retry,
        .lease_ms = timer->lease_ms,
        .expires_ms = timer->expires_ms,
        .is_imported = true,
    };
    if (!is_occurrence(timer) || spec.headers_count < 2) return spec;
    const struct bel_header *added = &timer->headers[spec.headers_count - 2];
    bool is_added =
        bel__view_is(added[0].name, "belfry-plan") && bel__view_is(added[1].name, "belfry-nominal");
    if (is_added) spec.headers_count -= 2;
    return spec;
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && bel__time_is_valid((uint64_t)ms);
}

/* Returns whether the id is one of a user, or that of an occurrence of the plan that the timer
 * names. */
static bool has_valid_id(const struct bel_timer *timer)
{
    if (!is_occurrence(timer)) return bel_id_is_valid(timer->id);
    if (timer->id.bytes > BEL_ID_BYTES || timer->id.bytes < timer->plan_id.bytes + 2) return false;
    return bel__view_equal(bel__view_head(timer->id, timer->plan_id.bytes), timer->plan_id) &&
           ((const char *)timer->id.data)[timer->plan_id.bytes] == '@';
}

static int check(struct bel_engine *engine, const struct restoring *restoring,
                 struct bel_reply *reply)
{
    const struct bel_timer *timer = restoring->timer;
    if (timer->is_task) return bel__refuse(reply, BEL_EINVAL, "a task belongs to its job");
    if (!has_valid_id(timer)) return bel__refuse(reply, BEL_EINVAL, "invalid id");
    bool is_odd =
        (unsigned)timer->state >= BEL_STATES || timer->outcomes_count > BEL_OUTCOMES_MAX ||
        timer->result.bytes > BEL_RESULT_BYTES_MAX || timer->reason.bytes > BEL_TEXT_BYTES_MAX;
    bool is_late = !is_time(timer->due.ms) || !is_time(timer->finished.ms) ||
                   !is_time(timer->expires.ms) || !is_time(timer->nominal.ms) ||
                   !bel__time_is_valid(timer->spread_by_ms);
    if (is_odd || is_late) return bel__refuse(reply, BEL_EINVAL, "the timer is not as LIST has it");
    struct bel_schedule_spec rest = restoring->spec;
    struct bel_backoff policy;
    rest.retry = (struct bel_view){0}; /* an earlier version may have accepted it */
    int err = bel__schedule_check(engine, &rest, reply);
    if (err || timer->retry.bytes == 0) return err;
    err = bel__backoff_parse_stored(timer->retry.data, timer->retry.bytes, &policy, NULL);
    return err ? bel__refuse(reply, BEL_EINVAL, "invalid retry policy") : 0;
}

/* Checks that the id is free. Returns 0; BEL_ECONFLICT; or, if the old timer is to be kept,
 * BEL_EBUSY. */
static int check_free(struct bel_engine *engine, const struct restoring *restoring,
                      enum bel_conflict conflict, struct bel_reply *reply)
{
    struct bel_found old;
    bool is_reserved = false;
    int err = bel__timer_find_any(engine, restoring->topic, restoring->timer->id, &old);
    if (err == BEL_ENOTFOUND) {
        err = bel__jobs_reserve(engine, restoring->timer->id, &is_reserved);
        if (err || !is_reserved) return err;
        return bel__refuse(reply, BEL_ECONFLICT, "the id belongs to a task of a job");
    }
    if (err) return err;
    if (conflict == BEL_CONFLICT_KEEP) return BEL_EBUSY;
    return bel__refuse(reply, BEL_ECONFLICT, "a timer with this id already exists");
}

/* Sets the key parts but for the sequence. */
static void fill_place(const struct bel_engine *engine, struct restoring *restoring)
{
    const struct bel_timer *timer = restoring->timer;
    struct bel_place *place = &restoring->place;
    *place = (struct bel_place){.table = BEL_TABLE_TIMERS,
                                .topic = restoring->topic->number,
                                .lane = timer->is_delay ? BEL_LANE_ENGINE : BEL_LANE_WALL,
                                .priority = timer->priority};
    if (timer->state >= BEL_DONE) {
        place->table = BEL_TABLE_ENDED;
        place->lane = bel__ended_lane(timer->state, false);
        place->priority = 0;
        place->time = (uint64_t)timer->finished.ms;
    } else if (timer->state == BEL_BLOCKED || (is_plan(timer) && !timer->has_next)) {
        place->lane = BEL_LANE_NONE;
    } else if (is_plan(timer)) {
        place->lane = BEL_LANE_WALL;
        place->time = (uint64_t)timer->due.ms + bel__plan_place(&restoring->record);
    } else {
        place->time = bel__lane_time(&engine->now, place->lane, timer->due);
    }
}

static void fill_expiry(const struct bel_engine *engine, struct restoring *restoring)
{
    const struct bel_timer *timer = restoring->timer;
    struct bel_record *record = &restoring->record;
    record->expires_ms = timer->expires_ms;
    if (timer->expires_ms == 0 || is_plan(timer)) return;
    record->expires_lane =
        restoring->place.lane == BEL_LANE_ENGINE && restoring->place.table == BEL_TABLE_TIMERS
            ? BEL_LANE_ENGINE
            : BEL_LANE_WALL;
    record->expires_at = bel__lane_time(&engine->now, record->expires_lane, timer->expires);
}

static void fill_plan(struct restoring *restoring)
{
    const struct bel_timer *timer = restoring->timer;
    struct bel_record *record = &restoring->record;
    record->rule = timer->plan;
    record->has_start = timer->has_start;
    record->start = timer->has_start ? timer->start.ms : 0;
    record->made = timer->made;
    record->skipped = timer->skipped;
    record->missed = timer->missed;
    restoring->state = (struct bel_plan_state){.has_next = timer->has_next,
                                               .next = (uint64_t)timer->due.ms,
                                               .made = timer->made,
                                               .skipped = timer->skipped,
                                               .missed = timer->missed,
                                               .is_catching_up = timer->is_catching_up};
    uint64_t counted = timer->made + timer->skipped + timer->missed;
    if (timer->plan.count > 0 && timer->used < counted) {
        restoring->state.uncounted = counted - timer->used;
    }
}

/* Fills in the record, but for its body and the number of an occurrence's plan. */
static void fill(const struct bel_engine *engine, struct restoring *restoring)
{
    const struct bel_timer *timer = restoring->timer;
    struct bel_record *record = &restoring->record;
    bel__record_begin(record, is_plan(timer) ? BEL_RECORD_PLAN : BEL_RECORD_TIMER);
    record->id = timer->id;
    record->group = timer->group;
    record->resource = timer->resource;
    record->created = timer->created.ms;
    record->lease_ms = timer->lease_ms;
    record->attempts = timer->attempts;
    record->crashes = timer->crashes;
    record->priority = timer->priority;
    record->nominal = (uint64_t)timer->nominal.ms;
    record->spread_ms = timer->spread_by_ms;
    record->outcomes_count = timer->outcomes_count;
    for (size_t i = 0; i < timer->outcomes_count; i++) {
        record->outcomes[i] = timer->outcomes[i];
    }
    if (is_plan(timer)) fill_plan(restoring);
    if (timer->state >= BEL_DONE) {
        record->due = (uint64_t)timer->due.ms;
        record->reason = timer->reason;
    }
    fill_place(engine, restoring);
    fill_expiry(engine, restoring);
}

/* Checks that an unfinished plan can ring. */
static int check_rule(struct bel_engine *engine, const struct restoring *restoring,
                      struct bel_reply *reply)
{
    struct bel_text_error why = {.position = SIZE_MAX};
    struct bel_plan *plan = NULL;
    if (!is_plan(restoring->timer) || restoring->timer->state >= BEL_DONE) return 0;
    int err = bel__plan_of(engine, &restoring->record, &plan, &why);
    bel_plan_destroy(plan);
    return err == BEL_EINVAL ? bel__refuse(reply, err, "plan: expected %s", why.expected) : err;
}

static int reserve(struct bel_engine *engine, struct restoring *restoring, size_t body_bytes)
{
    if (restoring->place.table == BEL_TABLE_TIMERS) {
        int err = bel__timer_hold(engine, restoring->topic, &restoring->place,
                                  bel__record_share(&restoring->record));
        if (err) return err;
    }
    uint64_t result_bytes = restoring->timer->result.bytes;
    size_t rows = BEL_TIMER_ROWS + bel__blob_rows(body_bytes) + bel__blob_rows(result_bytes);
    size_t bytes =
        BEL_TIMER_BYTES + BEL_TOPIC_ROW_BYTES + body_bytes + (size_t)restoring->timer->result.bytes;
    return bel__rows_reserve(&engine->rows, rows, bytes, BEL_STORE_ADD);
}

static void apply(struct bel_engine *engine, struct restoring *restoring, struct bel_view body)
{
    struct bel_topic_state *topic = restoring->topic;
    struct bel_record *record = &restoring->record;
    struct bel_place *place = &restoring->place;
    if (restoring->is_topic_new) {
        bel__topic_save(engine, topic);
        bel__wait_adopt(engine, topic);
    }
    place->sequence = bel__rows_sequence(&engine->rows);
    if (place->lane == BEL_LANE_NONE) place->time = place->sequence;
    record->body = bel__blob_put(&engine->rows, body, BEL_BODY_INLINE_MAX);
    if (is_occurrence(restoring->timer)) record->plan = place->sequence; /* a number of no plan */
    if (place->table == BEL_TABLE_ENDED) {
        record->result = bel__blob_put(&engine->rows, restoring->timer->result, 0);
        record->has_result = restoring->timer->result.bytes > 0;
        bel__timer_add_ended(engine, topic, place, record);
    } else if (record->kind == BEL_RECORD_PLAN) {
        restoring->state.sequence = place->sequence;
        bel__plan_add(engine, topic, record, &restoring->state);
    } else {
        bel__timer_add(engine, topic, place, record);
    }
}

/* Restores into a topic that exists, at least in memory. */
static int restore(struct bel_engine *engine, struct restoring *restoring,
                   enum bel_conflict conflict, struct bel_reply *reply)
{
    struct bel_view id = bel__answer_copy(engine, restoring->timer->id);
    if (id.data == NULL) return BEL_ENOMEM;
    int err = check_free(engine, restoring, conflict, reply);
    if (err != 0 && err != BEL_EBUSY) return err;
    reply->id = id;
    if (err == BEL_EBUSY) return 0;
    fill(engine, restoring);
    err = check_rule(engine, restoring, reply);
    if (err) return err;
    size_t bytes = bel__body_bytes(&restoring->spec);
    uint8_t *body = bel__answer_take(engine, bytes);
    if (body == NULL) return BEL_ENOMEM;
    bel__body_write(&restoring->spec, body);
    err = reserve(engine, restoring, bytes);
    if (err) return err;
    apply(engine, restoring, (struct bel_view){.data = body, .bytes = bytes});
    restoring->is_topic_new = false;
    return 0;
}

int bel__do_restore(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_schedule_spec *spec = &request->command.schedule;
    struct bel_reply *reply = &request->own.reply;
    struct restoring restoring;
    memset(&restoring, 0, sizeof restoring);
    restoring.timer = spec->whole;
    restoring.spec = body_of(spec->whole);
    restoring.spec.topic = spec->topic;
    if (spec->conflict != BEL_CONFLICT_KEEP && spec->conflict != BEL_CONFLICT_REJECT) {
        return bel__refuse(reply, BEL_EINVAL, "a whole timer is kept or rejected on a conflict");
    }
    int err = check(engine, &restoring, reply);
    if (err) return err;
    err = bel__topic_make(engine, spec->topic, &restoring.topic, &restoring.is_topic_new);
    if (err == BEL_EFULL) return bel__refuse(reply, err, "too many topics");
    if (err) return err;
    err = restore(engine, &restoring, spec->conflict, reply);
    if (restoring.is_topic_new) bel__topic_drop(&engine->topics, restoring.topic);
    return err;
}
