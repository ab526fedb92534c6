/* SPDX-License-Identifier: MIT */

/*
 * From the store into the picker. A lane of a topic is read in the order of its keys, up to now,
 * whenever its first timer behind `loaded` comes due:
 *
 *     loaded                       now
 *       |  row  row  tick  row      |      row
 *       |--> picker  rings  picker  |       ^ the next wake
 *
 * All that is due is thereby in the picker, or leased, unless the lane is partial: then there was
 * no room, no memory, or no more time in this turn. What the picker holds is a copy of what
 * the store knows; if it cannot be kept, it is dropped and read again.
 */
#include "engine/ready.h"

#include "engine/engine.h"
#include "engine/plan.h"
#include "engine/timer.h"

#include <assert.h>

enum {
    RETRY_MS = 100,     /* until what failed for want of room is tried again */
    POPS_MAX = 1 << 16, /* in one turn */
    PARTS = 4,          /* of ready_max: so many must be free before a partial lane is read on */
    STOPPED = 1,        /* a lane is not read on in this turn, for a reason that passes */
};

/* What a wake in the wheels is for: the lowest bit of its word. */
enum wake {
    WAKE_LANE,
    WAKE_SWEEP,
};

static uint64_t user_of(const struct bel_topic_state *topic, enum wake wake)
{
    return (uint64_t)topic->number << 1 | wake;
}

/* Sets an entry of a lane's wheel to an earlier time. There is room: reserve_wakes(). */
static void wake_at(struct bel_engine *engine, uint8_t lane, uint64_t time, uint64_t user,
                    bel_timer_t *timer)
{
    struct bel_wheel *wheel = engine->wakes[lane];
    if (time <= bel__lane_now(&engine->now, lane)) engine->is_waking = true;
    if (*timer != BEL_TIMER_NONE && bel_wheel_rearm(wheel, *timer, time) == 0) return;
    int err = bel_wheel_arm(wheel, time, BEL_PRIORITY_DEFAULT, user, timer);
    assert(err == 0);
    (void)err;
}

void bel__ready_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                     uint64_t time)
{
    if (time >= topic->wake_times[lane]) return;
    topic->wake_times[lane] = time;
    wake_at(engine, lane, time, user_of(topic, WAKE_LANE), &topic->wakes[lane]);
}

void bel__sweep_wake(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time)
{
    if (time >= topic->sweep_time) return;
    topic->sweep_time = time;
    wake_at(engine, BEL_LANE_WALL, time, user_of(topic, WAKE_SWEEP), &topic->sweep);
}

static struct bel_key lane_key(const struct bel_topic_state *topic, uint8_t lane, uint64_t time)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_TIMERS, .topic = topic->number, .lane = lane, .time = time});
}

static struct bel_ready ready_of(const struct bel_engine *engine, const struct bel_place *place)
{
    return (struct bel_ready){
        .due_ms = (int64_t)bel__lane_wall(&engine->now, place->lane, place->time),
        .priority = place->priority,
        .sequence = place->sequence,
        .user = place->time << 1 | place->lane,
    };
}

struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_TIMERS,
                                           .topic = topic->number,
                                           .lane = (uint8_t)(ready->user & 1),
                                           .priority = ready->priority,
                                           .time = ready->user >> 1,
                                           .sequence = ready->sequence});
}

void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic)
{
    bel__picker_clear(&topic->picker);
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        topic->loaded[lane] = lane_key(topic, lane, 0);
        topic->is_partial[lane] = true;
        bel__ready_wake(engine, topic, lane, 0);
    }
    topic->has_late_tick = false;
    engine->is_behind = true;
}

static int pick_up(struct bel_engine *engine, struct bel_topic_state *topic,
                   const struct bel_place *place, struct bel_view group)
{
    struct bel_ready ready = ready_of(engine, place);
    int err = bel__picker_add(&topic->picker, group, &ready);
    if (err) return err;
    bel__wait_mark(engine, topic);
    return 0;
}

void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group)
{
    struct bel_place place = bel__place_of(key);
    if (place.lane >= BEL_LANES_TIMED) return;
    uint64_t now = bel__lane_now(&engine->now, place.lane);
    if (!topic->is_partial[place.lane] && topic->wake_times[place.lane] > now) {
        topic->loaded[place.lane] = lane_key(topic, place.lane, now + 1); /* nothing is between */
    }
    if (bel__key_compare(key, &topic->loaded[place.lane]) >= 0) {
        bel__ready_wake(engine, topic, place.lane, place.time);
    } else if (pick_up(engine, topic, &place, group) != 0) {
        bel__ready_forget(engine, topic);
    }
}

/* Reads on, in the next turn, what there was no room for. */
static void read_on(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint64_t room = engine->options.ready_max - engine->options.ready_max / PARTS;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        if (!topic->is_partial[lane] || bel__picker_count(&topic->picker) > room) continue;
        bel__ready_wake(engine, topic, lane, bel__lane_now(&engine->now, lane));
        engine->is_behind = true;
    }
}

void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, struct bel_view group)
{
    struct bel_place place = bel__place_of(key);
    if (place.lane >= BEL_LANES_TIMED) return;
    if (bel__key_compare(key, &topic->loaded[place.lane]) >= 0) return;
    struct bel_ready ready = ready_of(engine, &place);
    bool was_there = bel__picker_remove(&topic->picker, group, &ready);
    assert(was_there);
    (void)was_there;
    if (topic->is_partial[0] || topic->is_partial[1]) read_on(engine, topic);
}

/* One row that has come due. */
static int take_row(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    struct bel_record record;
    if (bel__record_kind(cursor->value) == BEL_RECORD_TICK) {
        struct bel_found found;
        int err = bel__timer_read(engine, &cursor->key, cursor->value, &found);
        if (err == 0) err = bel__plan_ring(engine, &found);
        return err == BEL_EUNSUPPORTED ? 0 : err; /* it stays, until it is opened with its zone */
    }
    if (topic->leased > 0 && bel__lease_find(engine, &cursor->key) != NULL) return 0;
    int err = bel__record_read(cursor->value, &record);
    if (err) return err;
    bel__expiry_expect(engine, &record);
    return pick_up(engine, topic, &place, record.group);
}

/* Stops before the row at `key`, and comes back at `time`. */
static void stop_at(struct bel_engine *engine, struct bel_topic_state *topic,
                    const struct bel_key *key, uint64_t time)
{
    uint8_t lane = bel__place_of(key).lane;
    topic->loaded[lane] = *key;
    topic->is_partial[lane] = true;
    if (time != BEL_NEVER) bel__ready_wake(engine, topic, lane, time);
}

/* An error that goes away when there is room. */
static bool is_passing(int err)
{
    return err == BEL_ENOMEM || err == BEL_EFULL;
}

/* The batch is full: what is due goes on with the next. */
static void give_way(struct bel_engine *engine)
{
    engine->load_left = 0;
    engine->is_behind = true;
}

/* There is a tick before `loaded`. */
static void note_late(struct bel_topic_state *topic, const struct bel_key *key)
{
    if (topic->has_late_tick && bel__key_compare(key, &topic->late_tick) >= 0) return;
    topic->has_late_tick = true;
    topic->late_tick = *key;
}

void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key)
{
    struct bel_place place = bel__place_of(key);
    assert(place.lane == BEL_LANE_WALL);
    bel__ready_wake(engine, topic, BEL_LANE_WALL, place.time);
    if (bel__key_compare(key, &topic->loaded[BEL_LANE_WALL]) < 0) note_late(topic, key);
}

/* Rings what is before `loaded`. The timers there are in the picker already. */
static int ring_late(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_key end = topic->loaded[BEL_LANE_WALL];
    struct bel_store_cursor cursor;
    if (!topic->has_late_tick) return 0;
    int err = bel__store_seek(engine->store, &topic->late_tick, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (bel__key_compare(&cursor.key, &end) >= 0) break;
        if (bel__record_kind(cursor.value) != BEL_RECORD_TICK) continue;
        if (engine->load_left == 0) return BEL_EBUSY; /* as if the batch were full: later */
        engine->load_left--;
        topic->late_tick = cursor.key;
        err = take_row(engine, topic, &cursor);
        if (err) return err;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    topic->has_late_tick = false;
    return 0;
}

/* All that is due has been read. The next wake is for the row at the cursor, if it has come to
 * one of this lane. */
static void arrive(struct bel_engine *engine, struct bel_topic_state *topic,
                   const struct bel_key *end, const struct bel_store_cursor *cursor)
{
    uint8_t lane = bel__place_of(end).lane;
    topic->loaded[lane] = *end;
    topic->is_partial[lane] = false;
    if (topic->wake_times[lane] < bel__place_of(end).time) { /* for what was made meanwhile */
        bel_wheel_cancel(engine->wakes[lane], topic->wakes[lane]);
        topic->wakes[lane] = BEL_TIMER_NONE;
        topic->wake_times[lane] = BEL_NEVER;
    }
    if (lane == BEL_LANE_WALL && topic->has_late_tick) { /* it could not ring */
        bel__ready_wake(engine, topic, lane, bel__lane_now(&engine->now, lane) + RETRY_MS);
    }
    if (cursor == NULL) return;
    struct bel_place place = bel__place_of(&cursor->key);
    if (place.table == BEL_TABLE_TIMERS && place.topic == topic->number && place.lane == lane) {
        bel__ready_wake(engine, topic, lane, place.time);
    }
}

/* Takes the row at the cursor. Returns 0; STOPPED if it could not, and has seen to it that the lane
 * is read on; or why not. A plan that finds the disk full does not hold up what is behind it: to
 * deliver that needs no room, and its end makes some. */
static int take_next(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_store_cursor *cursor)
{
    uint8_t lane = bel__place_of(&cursor->key).lane;
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key behind = bel__key_after(&cursor->key);
    engine->load_left--;
    topic->loaded[lane] = behind;
    int err = take_row(engine, topic, cursor);
    bool is_forgotten = bel__key_compare(&topic->loaded[lane], &behind) != 0;
    if (is_forgotten && (err == 0 || err == BEL_EBUSY || is_passing(err))) return STOPPED;
    if (err == BEL_EBUSY) {
        stop_at(engine, topic, &cursor->key, now);
        give_way(engine);
        return STOPPED;
    }
    if (!is_passing(err)) return err;
    if (err == BEL_EFULL && bel__record_kind(cursor->value) == BEL_RECORD_TICK) {
        note_late(topic, &cursor->key);
        bel__ready_wake(engine, topic, lane, now + RETRY_MS);
        return 0;
    }
    stop_at(engine, topic, &cursor->key, now + RETRY_MS);
    return STOPPED;
}

/* Reads a lane up to now. What its own rings make is behind the row at which they ring, and so is
 * read as well. */
static int read_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key end = lane_key(topic, lane, now + 1);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &topic->loaded[lane], &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (bel__key_compare(&cursor.key, &end) >= 0) break;
        if (bel__picker_count(&topic->picker) >= engine->options.ready_max) {
            stop_at(engine, topic, &cursor.key, BEL_NEVER);
            return 0;
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
        bel__ready_wake(engine, topic, lane, now + RETRY_MS);
        return 0;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    arrive(engine, topic, &end, err == 0 ? &cursor : NULL);
    return 0;
}

static int load_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    topic->is_partial[lane] = true; /* until it has arrived */
    int err = lane == BEL_LANE_WALL ? ring_late(engine, topic) : 0;
    if (err == BEL_EBUSY) {
        bel__ready_wake(engine, topic, lane, bel__lane_now(&engine->now, lane));
        give_way(engine);
        return 0;
    }
    if (is_passing(err)) {
        bel__ready_wake(engine, topic, lane, bel__lane_now(&engine->now, lane) + RETRY_MS);
        if (err == BEL_ENOMEM) return 0;
    } else if (err) {
        return err;
    }
    return read_lane(engine, topic, lane);
}

static int wake(struct bel_engine *engine, const struct bel_wheel_timer *timer, uint8_t lane)
{
    struct bel_topic_state *topic = bel__topic_at(&engine->topics, (uint32_t)(timer->user >> 1));
    assert(topic != NULL);
    if ((timer->user & 1) == WAKE_SWEEP) {
        topic->sweep = BEL_TIMER_NONE;
        topic->sweep_time = BEL_NEVER;
        return bel__sweep_topic(engine, topic);
    }
    topic->wakes[lane] = BEL_TIMER_NONE;
    topic->wake_times[lane] = BEL_NEVER;
    return load_lane(engine, topic, lane);
}

/* Wakes those of a lane whose time has come. */
static int wake_lane(struct bel_engine *engine, uint8_t lane)
{
    struct bel_wheel *wheel = engine->wakes[lane];
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_wheel_timer timer;
    int err = 0;
    for (int i = 0; i < POPS_MAX && err == 0 && bel_wheel_next(wheel) <= now; i++) {
        if (engine->load_left == 0) break;
        if (bel_wheel_pop(wheel, now, &timer)) err = wake(engine, &timer, lane);
    }
    if (bel_wheel_next(wheel) <= now) engine->is_waking = true;
    return err;
}

int bel__ready_turn(struct bel_engine *engine)
{
    if (!engine->is_waking) return 0;
    engine->is_waking = false; /* but who sets a wake that is due says so */
    int err = wake_lane(engine, BEL_LANE_ENGINE);
    if (err == 0) return wake_lane(engine, BEL_LANE_WALL);
    engine->is_waking = true;
    return err;
}
