/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_ZONE_FILE_H
#define BEL_TESTS_ZONE_FILE_H

/*
 * Time zone files for tests, made in memory: as many types as changes and one more, which is
 * that before the first. The block for old readers, in versions 2 to 4, is empty.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    ZONE_CHANGES_MAX = 255,
    ZONE_FILE_HEADER = 44,
    ZONE_FILE_BYTES_MAX = 2 * ZONE_FILE_HEADER + 16 * (ZONE_CHANGES_MAX + 1) + 256,
};

struct zone_change {
    int64_t time;
    int32_t offset; /* from then on */
};

struct zone_file {
    uint8_t bytes[ZONE_FILE_BYTES_MAX];
    size_t count;
};

static inline void zone_file_put(struct zone_file *file, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0) {
        assert(file->count < sizeof file->bytes);
        file->bytes[file->count++] = (uint8_t)(number >> 8 * bytes);
    }
}

static inline void zone_file_header(struct zone_file *file, char version, uint32_t time_count,
                                    uint32_t type_count)
{
    const uint32_t counts[] = {0, 0, 0, time_count, type_count, type_count > 0 ? 4 : 0};
    for (const char *magic = "TZif"; *magic != '\0'; magic++) {
        zone_file_put(file, (uint8_t)*magic, 1);
    }
    zone_file_put(file, (uint8_t)version, 1);
    zone_file_put(file, 0, 8);
    zone_file_put(file, 0, 7);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        zone_file_put(file, counts[i], 4);
    }
}

/* A file of version 0 (which is 1), '2', '3' or '4'. `changes` has the offset before the
 * first change in front, with a time that means nothing. */
static inline void zone_file_make(struct zone_file *file, char version,
                                  const struct zone_change *changes, size_t change_count,
                                  const char *footer)
{
    assert(change_count > 0 && change_count <= ZONE_CHANGES_MAX + 1);
    file->count = 0;
    if (version != 0) zone_file_header(file, version, 0, 0);
    zone_file_header(file, version, (uint32_t)change_count - 1, (uint32_t)change_count);
    for (size_t i = 1; i < change_count; i++) {
        zone_file_put(file, (uint64_t)changes[i].time, version == 0 ? 4 : 8);
    }
    for (size_t i = 1; i < change_count; i++) {
        zone_file_put(file, i, 1);
    }
    for (size_t i = 0; i < change_count; i++) {
        zone_file_put(file, (uint32_t)changes[i].offset, 4);
        zone_file_put(file, 0, 2); /* not DST, and the first name */
    }
    zone_file_put(file, UINT32_C(0x4c4d5400), 4); /* LMT */
    if (version == 0) return;
    zone_file_put(file, '\n', 1);
    for (; *footer != '\0'; footer++) {
        zone_file_put(file, (uint8_t)*footer, 1);
    }
    zone_file_put(file, '\n', 1);
}

#endif
