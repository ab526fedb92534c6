/* SPDX-License-Identifier: MIT */

/*
 * An expired timer ends when a command or a delivery looks at it. Timers of a topic from which
 * nobody claims may wait for that for ever. So an hourly pass looks at all ready timers, topic by
 * topic, a part in each turn.
 */
#include "engine/state/expiry.h"

#include "core/units.h"
#include "engine/state/ready.h"
#include "engine/state/state.h"
#include "engine/state/timer.h"

#include <assert.h>

enum {
    SLICE = 1000 /* timers looked at in one turn */
};

static void begin(struct bel_engine *engine)
{
    struct bel_expiry *expiry = &engine->expiry;
    assert(expiry->is_armed && !expiry->is_running);
    *expiry = (struct bel_expiry){
        .is_armed = true, .is_running = true, .at = engine->now.engine + MS_PER_HOUR};
}

void bel__expiry_expect(struct bel_engine *engine, const struct bel_record *record)
{
    if (record->expires_ms == 0) return;
    engine->expiry.has_seen = true;
    if (engine->expiry.is_armed) return;
    engine->expiry.is_armed = true;
    engine->expiry.at = engine->now.engine + MS_PER_HOUR;
}

uint64_t bel__expiry_next(const struct bel_engine *engine)
{
    if (engine->expiry.is_running) return engine->now.engine;
    return engine->expiry.is_armed ? engine->expiry.at : BEL_NEVER;
}

static int look(struct bel_engine *engine, struct bel_topic_state *topic,
                const struct bel_ready *ready)
{
    struct bel_key key = bel__ready_key(topic, ready);
    struct bel_found found;
    assert(bel__lease_find(engine, &key) == NULL); /* ready timers are not leased */
    int err = bel__timer_load_leased(engine, &key, NULL, &found);
    if (err) return err == BEL_ENOTFOUND ? BEL_ECORRUPT : err;
    if (bel__timer_is_expired(engine, &found)) return bel__timer_expire(engine, &found);
    bel__expiry_expect(engine, &found.record);
    return 0;
}

int bel__expiry_turn(struct bel_engine *engine)
{
    struct bel_expiry *expiry = &engine->expiry;
    if (!expiry->is_running && expiry->is_armed && engine->now.engine >= expiry->at) begin(engine);
    if (!expiry->is_running) return 0;
    for (int i = 0; i < SLICE; i++) {
        struct bel_topic_state *topic = bel__topic_at(&engine->topics, expiry->topic);
        struct bel_key before = expiry->place;
        assert(expiry->topic < engine->topics.count || engine->topics.count == 0);
        struct bel_ready ready;
        if (topic != NULL && bel__picker_next(&topic->picker, &expiry->place, &ready)) {
            int err = look(engine, topic, &ready);
            if (err == BEL_EBUSY) expiry->place = before; /* retry this timer in the next turn */
            if (err == BEL_ENOMEM || err == BEL_EFULL || err == BEL_EBUSY) return 0;
            if (err) return err;
            continue;
        }
        expiry->place = (struct bel_key){{0}};
        if (++expiry->topic < engine->topics.count) continue;
        expiry->is_running = false;
        expiry->is_armed = expiry->has_seen; /* else no timer can expire */
        return 0;
    }
    return 0;
}
