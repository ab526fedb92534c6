/* SPDX-License-Identifier: MIT */

/*
 * The sum mixes the checksum with the words of the key. Each step is a bijection, so rows with
 * different keys and equal checksums have different sums. The value enters only by its checksum and
 * length: a change that the checksum misses is not noticed when the row is read, either.
 */
#include "store/io/row.h"

#include "core/crc32c.h"
#include "core/endian.h"

#include <assert.h>
#include <string.h>

void bel__key_write(const struct bel_key *key, unsigned char bytes[BEL_KEY_BYTES])
{
    for (size_t i = 0; i < 3; i++) {
        bel__store_be64(bytes + 8 * i, key->words[i]);
    }
}

struct bel_key bel__key_read(const unsigned char bytes[BEL_KEY_BYTES])
{
    struct bel_key key = {{0, 0, 0}};
    for (size_t i = 0; i < 3; i++) {
        key.words[i] = bel__load_be64(bytes + 8 * i);
    }
    return key;
}

uint32_t bel__row_checksum(const struct bel_key *key, struct bel_view value)
{
    unsigned char bytes[BEL_KEY_BYTES];
    assert(value.data != NULL || value.bytes == 0);
    bel__key_write(key, bytes);
    uint32_t checksum = bel__crc32c(0, bytes, sizeof bytes);
    return value.bytes == 0 ? checksum : bel__crc32c(checksum, value.data, value.bytes);
}

static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t bel__row_sum(const struct bel_key *key, uint32_t checksum, size_t value_bytes)
{
    assert(value_bytes <= UINT32_MAX);
    uint64_t sum = mix((uint64_t)value_bytes << 32 | checksum);
    for (int i = 0; i < 3; i++) {
        sum = mix(sum ^ key->words[i]);
    }
    return sum;
}
