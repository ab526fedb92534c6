/* SPDX-License-Identifier: MIT */

/*
 * Each timer with EXPIRES has a row in EXPIRIES that names it. The rows of a topic are in the order
 * in which its timers expire, lane by lane:
 *
 *               from                  now
 *     L  B  L    |   row  L  row  B    |     row  row
 *                    end     end             ^ the next wake
 *
 * Leased (L) and blocked (B) timers do not expire, and are passed over once. When the lease ends,
 * or the timer is unblocked, `from` is set back to its row.
 *
 * A turn reads at most ROWS_MAX rows. Topics with more expired timers wait in a list for the next
 * turns, so that a million timers that expire at once delay nobody. While the store is behind and
 * holds back additions, a turn reads only a few, and the next slice waits until the hold ends.
 */
#include "engine/state/expiry.h"

#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>
#include <string.h>

enum {
    ROWS_MAX = 1000, /* rows read in one turn, about 3 ms of work; tests may set another number */
    ROWS_SOME = 16,  /* rows read to make room for one timer, or while the store is behind */
    RETRY_MS = 100,  /* delay of a retry after a failure for lack of room or memory */
    STOPPED = 1,     /* the turn may read no more rows */
    LOWERED = 2,     /* a row was added before the one just read */
};

static struct bel_key lane_key(const struct bel_topic_state *topic, uint8_t lane, uint64_t time)
{
    return bel__key_of(&(struct bel_place){
        .table = BEL_TABLE_EXPIRIES, .topic = topic->number, .lane = lane, .time = time});
}

int bel__expiry_open(struct bel_engine *engine)
{
    struct bel_key from = bel__key_of(&(struct bel_place){.table = BEL_TABLE_EXPIRIES});
    struct bel_store_cursor cursor;
    int err;
    engine->expiry.rows_max = ROWS_MAX;
    while ((err = bel__store_seek(engine->store, &from, &cursor)) == 0) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != BEL_TABLE_EXPIRIES) return 0;
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, place.topic);
        if (topic == NULL || place.lane >= BEL_LANES_TIMED) return BEL_ECORRUPT;
        bel__wake_expiry(engine, topic, place.lane, place.time);
        from = lane_key(topic, (uint8_t)(place.lane + 1), 0); /* the next lane or topic */
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

void bel__expiry_expect(struct bel_engine *engine, struct bel_topic_state *topic,
                        const struct bel_key *row)
{
    struct bel_place place = bel__place_of(row);
    assert(place.table == BEL_TABLE_EXPIRIES && place.topic == topic->number);
    if (bel__key_compare(row, &topic->expiry_from[place.lane]) < 0) {
        topic->expiry_from[place.lane] = *row;
        engine->expiry.is_lowered = true;
    }
    bel__wake_expiry(engine, topic, place.lane, place.time);
}

bool bel__expiry_is_behind(const struct bel_engine *engine, const struct bel_topic_state *topic)
{
    return topic != NULL ? topic->is_expiry_behind : engine->expiry.first != NULL;
}

/* Appends a topic to the list of those that continue in the next turn. */
static void fall_behind(struct bel_engine *engine, struct bel_topic_state *topic)
{
    struct bel_expiry *expiry = &engine->expiry;
    if (topic->is_expiry_behind) return;
    topic->is_expiry_behind = true;
    topic->next_expiry_behind = NULL;
    if (expiry->first == NULL) {
        expiry->first = topic;
    } else {
        expiry->last->next_expiry_behind = topic;
    }
    expiry->last = topic;
}

/* Ends the timer of a row, unless it is leased or blocked. */
static int end(struct bel_engine *engine, struct bel_view row)
{
    struct bel_key key;
    struct bel_found found;
    if (row.bytes != sizeof key.words) return BEL_ECORRUPT;
    memcpy(key.words, row.data, sizeof key.words);
    struct bel_place place = bel__place_of(&key);
    if (place.table != BEL_TABLE_TIMERS) return BEL_ECORRUPT;
    if (place.lane >= BEL_LANES_TIMED || bel__lease_find(engine, &key) != NULL) return 0;
    int err = bel__timer_load_leased(engine, &key, NULL, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    return bel__timer_is_expired(engine, &found) ? bel__timer_expire(engine, &found) : BEL_ECORRUPT;
}

/* Ends the expired timers of a lane. Returns 0 if all are ended; STOPPED, LOWERED, or an error. */
static int settle_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    struct bel_expiry *expiry = &engine->expiry;
    uint64_t now = bel__lane_now(&engine->now, lane);
    struct bel_key last = lane_key(topic, lane, now + 1);
    struct bel_store_cursor cursor;
    int err = bel__store_seek(engine->store, &topic->expiry_from[lane], &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        if (bel__key_compare(&cursor.key, &last) >= 0) break;
        if (expiry->left == 0) return STOPPED;
        expiry->left--;
        topic->expiry_from[lane] = bel__key_after(&cursor.key);
        expiry->is_lowered = false;
        err = end(engine, cursor.value);
        if (err) {
            topic->expiry_from[lane] = cursor.key;
            return err;
        }
        if (expiry->is_lowered) return LOWERED;
    }
    if (err != 0 && err != BEL_ENOTFOUND) return err;
    if (bel__key_compare(&topic->expiry_from[lane], &last) < 0) topic->expiry_from[lane] = last;
    bel__wake_expiry_cancel(engine, topic, lane, now);
    if (err) return 0;
    struct bel_place place = bel__place_of(&cursor.key);
    bool is_lane = place.table == BEL_TABLE_EXPIRIES && place.topic == topic->number;
    if (is_lane && place.lane == lane) bel__wake_expiry(engine, topic, lane, place.time);
    return 0;
}

/* Ends expired timers of a topic, from its first lane on: each end may unblock an occurrence that
 * has expired, too. Sets `*out_lane` to the lane that was not settled. */
static int settle(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t *out_lane)
{
    for (*out_lane = 0; *out_lane < BEL_LANES_TIMED;) {
        int err = settle_lane(engine, topic, *out_lane);
        if (err == LOWERED) {
            *out_lane = 0;
            continue;
        }
        if (err) return err;
        ++*out_lane;
    }
    return 0;
}

/* Settles a topic, or sees to it that this is continued. */
static int settle_or_wait(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint8_t lane;
    int err = settle(engine, topic, &lane);
    if (err == BEL_EBUSY) engine->expiry.left = 0; /* the batch is full */
    if (err == STOPPED || err == BEL_EBUSY) {
        fall_behind(engine, topic);
        return 0;
    }
    if (err != BEL_ENOMEM && err != BEL_EFULL) return err;
    bel__wake_expiry_cancel(engine, topic, lane, bel__lane_now(&engine->now, lane));
    bel__wake_expiry(engine, topic, lane, bel__lane_now(&engine->now, lane) + RETRY_MS);
    return 0;
}

bool bel__expiry_may_end(struct bel_engine *engine, struct bel_topic_state *topic)
{
    if (engine->expiry.left == 0) {
        fall_behind(engine, topic);
        return false;
    }
    engine->expiry.left--;
    return true;
}

int bel__expiry_settle(struct bel_engine *engine, struct bel_topic_state *topic)
{
    bool is_due = false;
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        is_due |= topic->expiry_times[lane] <= bel__lane_now(&engine->now, lane);
    }
    return is_due && !topic->is_expiry_behind ? settle_or_wait(engine, topic) : 0;
}

int bel__expiry_turn(struct bel_engine *engine)
{
    struct bel_expiry *expiry = &engine->expiry;
    int err = 0;
    expiry->left = bel__is_held(engine) ? ROWS_SOME : expiry->rows_max;
    while (err == 0 && expiry->first != NULL && expiry->left > 0) {
        struct bel_topic_state *topic = expiry->first;
        expiry->first = topic->next_expiry_behind;
        topic->is_expiry_behind = false;
        err = settle_or_wait(engine, topic);
        bel__wait_mark(engine, topic); /* expired timers may have been in the way of a delivery */
    }
    return err;
}

int bel__expiry_make_room(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint8_t lane;
    uint32_t left = engine->expiry.left;
    if (!topic->is_expiry_behind) return 0;
    engine->expiry.left = ROWS_SOME;
    int err = settle(engine, topic, &lane);
    engine->expiry.left = left;
    return err == STOPPED ? 0 : err;
}
