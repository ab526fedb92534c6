/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ENDIAN_H
#define BEL_CORE_ENDIAN_H

/*
 * endian - numbers as bytes that may be anywhere: keys in big-endian order, so that bytes sort as
 * the numbers do; file formats in little-endian order.
 */

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void bel__store_be64(void *out, uint64_t value)
{
    value = htobe64(value);
    memcpy(out, &value, sizeof value);
}

static inline uint64_t bel__load_be64(const void *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return be64toh(value);
}

static inline void bel__store_le32(void *out, uint32_t value)
{
    value = htole32(value);
    memcpy(out, &value, sizeof value);
}

static inline uint32_t bel__load_le32(const void *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return le32toh(value);
}

static inline void bel__store_le64(void *out, uint64_t value)
{
    value = htole64(value);
    memcpy(out, &value, sizeof value);
}

static inline uint64_t bel__load_le64(const void *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return le64toh(value);
}

#endif
