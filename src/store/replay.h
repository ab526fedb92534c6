/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_REPLAY_H
#define BEL_STORE_REPLAY_H

/*
 * replay - loads the rows of a log into a delta.
 *
 *     bel__replay_init(&replay, delta);
 *     err = bel__replay_add(&replay, &row);       for each row, in the order of the log
 *     err = bel__replay_end(&replay);             now the delta has them
 *     bel__replay_finish(&replay);
 *
 * A log has rows in the order of time, a delta in the order of keys. Inserting them one by one
 * would miss the CPU cache each time, so they are collected, sorted and appended.
 */

#include "store/delta.h"
#include "store/log/format.h"

#include <stddef.h>

struct bel_replay_row {
    struct bel_key key;
    struct bel_delta_entry *entry; /* in the delta's memory, but not in its map yet */
};

/* The fields are private. */
struct bel_replay {
    struct bel_delta *delta; /* borrowed; empty */
    struct bel_replay_row *rows;
    size_t count, capacity;
};

void bel__replay_init(struct bel_replay *replay, struct bel_delta *delta);

/* Adds a row, which is copied. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__replay_add(struct bel_replay *replay, const struct bel_frame_row *row);

/* Puts the last row of each key into the delta. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__replay_end(struct bel_replay *replay);

/* Frees the collected rows. The delta keeps its rows. */
void bel__replay_finish(struct bel_replay *replay);

#endif
