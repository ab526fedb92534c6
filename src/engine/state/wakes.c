/* SPDX-License-Identifier: MIT */

/*
 * Each timed lane has a wheel. A topic has up to three entries in it: for its first timer that has
 * not been read, for its first timer to expire on this lane, and, in the wheel of the wall lane,
 * for its sweep. The user word of an entry is the topic's number and, in the lowest bits, the kind.
 *
 * Setting a wake cannot fail: the entries of a topic are reserved when the topic is added. That
 * visits every page of the wheels, so it is done for some topics at once.
 */
#include "engine/state/wakes.h"

#include "engine/state/state.h"

#include <assert.h>

enum {
    ENTRIES_MAX = 3,
    KIND_BITS = 2,
};
static_assert(BEL_WAKE_KINDS <= 1 << KIND_BITS, "a kind fits");

enum {
    MORE_MIN = 64, /* topics that are reserved in addition, for the next topics */
    MORE_PART = 8, /* or this part of all */
};

/* The entries of a topic in each wheel, at most. */
static const uint32_t entries[BEL_LANES_TIMED] = {
    [BEL_LANE_ENGINE] = 2,
    [BEL_LANE_WALL] = ENTRIES_MAX,
};

int bel__wakes_open(struct bel_engine *engine)
{
    for (uint8_t lane = 0; lane < BEL_LANES_TIMED; lane++) {
        struct bel_wheel_options options = {.now = bel__lane_now(&engine->now, lane),
                                            .timers_max = ENTRIES_MAX * BEL_TOPICS_MAX};
        int err = bel_wheel_create(&options, &engine->wakes.wheels[lane]);
        if (err) return err;
    }
    return 0;
}

void bel__wakes_close(struct bel_engine *engine)
{
    for (int lane = 0; lane < BEL_LANES_TIMED; lane++) {
        bel_wheel_destroy(engine->wakes.wheels[lane]);
    }
}

static int reserve(struct bel_wakes *wakes, uint32_t topics)
{
    for (int lane = 0; lane < BEL_LANES_TIMED; lane++) {
        int err = bel_wheel_reserve(wakes->wheels[lane], entries[lane] * topics);
        if (err) return err;
    }
    wakes->reserved = topics;
    return 0;
}

int bel__wakes_reserve(struct bel_engine *engine, uint32_t topics)
{
    struct bel_wakes *wakes = &engine->wakes;
    assert(topics <= BEL_TOPICS_MAX);
    if (topics <= wakes->reserved) return 0;
    uint32_t more = topics / MORE_PART > MORE_MIN ? topics / MORE_PART : MORE_MIN;
    uint32_t ample = topics < BEL_TOPICS_MAX - more ? topics + more : BEL_TOPICS_MAX;
    return reserve(wakes, ample) == 0 ? 0 : reserve(wakes, topics);
}

static uint64_t word_of(const struct bel_topic_state *topic, enum bel_wake_kind kind)
{
    return (uint64_t)topic->number << KIND_BITS | kind;
}

static void set(struct bel_engine *engine, uint8_t lane, uint64_t time, uint64_t word,
                bel_timer_t *timer)
{
    struct bel_wheel *wheel = engine->wakes.wheels[lane];
    if (time <= bel__lane_now(&engine->now, lane)) engine->wakes.is_due = true;
    if (*timer != BEL_TIMER_NONE && bel_wheel_rearm(wheel, *timer, time) == 0) return;
    int err = bel_wheel_arm(wheel, time, BEL_PRIORITY_DEFAULT, word, timer);
    assert(err == 0);
    (void)err;
}

void bel__wake_lane(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                    uint64_t time)
{
    assert(lane < BEL_LANES_TIMED);
    if (time >= topic->wake_times[lane]) return;
    topic->wake_times[lane] = time;
    set(engine, lane, time, word_of(topic, BEL_WAKE_LANE), &topic->wakes[lane]);
}

void bel__wake_sweep(struct bel_engine *engine, struct bel_topic_state *topic, uint64_t time)
{
    if (time >= topic->sweep_time) return;
    topic->sweep_time = time;
    set(engine, BEL_LANE_WALL, time, word_of(topic, BEL_WAKE_SWEEP), &topic->sweep);
}

void bel__wake_expiry(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                      uint64_t time)
{
    assert(lane < BEL_LANES_TIMED);
    if (time >= topic->expiry_times[lane]) return;
    topic->expiry_times[lane] = time;
    set(engine, lane, time, word_of(topic, BEL_WAKE_EXPIRY), &topic->expiry_wakes[lane]);
}

void bel__wake_expiry_cancel(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane,
                             uint64_t time)
{
    if (topic->expiry_times[lane] > time) return;
    bel_wheel_cancel(engine->wakes.wheels[lane], topic->expiry_wakes[lane]);
    topic->expiry_wakes[lane] = BEL_TIMER_NONE;
    topic->expiry_times[lane] = BEL_NEVER;
}

void bel__wake_cancel(struct bel_engine *engine, struct bel_topic_state *topic, uint8_t lane)
{
    assert(topic->wake_times[lane] != BEL_NEVER);
    bel_wheel_cancel(engine->wakes.wheels[lane], topic->wakes[lane]);
    topic->wakes[lane] = BEL_TIMER_NONE;
    topic->wake_times[lane] = BEL_NEVER;
}

bool bel__wakes_are_due(const struct bel_engine *engine, uint8_t lane)
{
    return bel_wheel_next(engine->wakes.wheels[lane]) <= bel__lane_now(&engine->now, lane);
}

bool bel__wakes_pop(struct bel_engine *engine, uint8_t lane, struct bel_wake *out)
{
    struct bel_wheel_timer timer;
    uint64_t now = bel__lane_now(&engine->now, lane);
    if (!bel_wheel_pop(engine->wakes.wheels[lane], now, &timer)) return false;
    uint64_t number = timer.user >> KIND_BITS;
    assert(number < engine->topics.count);
    struct bel_topic_state *topic = engine->topics.by_number[number];
    *out = (struct bel_wake){topic, (enum bel_wake_kind)(timer.user % (1 << KIND_BITS))};
    switch (out->kind) {
    case BEL_WAKE_SWEEP:
        assert(lane == BEL_LANE_WALL && topic->sweep_time <= now);
        topic->sweep = BEL_TIMER_NONE;
        topic->sweep_time = BEL_NEVER;
        break;
    case BEL_WAKE_EXPIRY:
        topic->expiry_wakes[lane] = BEL_TIMER_NONE; /* its time stays: the topic is to be settled */
        break;
    default:
        assert(out->kind == BEL_WAKE_LANE && topic->wake_times[lane] <= now);
        topic->wakes[lane] = BEL_TIMER_NONE;
        topic->wake_times[lane] = BEL_NEVER;
        break;
    }
    return true;
}
