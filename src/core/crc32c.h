/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_CRC32C_H
#define BEL_CORE_CRC32C_H

/*
 * crc32c - the Castagnoli checksum: detects accidental changes by a disk or a network.
 *
 * It detects every burst of up to 32 bits, up to three changed bits anywhere in less than 2^31
 * bits, and all but one in 2^32 of other changes. It does not detect deliberate changes.
 *
 *     crc = bel__crc32c(0, head, head_bytes);
 *     crc = bel__crc32c(crc, body, body_bytes);      the checksum of both, one after the other
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues the checksum `crc` of earlier bytes, 0 if there are none, with `bytes` more bytes,
 * which may be 0. The result is the same on every machine. */
uint32_t bel__crc32c(uint32_t crc, const void *data, size_t bytes);

/* The two implementations, for tests: by tables, and by a processor instruction if there is one. */
uint32_t bel__crc32c_by_table(uint32_t crc, const void *data, size_t bytes);
bool bel__crc32c_has_instruction(void);
uint32_t bel__crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes);

#endif
