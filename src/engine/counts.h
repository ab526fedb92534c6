/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_COUNTS_H
#define BEL_ENGINE_COUNTS_H

/*
 * counts - numbers that are kept up to date so that nobody has to count: timers by topic and
 * hour, and by group.
 *
 * A count is a row. Those that change are kept in memory until the batch ends and then written
 * once, however often they changed. To change one cannot fail, but to have it at hand can:
 *
 *     err = bel__count_hold(counts, store, &key, &count);
 *     ...
 *     bel__count_add(counts, count, +1);
 */

#include "core/map.h"
#include "store/store.h"

#include <stdint.h>

/* What is counted: the lane of a key in BEL_TABLE_COUNTS. */
enum bel_count_kind {
    BEL_COUNT_TOPIC, /* all of enum bel_topic_number, in one row: topic.c */
    BEL_COUNT_HOUR,  /* pending timers of a topic that are due in an hour */
    BEL_COUNT_GROUP, /* unfinished timers of a group */
};

struct bel_count {
    struct bel_key key;
    uint64_t value;
    struct bel_count *next_dirty; /* valid if it is dirty */
    bool is_dirty, is_new;        /* differs from its row; has none */
};

struct bel_counts {
    struct bel_map map;     /* key -> struct bel_count * */
    struct bel_count *last; /* that was held, as it is likely to be held again; or NULL */
    struct bel_count *dirty;
    size_t dirty_count;
};

void bel__counts_init(struct bel_counts *counts, struct bel_siphash_key secret);
void bel__counts_finish(struct bel_counts *counts);

/* Finds a count; one that has no row is 0. Good until bel__counts_trim(). Returns 0, or
 * BEL_ENOMEM or what the store says. */
BEL_CHECKED int bel__count_hold(struct bel_counts *counts, struct bel_store *store,
                                const struct bel_key *key, struct bel_count **out);

/* Adds to a count, which does not go below 0. A row must be reserved for each that is dirty. */
void bel__count_add(struct bel_counts *counts, struct bel_count *count, int64_t delta);

/* Writes down what has changed. One of 0 loses its row. */
void bel__counts_flush(struct bel_counts *counts, struct bel_store *store);

/* Forgets what is not needed, if there is much of it. Nothing may be dirty. */
void bel__counts_trim(struct bel_counts *counts);

#endif
