/* SPDX-License-Identifier: MIT */

/*
 * Ended timers are in the order in which they ended, state by state. So the timers whose retention
 * is over come first. A sweep deletes them up to the first timer that stays, and sets the topic's
 * next wake for the end of that timer's retention.
 */
#include "engine/state/retention.h"

#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>

enum {
    DELETED_MAX = 1000, /* in one sweep */
    RETRY_MS = 1000,    /* delay of a retry after a sweep ran out of memory or space */
};

/* Deletes the timers of one state whose retention is over. Lowers `*next` to the time at which the
 * first one left is to be deleted. */
static int sweep_state(struct bel_engine *engine, struct bel_topic_state *topic,
                       enum bel_state state, uint32_t *left, uint64_t *next)
{
    assert(state >= BEL_DONE && state < BEL_STATES);
    uint64_t retention = bel__timer_retention(topic, state);
    struct bel_place start = {
        .table = BEL_TABLE_ENDED, .topic = topic->number, .lane = (uint8_t)state};
    struct bel_key from = bel__key_of(&start);
    struct bel_store_cursor cursor;
    if (retention == BEL_RETENTION_FOREVER) return 0;
    int err = bel__store_seek(engine->store, &from, &cursor);
    for (; err == 0; err = bel__store_next(engine->store, &cursor)) {
        struct bel_place place = bel__place_of(&cursor.key);
        if (place.table != start.table || place.topic != start.topic) return 0;
        if (place.lane != start.lane) return 0;
        struct bel_found found;
        err = bel__timer_read(engine, &cursor.key, cursor.value, &found);
        if (err) return err;
        bool is_over = bel__timer_is_over(engine, &found);
        if (!is_over || *left == 0) {
            uint64_t time = is_over ? (uint64_t)engine->now.wall + 1 : place.time + retention;
            if (time < *next) *next = time;
            return 0;
        }
        err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
        if (err) return err;
        bel__timer_remove(engine, &found);
        --*left;
    }
    return err == BEL_ENOTFOUND ? 0 : err;
}

int bel__retention_sweep(struct bel_engine *engine, struct bel_topic_state *topic)
{
    uint64_t next = BEL_NEVER;
    uint32_t left = DELETED_MAX;
    int err = 0;
    for (int state = BEL_DONE; err == 0 && state < BEL_STATES; state++) {
        err = sweep_state(engine, topic, (enum bel_state)state, &left, &next);
    }
    bool is_passing = err == BEL_ENOMEM || err == BEL_EFULL || err == BEL_EBUSY;
    if (is_passing) next = (uint64_t)engine->now.wall + (err == BEL_EBUSY ? 1 : RETRY_MS);
    assert(next > (uint64_t)engine->now.wall); /* else the turn would sweep for ever */
    if (next != BEL_NEVER) bel__wake_sweep(engine, topic, next);
    return is_passing ? 0 : err;
}
