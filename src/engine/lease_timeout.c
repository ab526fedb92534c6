/* SPDX-License-Identifier: MIT */

/*
 * A timer whose lease ends is taken back: it becomes ready again, or dead after too many crashes.
 *
 *     lease ends ---> lost: a crash is counted ---> ready
 *           |                 '---> too many ---> dead
 *           '-------> lapsed: the engine was closed for a part of it ---> ready
 */
#include "engine/lease_timeout.h"

#include "engine/engine.h"
#include "engine/state/timer.h"
#include "engine/state/work.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RETRY_MS = 100, /* delay of a retry after a failure for lack of room or memory */
    TURN_MAX = 1024 /* leases taken back in one turn */
};

/* Returns whether the end of a lease counts as a crash. A lease that ends within its own length
 * after the engine was opened does not: its worker could not reach the closed engine. A lease that
 * was loaded with its full length left ends exactly then, and does not count either. */
static bool is_crash(const struct bel_engine *engine, const struct bel_lease *lease)
{
    uint64_t end = engine->now.open_start + lease->lease_ms;
    assert(lease->end <= engine->now.open);
    return lease->is_old ? lease->end > end : lease->end >= end;
}

static void take_back(struct bel_engine *engine, struct bel_found *found)
{
    struct bel_record *record = &found->record;
    assert(found->state == BEL_LEASED && found->topic == found->lease->topic);
    bool counts = is_crash(engine, found->lease);
    found->lease->end_kind = BEL_WORK_LOST;
    *(counts ? &engine->stats.leases_lost : &engine->stats.leases_lapsed) += 1;
    if (counts) {
        record->crashes++;
        bel__record_note(record, (struct bel_outcome){.kind = BEL_OUTCOME_CRASHED,
                                                      .at = {engine->now.wall},
                                                      .reason = BEL_VIEW("lease lost")});
    }
    if (counts && record->crashes >= bel__topic_settings(found->topic)->crashes) {
        char reason[64];
        int bytes = snprintf(reason, sizeof reason, "lease lost %llu time%s",
                             (unsigned long long)record->crashes, record->crashes == 1 ? "" : "s");
        struct bel_ending ending = {.state = BEL_DEAD, .reason = {reason, (size_t)bytes}};
        bel__timer_end(engine, found, &ending);
        return;
    }
    bel__timer_give_back(engine, found);
    if (counts) bel__timer_rewrite(engine, found);
}

static int lose(struct bel_engine *engine, struct bel_lease *lease)
{
    struct bel_found found;
    lease->ending = BEL_LEASE_END_LOST;
    int err = bel__timer_load_leased(engine, &lease->key, lease, &found);
    if (err == BEL_ENOTFOUND) return BEL_ECORRUPT;
    if (err == 0) err = bel__timer_reserve(engine, &found, 0, BEL_STORE_END);
    if (err == 0) take_back(engine, &found);
    return err;
}

/* A lease that has ended. */
struct ended {
    uint64_t end, sequence;
    uint32_t index;
};

static int compare_ended(const void *a, const void *b)
{
    const struct ended *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Pops ended leases from the wheel. Returns their number, sorted by (end, sequence). */
static size_t pop_ended(struct bel_engine *engine, struct ended out[TURN_MAX])
{
    struct bel_wheel *wheel = engine->leases.wheel;
    struct bel_wheel_timer timer;
    size_t count = 0;
    for (int i = 0; i < 2 * TURN_MAX && count < TURN_MAX; i++) {
        if (bel_wheel_next(wheel) > engine->now.open) break;
        if (!bel_wheel_pop(wheel, engine->now.open, &timer)) continue;
        const struct bel_lease *lease = bel__lease_at(engine, (uint32_t)timer.user);
        assert(lease->end <= engine->now.open && lease->topic->leased > 0);
        out[count++] = (struct ended){.end = lease->end,
                                      .sequence = bel__place_of(&lease->key).sequence,
                                      .index = (uint32_t)timer.user};
    }
    qsort(out, count, sizeof out[0], compare_ended);
    return count;
}

/* Arms an ended lease again, to be popped at `time`. */
static void put_back(struct bel_engine *engine, uint32_t index, uint64_t time)
{
    struct bel_lease *lease = bel__lease_at(engine, index);
    int err = bel_wheel_arm(engine->leases.wheel, time, BEL_PRIORITY_DEFAULT, index, &lease->timer);
    assert(err == 0); /* its entry in the wheel is still free */
    (void)err;
}

int bel__lease_timeouts_turn(struct bel_engine *engine)
{
    struct ended ended[TURN_MAX];
    uint64_t now = engine->now.open;
    if (bel_wheel_next(engine->leases.wheel) > now) return 0;
    size_t count = pop_ended(engine, ended);
    assert(count <= bel__map_count(&engine->leases.map));
    for (size_t i = 0; i < count; i++) {
        int err = lose(engine, bel__lease_at(engine, ended[i].index));
        if (err == 0) continue;
        if (err == BEL_ENOMEM || err == BEL_EFULL) {
            put_back(engine, ended[i].index, now + RETRY_MS);
            continue;
        }
        if (err != BEL_EBUSY) return err;
        for (; i < count; i++) { /* the batch is full: continue in the next */
            put_back(engine, ended[i].index, now);
        }
        engine->load_left = 0;
        engine->is_behind = true;
    }
    return 0;
}
