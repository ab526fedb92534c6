/* SPDX-License-Identifier: MIT */

/*
 * The file format of RFC 9636, versions 1 to 4. All numbers are big-endian.
 *
 *     header        0    4   "TZif"
 *                   4    1   version: 0, '2', '3' or '4'
 *                   5   15   unused
 *                  20    4   isut_count       0 or type_count
 *                  24    4   isstd_count      0 or type_count
 *                  28    4   leap_count
 *                  32    4   time_count
 *                  36    4   type_count
 *                  40    4   char_count
 *
 *     block         W each   time_count instants, ascending
 *                   1 each   time_count indices of types
 *                   6 each   type_count types: 4 offset, 1 is DST, 1 index of the name
 *                   1 each   char_count bytes of names, each ending in 0
 *               W + 4 each   leap_count leap seconds
 *                   1 each   isstd_count marks, then isut_count marks
 *
 *     version 1     header, block with W = 4
 *     later         header, block with W = 4, header, block with W = 8, footer
 *     footer        '\n', a TZ string or nothing, '\n'
 *
 * The first block of a later version is for old readers. It may contain less or nothing, so only
 * its size is computed, and it is skipped.
 *
 * Instants of a file with leap seconds (those in right/) count them; other files do not. Mixing the
 * two would be wrong by half a minute, so files with leap seconds are rejected.
 */
#include "plan/tzif.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    HEADER_BYTES = 44,
    VERSION_AT = 4,
    COUNTS_AT = 20,
};

struct header {
    uint8_t version;
    uint32_t isut_count, isstd_count, leap_count, time_count, type_count, char_count;
};

/* The bytes that are left to read. */
struct cursor {
    const uint8_t *next;
    size_t bytes;
};

static uint32_t read_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static int64_t read_i64(const uint8_t *from)
{
    return (int64_t)((uint64_t)read_u32(from) << 32 | read_u32(from + 4));
}

/* Takes some bytes. Returns the first, or NULL if there are fewer. */
static const uint8_t *take(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor->bytes) return NULL;
    const uint8_t *taken = cursor->next;
    cursor->next += bytes;
    cursor->bytes -= (size_t)bytes;
    return taken;
}

static bool read_header(struct cursor *cursor, struct header *out)
{
    const uint8_t *bytes = take(cursor, HEADER_BYTES);
    if (bytes == NULL || memcmp(bytes, "TZif", 4) != 0) return false;
    const uint8_t *counts = bytes + COUNTS_AT;
    *out = (struct header){
        .version = bytes[VERSION_AT],
        .isut_count = read_u32(counts),
        .isstd_count = read_u32(counts + 4),
        .leap_count = read_u32(counts + 8),
        .time_count = read_u32(counts + 12),
        .type_count = read_u32(counts + 16),
        .char_count = read_u32(counts + 20),
    };
    return out->version == 0 || (out->version >= '2' && out->version <= '4');
}

/* Returns the size of a block. Counts have 32 bits, so the sum cannot overflow. */
static uint64_t block_bytes(const struct header *header, uint64_t time_bytes)
{
    return header->time_count * (time_bytes + 1) + header->type_count * UINT64_C(6) +
           header->char_count + header->leap_count * (time_bytes + 4) + header->isstd_count +
           header->isut_count;
}

static bool counts_are_valid(const struct header *header)
{
    uint32_t types = header->type_count;
    return types > 0 && header->char_count > 0 && header->leap_count == 0 &&
           (header->isstd_count == 0 || header->isstd_count == types) &&
           (header->isut_count == 0 || header->isut_count == types);
}

static bool types_are_valid(const struct tzif *tzif, const uint8_t *names, uint32_t name_bytes)
{
    for (uint32_t i = 0; i < tzif->type_count; i++) {
        const uint8_t *type = tzif->types + (size_t)i * TZIF_TYPE_BYTES;
        int32_t offset = (int32_t)read_u32(type);
        if (offset < TZIF_OFFSET_MIN || offset > TZIF_OFFSET_MAX) return false;
        uint8_t is_dst = type[4], name = type[5];
        if (is_dst > 1 || name >= name_bytes) return false;
        if (memchr(names + name, 0, name_bytes - name) == NULL) return false;
    }
    return true;
}

static bool times_are_valid(const struct tzif *tzif)
{
    int64_t before = -TZIF_TIME_MAX - 1;
    for (uint32_t i = 0; i < tzif->time_count; i++) {
        int64_t time = bel__tzif_time(tzif, i);
        if (time <= before || time > TZIF_TIME_MAX) return false;
        if (tzif->indexes[i] >= tzif->type_count) return false;
        before = time;
    }
    return true;
}

/* Each mark is 0 or 1; an instant given in UT is also marked as standard time. */
static bool marks_are_valid(const uint8_t *marks, const struct header *header)
{
    uint64_t count = (uint64_t)header->isstd_count + header->isut_count;
    for (uint64_t i = 0; i < count; i++) {
        if (marks[i] > 1) return false;
    }
    for (uint32_t i = 0; i < header->isut_count; i++) {
        bool is_std = header->isstd_count > 0 && marks[i];
        if (marks[header->isstd_count + i] && !is_std) return false;
    }
    return true;
}

static bool read_block(struct cursor *cursor, const struct header *header, struct tzif *out)
{
    if (!counts_are_valid(header)) return false;
    const uint8_t *block = take(cursor, block_bytes(header, out->time_bytes));
    if (block == NULL) return false;
    out->time_count = header->time_count;
    out->type_count = header->type_count;
    out->times = block;
    out->indexes = out->times + (size_t)header->time_count * out->time_bytes;
    out->types = out->indexes + header->time_count;
    const uint8_t *names = out->types + (size_t)header->type_count * TZIF_TYPE_BYTES;
    return times_are_valid(out) && types_are_valid(out, names, header->char_count) &&
           marks_are_valid(names + header->char_count, header);
}

/* The rest must be one line between two line feeds. */
static bool read_footer(struct cursor *cursor, struct tzif *out)
{
    if (cursor->bytes < 2 || cursor->next[0] != '\n') return false;
    const uint8_t *line = cursor->next + 1;
    size_t line_bytes = cursor->bytes - 2;
    if (line[line_bytes] != '\n' || memchr(line, '\n', line_bytes) != NULL) return false;
    out->footer = (const char *)line;
    out->footer_bytes = line_bytes;
    return true;
}

int bel__tzif_read(const uint8_t *data, size_t bytes, struct tzif *out)
{
    assert(data != NULL || bytes == 0);
    struct cursor cursor = {data, bytes};
    struct header header;
    struct tzif tzif = {.time_bytes = 4};
    if (!read_header(&cursor, &header)) return BEL_ECORRUPT;
    if (header.version == 0) {
        if (!read_block(&cursor, &header, &tzif) || cursor.bytes > 0) return BEL_ECORRUPT;
        *out = tzif;
        return 0;
    }

    uint8_t version = header.version;
    tzif.time_bytes = 8;
    if (take(&cursor, block_bytes(&header, 4)) == NULL) return BEL_ECORRUPT;
    if (!read_header(&cursor, &header) || header.version != version) return BEL_ECORRUPT;
    if (!read_block(&cursor, &header, &tzif)) return BEL_ECORRUPT;
    if (!read_footer(&cursor, &tzif)) return BEL_ECORRUPT;
    *out = tzif;
    return 0;
}

int64_t bel__tzif_time(const struct tzif *tzif, uint32_t index)
{
    assert(index < tzif->time_count);
    const uint8_t *time = tzif->times + (size_t)index * tzif->time_bytes;
    return tzif->time_bytes == 8 ? read_i64(time) : (int32_t)read_u32(time);
}

int32_t bel__tzif_offset(const struct tzif *tzif, uint32_t index)
{
    assert(index < tzif->time_count);
    return (int32_t)read_u32(tzif->types + (size_t)tzif->indexes[index] * TZIF_TYPE_BYTES);
}

int32_t bel__tzif_offset_first(const struct tzif *tzif)
{
    return (int32_t)read_u32(tzif->types);
}
