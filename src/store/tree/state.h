/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_TREE_STATE_H
#define BEL_STORE_TREE_STATE_H

/*
 * state - the record that a tree on disk keeps about its rows, as bytes:
 *
 *     offset 0   format u32, which is 1
 *            4   checksum u32, of the record with 0 here
 *            8   epoch u64
 *           16   rows u64
 *           24   sum u64, see io/row.h
 *
 * Numbers are little-endian. The record is the value of "state" in the table "state".
 */

#include "belfry/error.h"
#include "belfry/view.h"

#include <stdint.h>

enum {
    BEL_TREE_STATE_BYTES = 32,
};

struct bel_tree_state {
    uint64_t epoch, rows, sum;
};

void bel__tree_state_write(const struct bel_tree_state *state,
                           unsigned char out[BEL_TREE_STATE_BYTES]);

/* Returns 0 and sets `*out`; BEL_ECORRUPT, or BEL_EUNSUPPORTED for another format. */
BEL_CHECKED int bel__tree_state_read(struct bel_view bytes, struct bel_tree_state *out);

#endif
