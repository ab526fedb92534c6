/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_CRC32C_H
#define BEL_CORE_CRC32C_H

/*
 * crc32c - the Castagnoli checksum: finds what a disk or a line has changed by chance.
 *
 * It finds every change of up to 32 bits in a row, of up to three bits anywhere in what is
 * shorter than 2^31 bits, and all but one in four thousand million of others. It does not find
 * what somebody changes on purpose.
 *
 *     crc = bel__crc32c(0, head, head_bytes);
 *     crc = bel__crc32c(crc, body, body_bytes);      the checksum of both, one after the other
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` is the checksum of, 0 for nothing, followed by `bytes` bytes, of
 * which there may be none. The same on every machine. */
uint32_t bel__crc32c(uint32_t crc, const void *data, size_t bytes);

/* The two ways to get it, for tests: by tables; and by an instruction, if the processor has it. */
uint32_t bel__crc32c_by_table(uint32_t crc, const void *data, size_t bytes);
bool bel__crc32c_has_instruction(void);
uint32_t bel__crc32c_by_instruction(uint32_t crc, const void *data, size_t bytes);

#endif
