/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ENGINE_VALID_H
#define BEL_TESTS_ENGINE_VALID_H

/*
 * Invariants of an engine between two turns:
 *
 *     rows       are consistent, and their counts are right (engine/offline/inspect.h)
 *     picker     has exactly the timers that are due, read from the store and not leased
 *     lanes      have a wake for the first timer that has not been read
 *     leases     in memory match their rows
 *     waiters    wait only if no timer can be delivered to them
 *
 *     const char *fault = engine_fault(engine);      NULL: all hold
 *
 * Only for an engine that has done everything that is due: an engine that is behind, or has run out
 * of memory, may break them.
 */

#include "engine/engine.h"
#include "engine/offline/inspect.h"
#include "engine/rows/record.h"
#include "engine/state/ready.h"

static inline bool engine_is_before(const struct bel_key *a, const struct bel_key *b)
{
    return bel__key_compare(a, b) < 0;
}

/* Checks a lane of a topic, row by row. Adds the number of timers that must be in the picker to
 * `*ready`. */
static inline const char *engine_lane_fault(struct bel_engine *engine,
                                            const struct bel_topic_state *topic, uint8_t lane,
                                            uint64_t *ready)
{
    const struct bel_key *loaded = &topic->loaded[lane];
    struct bel_place start = {.table = BEL_TABLE_TIMERS, .topic = topic->number, .lane = lane};
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        bool is_tick = bel__record_kind(cursor.value) == BEL_RECORD_TICK;
        if (place.table != start.table || place.topic != start.topic || place.lane != lane) break;
        if (!engine_is_before(&cursor.key, loaded)) { /* a row that was not read yet */
            bool is_rung = lane == BEL_LANE_WALL && engine_is_before(&cursor.key, &topic->rung);
            if (is_tick && is_rung && !topic->has_late_tick) return "a due plan has not rung";
            bool is_woken = topic->wake_times[lane] <= place.time;
            if (!topic->is_partial[lane]) {
                return is_woken ? NULL : "a lane has no wake for its next timer";
            }
            if (is_tick && topic->wake_times[lane] == BEL_NEVER) return "a plan waits for room";
            continue;
        }
        if (is_tick && !topic->has_late_tick) return "a due plan has not rung";
        if (!is_tick && bel__lease_find(engine, &cursor.key) == NULL) ++*ready;
    }
    return err == 0 || err == BEL_ENOTFOUND ? NULL : "a row cannot be read";
}

static inline const char *engine_picker_fault(struct bel_engine *engine,
                                              const struct bel_topic_state *topic, uint64_t want)
{
    struct bel_key place = {{0}};
    struct bel_ready ready;
    uint64_t count = 0;
    while (bel__picker_next(&topic->picker, &place, &ready)) {
        struct bel_key key = bel__ready_key(topic, &ready);
        struct bel_place at = bel__place_of(&key);
        struct bel_view row;
        if (bel__store_get(engine->store, &key, &row) != 0) return "a ready timer has no row";
        if (bel__lease_find(engine, &key) != NULL) return "a ready timer is leased";
        if (at.time > bel__lane_now(&engine->now, at.lane)) return "a ready timer is not due";
        count++;
    }
    if (!bel__picker_valid(&topic->picker)) return "the picker is invalid";
    return count == want || topic->has_passed_over ? NULL
                                                   : "the picker has a wrong number of timers";
}

static inline bool engine_could_serve(const struct bel_engine *engine,
                                      const struct bel_topic_state *topic)
{
    struct bel_pick next;
    if (bel__list_is_empty(&topic->waiters) || topic->is_paused) return false;
    struct bel_closed closed;
    if (bel__resources_are_closed(engine, &closed)) return false;
    return bel__picker_pick(&topic->picker, bel__topic_settings(topic)->concurrency,
                            topic->numbers[BEL_NUMBER_SHARES], &next) &&
           !bel__resource_is_closed(engine, bel__resource_of(next.gate), &closed);
}

static inline const char *engine_topic_fault(struct bel_engine *engine,
                                             const struct bel_topic_state *topic)
{
    const char *fault = NULL;
    uint64_t ready = 0;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED && fault == NULL; lane++) {
        fault = engine_lane_fault(engine, topic, lane, &ready);
    }
    if (fault == NULL) fault = engine_picker_fault(engine, topic, ready);
    if (fault != NULL) return fault;
    return engine_could_serve(engine, topic) ? "a parked claim could be served" : NULL;
}

/* Returns the number of leases in the store, UINT64_MAX if one is not in memory. */
static inline uint64_t engine_count_leases(struct bel_engine *engine)
{
    struct bel_key from = bel__key_of(&(struct bel_place){.table = BEL_TABLE_LEASES});
    struct bel_store_cursor cursor;
    uint64_t count = 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (bel__place_of(&cursor.key).table != BEL_TABLE_LEASES) break;
        struct bel_key key = bel__key_in(&cursor.key, BEL_TABLE_TIMERS);
        if (bel__lease_find(engine, &key) == NULL) return UINT64_MAX;
        count++;
    }
    return count;
}

static inline const char *engine_leases_fault(struct bel_engine *engine)
{
    const struct bel_topics *topics = &engine->topics;
    uint64_t rows = engine_count_leases(engine), leased = 0;
    for (uint32_t i = 0; i < topics->count; i++) {
        const struct bel_topic_state *topic = bel__topic_at(topics, i);
        if (topic != NULL) leased += topic->leased;
    }
    if (rows != bel__map_count(&engine->leases.map)) return "leases differ from their rows";
    if (rows != bel_wheel_count(engine->leases.wheel)) return "a lease is missing in the wheel";
    return rows == leased ? NULL : "a topic's number of leases is wrong";
}

static inline const char *engine_fault(struct bel_engine *engine)
{
    static struct bel_why why;
    struct bel_engine_report report = {0};
    struct bel_siphash_key secret = engine->rows.counts.map.secret;
    const char *fault = engine_leases_fault(engine);
    for (uint32_t i = 0; i < engine->topics.count && fault == NULL; i++) {
        const struct bel_topic_state *topic = bel__topic_at(&engine->topics, i);
        if (topic != NULL) fault = engine_topic_fault(engine, topic);
    }
    if (fault != NULL) return fault;
    if (bel__engine_walk(engine, &report, &why) != 0) return why.text;
    bel__counts_finish(&engine->rows.counts); /* the walk has changed them: load them again */
    bel__counts_init(&engine->rows.counts, secret);
    return NULL;
}

#endif
