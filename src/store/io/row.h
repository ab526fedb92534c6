/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_IO_ROW_H
#define BEL_STORE_IO_ROW_H

/*
 * row - a key and a value as bytes that can be checked.
 *
 * A row's checksum covers its key and its value, so that a value under the wrong key does not
 * pass. A row's sum is a number of 64 bits that depends on both as well; the sums of all rows,
 * added up, say whether one is missing, twice there, or another, in whatever order they are
 * met.
 */

#include "belfry/view.h"
#include "core/sorted.h"

#include <stdint.h>

enum {
    BEL_KEY_BYTES = 24,
    BEL_STORE_VALUE_BYTES_MAX = 4000, /* of a row; what is larger is cut into rows */
};

/* The bytes of a key, which sort as keys do. */
void bel__key_write(const struct bel_key *key, unsigned char bytes[BEL_KEY_BYTES]);
struct bel_key bel__key_read(const unsigned char bytes[BEL_KEY_BYTES]);

/* The checksum of a row. */
uint32_t bel__row_checksum(const struct bel_key *key, struct bel_view value);

/* The sum of a row, given its checksum and the length of its value. */
uint64_t bel__row_sum(const struct bel_key *key, uint32_t checksum, size_t value_bytes);

#endif
