/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SIPHASH_H
#define BEL_CORE_SIPHASH_H

/*
 * siphash - SipHash-2-4, a keyed hash: its values are unpredictable without the key.
 *
 * For hash tables whose keys users choose: without the secret nobody can choose names that all
 * collide. Not a checksum for data on disk, and with 64 bits too short for authentication.
 */

#include <stddef.h>
#include <stdint.h>

struct bel_siphash_key {
    uint8_t bytes[16];
};

/* Returns the hash of `bytes` bytes, which may be 0. The result is the same on every machine. */
uint64_t bel__siphash(struct bel_siphash_key key, const void *data, size_t bytes);

#endif
