/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_TOPIC_COUNTS_H
#define BEL_METRICS_TOPIC_COUNTS_H

/*
 * topic_counts - a census: the number of timers per topic and state.
 *
 * A census sends requests to the backend in two rounds, first for the names of the topics, then for
 * all topics at once. It therefore takes two turns, not one per topic, and waits for no disk: its
 * numbers may include changes that are not durable yet. The results of the last census stay
 * readable while the next one runs.
 */

#include "belfry/backend.h"
#include "belfry/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bel_topic_counts; /* opaque */

struct bel_topic_counts_topic {
    char name[BEL_TOPIC_BYTES_MAX + 1];
    uint64_t counts[BEL_STATES];
    uint64_t plans, oldest_age_ms;
    uint64_t waiting[BEL_WAITS];
    uint64_t claimed, completed, failed, lost; /* of struct bel_topic */
    bool paused;
    bool has_work;
    struct bel_work work;                /* valid if has_work */
    const struct bel_named_work *groups; /* live, as long as the backend */
};

/* Creates a census without results. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__topic_counts_create(struct bel_topic_counts **out);

/* Frees a census, which must not be running; NULL is allowed. */
void bel__topic_counts_destroy(struct bel_topic_counts *census);

/* Starts a census, which must not be running. If memory runs out or the list of names fails, the
 * census ends and the results of the last one stay. */
void bel__topic_counts_begin(struct bel_topic_counts *census, struct bel_backend *backend,
                             struct bel_mono now);

bool bel__topic_counts_is_under_way(const struct bel_topic_counts *census);

/* Sets `*out` to the start of the last complete census. Returns false if there was none. */
bool bel__topic_counts_taken(const struct bel_topic_counts *census, struct bel_mono *out);

/* Returns the topics of the last complete census, with an empty name for a topic that was removed
 * during the census. Sets `*count` to their number (at most BEL_TOPIC_COUNTS_TOPICS_MAX) and `*all`
 * to the number of all topics. */
const struct bel_topic_counts_topic *bel__topic_counts_topics(const struct bel_topic_counts *census,
                                                              size_t *count, uint64_t *all);

#endif
