/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_STATE_HOT_H
#define BEL_ENGINE_STATE_HOT_H

/*
 * hot - the topics that may have something for their first waiter, by the age of that waiter.
 *
 *     bel__hot_put(&hot, topic, parked);       parked: the number of the topic's first waiter
 *     topic = bel__hot_first(&hot);            the topic whose first waiter has waited longest
 *     bel__hot_remove(&hot, topic);
 *
 * A put takes logarithmic time at most, and constant time if the waiter is younger than the others.
 */

#include "belfry/error.h"

#include <stdint.h>

struct bel_topic_state;

struct bel_hot_entry {
    uint64_t parked;
    struct bel_topic_state *topic;
};

struct bel_hot {
    struct bel_hot_entry *entries; /* a heap */
    uint32_t count, capacity;
};

/* Allocates memory for all of `topics` topics, so that putting them cannot fail. Returns 0 or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__hot_reserve(struct bel_hot *hot, uint32_t topics);
void bel__hot_finish(struct bel_hot *hot);

/* Adds a topic that is not hot; changes the number of one that is; removes one that is. */
void bel__hot_put(struct bel_hot *hot, struct bel_topic_state *topic, uint64_t parked);
void bel__hot_change(struct bel_hot *hot, struct bel_topic_state *topic, uint64_t parked);
void bel__hot_remove(struct bel_hot *hot, struct bel_topic_state *topic);

/* Returns the topic with the smallest number, or NULL. */
struct bel_topic_state *bel__hot_first(const struct bel_hot *hot);

#endif
