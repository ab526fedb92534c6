/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_ROWS_H
#define BEL_ENGINE_ROWS_ROWS_H

/*
 * rows - puts and deletes rows in the batch of the current turn, within a reservation.
 *
 * Reserving room can fail, writing cannot:
 *
 *     err = bel__rows_reserve(rows, 2, bytes, BEL_STORE_ADD);
 *     if (err) return err;
 *     bel__rows_put(rows, &key, value, BEL_ROW_NEW);
 *     bel__rows_delete(rows, &other);
 *
 * Counts are kept in memory and written once, when the batch ends. So every reservation includes
 * the rows of counts: the counts that have changed, and the counts that the command may change.
 */

#include "engine/rows/changes.h"
#include "engine/rows/counts.h"
#include "engine/rows/key.h"
#include "store/store.h"

enum {
    BEL_RESOURCE_ROW_BYTES = 860, /* of a resource's row, at most */
};

/* Rows and bytes that are reserved in the store and not used yet. */
struct bel_room {
    size_t rows, bytes;
    enum bel_store_use use;
};

struct bel_rows {
    struct bel_store *store; /* borrowed */
    struct bel_counts counts;
    struct bel_changes changes; /* noted if batches become durable after their turn */
    size_t topic_rows; /* topics whose numbers have changed: each is a row when the batch ends */
    size_t resource_rows, resource_more; /* the same of resources; more that a command may change */
    size_t probes;     /* resources that have one: an addition that replaces it changes them, too */
    uint64_t sequence; /* the next sequence number to return */
    struct bel_room room;
    bool has_changed; /* a row was put or deleted since the batch began */
};

/* Reserves `count` rows of `bytes` bytes in total, and the rows of counts. Returns 0, or an error
 * of bel__store_reserve(): BEL_EBUSY if the batch is full, BEL_EFULL, BEL_ENOMEM. */
BEL_CHECKED int bel__rows_reserve(struct bel_rows *rows, size_t count, size_t bytes,
                                  enum bel_store_use use);

/* Put or delete a row. The row must be reserved. */
void bel__rows_put(struct bel_rows *rows, const struct bel_key *key, struct bel_view value,
                   enum bel_row row);
void bel__rows_delete(struct bel_rows *rows, const struct bel_key *key);

/* Returns a new sequence number: larger than all before, never used again. */
uint64_t bel__rows_sequence(struct bel_rows *rows);

/* Writes the counts that have changed. Their rows must be reserved. */
void bel__rows_put_counts(struct bel_rows *rows);

/* Ends the batch and gives up the unused part of the reservation. */
void bel__rows_end(struct bel_rows *rows);

#endif
