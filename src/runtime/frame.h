/* SPDX-License-Identifier: MIT */
#ifndef BEL_RUNTIME_FRAME_H
#define BEL_RUNTIME_FRAME_H

/*
 * frame - the header and the checksum of snapshots, which have entries of one size. The table in
 * snapshot.c describes the bytes.
 */

#include "belfry/clock.h"
#include "belfry/error.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HEADER_BYTES = 32,
};

struct header {
    uint8_t magic[8];
    uint8_t version[4];
    uint8_t count[4];
    uint8_t wall_ms[8];
    uint8_t checksum[8];
};

static_assert(sizeof(struct header) == HEADER_BYTES, "as in the table");
static_assert(offsetof(struct header, version) == 8, "as in the table, in every version");
static_assert(offsetof(struct header, checksum) == 24, "as in the table, in every version");

/* A kind of snapshot. */
struct frame {
    const uint8_t *magic; /* 8 bytes */
    uint32_t version;
    uint32_t entry_bytes;
};

static inline void put(uint8_t *out, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(number >> 8 * i);
    }
}

static inline uint64_t get(const uint8_t *in, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++) {
        number |= (uint64_t)in[i] << 8 * i;
    }
    return number;
}

static inline uint64_t crc64(uint64_t crc, const uint8_t *in, size_t bytes)
{
    static const uint64_t by_nibble[16] = {
        UINT64_C(0x0000000000000000), UINT64_C(0x7d9ba13851336649), UINT64_C(0xfb374270a266cc92),
        UINT64_C(0x86ace348f355aadb), UINT64_C(0x64b62bcaebc387a1), UINT64_C(0x192d8af2baf0e1e8),
        UINT64_C(0x9f8169ba49a54b33), UINT64_C(0xe21ac88218962d7a), UINT64_C(0xc96c5795d7870f42),
        UINT64_C(0xb4f7f6ad86b4690b), UINT64_C(0x325b15e575e1c3d0), UINT64_C(0x4fc0b4dd24d2a599),
        UINT64_C(0xadda7c5f3c4488e3), UINT64_C(0xd041dd676d77eeaa), UINT64_C(0x56ed3e2f9e224471),
        UINT64_C(0x2b769f17cf112238),
    };
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= in[i];
        crc = crc >> 4 ^ by_nibble[crc & 15];
        crc = crc >> 4 ^ by_nibble[crc & 15];
    }
    return ~crc;
}

static inline uint64_t checksum(const uint8_t *snapshot, size_t bytes)
{
    uint64_t crc = crc64(0, snapshot, offsetof(struct header, checksum));
    return crc64(crc, snapshot + HEADER_BYTES, bytes - HEADER_BYTES);
}

/* Writes the header of a snapshot, except its checksum. */
static inline void frame_begin(const struct frame *frame, uint8_t *snapshot, uint32_t count,
                               struct bel_wall wall)
{
    struct header *header = (struct header *)(void *)snapshot;
    *header = (struct header){0};
    memcpy(header->magic, frame->magic, sizeof header->magic);
    put(header->version, frame->version, sizeof header->version);
    put(header->count, count, sizeof header->count);
    put(header->wall_ms, (uint64_t)wall.ms, sizeof header->wall_ms);
}

/* Sets the checksum of an otherwise complete snapshot. */
static inline void frame_seal(uint8_t *snapshot, size_t bytes)
{
    uint64_t sum = checksum(snapshot, bytes);
    put(snapshot + offsetof(struct header, checksum), sum, sizeof sum);
}

/* Returns 0; BEL_ECORRUPT if a snapshot is damaged or of another kind; or BEL_EINVAL if its version
 * is newer. */
static inline int frame_check(const struct frame *frame, const uint8_t *snapshot, size_t bytes)
{
    const struct header *header = (const struct header *)(const void *)snapshot;
    if (bytes < HEADER_BYTES) return BEL_ECORRUPT;
    if (memcmp(header->magic, frame->magic, sizeof header->magic) != 0) return BEL_ECORRUPT;
    uint64_t sum = get(header->checksum, sizeof header->checksum);
    if (sum != checksum(snapshot, bytes)) return BEL_ECORRUPT;
    uint64_t version = get(header->version, sizeof header->version);
    if (version > frame->version) return BEL_EINVAL;
    if (version < frame->version) return BEL_ECORRUPT;
    if ((bytes - HEADER_BYTES) % frame->entry_bytes != 0) return BEL_ECORRUPT;
    uint64_t count = get(header->count, sizeof header->count);
    return count == (bytes - HEADER_BYTES) / frame->entry_bytes ? 0 : BEL_ECORRUPT;
}

#endif
