/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_COUNTS_H
#define BEL_ENGINE_ROWS_COUNTS_H

/*
 * counts - numbers of timers by topic and hour, and by group, kept up to date so that no command
 * has to count rows.
 *
 * A count is a row of one or more numbers. The hours of a topic are grouped in stretches of 64, so
 * that a batch of timers with scattered due times changes few rows. Changed rows are kept in memory
 * and written once, when the batch ends. Changing a number cannot fail, loading its count can:
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

/* The numbers kept for a topic, in the order of the topic's row. */
enum bel_topic_number {
    BEL_NUMBER_PENDING, /* timers that are scheduled, ready or leased */
    BEL_NUMBER_BLOCKED,
    BEL_NUMBER_PLANS,
    BEL_NUMBER_SHARES, /* groups with unfinished timers; "no group" counts as one */
    BEL_NUMBER_PLAIN,  /* unfinished timers without a group */
    BEL_NUMBER_ENDED,  /* the first of five: one for each terminal state */
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
    struct bel_count *next_dirty; /* valid if is_dirty */
    bool is_dirty, is_new;        /* differs from its row; has no row yet */
    unsigned numbers_count;
    unsigned row_bytes; /* upper bound */
    uint64_t which;     /* bit i is set if number i is not 0 */
    uint64_t numbers[];
};

struct bel_counts {
    struct bel_map map;                      /* key -> struct bel_count * */
    struct bel_count *last[BEL_COUNT_KINDS]; /* the last count held of each kind, or NULL */
    struct bel_count *dirty;
    size_t dirty_count, dirty_bytes; /* rows to write */
    size_t row_bytes_max;            /* the largest row_bytes in memory */
    size_t bytes;                    /* of memory, approximately */
    uint32_t trimmed;                /* counts freed so far: the next to be freed is chosen by it */
};

void bel__counts_init(struct bel_counts *counts, struct bel_siphash_key secret);
void bel__counts_finish(struct bel_counts *counts);

/* Reads the numbers of a row that has room for `count` numbers. Leaves numbers that are 0 alone,
 * and sets a bit in `*out_which` for each other number. Returns false if the row is damaged. */
bool bel__count_read(struct bel_view row, unsigned count, uint64_t *numbers, uint64_t *out_which);

/* Finds or loads a count; a count without a row is all 0. The pointer is valid until
 * bel__counts_trim(). Returns 0, BEL_ENOMEM, or an error of the store. */
BEL_CHECKED int bel__count_hold(struct bel_counts *counts, struct bel_store *store,
                                const struct bel_key *key, struct bel_count **out);

/* Adds to a number, which must not go below 0. Room for all dirty rows must be reserved. */
void bel__count_add(struct bel_counts *counts, struct bel_count *count, unsigned index,
                    int64_t delta);

/* Returns the bytes to reserve for the dirty rows and for `more` changes of held counts. */
size_t bel__counts_row_bytes(const struct bel_counts *counts, size_t more);

/* Writes the dirty counts. A count that is all 0 loses its row. */
void bel__counts_flush(struct bel_counts *counts, struct bel_store *store);

/* Frees some counts if all use much memory: as many as are too much, or as a turn can free. No
 * count may be dirty. */
void bel__counts_trim(struct bel_counts *counts);

#endif
