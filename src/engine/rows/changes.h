/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_ROWS_CHANGES_H
#define BEL_ENGINE_ROWS_CHANGES_H

/*
 * changes - which batch changed a row or a topic last, for batches that may not be durable yet.
 *
 * A reply that shows a row waits until the batch that changed the row last is durable. If batches
 * are durable when a turn ends, no reply has to wait, and nothing is noted.
 *
 * Batches that are durable are forgotten: the result for a row whose last change is durable is 0 or
 * any durable batch.
 *
 * Threads: belongs to one thread.
 */

#include "core/siphash.h"
#include "engine/rows/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Private: from hashes of rows and topics to batches. */
struct bel_changes_table {
    struct bel_changes_entry *entries;
    size_t count, capacity; /* the capacity is 0 or a power of two */
    uint64_t last;          /* the last batch in it */
};

/* The fields are private, except `is_on` and `count`. */
struct bel_changes {
    bool is_on;     /* changes are noted */
    uint64_t count; /* changes noted since the engine was opened */
    struct bel_siphash_key secret;
    struct bel_changes_table young, old;
    uint64_t batch;   /* of the changes that are made now */
    uint64_t durable; /* the last durable batch when it began */
    uint64_t last;    /* the last batch with a change */
    uint64_t lost;    /* memory ran out: any row may have changed in this batch */
    uint64_t topic_batch;
    uint32_t topic; /* noted last, in batch topic_batch */
};

/* Initializes; changes are noted from now on, or from bel__changes_start() on. */
void bel__changes_init(struct bel_changes *changes, struct bel_siphash_key secret, bool is_on);
void bel__changes_start(struct bel_changes *changes);
void bel__changes_finish(struct bel_changes *changes);

/* The next changes belong to `batch`; those up to `durable` can be forgotten. */
void bel__changes_begin(struct bel_changes *changes, uint64_t batch, uint64_t durable);

/* Notes that a row was put or deleted. */
void bel__changes_note(struct bel_changes *changes, const struct bel_key *key);

/* Return the last batch that changed a row; a row of a topic; the names of topics; anything. */
uint64_t bel__changes_of_row(const struct bel_changes *changes, const struct bel_key *key);
uint64_t bel__changes_of_topic(const struct bel_changes *changes, uint32_t topic);
uint64_t bel__changes_of_names(const struct bel_changes *changes);
uint64_t bel__changes_of_all(const struct bel_changes *changes);

#endif
