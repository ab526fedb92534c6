/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_IO_ROW_H
#define BEL_STORE_IO_ROW_H

/*
 * row - the bytes of a key, and the checksum and the sum of a row.
 *
 * The checksum covers key and value, so that a value under the wrong key is noticed. The sum is a
 * 64-bit hash of both. The total of the sums of all rows does not depend on their order, and
 * changes if a row is missing, duplicated or different.
 */

#include "belfry/view.h"
#include "core/sorted.h"

#include <stdint.h>

enum {
    BEL_KEY_BYTES = 24,
    BEL_STORE_VALUE_BYTES_MAX = 4000, /* the largest value; callers split larger ones */
};

/* Convert a key to bytes, whose memcmp order is the order of keys, and back. */
void bel__key_write(const struct bel_key *key, unsigned char bytes[BEL_KEY_BYTES]);
struct bel_key bel__key_read(const unsigned char bytes[BEL_KEY_BYTES]);

/* Returns the CRC-32C of a row's key and value. */
uint32_t bel__row_checksum(const struct bel_key *key, struct bel_view value);

/* Returns the sum of a row, given its checksum and the length of its value. */
uint64_t bel__row_sum(const struct bel_key *key, uint32_t checksum, size_t value_bytes);

#endif
