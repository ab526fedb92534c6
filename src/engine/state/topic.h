/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TOPIC_H
#define BEL_ENGINE_STATE_TOPIC_H

/*
 * topic - a topic in memory: its settings, its numbers, its ready timers, and how far its rows have
 * been read.
 *
 *     the topic's timers on one lane, in the order of the store
 *
 *     |--- ready, or leased ---|--- not due yet ----------------------
 *                              ^                     ^
 *                        loaded up to here     wake time: the first
 *
 * Only ready timers are in memory. Reading a lane continues when the first timer after `loaded`
 * comes due.
 */

#include "belfry/backend.h"
#include "belfry/wheel.h"
#include "core/list.h"
#include "core/map.h"
#include "engine/rows/counts.h"
#include "engine/rows/key.h"
#include "engine/state/picker.h"
#include "engine/state/topic_row.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_TOPICS_MAX = 1 << 20, /* default and maximum of the option */
    BEL_LANES_TIMED = 2,      /* BEL_LANE_ENGINE, BEL_LANE_WALL */
};

struct bel_topic_state {
    uint32_t number;
    bool is_paused;
    bool is_partial[BEL_LANES_TIMED]; /* reading stopped before all due timers were in memory */
    bool is_dirty;                    /* `numbers` differ from their row; see next_dirty */
    bool has_number_row;
    bool has_late_tick;
    bool is_near_depth;            /* its depth is at the level critical: pressure.h */
    bool has_passed_over;          /* due timers whose resource was closed are not in memory */
    bool is_expiry_behind;         /* is in engine->expiry's list */
    struct bel_settings *settings; /* NULL: all defaults */
    struct bel_topic_state *next_dirty;
    uint64_t numbers[BEL_NUMBERS];
    uint64_t leased;
    uint64_t served; /* engine->waiting.served at the last delivery; 0: never */
    struct bel_picker picker;
    struct bel_key loaded[BEL_LANES_TIMED]; /* all timers before it are ready or leased */
    struct bel_key rung;      /* of the wall lane: plans before it have rung, if after `loaded` */
    struct bel_key late_tick; /* first tick before both that could not ring; if has_late_tick */
    bel_timer_t wakes[BEL_LANES_TIMED];
    uint64_t wake_times[BEL_LANES_TIMED]; /* BEL_NEVER: not set */
    bel_timer_t sweep;
    uint64_t sweep_time; /* wall ms; BEL_NEVER: not set */
    bel_timer_t expiry_wakes[BEL_LANES_TIMED];
    uint64_t expiry_times[BEL_LANES_TIMED];      /* BEL_NEVER: not set */
    struct bel_key expiry_from[BEL_LANES_TIMED]; /* timers whose rows are before it are leased or
                                                    blocked */
    struct bel_topic_state *next_expiry_behind;
    struct bel_topic_work *work; /* NULL: no timer was claimed, or too many topics have one */
    struct bel_list waiters;
    struct bel_link later; /* link in engine->waiting.later; not while it is hot */
    uint32_t hot_place;    /* place in engine->waiting.hot, from 1; 0: not hot */
    uint32_t name_bytes;
    char name[];
};

struct bel_topics {
    struct bel_map by_name;
    struct bel_topic_state *last;       /* last found by name, or NULL: a cache of one */
    struct bel_topic_state **by_number; /* NULL where a number is unused */
    uint32_t count, capacity;           /* all numbers are below `count` */
    uint32_t max;
    struct bel_topic_state *dirty; /* list of rows.topic_rows topics */
};

struct bel_engine;

void bel__topics_init(struct bel_topics *topics, struct bel_siphash_key secret, uint32_t max);
void bel__topics_finish(struct bel_topics *topics);

/* Reads all topics from the store. */
BEL_CHECKED int bel__topics_load(struct bel_engine *engine);

struct bel_topic_state *bel__topic_find(struct bel_topics *topics, struct bel_view name);

/* Returns whether a topic has or may have this name. */
bool bel__topic_is_name(struct bel_topics *topics, struct bel_view name);
struct bel_topic_state *bel__topic_at(const struct bel_topics *topics, uint32_t number);

/* Finds a topic, or makes it in memory only; sets `*out_is_new` if it was made. The caller must
 * then put its row with bel__topic_save(), or drop it with bel__topic_drop(). Returns 0, BEL_EFULL
 * or BEL_ENOMEM. */
BEL_CHECKED int bel__topic_make(struct bel_engine *engine, struct bel_view name,
                                struct bel_topic_state **out, bool *out_is_new);
void bel__topic_drop(struct bel_topics *topics, struct bel_topic_state *topic);

/* Puts the row with name, settings and pause. Must be reserved: a row of up to
 * BEL_TOPIC_ROW_BYTES. */
void bel__topic_save(struct bel_engine *engine, const struct bel_topic_state *topic);

/* Returns the settings in force. */
const struct bel_settings *bel__topic_settings(const struct bel_topic_state *topic);

/* Adds `delta` to a number of a topic. The row of numbers is put when the batch ends, and must be
 * reserved. */
void bel__topic_count(struct bel_engine *engine, struct bel_topic_state *topic,
                      enum bel_topic_number number, int64_t delta);
void bel__topics_flush(struct bel_engine *engine);

static inline struct bel_view bel__topic_name(const struct bel_topic_state *topic)
{
    return (struct bel_view){.data = topic->name, .bytes = topic->name_bytes};
}

#endif
