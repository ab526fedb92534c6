/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_CRC16_H
#define BEL_CORE_CRC16_H

/*
 * crc16 - the checksum by which Redis Cluster spreads keys: CRC-16/XMODEM, polynomial 0x1021.
 *
 * Spreads texts over up to 65,536 places. Too weak to detect damage: see crc32c.h.
 */

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum `crc` of earlier bytes, 0 if there are none, with `bytes` more bytes,
 * which may be 0. */
uint16_t bel__crc16(uint16_t crc, const void *data, size_t bytes);

#endif
