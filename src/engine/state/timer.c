/* SPDX-License-Identifier: MIT */

/*
 * A timer is one row: unfinished under TIMERS, where its key is its position in the order of
 * delivery, or ended under ENDED. Other data changes together with the row:
 *
 *     alias      id -> key, unless the id is made from this very key; then the row has no id
 *     expiry     time of expiry -> key, if the timer can expire
 *     numbers    of its topic, of the hour it is due, of its group
 *     lease      and the lease's row
 *     chunks     of a large body or result
 *
 * All these changes are made here, so that no caller can forget one. Other modules react when a
 * change is reported: timer_events.h.
 */
#include "engine/state/timer.h"

#include "core/units.h"
#include "core/view.h"
#include "engine/rows/blob.h"
#include "engine/state/state.h"

#include <assert.h>
#include <string.h>

enum {
    BARE_ROWS = 2, /* the timer's own and its lease's */
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

struct bel_key bel__timer_share_key(const struct bel_engine *engine, uint32_t topic,
                                    struct bel_share_name share)
{
    uint64_t high = bel__siphash(engine->alias_keys[0], share.name.data, share.name.bytes);
    uint64_t low = bel__siphash(engine->alias_keys[1], share.name.data, share.name.bytes);
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_COUNTS,
                                           .topic = topic,
                                           .lane = BEL_COUNT_GROUP,
                                           .priority = share.is_job,
                                           .time = high,
                                           .sequence = low & BEL_SEQUENCE_MAX});
}

int bel__timer_hold(struct bel_engine *engine, const struct bel_topic_state *topic,
                    const struct bel_place *place, struct bel_share_name share)
{
    struct bel_count *count;
    assert(place->topic == topic->number);
    if (place->lane < BEL_LANES_TIMED) {
        struct bel_key key = bel__timer_hours_key(place);
        int err = bel__count_hold(&engine->rows.counts, engine->store, &key, &count);
        if (err) return err;
    }
    if (share.name.bytes == 0) return 0;
    struct bel_key key = bel__timer_share_key(engine, topic->number, share);
    return bel__count_hold(&engine->rows.counts, engine->store, &key, &count);
}

/* Adds to a number of a count that is loaded. Returns its value before. */
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

/* Counts a timer at these key parts: by state in the topic, and by hour. */
static void count_place(struct bel_engine *engine, struct bel_topic_state *topic,
                        const struct bel_place *place, int64_t delta)
{
    bool is_timed = place->lane < BEL_LANES_TIMED;
    assert(place->topic == topic->number && place->lane <= BEL_LANE_NONE);
    bel__topic_count(engine, topic, is_timed ? BEL_NUMBER_PENDING : BEL_NUMBER_BLOCKED, delta);
    if (!is_timed) return;
    struct bel_key key = bel__timer_hours_key(place);
    add_held(engine, &key, bel__timer_hour_index(place), delta);
}

/* Counts a timer in its share: its group, its job, or "no group". */
static void count_share(struct bel_engine *engine, struct bel_topic_state *topic,
                        struct bel_share_name share, int64_t delta)
{
    uint64_t before = topic->numbers[BEL_NUMBER_PLAIN];
    if (share.name.bytes == 0) {
        bel__topic_count(engine, topic, BEL_NUMBER_PLAIN, delta);
    } else {
        struct bel_key key = bel__timer_share_key(engine, topic->number, share);
        before = add_held(engine, &key, 0, delta);
    }
    if (before == 0) bel__topic_count(engine, topic, BEL_NUMBER_SHARES, +1);
    if (before != 1 || delta > 0) return;
    bel__topic_count(engine, topic, BEL_NUMBER_SHARES, -1);
    engine->events->freed(engine, topic); /* other shares may have more leases now */
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

/* --- expiries --- */

struct bel_key bel__timer_expiry_key(const struct bel_key *key, const struct bel_record *record)
{
    struct bel_place place = bel__place_of(key);
    assert(record->kind == BEL_RECORD_TIMER && record->expires_ms > 0);
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_EXPIRIES,
                                           .topic = place.topic,
                                           .lane = record->expires_lane,
                                           .time = record->expires_at,
                                           .sequence = place.sequence});
}

void bel__timer_put_expiry(struct bel_engine *engine, struct bel_topic_state *topic,
                           const struct bel_key *key, const struct bel_record *record)
{
    if (record->expires_ms == 0) return;
    struct bel_key row = bel__timer_expiry_key(key, record);
    struct bel_view value = {.data = key->words, .bytes = sizeof key->words};
    bel__rows_put(&engine->rows, &row, value, BEL_ROW_ANY);
    engine->events->expires(engine, topic, &row);
}

static void delete_expiry(struct bel_engine *engine, const struct bel_found *found)
{
    if (found->record.expires_ms == 0) return;
    struct bel_key row = bel__timer_expiry_key(&found->key, &found->record);
    bel__rows_delete(&engine->rows, &row);
}

/* --- changing --- */

int bel__timer_reserve(struct bel_engine *engine, struct bel_found *found, uint64_t more_bytes,
                       enum bel_store_use use)
{
    struct bel_record *record = &found->record;
    struct bel_place place = bel__place_of(&found->key);
    assert(found->after == NULL && found->task == NULL); /* one reservation per change */
    size_t rows = BEL_TIMER_ROWS + bel__blob_rows(record->body.bytes) +
                  bel__blob_rows(record->result.bytes) + bel__blob_rows(more_bytes);
    if (place.table == BEL_TABLE_TIMERS) {
        int err = bel__timer_hold(engine, found->topic, &place, bel__record_share(record));
        if (err) return err;
        err = engine->events->look(engine, found, &rows);
        if (err) return err;
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
    bel__timer_put_expiry(engine, topic, &key, record);
    count_place(engine, topic, place, +1);
    count_share(engine, topic, bel__record_share(record), +1);
    engine->events->added(engine, topic, record);
    engine->events->arrived(engine, topic, &key, record);
}

/* Removes an unfinished timer from its key: ends its lease or takes it out of the picker, deletes
 * its row and the row of its expiry, updates the numbers. */
static void take_out(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_place place = bel__place_of(&found->key);
    assert(place.table == BEL_TABLE_TIMERS && place.topic == found->topic->number);
    assert((found->lease != NULL) == (found->state == BEL_LEASED));
    if (found->lease != NULL) {
        bel__lease_drop(engine, found->lease);
    } else {
        engine->events->left(engine, found->topic, &found->key, &found->record);
    }
    bel__rows_delete(&engine->rows, &found->key);
    delete_expiry(engine, found);
    count_place(engine, found->topic, &place, -1);
}

/* Deletes the rows of a plan, but for its alias and blobs. */
static void take_out_plan(struct bel_engine *engine, const struct bel_found *found)
{
    struct bel_key state_key = bel__key_in(&found->key, BEL_TABLE_PLAN_STATES);
    assert(found->record.kind == BEL_RECORD_PLAN);
    assert(bel__place_of(&found->key).table == BEL_TABLE_PLANS);
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

/* Deletes the row of an ended timer or plan. */
static void take_out_ended(struct bel_engine *engine, const struct bel_found *found)
{
    assert(bel__place_of(&found->key).table == BEL_TABLE_ENDED);
    bel__rows_delete(&engine->rows, &found->key);
    bel__topic_count(engine, found->topic, number_of(found->state), -1);
}

static void delete_blobs(struct bel_engine *engine, const struct bel_record *record)
{
    bel__blob_delete(&engine->rows, &record->body);
    bel__blob_delete(&engine->rows, &record->result);
}

void bel__timer_remove(struct bel_engine *engine, struct bel_found *found)
{
    switch (bel__place_of(&found->key).table) {
    case BEL_TABLE_TIMERS:
        take_out(engine, found);
        count_share(engine, found->topic, bel__record_share(&found->record), -1);
        engine->events->ended(engine, found);
        break;
    case BEL_TABLE_PLANS:
        take_out_plan(engine, found);
        break;
    default:
        take_out_ended(engine, found);
        break;
    }
    bel__alias_delete(engine, &found->key, &found->record);
    delete_blobs(engine, &found->record);
}

void bel__timer_stage(struct bel_engine *engine, const struct bel_place *place,
                      const struct bel_record *record)
{
    struct bel_key key = bel__key_of(place);
    assert(place->table == BEL_TABLE_TIMERS && place->lane == BEL_LANE_NONE);
    assert(record->job.number != 0 && record->expires_ms == 0);
    put_record(engine, &key, record, BEL_ROW_NEW);
}

void bel__timer_unstage(struct bel_engine *engine, const struct bel_found *found)
{
    assert(found->state == BEL_BLOCKED && found->record.job.number != 0);
    bel__rows_delete(&engine->rows, &found->key);
    delete_blobs(engine, &found->record);
}

void bel__timer_count_staged(struct bel_engine *engine, struct bel_topic_state *topic,
                             struct bel_share_name share, uint32_t count)
{
    assert(count > 0);
    bel__topic_count(engine, topic, BEL_NUMBER_BLOCKED, count);
    count_share(engine, topic, share, count);
}

void bel__timer_rewrite(struct bel_engine *engine, const struct bel_found *found)
{
    put_record(engine, &found->key, &found->record, BEL_ROW_ANY);
}

/* Puts an unfinished timer that was taken out at another key. */
static void put_at(struct bel_engine *engine, struct bel_found *found,
                   const struct bel_place *place)
{
    assert(place->table == BEL_TABLE_TIMERS && found->record.kind == BEL_RECORD_TIMER);
    struct bel_key from = found->key;
    enum bel_row alias = found->record.is_id_made ? BEL_ROW_NEW : BEL_ROW_ANY;
    found->key = bel__key_of(place);
    found->lease = NULL;
    found->record.is_id_made = false;
    put_record(engine, &found->key, &found->record, BEL_ROW_NEW);
    bel__alias_put(engine, &found->key, &found->record, alias);
    bel__timer_put_expiry(engine, found->topic, &found->key, &found->record);
    count_place(engine, found->topic, place, +1);
    engine->events->moved(engine, found, &from);
    engine->events->arrived(engine, found->topic, &found->key, &found->record);
    found->state = bel__timer_state(engine, found);
}

void bel__timer_move(struct bel_engine *engine, struct bel_found *found,
                     const struct bel_place *place)
{
    take_out(engine, found);
    put_at(engine, found, place);
}

void bel__timer_reschedule(struct bel_engine *engine, struct bel_found *found,
                           const struct bel_place *place)
{
    take_out(engine, found);
    if (found->record.expires_ms > 0) {
        found->record.expires_at = place->time + found->record.expires_ms;
        found->record.expires_lane = place->lane;
    }
    put_at(engine, found, place);
}

void bel__timer_give_back(struct bel_engine *engine, struct bel_found *found)
{
    assert(found->lease != NULL);
    bel__lease_drop(engine, found->lease);
    found->lease = NULL;
    engine->events->arrived(engine, found->topic, &found->key, &found->record);
    if (found->record.expires_ms > 0) {
        struct bel_key row = bel__timer_expiry_key(&found->key, &found->record);
        engine->events->expires(engine, found->topic, &row);
    }
    found->state = bel__timer_state(engine, found);
}

void bel__timer_revive(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_place *place)
{
    assert(found->state >= BEL_DONE && found->lease == NULL && found->after == NULL);
    take_out_ended(engine, found);
    bel__alias_delete(engine, &found->key, &found->record);
    bel__timer_add(engine, found->topic, place, &found->record);
}

/* Puts the row of an ended timer or plan, without its alias. */
static void put_ended(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_place *place, const struct bel_record *record)
{
    enum bel_state state = (enum bel_state)bel__ended_state(place->lane);
    struct bel_key key = bel__key_of(place);
    assert(place->table == BEL_TABLE_ENDED && !record->is_id_made);
    put_record(engine, &key, record, BEL_ROW_NEW);
    bel__topic_count(engine, topic, number_of(state), +1);
    if (bel__is_task_lane(place->lane)) return; /* its job decides how long it is kept */
    uint64_t retention = bel__timer_retention(topic, state);
    if (retention == BEL_RETENTION_FOREVER) return;
    engine->events->kept(engine, topic, place->time + retention);
}

void bel__timer_add_ended(struct bel_engine *engine, struct bel_topic_state *topic,
                          const struct bel_place *place, const struct bel_record *record)
{
    struct bel_key key = bel__key_of(place);
    put_ended(engine, topic, place, record);
    bel__alias_put(engine, &key, record, BEL_ROW_NEW);
}

static uint64_t sequence_of(const struct bel_found *found)
{
    bool is_plan = found->record.kind == BEL_RECORD_PLAN;
    return is_plan ? found->plan.sequence : bel__place_of(&found->key).sequence;
}

/* Writes an ended timer or plan under ENDED. */
static void keep_ended(struct bel_engine *engine, struct bel_found *found,
                       const struct bel_ending *ending)
{
    bool is_task = found->record.job.number != 0;
    struct bel_place place = {.table = BEL_TABLE_ENDED,
                              .topic = found->topic->number,
                              .lane = bel__ended_lane(ending->state, is_task),
                              .time = (uint64_t)engine->now.wall,
                              .sequence = sequence_of(found)};
    struct bel_record *record = &found->record;
    record->reason = ending->reason;
    record->result = bel__blob_put(&engine->rows, ending->result, 0);
    record->has_result = ending->has_result;
    found->key = bel__key_of(&place);
    record->is_id_made = false;
    put_ended(engine, found->topic, &place, record);
    bel__alias_put(engine, &found->key, record, BEL_ROW_ANY);
}

/* Copies into the record what is in the key, or in the plan's state, until the end. */
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
    bool is_kept = found->record.job.number != 0 || bel__timer_is_kept(found->topic, ending->state);
    assert(found->state < BEL_DONE && ending->state >= BEL_DONE);
    fill_ended(engine, found);
    if (!is_kept) bel__alias_delete(engine, &found->key, &found->record); /* else it is put */
    if (is_plan) {
        take_out_plan(engine, found);
    } else {
        take_out(engine, found);
        count_share(engine, found->topic, bel__record_share(&found->record), -1);
    }
    found->lease = NULL;
    if (is_kept) {
        keep_ended(engine, found, ending);
    } else {
        delete_blobs(engine, &found->record);
    }
    found->state = ending->state;
    if (ending->state == BEL_DEAD) engine->stats.dead++;
    if (ending->state == BEL_EXPIRED) engine->stats.expired++;
    if (!is_plan) engine->events->ended(engine, found);
}

int bel__timer_end_bare(struct bel_engine *engine, struct bel_lease *lease)
{
    struct bel_topic_state *topic = lease->topic;
    struct bel_key key = lease->key;
    struct bel_place place = bel__place_of(&key);
    struct bel_share_name no_group = {0};
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
    assert(bel__timer_is_expired(engine, found));
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    struct bel_ending ending = {.state = BEL_EXPIRED, .reason = BEL_VIEW("expired")};
    bel__timer_end(engine, found, &ending);
    return 0;
}

int bel__timer_find_any(struct bel_engine *engine, struct bel_topic_state *topic,
                        struct bel_view id, struct bel_found *out)
{
    int err = bel__timer_peek(engine, topic, id, out);
    if (err) return err;
    if (bel__timer_is_expired(engine, out)) {
        err = bel__timer_expire(engine, out);
        if (err) return err;
        err = bel__timer_peek(engine, topic, id, out);
        if (err) return err;
    }
    if (!bel__timer_is_over(engine, out)) return 0;
    err = bel__timer_reserve(engine, out, 0, BEL_STORE_END);
    if (err) return err;
    bel__timer_remove(engine, out); /* a later sweep must not delete a new timer with this id */
    return BEL_ENOTFOUND;
}

int bel__timer_find(struct bel_engine *engine, struct bel_topic_state *topic, struct bel_view id,
                    struct bel_found *out)
{
    int err = bel__timer_find_any(engine, topic, id, out);
    if (err) return err;
    return bel__timer_is_hidden(engine, out) ? BEL_ENOTFOUND : 0;
}
