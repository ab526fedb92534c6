/* SPDX-License-Identifier: MIT */

/*
 * A binary heap in an array. Each topic knows its place, so that it can be removed from the middle.
 */
#include "engine/state/hot.h"

#include "engine/state/topic.h"

#include <assert.h>
#include <stdlib.h>

enum {
    CAPACITY_MIN = 16,
};

int bel__hot_reserve(struct bel_hot *hot, uint32_t topics)
{
    uint32_t capacity = hot->capacity == 0 ? CAPACITY_MIN : hot->capacity;
    assert(topics <= BEL_TOPICS_MAX);
    if (topics <= hot->capacity) return 0;
    while (capacity < topics) {
        capacity *= 2;
    }
    struct bel_hot_entry *grown = realloc(hot->entries, capacity * sizeof grown[0]);
    if (grown == NULL) return BEL_ENOMEM;
    hot->entries = grown;
    hot->capacity = capacity;
    return 0;
}

void bel__hot_finish(struct bel_hot *hot)
{
    free(hot->entries);
    *hot = (struct bel_hot){0};
}

static void set(struct bel_hot *hot, uint32_t index, struct bel_hot_entry entry)
{
    hot->entries[index] = entry;
    entry.topic->hot_place = index + 1;
}

/* Moves an entry from `index`, which is free, towards the root as far as it belongs. */
static void rise(struct bel_hot *hot, uint32_t index, struct bel_hot_entry entry)
{
    while (index > 0 && entry.parked < hot->entries[(index - 1) / 2].parked) {
        set(hot, index, hot->entries[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    set(hot, index, entry);
}

/* Puts an entry at `index`, which is free, or where it belongs above or below. */
static void settle(struct bel_hot *hot, uint32_t index, struct bel_hot_entry entry)
{
    uint32_t start = index, child;
    while ((child = 2 * index + 1) < hot->count) {
        bool has_right = child + 1 < hot->count;
        child += has_right && hot->entries[child + 1].parked < hot->entries[child].parked;
        if (hot->entries[child].parked >= entry.parked) break;
        set(hot, index, hot->entries[child]);
        index = child;
    }
    if (index == start) {
        rise(hot, index, entry);
    } else {
        set(hot, index, entry);
    }
}

static uint32_t index_of(const struct bel_hot *hot, const struct bel_topic_state *topic)
{
    uint32_t index = topic->hot_place - 1;
    assert(index < hot->count);
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it was put */
    assert(hot->entries[index].topic == topic);
    return index;
}

void bel__hot_put(struct bel_hot *hot, struct bel_topic_state *topic, uint64_t parked)
{
    assert(topic->hot_place == 0 && hot->count < hot->capacity); /* reserved */
    rise(hot, hot->count++, (struct bel_hot_entry){parked, topic});
}

void bel__hot_change(struct bel_hot *hot, struct bel_topic_state *topic, uint64_t parked)
{
    settle(hot, index_of(hot, topic), (struct bel_hot_entry){parked, topic});
}

void bel__hot_remove(struct bel_hot *hot, struct bel_topic_state *topic)
{
    uint32_t index = index_of(hot, topic);
    struct bel_hot_entry last = hot->entries[--hot->count];
    topic->hot_place = 0;
    if (last.topic != topic) settle(hot, index, last);
}

struct bel_topic_state *bel__hot_first(const struct bel_hot *hot)
{
    return hot->count == 0 ? NULL : hot->entries[0].topic;
}
