/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_TOPIC_COUNTS_H
#define BEL_METRICS_TOPIC_COUNTS_H

/*
 * census - how many timers each topic has in which state, asked of the backend in two rounds: the
 * names, and then all of them at once, so that it takes two turns and not one for each topic. The
 * last one stays to be looked at while the next is made.
 */

#include "belfry/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_topic_counts; /* opaque */

struct bel_topic_counts_topic {
    char name[BEL_TOPIC_BYTES_MAX + 1];
    uint64_t counts[BEL_STATES];
    uint64_t plans, oldest_age_ms;
    bool paused;
};

/* Makes a census of nothing. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__topic_counts_create(struct bel_topic_counts **out);

/* Frees a census, which is not under way; NULL is allowed. */
void bel__topic_counts_destroy(struct bel_topic_counts *census);

/* Begins one, which is not under way. Without memory it is done at once, and the old one stays. */
void bel__topic_counts_begin(struct bel_topic_counts *census, struct bel_backend *backend,
                             struct bel_mono now);

bool bel__topic_counts_is_under_way(const struct bel_topic_counts *census);

/* When the last one was begun. False if there was none. */
bool bel__topic_counts_taken(const struct bel_topic_counts *census, struct bel_mono *out);

/* The topics of the last one, up to BEL_TOPIC_COUNTS_TOPICS_MAX, and how many there were in all. */
const struct bel_topic_counts_topic *bel__topic_counts_topics(const struct bel_topic_counts *census,
                                                              size_t *count, uint64_t *all);

#endif
