/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_REPLAY_H
#define BEL_STORE_REPLAY_H

/*
 * replay - the rows of a log, brought into a delta.
 *
 *     bel__replay_init(&replay, delta);
 *     err = bel__replay_add(&replay, &row);       in the order of the log, as many as there are
 *     err = bel__replay_end(&replay);             now the delta has them
 *     bel__replay_finish(&replay);
 *
 * A log has rows in the order of time, and a delta wants them in the order of keys. One by one,
 * each would be a search through a map that is in no cache; so they are gathered, sorted, and
 * appended.
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

/* Takes a row, which is copied. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__replay_add(struct bel_replay *replay, const struct bel_frame_row *row);

/* Puts into the delta what the last row of each key says. Returns 0 or BEL_ENOMEM. */
BEL_CHECKED int bel__replay_end(struct bel_replay *replay);

/* Releases what was gathered; what the delta has stays. */
void bel__replay_finish(struct bel_replay *replay);

#endif
