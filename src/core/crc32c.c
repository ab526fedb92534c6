/* SPDX-License-Identifier: MIT */

/*
 * Eight bytes per step with eight tables: table t holds the contribution of each byte if t more
 * bytes follow it, so that eight lookups are independent and are combined by exclusive-or.
 *
 * The entry of a byte is the exclusive-or of the entries of its bits. The source therefore lists
 * eight constants per table, and the compiler computes the 256 entries. Constant tables need no
 * initialisation at run time, and so no synchronisation between threads.
 */
#include "core/crc32c.h"

#include <assert.h>

#define SUM(b, c0, c1, c2, c3, c4, c5, c6, c7)                                                     \
    (((b)&1 ? (c0) : 0U) ^ ((b)&2 ? (c1) : 0U) ^ ((b)&4 ? (c2) : 0U) ^ ((b)&8 ? (c3) : 0U) ^       \
     ((b)&16 ? (c4) : 0U) ^ ((b)&32 ? (c5) : 0U) ^ ((b)&64 ? (c6) : 0U) ^ ((b)&128 ? (c7) : 0U))
#define SUMS4(b, ...)                                                                              \
    SUM(b, __VA_ARGS__), SUM((b) + 1, __VA_ARGS__), SUM((b) + 2, __VA_ARGS__),                     \
        SUM((b) + 3, __VA_ARGS__)
#define SUMS16(b, ...)                                                                             \
    SUMS4(b, __VA_ARGS__), SUMS4((b) + 4, __VA_ARGS__), SUMS4((b) + 8, __VA_ARGS__),               \
        SUMS4((b) + 12, __VA_ARGS__)
#define SUMS64(b, ...)                                                                             \
    SUMS16(b, __VA_ARGS__), SUMS16((b) + 16, __VA_ARGS__), SUMS16((b) + 32, __VA_ARGS__),          \
        SUMS16((b) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        SUMS64(0, __VA_ARGS__), SUMS64(64, __VA_ARGS__), SUMS64(128, __VA_ARGS__),                 \
            SUMS64(192, __VA_ARGS__)                                                               \
    }

/* The entries of the bits 1, 2, 4 ... 128. The last entry of the first table is the polynomial. */
static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
          0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
          0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
          0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
          0x34019664),
};

static uint32_t add_byte(uint32_t crc, uint8_t byte)
{
    return tables[0][(crc ^ byte) & 255] ^ crc >> 8;
}

static uint32_t add_eight(uint32_t crc, const uint8_t *p)
{
    uint32_t low =
        crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    return tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
           tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
           tables[0][p[7]];
}

uint32_t bel__crc32c_by_table(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    assert(data != NULL || bytes == 0);
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        crc = add_eight(crc, p);
    }
    for (; bytes > 0; bytes--, p++) {
        crc = add_byte(crc, *p);
    }
    return ~crc;
}

uint32_t bel__crc32c(uint32_t crc, const void *data, size_t bytes)
{
    if (bel__crc32c_has_instruction()) return bel__crc32c_by_instruction(crc, data, bytes);
    return bel__crc32c_by_table(crc, data, bytes);
}
