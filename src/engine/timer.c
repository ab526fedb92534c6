/* SPDX-License-Identifier: MIT */

/*
 * A timer is one row: unfinished under TIMERS, where its key is its place in the order, or ended
 * under ENDED. What belongs to it changes with it:
 *
 *     alias      id -> key, unless the id was made from this very key; then the row has no id
 *     numbers    of its topic, of the hour it is due, of its group
 *     ready      the topic's picker, if it is due; a wake of the topic, if it will be
 *     lease      and the lease's row
 *     chunks     of a large body or result
 *     plan       whose occurrence it is
 *
 * Everything that changes a timer is here, so that these cannot be forgotten elsewhere.
 */
#include "engine/timer.h"

#include "core/units.h"
#include "core/view.h"
#include "engine/engine.h"
#include "engine/plan.h"
#include "engine/ready.h"
#include "engine/rows/blob.h"

#include <assert.h>
#include <string.h>

enum {
    BARE_ROWS = 2, /* its own and its lease's */
};

/* --- numbers --- */

struct bel_key bel__timer_hours_key(const struct bel_place *place)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_COUNTS,
                                           .topic = place->topic,
                                           .lane = BEL_COUNT_HOURS,
                                           .priority = place->lane,
                                           .time = place->time / BEL_STRETCH_MS});
}

unsigned bel__timer_hour_index(const struct bel_place *place)
{
    return (unsigned)(place->time % BEL_STRETCH_MS / MS_PER_HOUR);
}

struct bel_key bel__timer_group_key(const struct bel_engine *engine, uint32_t topic,
                                    struct bel_view group)
{
    uint64_t high = bel__siphash(engine->alias_keys[0], group.data, group.bytes);
    uint64_t low = bel__siphash(engine->alias_keys[1], group.data, group.bytes);
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_COUNTS,
                                           .topic = topic,
                                           .lane = BEL_COUNT_GROUP,
                                           .time = high,
                                           .sequence = low & BEL_SEQUENCE_MAX});
}

int bel__timer_hold(struct bel_engine *engine, const struct bel_topic_state *topic,
                    const struct bel_place *place, struct bel_view group)
{
    struct bel_count *count;
    if (place->lane < BEL_LANES_TIMED) {
        struct bel_key key = bel__timer_hours_key(place);
        int err = bel__count_hold(&engine->rows.counts, engine->store, &key, &count);
        if (err) return err;
    }
    if (group.bytes == 0) return 0;
    struct bel_key key = bel__timer_group_key(engine, topic->number, group);
    return bel__count_hold(&engine->rows.counts, engine->store, &key, &count);
}

/* Adds to a number of a count that is held. Returns what it was. */
static uint64_t add_held(struct bel_engine *engine, const struct bel_key *key, unsigned index,
                         int64_t delta)
{
    struct bel_count *count = NULL;
    int err = bel__count_hold(&engine->rows.counts, engine->store, key, &count);
    assert(err == 0);
    if (err) return 0;
    uint64_t before = count->numbers[index];
    bel__count_add(&engine->rows.counts, count, index, delta);
    return before;
}

/* A timer is at a place, or is not any more. */
static void count_place(struct bel_engine *engine, struct bel_topic_state *topic,
                        const struct bel_place *place, int64_t delta)
{
    bool is_timed = place->lane < BEL_LANES_TIMED;
    bel__topic_count(engine, topic, is_timed ? BEL_NUMBER_PENDING : BEL_NUMBER_BLOCKED, delta);
    if (!is_timed) return;
    struct bel_key key = bel__timer_hours_key(place);
    add_held(engine, &key, bel__timer_hour_index(place), delta);
}

/* A share has one unfinished timer more or less. */
static void count_share(struct bel_engine *engine, struct bel_topic_state *topic,
                        struct bel_view group, int64_t delta)
{
    uint64_t before = topic->numbers[BEL_NUMBER_PLAIN];
    if (group.bytes == 0) {
        bel__topic_count(engine, topic, BEL_NUMBER_PLAIN, delta);
    } else {
        struct bel_key key = bel__timer_group_key(engine, topic->number, group);
        before = add_held(engine, &key, 0, delta);
    }
    if (before == 0) bel__topic_count(engine, topic, BEL_NUMBER_SHARES, +1);
    if (before != 1 || delta > 0) return;
    bel__topic_count(engine, topic, BEL_NUMBER_SHARES, -1);
    bel__wait_mark(engine, topic); /* of its concurrency the others may have more */
}

/* --- aliases --- */

void bel__alias_put(struct bel_engine *engine, const struct bel_key *key,
                    const struct bel_record *record, enum bel_row row)
{
    if (record->is_id_made) return;
    struct bel_key alias = bel__key_alias(engine->alias_keys, bel__place_of(key).topic, record->id);
    struct bel_view value = {.data = key->words, .bytes = sizeof key->words};
    bel__rows_put(&engine->rows, &alias, value, row);
}

void bel__alias_delete(struct bel_engine *engine, const struct bel_key *key,
                       const struct bel_record *record)
{
    if (record->is_id_made) return;
    struct bel_key alias = bel__key_alias(engine->alias_keys, bel__place_of(key).topic, record->id);
    bel__rows_delete(&engine->rows, &alias);
}

/* --- looking --- */

/* One of which nothing is known yet but its topic. The plan is set only if it is one. */
static void begin(struct bel_found *found, struct bel_topic_state *topic)
{
    found->topic = topic;
    found->lease = NULL;
    found->after = NULL;
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

static enum bel_state state_of(const struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_place place = bel__place_of(&found->key);
    if (place.table == BEL_TABLE_ENDED) return (enum bel_state)place.lane;
    if (found->lease != NULL) return BEL_LEASED;
    if (place.lane >= BEL_LANES_TIMED) return BEL_BLOCKED;
    return place.time <= bel__lane_now(&engine->now, place.lane) ? BEL_READY : BEL_SCHEDULED;
}

/* A row of TIMERS or ENDED, whose lease is known. */
static int read_row(struct bel_engine *engine, const struct bel_key *key, struct bel_view row,
                    struct bel_lease *lease, struct bel_found *out)
{
    struct bel_place place = bel__place_of(key);
    struct bel_topic_state *topic = bel__topic_at(&engine->topics, place.topic);
    if (topic == NULL || place.lane >= BEL_STATES) return BEL_ECORRUPT;
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
    out->state = state_of(engine, out);
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
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err; /* an alias leads somewhere */
    return out->topic == topic && bel__view_equal(out->record.id, id) ? 0 : BEL_ENOTFOUND;
}

bool bel__timer_is_expired(const struct bel_engine *engine, const struct bel_found *found)
{
    if (found->state != BEL_SCHEDULED && found->state != BEL_READY) return false;
    const struct bel_record *record = &found->record;
    if (record->kind == BEL_RECORD_PLAN || record->expires_ms == 0) return false;
    return record->expires_at <= bel__lane_now(&engine->now, record->expires_lane);
}

static uint64_t retention_of(const struct bel_topic_state *topic, enum bel_state state)
{
    const struct bel_settings *settings = bel__topic_settings(topic);
    assert(state >= BEL_DONE);
    return state == BEL_DONE || state == BEL_CANCELLED ? settings->retention_ms
                                                       : settings->retention_dead_ms;
}

bool bel__timer_is_kept(const struct bel_topic_state *topic, enum bel_state state)
{
    return retention_of(topic, state) > 0;
}

bool bel__timer_is_bare(const struct bel_found *found)
{
    const struct bel_record *record = &found->record;
    return record->group.bytes == 0 && record->plan == 0 && record->body.number == 0 &&
           record->result.number == 0 && record->is_id_made;
}

bool bel__timer_is_over(const struct bel_engine *engine, const struct bel_found *found)
{
    if (found->state < BEL_DONE) return false;
    uint64_t retention = retention_of(found->topic, found->state);
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

int bel__timer_find(struct bel_engine *engine, struct bel_topic_state *topic, struct bel_view id,
                    struct bel_found *out)
{
    int err = bel__timer_peek(engine, topic, id, out);
    if (err) return err;
    if (bel__timer_is_expired(engine, out)) {
        err = bel__timer_expire(engine, out);
        if (err) return err;
        err = find_by_alias(engine, topic, id, out);
        if (err) return err;
    }
    if (!bel__timer_is_over(engine, out)) return 0;
    err = bel__timer_reserve(engine, out, 0, BEL_STORE_END);
    if (err) return err;
    bel__timer_remove(engine, out); /* now, or the sweep would take who has its id then */
    return BEL_ENOTFOUND;
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

/* --- changing --- */

int bel__timer_reserve(struct bel_engine *engine, struct bel_found *found, uint64_t more_bytes,
                       enum bel_store_use use)
{
    struct bel_record *record = &found->record;
    struct bel_place place = bel__place_of(&found->key);
    size_t rows = BEL_TIMER_ROWS + bel__blob_rows(record->body.bytes) +
                  bel__blob_rows(record->result.bytes) + bel__blob_rows(more_bytes);
    if (place.table == BEL_TABLE_TIMERS) {
        int err = bel__timer_hold(engine, found->topic, &place, record->group);
        if (err) return err;
        if (record->plan != 0) {
            err = bel__after_look(engine, found, &found->after);
            if (err) return err;
            rows += bel__after_rows(found->after);
        }
    }
    return bel__rows_reserve(&engine->rows, rows, BEL_TIMER_BYTES + (size_t)more_bytes, use);
}

struct bel_place bel__timer_place(struct bel_engine *engine, const struct bel_topic_state *topic,
                                  uint8_t lane, uint64_t time, uint8_t priority)
{
    return (struct bel_place){.table = BEL_TABLE_TIMERS,
                              .topic = topic->number,
                              .lane = lane,
                              .priority = priority,
                              .time = time,
                              .sequence = bel__rows_sequence(&engine->rows)};
}

static void put_record(struct bel_engine *engine, const struct bel_key *key,
                       const struct bel_record *record, enum bel_row row)
{
    uint8_t bytes[BEL_RECORD_BYTES_MAX];
    struct bel_view value = {.data = bytes, .bytes = bel__record_write(record, bytes)};
    bel__rows_put(&engine->rows, key, value, row);
}

void bel__timer_add(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_place *place, const struct bel_record *record)
{
    struct bel_key key = bel__key_of(place);
    assert(place->table == BEL_TABLE_TIMERS);
    assert(record->kind == BEL_RECORD_TIMER);
    put_record(engine, &key, record, BEL_ROW_NEW);
    bel__alias_put(engine, &key, record, BEL_ROW_NEW);
    count_place(engine, topic, place, +1);
    count_share(engine, topic, record->group, +1);
    bel__expiry_expect(engine, record);
    bel__ready_enter(engine, topic, &key, record->group);
}

/* Takes an unfinished timer out of its place: lease, picker, numbers of the place, row. */
static void take_out(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_place place = bel__place_of(&found->key);
    assert(place.table == BEL_TABLE_TIMERS);
    if (found->lease != NULL) {
        bel__lease_drop(engine, found->lease);
    } else {
        bel__ready_leave(engine, found->topic, &found->key, found->record.group);
    }
    bel__rows_delete(&engine->rows, &found->key);
    count_place(engine, found->topic, &place, -1);
}

/* The same for a plan. */
static void take_out_plan(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_key state_key = bel__key_in(&found->key, BEL_TABLE_PLAN_STATES);
    bel__rows_delete(&engine->rows, &found->key);
    bel__rows_delete(&engine->rows, &state_key);
    bel__rows_delete(&engine->rows, &found->plan.tick);
    bel__topic_count(engine, found->topic, BEL_NUMBER_PLANS, -1);
}

static enum bel_topic_number number_of(enum bel_state state)
{
    assert(state >= BEL_DONE && state < BEL_STATES);
    return (enum bel_topic_number)(BEL_NUMBER_ENDED + (state - BEL_DONE));
}

static void delete_blobs(struct bel_engine *engine, const struct bel_record *record)
{
    bel__blob_delete(&engine->rows, &record->body);
    bel__blob_delete(&engine->rows, &record->result);
}

void bel__timer_remove(struct bel_engine *engine, const struct bel_found *found)
{
    switch (bel__place_of(&found->key).table) {
    case BEL_TABLE_TIMERS:
        take_out(engine, found);
        count_share(engine, found->topic, found->record.group, -1);
        if (found->after != NULL) bel__after_do(engine, found->after);
        break;
    case BEL_TABLE_PLANS:
        take_out_plan(engine, found);
        break;
    default:
        bel__rows_delete(&engine->rows, &found->key);
        bel__topic_count(engine, found->topic, number_of(found->state), -1);
        break;
    }
    bel__alias_delete(engine, &found->key, &found->record);
    delete_blobs(engine, &found->record);
}

void bel__timer_rewrite(struct bel_engine *engine, const struct bel_found *found)
{
    put_record(engine, &found->key, &found->record, BEL_ROW_ANY);
}

void bel__timer_move(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_place *place)
{
    take_out(engine, found);
    bel__alias_delete(engine, &found->key, &found->record);
    found->key = bel__key_of(place);
    found->lease = NULL;
    found->record.is_id_made = false;
    put_record(engine, &found->key, &found->record, BEL_ROW_NEW);
    bel__alias_put(engine, &found->key, &found->record, BEL_ROW_NEW);
    count_place(engine, found->topic, place, +1);
    bel__ready_enter(engine, found->topic, &found->key, found->record.group);
    found->state = state_of(engine, found);
}

static uint64_t sequence_of(const struct bel_found *found)
{
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    return is_plan ? found->plan.sequence : bel__place_of(&found->key).sequence;
}

/* Puts what has ended where it is kept. */
static void keep_ended(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_ending *ending)
{
    struct bel_place place = {.table = BEL_TABLE_ENDED,
                              .topic = found->topic->number,
                              .lane = (uint8_t)ending->state,
                              .time = (uint64_t)engine->now.wall,
                              .sequence = sequence_of(found)};
    struct bel_record *record = &found->record;
    record->reason = ending->reason;
    record->result = bel__blob_put(&engine->rows, ending->result, 0);
    found->key = bel__key_of(&place);
    record->is_id_made = false;
    put_record(engine, &found->key, record, BEL_ROW_NEW);
    bel__alias_put(engine, &found->key, record, BEL_ROW_ANY);
    bel__topic_count(engine, found->topic, number_of(ending->state), +1);
    uint64_t retention = retention_of(found->topic, ending->state);
    if (retention == BEL_RETENTION_FOREVER) return;
    bel__sweep_wake(engine, found->topic, place.time + retention);
}

/* What an ended record knows that a live one has in its key or beside it. */
static void fill_ended(const struct bel_engine *engine, struct bel_found *found)
{
    struct bel_record *record = &found->record;
    record->due = (uint64_t)bel__timer_due(engine, found);
    if (record->kind == BEL_RECORD_PLAN) {
        record->made = found->plan.made;
        record->skipped = found->plan.skipped;
        record->missed = found->plan.missed;
    } else {
        record->priority = bel__place_of(&found->key).priority;
    }
}

void bel__timer_end(struct bel_engine *engine, struct bel_found *found,
                    const struct bel_ending *ending)
{
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    assert(found->state < BEL_DONE);
    fill_ended(engine, found);
    bel__alias_delete(engine, &found->key, &found->record);
    if (is_plan) {
        take_out_plan(engine, found);
    } else {
        take_out(engine, found);
        count_share(engine, found->topic, found->record.group, -1);
    }
    found->lease = NULL;
    if (bel__timer_is_kept(found->topic, ending->state)) {
        keep_ended(engine, found, ending);
    } else {
        delete_blobs(engine, &found->record);
    }
    found->state = ending->state;
    if (found->after != NULL) bel__after_do(engine, found->after);
    found->after = NULL;
}

int bel__timer_end_bare(struct bel_engine *engine, struct bel_lease *lease)
{
    struct bel_topic_state *topic = lease->topic;
    struct bel_key key = lease->key;
    struct bel_place place = bel__place_of(&key);
    struct bel_view no_group = {0};
    assert(lease->is_bare);
    int err = bel__timer_hold(engine, topic, &place, no_group);
    if (err) return err;
    err = bel__rows_reserve(&engine->rows, BARE_ROWS, 0, BEL_STORE_END);
    if (err) return err;
    bel__lease_drop(engine, lease);
    bel__rows_delete(&engine->rows, &key);
    count_place(engine, topic, &place, -1);
    count_share(engine, topic, no_group, -1);
    return 0;
}

int bel__timer_expire(struct bel_engine *engine, struct bel_found *found)
{
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = BEL_EXPIRED, .reason = BEL_VIEW("expired")};
    bel__timer_end(engine, found, &ending);
    return 0;
}
