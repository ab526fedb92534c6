/* SPDX-License-Identifier: MIT */

/*
 * Three ways lead to a timer's row:
 *
 *     id that the engine has made ---------------------> key ---> row
 *     other id ---> alias: a row under its hash -------> key ---> row
 *     cursor, lease, picker ---------------------------> key ---> row
 *
 * A row of TIMERS may be a plan's tick, which leads on to the plan.
 */
#include "engine/state/timer_lookup.h"

#include "core/view.h"
#include "engine/state/state.h"

#include <assert.h>
#include <string.h>

/* Resets `*found`, except for fields that are set on success. `plan` is set only for plans. */
static void begin(struct bel_found *found, struct bel_topic_state *topic)
{
    found->topic = topic;
    found->lease = NULL;
    found->after = NULL;
    found->task = NULL;
}

static int load_plan(struct bel_engine *engine, uint64_t number, struct bel_found *found)
{
    struct bel_key key = bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_PLANS, .topic = found->topic->number, .sequence = number});
    struct bel_key state_key = bel__key_in(&key, BEL_TABLE_PLAN_STATES);
    struct bel_view row;
    int err = bel__store_get(engine->store, &key, &row);
    if (err) return err;
    err = bel__record_read(row, &found->record);
    if (err) return err;
    err = bel__store_get(engine->store, &state_key, &row);
    if (err) return err;
    found->key = key;
    found->state = BEL_SCHEDULED;
    return bel__plan_state_read(row, &found->plan);
}

enum bel_state bel__timer_state(const struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_place place = bel__place_of(&found->key);
    assert(found->lease == NULL || place.table == BEL_TABLE_TIMERS);
    if (place.table == BEL_TABLE_ENDED) return (enum bel_state)bel__ended_state(place.lane);
    if (found->lease != NULL) return BEL_LEASED;
    if (place.lane >= BEL_LANES_TIMED) return BEL_BLOCKED;
    return place.time <= bel__lane_now(&engine->now, place.lane) ? BEL_READY : BEL_SCHEDULED;
}

/* Reads a row of TIMERS or ENDED. `lease` is the timer's lease, or NULL. */
static int read_row(struct bel_engine *engine, const struct bel_key *key, struct bel_view row,
                    struct bel_lease *lease, struct bel_found *out)
{
    struct bel_place place = bel__place_of(key);
    struct bel_topic_state *topic = bel__topic_at(&engine->topics, place.topic);
    assert(lease == NULL || bel__key_compare(&lease->key, key) == 0);
    if (topic == NULL || bel__ended_state(place.lane) >= BEL_STATES) return BEL_ECORRUPT;
    begin(out, topic);
    int err = bel__record_read(row, &out->record);
    if (err) return err;
    if (out->record.kind == BEL_RECORD_TICK) {
        err = load_plan(engine, out->record.plan, out);
        return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    }
    if (out->record.is_id_made) {
        if (place.table != BEL_TABLE_TIMERS || place.lane > BEL_LANE_NONE) return BEL_ECORRUPT;
        bel__made_id(&place, out->made);
        out->record.id = (struct bel_view){.data = out->made, .bytes = sizeof out->made};
    }
    out->key = *key;
    out->lease = lease;
    out->state = bel__timer_state(engine, out);
    return 0;
}

int bel__timer_read(struct bel_engine *engine, const struct bel_key *key, struct bel_view row,
                    struct bel_found *out)
{
    bool is_live = bel__place_of(key).table == BEL_TABLE_TIMERS;
    return read_row(engine, key, row, is_live ? bel__lease_find(engine, key) : NULL, out);
}

int bel__timer_load_leased(struct bel_engine *engine, const struct bel_key *key,
                           struct bel_lease *lease, struct bel_found *out)
{
    struct bel_view row;
    assert(bel__place_of(key).table == BEL_TABLE_TIMERS);
    int err = bel__store_get(engine->store, key, &row);
    return err ? err : read_row(engine, key, row, lease, out);
}

int bel__timer_load(struct bel_engine *engine, const struct bel_key *key, struct bel_found *out)
{
    struct bel_place place = bel__place_of(key);
    struct bel_view row;
    if (place.table == BEL_TABLE_PLANS) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, place.topic);
        if (topic == NULL) return BEL_ECORRUPT;
        begin(out, topic);
        return load_plan(engine, place.sequence, out);
    }
    int err = bel__store_get(engine->store, key, &row);
    return err ? err : bel__timer_read(engine, key, row, out);
}

static int find_by_made_id(struct bel_engine *engine, struct bel_topic_state *topic,
                           struct bel_view id, struct bel_found *out)
{
    struct bel_place place;
    if (!bel__made_id_place(id, topic->number, &place)) return BEL_ENOTFOUND;
    struct bel_key key = bel__key_of(&place);
    int err = bel__timer_load(engine, &key, out);
    if (err) return err;
    return out->record.kind == BEL_RECORD_TIMER && bel__view_equal(out->record.id, id)
               ? 0
               : BEL_ENOTFOUND;
}

static int find_by_alias(struct bel_engine *engine, struct bel_topic_state *topic,
                         struct bel_view id, struct bel_found *out)
{
    struct bel_key alias = bel__key_alias(engine->alias_keys, topic->number, id), key;
    struct bel_view row;
    int err = bel__store_get(engine->store, &alias, &row);
    if (err) return err;
    if (row.bytes != sizeof key.words) return BEL_ECORRUPT;
    memcpy(key.words, row.data, sizeof key.words);
    err = bel__timer_load(engine, &key, out);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err; /* every alias names a row */
    return out->topic == topic && bel__view_equal(out->record.id, id) ? 0 : BEL_ENOTFOUND;
}

bool bel__timer_is_expired(const struct bel_engine *engine, const struct bel_found *found)
{
    if (found->state != BEL_SCHEDULED && found->state != BEL_READY) return false;
    const struct bel_record *record = &found->record;
    if (record->kind == BEL_RECORD_PLAN || record->expires_ms == 0) return false;
    return record->expires_at <= bel__lane_now(&engine->now, record->expires_lane);
}

uint64_t bel__timer_retention(const struct bel_topic_state *topic, enum bel_state state)
{
    const struct bel_settings *settings = bel__topic_settings(topic);
    assert(state >= BEL_DONE);
    return state == BEL_DONE || state == BEL_CANCELLED ? settings->retention_ms
                                                       : settings->retention_dead_ms;
}

bool bel__timer_is_kept(const struct bel_topic_state *topic, enum bel_state state)
{
    return bel__timer_retention(topic, state) > 0;
}

bool bel__timer_is_hidden(const struct bel_engine *engine, const struct bel_found *found)
{
    return bel__job_is_hidden(&engine->job_marks, found->record.job.number);
}

bool bel__timer_is_over(const struct bel_engine *engine, const struct bel_found *found)
{
    if (found->state < BEL_DONE || found->record.job.number != 0) return false;
    uint64_t retention = bel__timer_retention(found->topic, found->state);
    uint64_t finished = bel__place_of(&found->key).time;
    if (retention == BEL_RETENTION_FOREVER) return false;
    return finished + retention <= (uint64_t)engine->now.wall;
}

int bel__timer_peek(struct bel_engine *engine, struct bel_topic_state *topic, struct bel_view id,
                    struct bel_found *out)
{
    if (topic == NULL || id.bytes == 0 || id.bytes > BEL_ID_BYTES) return BEL_ENOTFOUND;
    int err = find_by_made_id(engine, topic, id, out);
    return err == BEL_ENOTFOUND ? find_by_alias(engine, topic, id, out) : err;
}

int64_t bel__timer_due(const struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_place place = bel__place_of(&found->key);
    if (found->record.kind == BEL_RECORD_PLAN && place.table == BEL_TABLE_PLANS) {
        return (int64_t)found->plan.next;
    }
    if (place.table == BEL_TABLE_ENDED) return (int64_t)found->record.due;
    if (place.lane >= BEL_LANES_TIMED) return (int64_t)found->record.nominal;
    return (int64_t)bel__lane_wall(&engine->now, place.lane, place.time);
}
