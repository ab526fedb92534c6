/* SPDX-License-Identifier: MIT */

/*
 * PURGE and REVIVE walk through a topic, which may be large. They do a slice in each turn, so that
 * other requests are not delayed. The walk is a route of lanes, each in the order of its keys:
 *
 *     TIMERS none, engine, wall    ENDED done, dead, cancelled, expired, skipped
 *
 * A plan without a next time is in the first lane, and is removed before its occurrence. Otherwise
 * the end of the occurrence would give the plan a time in a lane that the walk has passed.
 *
 * The request stores the key at which the next slice begins, and the next sequence number at its
 * start. Timers that were added, unblocked or moved since are left alone: they did not have their
 * state when the request began.
 *
 * A PURGE that includes expired timers begins when all timers that have expired are ended.
 */
#include "engine/commands/commands.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ROWS_MAX = 10000, /* rows read in one slice */
};

/* The words that the request stores between slices. */
enum {
    OWN_LANE = BEL_OWN_FREE, /* index in the route */
    OWN_TIME,
    OWN_PRIORITY,
    OWN_SEQUENCE,
    OWN_LIMIT, /* timers with this or a later sequence are left alone; 0: not begun */
    OWN_END,
};
static_assert(OWN_END <= sizeof((struct bel_request *)0)->own.words /
                             sizeof((struct bel_request *)0)->own.words[0],
              "a request has room for them");

/* The lanes of the route. */
enum {
    ROUTE_NONE,
    ROUTE_ENGINE,
    ROUTE_WALL,
    ROUTE_ENDED, /* the first terminal state */
    ROUTE_END = ROUTE_ENDED + BEL_STATES - BEL_DONE,
};

static const enum bel_lane lanes[] = {
    [ROUTE_NONE] = BEL_LANE_NONE,
    [ROUTE_ENGINE] = BEL_LANE_ENGINE,
    [ROUTE_WALL] = BEL_LANE_WALL,
};

struct bulk {
    struct bel_engine *engine;
    struct bel_topic_state *topic;
    enum bel_verb verb;
    const struct bel_purge *purge; /* NULL for REVIVE */
    uint64_t limit;
    unsigned lane;
    struct bel_place next; /* key parts of the next row */
    uint32_t changes_left, rows_left;
    uint64_t count; /* timers changed so far, in all slices */
};

/* --- the two changes --- */

static int purge(struct bel_engine *engine, struct bel_found *found)
{
    int err = bel__timer_reserve(engine, found, 0, BEL_STORE_END);
    if (err) return err;
    bel__timer_remove(engine, found);
    return 0;
}

/* Resets the record of a dead timer for a new start. */
static void renew(const struct bel_engine *engine, struct bel_record *record)
{
    record->attempts = 0;
    record->crashes = 0;
    record->reason = (struct bel_view){0};
    record->due = 0;
    record->priority = 0;
    if (record->expires_ms == 0) return;
    record->expires_at = engine->now.engine_up + record->expires_ms;
    record->expires_lane = BEL_LANE_ENGINE;
}

static int revive(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_record *record = &found->record;
    struct bel_place place = {.table = BEL_TABLE_TIMERS,
                              .topic = found->topic->number,
                              .lane = BEL_LANE_ENGINE,
                              .priority = record->priority};
    assert(found->state == BEL_DEAD);
    if (record->kind != BEL_RECORD_TIMER) return BEL_ECORRUPT; /* a plan cannot be dead */
    int err = bel__times_after(&engine->now, 0, &place.time);
    if (err == 0) err = bel__timer_hold(engine, found->topic, &place, bel__record_share(record));
    if (err) return err;
    err = bel__rows_reserve(&engine->rows, BEL_TIMER_ROWS, BEL_TIMER_BYTES, BEL_STORE_ADD);
    if (err) return err;

    place.sequence = bel__rows_sequence(&engine->rows);
    renew(engine, record);
    bel__timer_revive(engine, found, &place);
    return 0;
}

/* --- which --- */

static bool wants_lane(const struct bulk *bulk, unsigned lane)
{
    if (bulk->verb == BEL_VERB_REVIVE) return lane == ROUTE_ENDED + BEL_DEAD - BEL_DONE;
    const struct bel_purge *purge = bulk->purge;
    if (lane >= ROUTE_ENDED) {
        return !purge->has_state || purge->state == BEL_DONE + lane - ROUTE_ENDED;
    }
    if (lane == ROUTE_NONE) return purge->has_state && purge->state == BEL_SCHEDULED;
    return purge->has_state && purge->state < BEL_LEASED;
}

/* Returns whether no row from here to the end of the lane can be wanted: rows that are not due are
 * wanted only by PURGE of state scheduled. */
static bool is_past_end(const struct bulk *bulk, const struct bel_place *place)
{
    if (place->table != BEL_TABLE_TIMERS || place->lane >= BEL_LANES_TIMED) return false;
    const struct bel_purge *purge = bulk->purge;
    if (purge != NULL && purge->has_state && purge->state == BEL_SCHEDULED) return false;
    return place->time > bel__lane_now(&bulk->engine->now, place->lane);
}

static bool is_wanted(const struct bulk *bulk, const struct bel_found *found)
{
    if (found->record.job.number != 0) return false; /* only its job removes a task */
    if (bulk->verb == BEL_VERB_REVIVE) return found->state == BEL_DEAD;
    if (bulk->purge->has_state) return found->state == bulk->purge->state;
    return found->state >= BEL_DONE;
}

/* Returns whether a timer or plan was added after the request began. The age of a tick is the age
 * of its plan. */
static bool is_later(const struct bulk *bulk, const struct bel_place *place,
                     const struct bel_found *found)
{
    bool is_tick = place->table == BEL_TABLE_TIMERS && found->record.kind == BEL_RECORD_PLAN;
    return (is_tick ? found->record.plan : place->sequence) >= bulk->limit;
}

/* --- slices --- */

static int take_wanted(struct bulk *bulk, struct bel_found *found)
{
    bool is_over = bel__timer_is_over(bulk->engine, found);
    assert(found->lease == NULL);
    bool is_purge = bulk->verb == BEL_VERB_PURGE || is_over;
    int err = is_purge ? purge(bulk->engine, found) : revive(bulk->engine, found);
    if (err == 0 && !is_over) bulk->count++;
    return err;
}

static int take(struct bulk *bulk, const struct bel_store_cursor *cursor)
{
    struct bel_place place = bel__place_of(&cursor->key);
    struct bel_found found;
    int err = bel__timer_read(bulk->engine, &cursor->key, cursor->value, &found);
    if (err) return err;
    if (bel__timer_is_expired(bulk->engine, &found)) {
        bulk->changes_left--;
        return bel__timer_expire(bulk->engine, &found);
    }
    if (!is_wanted(bulk, &found) || is_later(bulk, &place, &found)) return 0;
    bulk->changes_left--;
    return take_wanted(bulk, &found);
}

static bool wants_expired(const struct bulk *bulk)
{
    const struct bel_purge *purge = bulk->purge;
    return purge != NULL && (!purge->has_state || purge->state == BEL_EXPIRED);
}

static struct bel_place lane_start(const struct bulk *bulk, unsigned lane)
{
    struct bel_place place = {.table = BEL_TABLE_TIMERS, .topic = bulk->topic->number};
    if (lane >= ROUTE_ENDED) {
        place.table = BEL_TABLE_ENDED;
        place.lane = (uint8_t)(BEL_DONE + lane - ROUTE_ENDED);
    } else {
        place.lane = (uint8_t)lanes[lane];
    }
    return place;
}

static bool is_in_lane(const struct bulk *bulk, const struct bel_place *place)
{
    struct bel_place start = lane_start(bulk, bulk->lane);
    return place->table == start.table && place->topic == start.topic && place->lane == start.lane;
}

/* Walks on in a lane. Returns 0 at its end, BEL_DO_LATER if the slice ends before, or an error. */
static int walk_lane(struct bulk *bulk)
{
    struct bel_store *store = bulk->engine->store;
    struct bel_key from = bel__key_of(&bulk->next);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(store, &from, &cursor);
    for (; err == 0; err = bel__store_next(store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (!is_in_lane(bulk, &place) || is_past_end(bulk, &place)) return 0;
        bulk->next = place;
        if (bulk->changes_left == 0 || bulk->rows_left == 0) return BEL_DO_LATER;
        bulk->rows_left--;
        err = take(bulk, &cursor);
        if (err) return err;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

static int walk(struct bulk *bulk)
{
    while (bulk->lane < ROUTE_END) {
        int err = wants_lane(bulk, bulk->lane) ? walk_lane(bulk) : 0;
        if (err) return err;
        bulk->next = lane_start(bulk, ++bulk->lane);
    }
    return 0;
}

/* Continues a request where its last slice ended, and stores where this slice ends. */
static int slice(struct bulk *bulk, struct bel_request *request)
{
    uint64_t *words = request->own.words;
    struct bel_reply *reply = &request->own.reply;
    if (words[BEL_OWN_STAGE] != BEL_STAGE_BULK) words[OWN_LIMIT] = 0;
    bool is_first = words[OWN_LIMIT] == 0;
    if (is_first && wants_expired(bulk) && bel__expiry_is_behind(bulk->engine, bulk->topic)) {
        return BEL_DO_LATER;
    }
    bulk->changes_left = bulk->engine->bulk_changes_max;
    bulk->rows_left = ROWS_MAX;
    bulk->count = is_first ? 0 : reply->count;
    bulk->limit = is_first ? bulk->engine->rows.sequence : words[OWN_LIMIT];
    bulk->lane = is_first ? 0 : (unsigned)words[OWN_LANE];
    bulk->next = lane_start(bulk, bulk->lane);
    if (!is_first) {
        bulk->next.time = words[OWN_TIME];
        bulk->next.priority = (uint8_t)words[OWN_PRIORITY];
        bulk->next.sequence = words[OWN_SEQUENCE];
    }
    int err = walk(bulk);
    words[OWN_LANE] = bulk->lane;
    words[OWN_TIME] = bulk->next.time;
    words[OWN_PRIORITY] = bulk->next.priority;
    words[OWN_SEQUENCE] = bulk->next.sequence;
    words[OWN_LIMIT] = bulk->limit;
    reply->count = bulk->count;
    return err < 0 ? bel__break_off(request, err, bulk->count) : err;
}

/* --- the commands --- */

int bel__do_purge(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_purge *purge = &request->command.purge;
    struct bel_reply *reply = &request->own.reply;
    if (!bel_topic_is_valid(purge->topic)) {
        return bel__refuse(reply, BEL_EINVAL, "invalid topic name");
    }
    if (purge->has_state &&
        (purge->state == BEL_LEASED || purge->state == BEL_BLOCKED || purge->state >= BEL_STATES)) {
        return bel__refuse(reply, BEL_EINVAL, "leased or blocked timers cannot be purged");
    }
    struct bulk bulk = {.engine = engine,
                        .topic = bel__topic_find(&engine->topics, purge->topic),
                        .verb = BEL_VERB_PURGE,
                        .purge = purge};
    return bulk.topic == NULL ? 0 : slice(&bulk, request);
}

static int revive_one(struct bel_engine *engine, struct bel_topic_state *topic,
                      struct bel_request *request)
{
    struct bel_found found;
    int err = bel__timer_find(engine, topic, request->command.target.id, &found);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return err;
    if (found.state != BEL_DEAD || found.record.job.number != 0) return 0;
    err = revive(engine, &found);
    if (err) return err;
    request->own.reply.count = 1;
    return 0;
}

int bel__do_revive(struct bel_engine *engine, struct bel_request *request)
{
    const struct bel_target *target = &request->command.target;
    struct bulk bulk = {.engine = engine, .verb = BEL_VERB_REVIVE};
    if (!bel_topic_is_valid(target->topic)) {
        return bel__refuse(&request->own.reply, BEL_EINVAL, "invalid topic name");
    }
    bulk.topic = bel__topic_find(&engine->topics, target->topic);
    if (bulk.topic == NULL) return 0;
    if (target->id.bytes > 0) return revive_one(engine, bulk.topic, request);
    return slice(&bulk, request);
}
