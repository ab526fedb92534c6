/* SPDX-License-Identifier: MIT */

/*
 * Loads due timers from the store into the picker. A lane of a topic is read in the order of its
 * keys, up to now, whenever its first timer after `loaded` comes due:
 *
 *     loaded                       now
 *       |  row  row  tick  row      |      row
 *       |--> picker  rings  picker  |       ^ the next wake
 *
 * A lane that could not be read to its end is partial. Reading continues later: when there is room
 * or memory, or in the next turn. Plans do not wait for room: while a lane is full, their ticks are
 * looked for ahead of it, and ring in time.
 *
 *                full
 *     row  row    |   row  row  tick  row  row   tick
 *               loaded          rings           rung
 */
#include "engine/due.h"

#include "engine/engine.h"
#include "engine/state/plan_ring.h"
#include "engine/state/ready.h"
#include "engine/state/retention.h"
#include "engine/state/timer_lookup.h"

#include <assert.h>

enum {
    RETRY_MS = 100,     /* delay of a retry after a failure for lack of room or memory */
    POPS_MAX = 1 << 16, /* wakes in one turn */
    STOPPED = 1,        /* reading of a lane stopped, and is set to continue later */
};

/* Handles a due row: rings a plan, or adds a timer that is not leased to the picker. */
static int take_row(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    struct bel_record record;
    assert(place.topic == topic->number);
    if (bel__record_kind(cursor->value) == BEL_RECORD_TICK) {
        struct bel_found found;
        int err = bel__timer_read(engine, &cursor->key, cursor->value, &found);
        if (err == 0) err = bel__plan_ring(engine, &found);
        return err == BEL_EUNSUPPORTED ? 0 : err; /* stays until its zone is known */
    }
    if (topic->leased > 0 && bel__lease_find(engine, &cursor->key) != NULL) return 0;
    int err = bel__record_read(cursor->value, &record);
    if (err) return err;
    return bel__ready_add(engine, topic, &place, &record);
}

/* Stops before the row at `key`, and sets a wake to continue at `time`. */
static void stop_at(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *key, uint64_t time)
{
    uint8_t lane = bel__place_of(key).lane;
    assert(bel__place_of(key).topic == topic->number);
    topic->loaded[lane] = *key;
    topic->is_partial[lane] = true;
    if (time != BEL_NEVER) bel__wake_lane(engine, topic, lane, time);
}

/* Returns whether an error may go away by itself. */
static bool is_passing(int err)
{
    return err == BEL_ENOMEM || err == BEL_EFULL;
}

/* The batch is full: due rows continue in the next one. */
static void stop_loading(struct bel_engine *engine)
{
    engine->load_left = 0;
    engine->is_behind = true;
}

/* Rings the plans whose ticks are from `*at` on and before `end`; timers are passed over. Moves
 * `*at`, which is of the topic, to what is left. Returns 0 at the end; BEL_EBUSY if it is to go on
 * in the next turn, STOPPED if the topic is to be read from the start, or an error. */
static int ring_between(struct bel_engine *engine, struct bel_topic_state *topic,
                        struct bel_key *at, const struct bel_key *end,
                        struct bel_store_cursor *cursor)
{
    struct bel_key loaded = topic->loaded[BEL_LANE_WALL];
    int err = bel__store_seek(engine->store, at, cursor);
    for (; err == 0; err = bel__store_next(engine->store, cursor)) {
        if (bel__key_compare(&cursor->key, end) >= 0) return 0;
        *at = cursor->key;
        if (engine->load_left == 0) return BEL_EBUSY;
        engine->load_left--;
        if (bel__record_kind(cursor->value) != BEL_RECORD_TICK) continue;
        err = take_row(engine, topic, cursor);
        bool is_forgotten = bel__key_compare(&topic->loaded[BEL_LANE_WALL], &loaded) != 0;
        if (is_forgotten && (err == 0 || is_passing(err))) return STOPPED;
        if (err) return err;
    }
    return err;
}

/* Rings plans whose ticks are before `rung`. The timers there are in the picker already, or wait
 * for room in it. */
static int ring_late(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_key end = *bel__ready_rung(topic);
    struct bel_store_cursor cursor;
    if (!topic->has_late_tick) return 0;
    int err = ring_between(engine, topic, &topic->late_tick, &end, &cursor);
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    topic->has_late_tick = false;
    return 0;
}

/* Notes that all due rows of a lane have been read. Sets the next wake for the row at the cursor,
 * if the row is in this lane. */
static void finish_lane(struct bel_engine *engine, struct bel_topic_state *topic,
                        const struct bel_key *end, const struct bel_store_cursor *cursor)
{
    uint8_t lane = bel__place_of(end).lane;
    assert(bel__key_compare(&topic->loaded[lane], end) <= 0);
    topic->loaded[lane] = *end;
    topic->is_partial[lane] = false;
    if (topic->wake_times[lane] < bel__place_of(end).time) { /* set by a row added meanwhile */
        bel__wake_cancel(engine, topic, lane);
    }
    if (lane == BEL_LANE_WALL && topic->has_late_tick) { /* a plan could not ring */
        bel__wake_lane(engine, topic, lane, bel__lane_now(&engine->now, lane) + RETRY_MS);
    }
    if (cursor == NULL) return;
    struct bel_place place = bel__place_of(&cursor->key);
    if (place.table == BEL_TABLE_TIMERS && place.topic == topic->number && place.lane == lane) {
        bel__wake_lane(engine, topic, lane, place.time);
    }
}

/* Handles the row at the cursor. Returns 0; STOPPED if the lane is to be read on later; or an
 * error. A plan that finds the disk full does not stop the rows after it: their delivery needs no
 * room, and their end makes some. */
static int take_next(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_store_cursor *cursor)
{
    uint8_t lane = bel__place_of(&cursor->key).lane;
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key after = bel__key_after(&cursor->key);
    assert(engine->load_left > 0);
    engine->load_left--;
    topic->loaded[lane] = after;
    int err = take_row(engine, topic, cursor);
    bool is_forgotten = bel__key_compare(&topic->loaded[lane], &after) != 0;
    if (is_forgotten && (err == 0 || err == BEL_EBUSY || is_passing(err))) return STOPPED;
    if (err == BEL_EBUSY) {
        stop_at(engine, topic, &cursor->key, now);
        stop_loading(engine);
        return STOPPED;
    }
    if (!is_passing(err)) return err;
    if (err == BEL_EFULL && bel__record_kind(cursor->value) == BEL_RECORD_TICK) {
        bel__ready_note_late(topic, &cursor->key);
        bel__wake_lane(engine, topic, lane, now + RETRY_MS);
        return 0;
    }
    stop_at(engine, topic, &cursor->key, now + RETRY_MS);
    return STOPPED;
}

/* Sets the next wake of the wall lane after a ring. Returns 0, or an error that stays. */
static int after_rings(struct bel_engine *engine, struct bel_topic_state *topic, int err)
{
    uint64_t now = bel__lane_now(&engine->now, BEL_LANE_WALL);
    if (err == BEL_EBUSY) {
        bel__wake_lane(engine, topic, BEL_LANE_WALL, now);
        stop_loading(engine);
        return 0;
    }
    if (!is_passing(err)) return err == STOPPED ? 0 : err;
    bel__wake_lane(engine, topic, BEL_LANE_WALL, now + RETRY_MS);
    return 0;
}

/* The wall lane is full: rings the plans whose ticks are due in the rest of it, and sets the next
 * wake for the first row that is not due. */
static int ring_ahead(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint64_t now = bel__lane_now(&engine->now, BEL_LANE_WALL);
    struct bel_key end = bel__ready_lane_key(topic, BEL_LANE_WALL, now + 1);
    struct bel_store_cursor cursor;
    topic->rung = *bel__ready_rung(topic);
    int err = ring_between(engine, topic, &topic->rung, &end, &cursor);
    if (err != 0 && err != BEL_ENOTFOUND) return after_rings(engine, topic, err);
    topic->rung = end;
    if (topic->has_late_tick) bel__wake_lane(engine, topic, BEL_LANE_WALL, now + RETRY_MS);
    if (err != 0) return 0;
    struct bel_place place = bel__place_of(&cursor.key);
    if (place.table == BEL_TABLE_TIMERS && place.topic == topic->number &&
        place.lane == BEL_LANE_WALL) {
        bel__wake_lane(engine, topic, BEL_LANE_WALL, place.time);
    }
    return 0;
}

/* Reads a lane up to now. Occurrences made by its rings have keys after the tick, so they are read
 * as well. */
static int read_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key end = bel__ready_lane_key(topic, lane, now + 1);
    assert(topic->is_partial[lane]);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &topic->loaded[lane], &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (bel__key_compare(&cursor.key, &end) >= 0) break;
        if (bel__ready_open_count(topic) >= engine->ready_max) {
            stop_at(engine, topic, &cursor.key, BEL_NEVER);
            return lane == BEL_LANE_WALL ? ring_ahead(engine, topic) : 0;
        }
        if (engine->load_left == 0) {
            stop_at(engine, topic, &cursor.key, now);
            engine->is_behind = true;
            return 0;
        }
        err = take_next(engine, topic, &cursor);
        if (err) return err == STOPPED ? 0 : err;
    }
    if (is_passing(err)) { /* the next row could not be read */
        bel__wake_lane(engine, topic, lane, now + RETRY_MS);
        return 0;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    finish_lane(engine, topic, &end, err == 0 ? &cursor : NULL);
    return 0;
}

static int load_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    assert(topic->wake_times[lane] == BEL_NEVER); /* its wake was popped */
    topic->is_partial[lane] = true;               /* until all is read */
    int err = bel__expiry_settle(engine, topic);
    if (err) return err;
    if (lane == BEL_LANE_WALL) err = ring_late(engine, topic);
    if (err != 0) {
        int final = after_rings(engine, topic, err);
        if (final != 0 || err != BEL_EFULL) return final;
    }
    return read_lane(engine, topic, lane);
}

/* Handles the due wakes in the wheel of a lane. */
static int wake_lane(struct bel_engine *engine, uint8_t lane)
{
    struct bel_wake wake;
    int err = 0;
    for (int i = 0; i < POPS_MAX && err == 0 && bel__wakes_are_due(engine, lane); i++) {
        if (engine->load_left == 0) break;
        if (!bel__wakes_pop(engine, lane, &wake)) continue;
        switch (wake.kind) {
        case BEL_WAKE_SWEEP:
            err = bel__retention_sweep(engine, wake.topic);
            break;
        case BEL_WAKE_EXPIRY:
            err = bel__expiry_settle(engine, wake.topic);
            break;
        default:
            err = load_lane(engine, wake.topic, lane);
            break;
        }
    }
    if (bel__wakes_are_due(engine, lane)) engine->wakes.is_due = true;
    return err;
}

int bel__due_turn(struct bel_engine *engine)
{
    if (!engine->wakes.is_due) return 0;
    engine->wakes.is_due = false; /* setting a due wake sets it again */
    int err = wake_lane(engine, BEL_LANE_ENGINE);
    if (err == 0) return wake_lane(engine, BEL_LANE_WALL);
    engine->wakes.is_due = true;
    return err;
}

void bel__due_reread(struct bel_engine *engine)
{
    if (!engine->resources.must_reread) return;
    engine->resources.must_reread = false;
    for (uint32_t i = 0; i < engine->topics.count; i++) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic != NULL && topic->has_passed_over) bel__ready_forget(engine, topic);
    }
}
