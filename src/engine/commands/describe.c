/* SPDX-License-Identifier: MIT */

/*
 * Rows are valid until the batch is committed, answers until they have been given, which is later.
 * So everything is copied into the memory of the answer.
 */
#include "engine/commands/describe.h"

#include "core/parse.h"
#include "core/utf8.h"
#include "engine/commands/commands.h"
#include "engine/rows/blob.h"
#include "engine/state/occurrence.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <string.h>

enum {
    HEADERS_ADDED = 2, /* belfry-plan and belfry-nominal, or belfry-job and belfry-task */
};

/* Replaces a view by a copy in the memory of the answer. */
static int keep(struct bel_engine *engine, struct bel_view *view)
{
    if (view->bytes == 0) {
        *view = (struct bel_view){0};
        return 0;
    }
    *view = bel__answer_copy(engine, *view);
    return view->data == NULL ? BEL_ENOMEM : 0;
}

static bool is_occurrence(const struct bel_record *record)
{
    return record->kind == BEL_RECORD_TIMER && record->plan != 0;
}

static int add_task_headers(struct bel_engine *engine, const struct bel_record *record,
                            struct bel_header out[HEADERS_ADDED])
{
    struct bel_view job = record->group, task = bel__task_id(record);
    int err = keep(engine, &job);
    if (err == 0) err = keep(engine, &task);
    if (err) return err;
    out[0] = (struct bel_header){.name = BEL_VIEW("belfry-job"), .value = job};
    out[1] = (struct bel_header){.name = BEL_VIEW("belfry-task"), .value = task};
    return 0;
}

static int add_headers(struct bel_engine *engine, const struct bel_record *record,
                       struct bel_header out[HEADERS_ADDED])
{
    char digits[BEL_PRINT_BYTES_MAX];
    struct bel_view nominal = {digits, bel__print_u64(digits, record->nominal)};
    struct bel_view plan = bel__occurrence_plan(record->id);
    int err = keep(engine, &plan);
    if (err == 0) err = keep(engine, &nominal);
    if (err) return err;
    out[0] = (struct bel_header){.name = BEL_VIEW("belfry-plan"), .value = plan};
    out[1] = (struct bel_header){.name = BEL_VIEW("belfry-nominal"), .value = nominal};
    return 0;
}

int bel__describe_headers(struct bel_engine *engine, const struct bel_found *found,
                          const struct bel_body *body, const struct bel_header **out,
                          size_t *out_count)
{
    size_t count = (size_t)body->headers_count, added = 0;
    assert(count <= BEL_HEADERS_MAX);
    bool is_task = found->record.job.number != 0;
    if (is_task || is_occurrence(&found->record)) added = HEADERS_ADDED;
    if (count + added == 0) {
        *out = NULL;
        *out_count = 0;
        return 0;
    }
    struct bel_header *headers = bel__answer_take(engine, (count + added) * sizeof *headers);
    if (headers == NULL) return BEL_ENOMEM;
    struct bel_view rest = body->headers;
    for (size_t i = 0; i < count; i++) {
        if (!bel__headers_next(&rest, &headers[i])) return BEL_ECORRUPT;
    }
    if (added > 0) {
        int err = is_task ? add_task_headers(engine, &found->record, headers + count)
                          : add_headers(engine, &found->record, headers + count);
        if (err) return err;
    }
    *out = headers;
    *out_count = count + added;
    return 0;
}

/* Gets a blob in the memory of the answer, from the row or from chunks. */
static int keep_blob(struct bel_engine *engine, const struct bel_blob *blob, struct bel_view *out)
{
    int err = bel__blob_get(engine->store, blob, bel__answer_arena(engine), out);
    if (err) return err;
    return blob->number == 0 ? keep(engine, out) : 0;
}

static int describe_body(struct bel_engine *engine, const struct bel_found *found,
                         struct bel_timer *out)
{
    struct bel_view bytes;
    struct bel_body body;
    int err = keep_blob(engine, &found->record.body, &bytes);
    if (err) return err;
    err = bel__body_read(bytes, &body);
    if (err) return err;
    out->payload = body.payload;
    out->correlation = body.correlation;
    out->retry = body.retry;
    return bel__describe_headers(engine, found, &body, &out->headers, &out->headers_count);
}

/* Returns a stored text. Earlier versions shortened texts inside a character. */
static struct bel_view without_half(struct bel_view text)
{
    return text.bytes == BEL_TEXT_BYTES_MAX ? bel__utf8_whole(text) : text;
}

static int describe_outcomes(struct bel_engine *engine, const struct bel_record *record,
                             struct bel_timer *out)
{
    for (size_t i = 0; i < record->outcomes_count; i++) {
        out->outcomes[i] = record->outcomes[i];
        out->outcomes[i].reason = without_half(record->outcomes[i].reason);
        int err = keep(engine, &out->outcomes[i].reason);
        if (err) return err;
    }
    out->outcomes_count = record->outcomes_count;
    return 0;
}

static int describe_lease(struct bel_engine *engine, const struct bel_found *found,
                          struct bel_timer *out)
{
    const struct bel_lease *lease = found->lease;
    struct bel_key key = bel__key_in(&found->key, BEL_TABLE_LEASES);
    struct bel_lease_row row = {0};
    struct bel_view value;
    if (lease == NULL) return 0;
    int err = bel__store_get(engine->store, &key, &value);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    err = bel__lease_read(value, &row);
    if (err) return err;
    out->lease_left_ms = lease->end > engine->now.open_up ? lease->end - engine->now.open_up : 0;
    out->worker = without_half(row.worker);
    return keep(engine, &out->worker);
}

static int describe_plan(struct bel_engine *engine, const struct bel_found *found,
                         struct bel_timer *out)
{
    const struct bel_record *record = &found->record;
    bool has_ended = found->state >= BEL_DONE;
    out->plan = record->rule;
    int err = keep(engine, &out->plan.rule);
    if (err == 0) err = keep(engine, &out->plan.zone);
    if (err) return err;
    out->has_next = !has_ended && found->plan.has_next;
    out->due.ms = out->has_next ? (int64_t)found->plan.next : 0;
    out->has_start = record->has_start;
    out->start.ms = record->has_start ? record->start : 0;
    out->is_catching_up = !has_ended && found->plan.is_catching_up;
    out->made = has_ended ? record->made : found->plan.made;
    out->skipped = has_ended ? record->skipped : found->plan.skipped;
    out->missed = has_ended ? record->missed : found->plan.missed;
    if (record->rule.count == 0) return 0;
    out->used = has_ended ? out->made + out->skipped + out->missed : bel__plan_used(&found->plan);
    if (out->used > record->rule.count) out->used = record->rule.count; /* before format 3 */
    return 0;
}

/* Fills in numbers, and views that are not copied yet. */
static void describe_record(const struct bel_engine *engine, const struct bel_found *found,
                            struct bel_timer *out)
{
    const struct bel_record *record = &found->record;
    struct bel_place place = bel__place_of(&found->key);
    out->topic = bel__topic_name(found->topic);
    out->id = record->id;
    if (record->job.number == 0) out->group = record->group;
    out->resource = record->resource;
    out->reason = without_half(record->reason);
    out->state = found->state;
    if (found->state != BEL_BLOCKED) out->due.ms = bel__timer_due(engine, found);
    out->created.ms = record->created;
    if (found->state >= BEL_DONE) out->finished.ms = (int64_t)place.time;
    out->lease_ms = record->lease_ms;
    out->expires_ms = record->expires_ms;
    if (record->expires_ms > 0 && record->kind == BEL_RECORD_TIMER) {
        out->expires.ms =
            (int64_t)bel__lane_wall(&engine->now, record->expires_lane, record->expires_at);
    }
    out->attempts = record->attempts;
    out->crashes = record->crashes;
    out->priority = place.table == BEL_TABLE_TIMERS ? place.priority : record->priority;
    out->is_task = record->job.number != 0;
    out->is_delay = place.table == BEL_TABLE_TIMERS && place.lane == BEL_LANE_ENGINE;
    if (found->state == BEL_BLOCKED) out->spread_by_ms = record->spread_ms;
    if (is_occurrence(record)) {
        out->plan_id = bel__occurrence_plan(record->id);
        out->nominal.ms = (int64_t)record->nominal;
    }
}

static int keep_views(struct bel_engine *engine, struct bel_timer *timer)
{
    struct bel_view *views[] = {&timer->id, &timer->group, &timer->resource, &timer->reason,
                                &timer->plan_id};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        int err = keep(engine, views[i]);
        if (err) return err;
    }
    return 0;
}

int bel__describe(struct bel_engine *engine, const struct bel_found *found, struct bel_timer *out)
{
    struct bel_timer timer = {0};
    describe_record(engine, found, &timer);
    int err = keep_views(engine, &timer);
    if (err == 0) err = describe_body(engine, found, &timer);
    if (err == 0) err = describe_outcomes(engine, &found->record, &timer);
    if (err == 0) err = describe_lease(engine, found, &timer);
    if (err == 0) err = keep_blob(engine, &found->record.result, &timer.result);
    if (err == 0 && found->record.kind == BEL_RECORD_PLAN) {
        err = describe_plan(engine, found, &timer);
    }
    if (err == 0) *out = timer;
    return err;
}

int bel__do_get(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_target *target = &request->command.target;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(target->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    struct bel_topic_state *topic = bel__topic_find(&engine->topics, target->topic);
    struct bel_found found;
    int err = bel__timer_find(engine, topic, target->id, &found);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return err;
    struct bel_timer *timer = bel__answer_take(engine, sizeof *timer);
    if (timer == NULL) return BEL_ENOMEM;
    err = bel__describe(engine, &found, timer);
    if (err) return err;
    reply->timers.items = timer;
    reply->timers.count = 1;
    return 0;
}
