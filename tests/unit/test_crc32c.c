/* SPDX-License-Identifier: MIT */
#include "core/crc32c.h"

#include "../check.h"
#include "../random.h"

#include <string.h>

typedef uint32_t checksum(uint32_t crc, const void *data, size_t bytes);

/* All ways there are; twice the same where the processor has no instruction. */
static checksum *ways[3] = {bel__crc32c, bel__crc32c_by_table, bel__crc32c};

/* Bit by bit, by the polynomial. */
static uint32_t by_bit(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
        }
    }
    return ~crc;
}

static void the_published_vectors_come_out(void)
{
    uint8_t zeros[32], ones[32], rising[32], falling[32];
    for (unsigned i = 0; i < 32; i++) {
        zeros[i] = 0;
        ones[i] = 0xff;
        rising[i] = (uint8_t)i;
        falling[i] = (uint8_t)(31 - i);
    }
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(ways[i](0, "123456789", 9), 0xe3069283);
        CHECK_EQ(ways[i](0, zeros, 32), 0x8a9136aa);
        CHECK_EQ(ways[i](0, ones, 32), 0x62a8ab43);
        CHECK_EQ(ways[i](0, rising, 32), 0x46dd794e);
        CHECK_EQ(ways[i](0, falling, 32), 0x113fdb5c);
    }
}

static void nothing_changes_nothing(void)
{
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(ways[i](0, NULL, 0), 0);
        CHECK_EQ(ways[i](12345, NULL, 0), 12345);
        CHECK_EQ(ways[i](0xffffffff, "", 0), 0xffffffff);
    }
}

static void all_ways_agree_wherever_the_bytes_lie(void)
{
    uint8_t room[8 + 300];
    uint64_t random_state = 1;
    random_fill(&random_state, room, sizeof room);
    for (unsigned shift = 0; shift < 8; shift++) {
        for (size_t bytes = 0; bytes <= 300; bytes++) {
            uint32_t seed = (uint32_t)random_u64(&random_state);
            uint32_t want = by_bit(seed, room + shift, bytes);
            CHECK_NOTE("%zu bytes at %u", bytes, shift);
            for (unsigned i = 0; i < 3; i++) {
                CHECK_EQ(ways[i](seed, room + shift, bytes), want);
            }
        }
    }
    CHECK_NOTE("%s", "");
}

static void parts_one_after_the_other_are_the_whole(void)
{
    uint8_t data[100];
    uint64_t random_state = 2;
    random_fill(&random_state, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        for (unsigned i = 0; i < 3; i++) {
            uint32_t head = ways[i](0, data, cut);
            CHECK_EQ(ways[(i + 1) % 3](head, data + cut, sizeof data - cut),
                     ways[i](0, data, sizeof data));
        }
    }
}

static void every_flipped_bit_is_seen(void)
{
    uint8_t data[64];
    memset(data, 'x', sizeof data);
    uint32_t crc = bel__crc32c(0, data, sizeof data);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        CHECK(bel__crc32c(0, data, sizeof data) != crc);
        data[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    CHECK_EQ(bel__crc32c(0, data, sizeof data), crc);
}

int main(void)
{
    if (bel__crc32c_has_instruction()) ways[2] = bel__crc32c_by_instruction;
    RUN(the_published_vectors_come_out);
    RUN(nothing_changes_nothing);
    RUN(all_ways_agree_wherever_the_bytes_lie);
    RUN(parts_one_after_the_other_are_the_whole);
    RUN(every_flipped_bit_is_seen);
    return 0;
}
