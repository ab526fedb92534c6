/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_SIPHASH_H
#define BEL_CORE_SIPHASH_H

/*
 * siphash - SipHash-2-4: a hash that only who knows the key can foresee.
 *
 * For tables whose keys are chosen by users: without the key nobody can choose names
 * that all collide. It is not a checksum for data on disk, and 64 bits are too few to
 * authenticate what is worth forging.
 */

#include <stddef.h>
#include <stdint.h>

struct bel_siphash_key {
    uint8_t bytes[16];
};

/* The hash of `bytes` bytes, of which there may be none. The same on every machine. */
uint64_t bel__siphash(struct bel_siphash_key key, const void *data, size_t bytes);

#endif
