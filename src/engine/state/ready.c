/* SPDX-License-Identifier: MIT */

/*
 * A timer's key decides where it enters:
 *
 *                         loaded
 *     row  row  tick  row   |   row   row      tick
 *      |    |     |    |    |    '---- the lane is woken for the first of these
 *     picker   late  picker
 *
 * So all due timers are in the picker, or leased, unless the lane is partial: then reading stopped
 * for lack of room, of memory, or of time in the turn (due.c). The picker is a copy of rows in the
 * store. If it cannot be kept up to date, it is emptied and read again.
 */
#include "engine/state/ready.h"

#include "engine/state/state.h"

#include <assert.h>

enum {
    PARTS = 4,        /* a partial lane is read on when 1 / PARTS of ready_max is free */
    RETRIES_MAX = 10, /* that lower the score of a task */
};

struct bel_key bel__ready_lane_key(const struct bel_topic_state *topic, uint8_t lane, uint64_t time)
{
    assert(lane < BEL_LANES_TIMED);
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_TIMERS, .topic = topic->number, .lane = lane, .time = time});
}

/* Returns the static score of a task: lower runs first. */
static double score_of(const struct bel_record *record)
{
    const struct bel_task_of *job = &record->job;
    if (job->number == 0) return 0;
    uint64_t retries = record->attempts < RETRIES_MAX ? record->attempts : RETRIES_MAX;
    return 10.0 * job->priority + job->depth - 5.0 * (double)retries + 0.1 * job->cost;
}

struct bel_standing bel__ready_share(const struct bel_record *record)
{
    return (struct bel_standing){.share = record->group, .is_job = record->job.number != 0};
}

struct bel_standing bel__ready_standing(const struct bel_engine *engine,
                                        const struct bel_record *record)
{
    struct bel_standing standing = bel__ready_share(record);
    if (record->resource.bytes == 0) return standing;
    struct bel_resource *resource = bel__resource_find(engine, record->resource);
    if (resource != NULL) standing.gate = &resource->gate;
    return standing;
}

struct bel_ready bel__ready_of(const struct bel_place *place, const struct bel_record *record)
{
    return (struct bel_ready){.score = score_of(record),
                              .time = place->time,
                              .lane = place->lane,
                              .priority = place->priority,
                              .sequence = place->sequence};
}

struct bel_key bel__ready_key(const struct bel_topic_state *topic, const struct bel_ready *ready)
{
    return bel__key_of(&(struct bel_place){.table = BEL_TABLE_TIMERS,
                                           .topic = topic->number,
                                           .lane = ready->lane,
                                           .priority = ready->priority,
                                           .time = ready->time,
                                           .sequence = ready->sequence});
}

void bel__ready_forget(struct bel_engine *engine, struct bel_topic_state *topic)
{
    bel__picker_clear(&topic->picker);
    bel__picker_set_offset(&topic->picker, engine->now.offset);
    assert(topic->picker.leased == topic->leased);
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        topic->loaded[lane] = bel__ready_lane_key(topic, lane, 0);
        topic->is_partial[lane] = true;
        bel__wake_lane(engine, topic, lane, 0);
    }
    topic->rung = topic->loaded[BEL_LANE_WALL];
    topic->has_late_tick = topic->has_passed_over = false;
    engine->is_behind = true;
}

int bel__ready_add(struct bel_engine *engine, struct bel_topic_state *topic,
                   const struct bel_place *place, const struct bel_record *record)
{
    struct bel_standing standing = bel__ready_share(record);
    struct bel_ready ready = bel__ready_of(place, record);
    struct bel_resource *resource = NULL;
    assert(place->topic == topic->number && place->time >> 63 == 0);
    assert(place->time <= bel__lane_now(&engine->now, place->lane)); /* never early */
    int err = bel__resource_take(engine, record->resource, &resource);
    if (err) return err;
    if (resource != NULL) {
        if (bel__picker_parked(&topic->picker) >= engine->ready_max &&
            bel__resource_pass_over(engine, resource)) {
            topic->has_passed_over = true;
            return 0;
        }
        standing.gate = &resource->gate;
    }
    uint64_t open = bel__ready_open_count(topic);
    err = bel__picker_add(&topic->picker, &standing, &ready);
    if (err) {
        bel__resource_leave(engine, resource);
        return err;
    }
    if (resource == NULL || !bel__resource_park_added(engine, &topic->picker, &standing)) {
        bel__wait_mark(engine, topic);
    } else if (bel__ready_open_count(topic) < open) { /* timers that came before were parked, too */
        bel__ready_read_on(engine, topic);
    }
    return 0;
}

void bel__ready_enter(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, const struct bel_record *record)
{
    struct bel_place place = bel__place_of(key);
    if (place.lane >= BEL_LANES_TIMED) return;
    uint64_t now = bel__lane_now(&engine->now, place.lane);
    if (!topic->is_partial[place.lane] && topic->wake_times[place.lane] > now) {
        topic->loaded[place.lane] =
            bel__ready_lane_key(topic, place.lane, now + 1); /* no row lies between */
    }
    if (bel__key_compare(key, &topic->loaded[place.lane]) >= 0) {
        bel__wake_lane(engine, topic, place.lane, place.time);
    } else if (bel__ready_add(engine, topic, &place, record) != 0) {
        bel__ready_forget(engine, topic);
    }
}

uint64_t bel__ready_open_count(const struct bel_topic_state *topic)
{
    return bel__picker_count(&topic->picker) - bel__picker_parked(&topic->picker);
}

void bel__ready_read_on(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint64_t room = engine->ready_max - engine->ready_max / PARTS;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        if (!topic->is_partial[lane] || bel__ready_open_count(topic) > room) continue;
        bel__wake_lane(engine, topic, lane, bel__lane_now(&engine->now, lane));
        engine->is_behind = true;
    }
}

void bel__ready_leave(struct bel_engine *engine, struct bel_topic_state *topic,
                      const struct bel_key *key, const struct bel_record *record)
{
    struct bel_place place = bel__place_of(key);
    if (place.lane >= BEL_LANES_TIMED) return;
    if (bel__key_compare(key, &topic->loaded[place.lane]) >= 0) return;
    struct bel_standing standing = bel__ready_standing(engine, record);
    struct bel_ready ready = bel__ready_of(&place, record);
    bool was_there = bel__picker_remove(&topic->picker, &standing, &ready);
    assert(was_there || topic->has_passed_over);
    (void)was_there;
    if (standing.gate != NULL) bel__resource_leave(engine, bel__resource_of(standing.gate));
    if (topic->is_partial[0] || topic->is_partial[1]) bel__ready_read_on(engine, topic);
}

const struct bel_key *bel__ready_rung(const struct bel_topic_state *topic)
{
    const struct bel_key *loaded = &topic->loaded[BEL_LANE_WALL];
    return bel__key_compare(loaded, &topic->rung) >= 0 ? loaded : &topic->rung;
}

void bel__ready_note_late(struct bel_topic_state *topic, const struct bel_key *key)
{
    assert(bel__key_compare(key, bel__ready_rung(topic)) < 0);
    if (topic->has_late_tick && bel__key_compare(key, &topic->late_tick) >= 0) return;
    topic->has_late_tick = true;
    topic->late_tick = *key;
}

void bel__ready_tick(struct bel_engine *engine, struct bel_topic_state *topic,
                     const struct bel_key *key)
{
    struct bel_place place = bel__place_of(key);
    assert(place.lane == BEL_LANE_WALL);
    bel__wake_lane(engine, topic, BEL_LANE_WALL, place.time);
    if (bel__key_compare(key, bel__ready_rung(topic)) < 0) bel__ready_note_late(topic, key);
}
