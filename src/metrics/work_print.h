/* SPDX-License-Identifier: MIT */
#ifndef BEL_METRICS_WORK_PRINT_H
#define BEL_METRICS_WORK_PRINT_H

/*
 * work_print - what workers do, per topic, group and resource, as text for Prometheus.
 *
 * The number of lines is limited: the first BEL_WORK_PRINT_TOPICS_MAX topics of the census and the
 * first BEL_WORK_PRINT_GROUPS_MAX groups and resources have lines of their own. All others are
 * summed as "(other)", which is no valid name of a topic or resource, and counted.
 */

#include "belfry/stats.h"
#include "core/buffer.h"
#include "metrics/topic_counts.h"

enum {
    BEL_WORK_PRINT_TOPICS_MAX = 100,
    BEL_WORK_PRINT_GROUPS_MAX = 100,
};

/* Appends the text. Returns 0, BEL_EFULL or BEL_ENOMEM. */
BEL_CHECKED int bel__work_print(const struct bel_topic_counts *census,
                                const struct bel_engine_stats *stats, struct bel_buffer *out);

/* The same for a store that has no more than the counts of a census: no times, groups, resources
 * or "(other)". Appends nothing before the first census. */
BEL_CHECKED int bel__work_print_counts(const struct bel_topic_counts *census,
                                       struct bel_buffer *out);

#endif
