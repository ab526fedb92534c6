/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_COUNTS_H
#define BEL_ENGINE_ROWS_COUNTS_H

/*
 * counts - numbers that are kept up to date so that nobody has to count: timers by topic and
 * hour, and by group.
 *
 * A count is a row of one number or several: the hours of a topic are in stretches of 64, so that
 * a batch of timers that are due here and there changes few rows. Rows that change are kept in
 * memory until the batch ends and then written once, however often they changed. To change a
 * number cannot fail, but to have it at hand can:
 *
 *     err = bel__count_hold(counts, store, &key, &count);
 *     ...
 *     bel__count_add(counts, count, index, +1);
 */

#include "belfry/timer.h"
#include "core/map.h"
#include "core/units.h"
#include "engine/rows/encoding.h"
#include "store/store.h"

#include <stdint.h>

/* The numbers of a topic, in the order of its row. */
enum bel_topic_number {
    BEL_NUMBER_PENDING, /* timers that are scheduled, ready or leased */
    BEL_NUMBER_BLOCKED,
    BEL_NUMBER_PLANS,
    BEL_NUMBER_SHARES, /* groups, and "no group", that have unfinished timers */
    BEL_NUMBER_PLAIN,  /* unfinished timers without a group */
    BEL_NUMBER_ENDED,  /* and four more: one for each terminal state */
    BEL_NUMBERS = BEL_NUMBER_ENDED + BEL_STATES - BEL_DONE,
};

/* What is counted: the lane of a key in BEL_TABLE_COUNTS. */
enum bel_count_kind {
    BEL_COUNT_TOPIC, /* all of enum bel_topic_number, in one row */
    BEL_COUNT_HOURS, /* pending timers of a topic that are due in each hour of a stretch */
    BEL_COUNT_GROUP, /* unfinished timers of a group: one number */
    BEL_COUNT_KINDS,
};

enum {
    BEL_COUNT_NUMBERS_MAX = 64,
    BEL_STRETCH_MS = BEL_COUNT_NUMBERS_MAX * MS_PER_HOUR,
    BEL_COUNT_ROW_BYTES_MAX = (1 + BEL_COUNT_NUMBERS_MAX) * BEL_ENCODED_NUMBER_BYTES_MAX,
};

struct bel_count {
    struct bel_key key;
    struct bel_count *next_dirty; /* valid if it is dirty */
    bool is_dirty, is_new;        /* differs from its row; has none */
    unsigned numbers_count;
    unsigned row_bytes; /* at most */
    uint64_t which;     /* a bit for each number that is not 0 */
    uint64_t numbers[];
};

struct bel_counts {
    struct bel_map map;                      /* key -> struct bel_count * */
    struct bel_count *last[BEL_COUNT_KINDS]; /* held, as it is likely to be held again; or NULL */
    struct bel_count *dirty;
    size_t dirty_count, dirty_bytes; /* rows that have to be written */
    size_t row_bytes_max;            /* of any that is in memory */
    size_t bytes;                    /* of memory, about */
};

void bel__counts_init(struct bel_counts *counts, struct bel_siphash_key secret);
void bel__counts_finish(struct bel_counts *counts);

/* The numbers of a row that can have `count`; those that are 0 are left as they are, and
 * `*out_which` has a bit for each of the others. False if there is something else in it. */
bool bel__count_read(struct bel_view row, unsigned count, uint64_t *numbers, uint64_t *out_which);

/* Finds a count; one that has no row is all 0. Good until bel__counts_trim(). Returns 0, or
 * BEL_ENOMEM or what the store says. */
BEL_CHECKED int bel__count_hold(struct bel_counts *counts, struct bel_store *store,
                                const struct bel_key *key, struct bel_count **out);

/* Adds to a number, which does not go below 0. Room must be reserved for all that is dirty. */
void bel__count_add(struct bel_counts *counts, struct bel_count *count, unsigned index,
                    int64_t delta);

/* How many bytes have to be reserved for what is dirty, and for `more` changes of what is held. */
size_t bel__counts_row_bytes(const struct bel_counts *counts, size_t more);

/* Writes down what has changed. What is all 0 loses its row. */
void bel__counts_flush(struct bel_counts *counts, struct bel_store *store);

/* Forgets what is not needed, if there is much of it. Nothing may be dirty. */
void bel__counts_trim(struct bel_counts *counts);

#endif
