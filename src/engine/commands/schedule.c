/* SPDX-License-Identifier: MIT */

/*
 * SCHEDULE: check and look up everything, reserve room for all changes, then make them.
 *
 *     check ---> topic ---> find the id's old timer ---> reserve ---> remove the old, add the new
 */
#include "engine/commands/commands.h"
#include "engine/jobs/jobs.h"
#include "engine/rows/blob.h"
#include "engine/state/plan.h"
#include "engine/state/plan_rule.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum {
    RULE_BYTES_MAX = BEL_RULE_BYTES_MAX,
    GROUP_ROWS = 2, /* what a group costs beside the rows of its timer, about */
};

static int check_names(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                       struct bel_reply *reply)
{
    if (!bel__topic_is_name(&engine->topics, spec->topic)) {
        return bel__refuse(
            reply, BEL_EINVAL,
            "invalid topic: use 1 to %d of A-Z a-z 0-9 . _ : / -; options of CLAIM are reserved",
            BEL_TOPIC_BYTES_MAX);
    }
    if (spec->has_empty_id) {
        return bel__refuse(reply, BEL_EINVAL, "ID is empty: leave it out, or give it a value");
    }
    if (spec->group.bytes > BEL_GROUP_BYTES_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "group too long: at most %d bytes",
                           BEL_GROUP_BYTES_MAX);
    }
    if (spec->resource.bytes > 0 && !bel_resource_is_valid(spec->resource)) {
        return bel__refuse_resource(reply, spec->resource);
    }
    if (spec->correlation.bytes > BEL_TEXT_BYTES_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "correlation too long: at most %d bytes",
                           BEL_TEXT_BYTES_MAX);
    }
    return 0;
}

/* Returns whether a name is one of those that only the server gives: belfry-plan and others. */
static bool is_reserved(struct bel_view name)
{
    static const char prefix[] = "belfry-";
    return name.bytes >= sizeof prefix - 1 &&
           strncasecmp(name.data, prefix, sizeof prefix - 1) == 0;
}

static int check_headers(const struct bel_schedule_spec *spec, struct bel_reply *reply)
{
    size_t bytes = 0;
    if (spec->headers_count > BEL_HEADERS_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "too many headers: at most %d", BEL_HEADERS_MAX);
    }
    for (size_t i = 0; i < spec->headers_count; i++) {
        const struct bel_header *header = &spec->headers[i];
        if (header->name.bytes == 0) {
            return bel__refuse(reply, BEL_EINVAL, "a header needs a name");
        }
        if (!spec->is_imported && is_reserved(header->name)) {
            return bel__refuse(reply, BEL_EINVAL,
                               "invalid header: names that begin with belfry- are reserved");
        }
        if (header->name.bytes > BEL_HEADERS_BYTES_MAX ||
            header->value.bytes > BEL_HEADERS_BYTES_MAX) {
            bytes = BEL_HEADERS_BYTES_MAX;
        }
        bytes += header->name.bytes + header->value.bytes;
        if (bytes > BEL_HEADERS_BYTES_MAX) {
            return bel__refuse(reply, BEL_EINVAL, "headers too large: at most %d bytes in total",
                               BEL_HEADERS_BYTES_MAX);
        }
    }
    return 0;
}

static int check_sizes(const struct bel_engine *engine, const struct bel_schedule_spec *spec,
                       struct bel_reply *reply)
{
    struct bel_backoff policy;
    struct bel_text_error why;
    uint64_t end;
    if (spec->payload.bytes > engine->payload_bytes_max) {
        return bel__refuse(reply, BEL_EINVAL, "payload too large: at most %u bytes",
                           engine->payload_bytes_max);
    }
    if (spec->plan.rule.bytes > RULE_BYTES_MAX || spec->plan.zone.bytes > BEL_ZONE_NAME_MAX) {
        return bel__refuse(reply, BEL_EINVAL, "rule too long: at most %d bytes", RULE_BYTES_MAX);
    }
    if (bel__times_after(&engine->now, spec->lease_ms, &end) != 0 ||
        !bel__time_is_valid(spec->expires_ms) || !bel__time_is_valid(spec->plan.spread_ms)) {
        return bel__refuse(reply, BEL_EINVAL, "a duration is too long");
    }
    if (spec->retry.bytes == 0) return 0;
    if (spec->retry.bytes >= BEL_BACKOFF_BYTES) {
        return bel__refuse(reply, BEL_EINVAL, "retry: expected a shorter policy");
    }
    if (bel_backoff_parse(spec->retry.data, spec->retry.bytes, &policy, &why) == 0) return 0;
    return bel__refuse(reply, BEL_EINVAL, "retry: at byte %zu, expected %s", why.position + 1,
                       why.expected);
}

int bel__schedule_check(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                        struct bel_reply *reply)
{
    int err = check_names(engine, spec, reply);
    if (err == 0) err = check_headers(spec, reply);
    return err ? err : check_sizes(engine, spec, reply);
}

/* Sets table, priority, lane and time of the new timer's key. */
static int place_of(const struct bel_engine *engine, const struct bel_schedule_spec *spec,
                    struct bel_place *out, struct bel_reply *reply)
{
    struct bel_place place = {.table = BEL_TABLE_TIMERS};
    place.priority = spec->has_priority ? spec->priority : BEL_PRIORITY_DEFAULT;
    int err = bel__times_when(&engine->now, spec->when, spec->at, spec->delay_ms, &place);
    if (err != 0 || !bel__time_is_valid(place.time + spec->expires_ms)) {
        return bel__refuse(reply, BEL_EINVAL, "the time is after the year 9999");
    }
    *out = place;
    return 0;
}

/* The new timer or plan, and the old one that it replaces. */
struct scheduling {
    struct bel_topic_state *topic;
    bool is_topic_new;
    struct bel_record record;
    struct bel_place place;
    uint64_t first; /* of a plan: its first nominal time */
    bool has_old;
    struct bel_found old; /* last: large, and rarely set */
};

static bool has_at_sign(struct bel_view id)
{
    return id.bytes > 0 && memchr(id.data, '@', id.bytes) != NULL;
}

/* Looks for an old timer with the id of the request, and checks the id. */
static int find_old(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                    struct scheduling *scheduling, struct bel_reply *reply)
{
    if (spec->id.bytes == 0) return 0;
    int err = bel__timer_find_any(engine, scheduling->topic, spec->id, &scheduling->old);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    scheduling->has_old = err == 0;
    bool is_reserved_id = false;
    err = scheduling->has_old ? 0 : bel__jobs_reserve(engine, spec->id, &is_reserved_id);
    if (err) return err;
    if (is_reserved_id) {
        return bel__refuse(reply, BEL_ECONFLICT, "the id belongs to a task of a job");
    }
    if (scheduling->has_old && scheduling->old.record.job.number != 0) {
        return bel__refuse(reply, BEL_ECONFLICT, "the id belongs to a task of a job");
    }
    if (scheduling->has_old && has_at_sign(spec->id)) {
        return bel__refuse(reply, BEL_ECONFLICT, "the id belongs to an occurrence");
    }
    if (!bel_id_is_valid(spec->id)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid id: use 1 to %d of A-Z a-z 0-9 . _ : / -",
                           BEL_ID_BYTES_MAX);
    }
    return 0;
}

/* Returns whether the conflict policy keeps the old timer. */
static bool old_stays(const struct bel_engine *engine, const struct bel_schedule_spec *spec,
                      const struct scheduling *scheduling)
{
    const struct bel_found *old = &scheduling->old;
    int64_t old_due = bel__timer_due(engine, old);
    int64_t due =
        (int64_t)bel__lane_wall(&engine->now, scheduling->place.lane, scheduling->place.time);
    if (spec->plan.rule.bytes > 0) due = (int64_t)scheduling->first;
    switch (spec->conflict) {
    case BEL_CONFLICT_KEEP:
    case BEL_CONFLICT_REJECT:
        return true;
    case BEL_CONFLICT_EARLIEST:
    case BEL_CONFLICT_LATEST:
        if (old->state > BEL_LEASED) return false;
        if (old->record.kind == BEL_RECORD_PLAN && !old->plan.has_next) return false;
        return spec->conflict == BEL_CONFLICT_EARLIEST ? old_due <= due : old_due >= due;
    case BEL_CONFLICT_REPLACE:
    default:
        return false;
    }
}

static bool is_unfinished_timer(const struct scheduling *scheduling)
{
    return scheduling->has_old && scheduling->old.state < BEL_DONE &&
           scheduling->old.record.kind == BEL_RECORD_TIMER;
}

static bool is_full(const struct bel_topic_state *topic, uint64_t depth)
{
    return topic->numbers[BEL_NUMBER_PENDING] + topic->numbers[BEL_NUMBER_BLOCKED] >= depth;
}

/* Returns whether the topic will have one more of the timers that its depth counts. */
static bool adds_to_depth(const struct bel_schedule_spec *spec, const struct scheduling *scheduling)
{
    return spec->plan.rule.bytes == 0 && !is_unfinished_timer(scheduling);
}

static int check_depth(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                       const struct scheduling *scheduling, struct bel_reply *reply)
{
    struct bel_topic_state *topic = scheduling->topic;
    uint64_t depth = bel__topic_settings(topic)->depth;
    if (depth == 0 || !adds_to_depth(spec, scheduling) || !is_full(topic, depth)) return 0;
    int err = bel__expiry_make_room(engine, topic); /* expired timers do not count */
    if (err || !is_full(topic, depth)) return err;
    return bel__refuse(reply, BEL_EFULL, "the topic has reached its depth of %llu",
                       (unsigned long long)depth);
}

/* Sets the id of the record in memory of the answer: a copy of the given id, or a made one. */
static int make_id(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                   struct scheduling *scheduling)
{
    struct bel_record *record = &scheduling->record;
    if (spec->id.bytes > 0) {
        record->id = bel__answer_copy(engine, spec->id);
        return record->id.data == NULL ? BEL_ENOMEM : 0;
    }
    char *made = bel__answer_take(engine, BEL_MADE_ID_BYTES);
    if (made == NULL) return BEL_ENOMEM;
    struct bel_place place = scheduling->place;
    place.sequence = engine->rows.sequence; /* the next sequence number */
    record->is_id_made = record->kind == BEL_RECORD_TIMER;
    if (!record->is_id_made) place.lane = BEL_LANE_NONE; /* no timer has this key */
    bel__made_id(&place, made);
    record->id = (struct bel_view){.data = made, .bytes = BEL_MADE_ID_BYTES};
    return 0;
}

/* Fills in the rest of the record, except for the body. */
static int fill(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                struct scheduling *scheduling, struct bel_reply *reply)
{
    struct bel_record *record = &scheduling->record;
    record->group = spec->group;
    record->resource = spec->resource;
    record->created = engine->now.wall;
    record->lease_ms = spec->lease_ms;
    record->expires_ms = spec->expires_ms;
    if (record->expires_ms > 0) {
        record->expires_at = scheduling->place.time + record->expires_ms;
        record->expires_lane = scheduling->place.lane;
    }
    if (record->kind == BEL_RECORD_TIMER) return 0;

    struct bel_text_error why = {.position = SIZE_MAX}; /* it stays so if the zone is wrong */
    record->priority = scheduling->place.priority;
    int err = bel__plan_first(engine, spec, record, &why, &scheduling->first);
    if (err == BEL_EINVAL && why.position != SIZE_MAX) {
        return bel__refuse(reply, err, "rule: at byte %zu, expected %s", why.position + 1,
                           why.expected);
    }
    if (err == BEL_EINVAL) {
        struct bel_view zone = spec->plan.zone;
        return bel__refuse(reply, err, "unknown time zone '%.*s'; %s", (int)zone.bytes,
                           (const char *)zone.data, why.expected);
    }
    if (err == BEL_ERANGE) return bel__refuse(reply, BEL_EINVAL, "the rule has no future time");
    return err;
}

/* Reserves everything, so that apply() cannot fail. */
static int reserve(struct bel_engine *engine, struct scheduling *scheduling, size_t body_bytes)
{
    struct bel_found *old = scheduling->has_old ? &scheduling->old : NULL;
    scheduling->place.topic = scheduling->topic->number;
    int err = bel__timer_hold(engine, scheduling->topic, &scheduling->place,
                              bel__record_share(&scheduling->record));
    if (err) return err;
    size_t rows = (size_t)2 * BEL_TIMER_ROWS + bel__blob_rows(body_bytes);
    size_t bytes = (size_t)2 * BEL_TIMER_BYTES + BEL_TOPIC_ROW_BYTES + body_bytes;
    if (scheduling->record.kind == BEL_RECORD_PLAN) { /* refuse a plan that could not ring */
        rows += bel__blob_rows(body_bytes);
    }
    if (old != NULL) {
        err = bel__timer_reserve(engine, old, 0, BEL_STORE_ADD);
        if (err) return err;
        rows += bel__blob_rows(old->record.body.bytes) + bel__blob_rows(old->record.result.bytes);
    }
    return bel__rows_reserve(&engine->rows, rows, bytes, BEL_STORE_ADD);
}

static void apply(struct bel_engine *engine, struct scheduling *scheduling, struct bel_view body)
{
    struct bel_topic_state *topic = scheduling->topic;
    struct bel_record *record = &scheduling->record;
    assert(scheduling->place.topic == topic->number);
    if (scheduling->is_topic_new) {
        bel__topic_save(engine, topic);
        bel__wait_adopt(engine, topic);
    }
    if (scheduling->has_old) bel__timer_remove(engine, &scheduling->old);
    scheduling->place.sequence = bel__rows_sequence(&engine->rows); /* first: the id contains it */
    record->body = bel__blob_put(&engine->rows, body, BEL_BODY_INLINE_MAX);
    if (record->kind == BEL_RECORD_PLAN) {
        struct bel_plan_state state = {
            .has_next = true, .next = scheduling->first, .sequence = scheduling->place.sequence};
        bel__plan_add(engine, topic, record, &state);
    } else {
        bel__timer_add(engine, topic, &scheduling->place, record);
    }
}

/* Schedules in a topic that exists, at least in memory. */
static int schedule(struct bel_engine *engine, const struct bel_schedule_spec *spec,
                    struct scheduling *scheduling, struct bel_reply *reply)
{
    int err = find_old(engine, spec, scheduling, reply);
    if (err) return err;
    err = make_id(engine, spec, scheduling);
    if (err) return err;
    err = fill(engine, spec, scheduling, reply);
    if (err) return err;
    if (scheduling->has_old && spec->conflict == BEL_CONFLICT_REJECT) {
        return bel__refuse(reply, BEL_ECONFLICT, "a timer with this id already exists");
    }
    err = check_depth(engine, spec, scheduling, reply);
    bool stays = scheduling->has_old && old_stays(engine, spec, scheduling);
    struct bel_topic_state *added = adds_to_depth(spec, scheduling) ? scheduling->topic : NULL;
    if (err == 0 && !stays) err = bel__pressure_check(engine, added, reply);
    if (err != 0 && !stays) return err;
    reply->err = 0;
    reply->id = scheduling->record.id;
    if (stays) return 0;

    size_t bytes = bel__body_bytes(spec);
    uint8_t *body = bel__answer_take(engine, bytes);
    if (body == NULL) return BEL_ENOMEM;
    bel__body_write(spec, body);
    err = reserve(engine, scheduling, bytes);
    if (err) return err;
    apply(engine, scheduling, (struct bel_view){.data = body, .bytes = bytes});
    scheduling->is_topic_new = false;
    return 0;
}

int bel__do_schedule(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_schedule_spec *spec = &request->command.schedule;
    struct bel_reply *reply = &request->own.reply;
    struct scheduling scheduling; /* large: `old` is not initialized */
    scheduling.is_topic_new = scheduling.has_old = false;
    scheduling.first = 0;
    bool is_plan = spec->plan.rule.bytes > 0;
    bel__record_begin(&scheduling.record, is_plan ? BEL_RECORD_PLAN : BEL_RECORD_TIMER);
    int err = bel__schedule_check(engine, spec, reply);
    if (err == 0) err = place_of(engine, spec, &scheduling.place, reply);
    if (err) return err;
    err = bel__topic_make(engine, spec->topic, &scheduling.topic, &scheduling.is_topic_new);
    if (err == BEL_EFULL) return bel__refuse(reply, err, "too many topics");
    if (err) return err;
    err = schedule(engine, spec, &scheduling, reply);
    if (spec->group.bytes > 0) bel__count_rows(engine, GROUP_ROWS);
    if (scheduling.is_topic_new) bel__topic_drop(&engine->topics, scheduling.topic);
    return err;
}
