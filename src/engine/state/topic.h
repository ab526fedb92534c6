/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_TOPIC_H
#define BEL_ENGINE_STATE_TOPIC_H

/*
 * topic - what the engine keeps in memory of a topic: its settings, its numbers, what of it is
 * ready, and how far its timers have been looked at.
 *
 *     the topic's timers on one lane, as they lie in the store
 *
 *     |--- ready, or leased ---|--- not due yet ----------------------
 *                              ^                     ^
 *                        loaded up to here     wakes at the first
 *
 * Only what is ready is in memory. A lane is read on when the first behind `loaded` comes due.
 */

#include "belfry/backend.h"
#include "belfry/wheel.h"
#include "core/list.h"
#include "core/map.h"
#include "engine/rows/counts.h"
#include "engine/rows/key.h"
#include "engine/state/picker.h"
#include "engine/state/settings.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_TOPICS_MAX = 1 << 20, /* unless the options say less */
    BEL_LANES_TIMED = 2,      /* BEL_LANE_ENGINE, BEL_LANE_WALL */
};

struct bel_topic_state {
    uint32_t number;
    bool is_paused;
    bool is_partial[BEL_LANES_TIMED]; /* more is due than may be in memory */
    bool is_dirty;                    /* `numbers` differ from their row; see next_dirty */
    bool has_number_row;
    bool has_late_tick;
    struct bel_settings *settings; /* its own; NULL: all defaults */
    struct bel_topic_state *next_dirty;
    uint64_t numbers[BEL_NUMBERS];
    uint64_t leased;
    uint64_t served; /* when it was last served, as a number that grows; 0: never */
    struct bel_picker picker;
    struct bel_key loaded[BEL_LANES_TIMED]; /* all before it is ready or leased */
    struct bel_key late_tick; /* before `loaded` of the wall lane: where to look for ticks */
    bel_timer_t wakes[BEL_LANES_TIMED];
    uint64_t wake_times[BEL_LANES_TIMED]; /* BEL_NEVER: none */
    bel_timer_t sweep;
    uint64_t sweep_time; /* wall; BEL_NEVER: none */
    struct bel_list waiters;
    struct bel_link hot; /* in the engine's list of topics whose waiters may be served */
    uint32_t name_bytes;
    char name[];
};

struct bel_topics {
    struct bel_map by_name;
    struct bel_topic_state *last;       /* found by name, as it is asked for again; or NULL */
    struct bel_topic_state **by_number; /* NULL where there is none */
    uint32_t count, capacity;           /* numbers are below `count` */
    uint32_t max;
    struct bel_topic_state *dirty; /* as many as rows.topic_rows */
};

struct bel_engine;

void bel__topics_init(struct bel_topics *topics, struct bel_siphash_key secret, uint32_t max);
void bel__topics_finish(struct bel_topics *topics);

/* Reads all topics from the store. */
BEL_CHECKED int bel__topics_load(struct bel_engine *engine);

struct bel_topic_state *bel__topic_find(struct bel_topics *topics, struct bel_view name);

/* Whether a topic may be called so, which those that there are need not be asked. */
bool bel__topic_is_name(struct bel_topics *topics, struct bel_view name);
struct bel_topic_state *bel__topic_at(const struct bel_topics *topics, uint32_t number);

/* Finds a topic or makes it, in memory alone: its row must be put by bel__topic_save(), or it
 * is dropped by bel__topic_drop(). `*out_is_new` says which. BEL_EFULL, BEL_ENOMEM. */
BEL_CHECKED int bel__topic_make(struct bel_engine *engine, struct bel_view name,
                                struct bel_topic_state **out, bool *out_is_new);
void bel__topic_drop(struct bel_topics *topics, struct bel_topic_state *topic);

/* Puts the row with name, settings and pause: one row of at most BEL_TOPIC_ROW_BYTES. */
void bel__topic_save(struct bel_engine *engine, const struct bel_topic_state *topic);

/* The settings in force. */
const struct bel_settings *bel__topic_settings(const struct bel_topic_state *topic);

/* Changes a number; its row is put when the batch ends and must be reserved. */
void bel__topic_count(struct bel_engine *engine, struct bel_topic_state *topic,
                      enum bel_topic_number number, int64_t delta);
void bel__topics_flush(struct bel_engine *engine);

static inline struct bel_view bel__topic_name(const struct bel_topic_state *topic)
{
    return (struct bel_view){.data = topic->name, .bytes = topic->name_bytes};
}

#endif
