/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_FORMAT_H
#define BEL_STORE_LOG_FORMAT_H

/*
 * format - superblock, segment header and frame as bytes, and back. docs/FORMAT.md has the
 * tables. Reading takes any bytes and says what they are; nothing here touches a file.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_FORMAT = 2,
    BEL_STORE_ID_BYTES = 16,
    BEL_SUPERBLOCK_BYTES = 64,
    BEL_SEGMENT_HEADER_BYTES = 64,
    BEL_SEGMENT_FRAMES = 4096, /* where frames begin */
    BEL_FRAME_HEADER_BYTES = 64,
    BEL_FRAME_ROW_BYTES = 28, /* of a row, besides its value */
    BEL_SEGMENT_COUNT_MIN = 3,
    BEL_SEGMENT_COUNT_MAX = 64,
};

#define BEL_SEGMENT_BYTES_MIN ((uint64_t)2 * BEL_SEGMENT_FRAMES)
#define BEL_SEGMENT_BYTES_MAX ((uint64_t)1 << 30)

struct bel_superblock {
    uint8_t id[BEL_STORE_ID_BYTES];
    uint64_t segment_bytes;
    uint32_t segment_count;
    uint32_t block_bytes;
};

struct bel_segment_header {
    uint32_t number;
    uint64_t use;
    uint64_t first_batch;
    uint64_t salt;
    uint8_t id[BEL_STORE_ID_BYTES];
    uint32_t previous_checksum;
};

struct bel_frame {
    uint32_t checksum;
    uint32_t bytes; /* of header and rows */
    uint32_t row_count;
    uint64_t use;
    uint64_t salt;
    uint64_t batch;
    uint64_t synced_bytes; /* of the segment, from its start */
    uint32_t previous_checksum;
    bool is_closing;
};

/* A row of a frame. */
struct bel_frame_row {
    struct bel_key key;
    struct bel_view value; /* points into the frame */
    bool is_gone;
};

void bel__superblock_write(const struct bel_superblock *superblock,
                           uint8_t out[BEL_SUPERBLOCK_BYTES]);

/* 0; or BEL_ECORRUPT if it does not check out, or BEL_EUNSUPPORTED if it has another format,
 * which goes to `*out_format` in each case. */
BEL_CHECKED int bel__superblock_read(const uint8_t bytes[BEL_SUPERBLOCK_BYTES],
                                     struct bel_superblock *out, uint32_t *out_format);

void bel__segment_header_write(const struct bel_segment_header *header,
                               uint8_t out[BEL_SEGMENT_HEADER_BYTES]);

/* 0; BEL_ENOTFOUND if it is all zeros; BEL_EUNSUPPORTED if it has a newer format; or
 * BEL_ECORRUPT. */
BEL_CHECKED int bel__segment_header_read(const uint8_t bytes[BEL_SEGMENT_HEADER_BYTES],
                                         struct bel_segment_header *out);

/* Writes the header of a frame in front of its rows, computes the checksum over both and
 * puts it into the frame, too. */
void bel__frame_seal(struct bel_frame *frame, uint8_t *bytes);

/* Reads the header of a frame, of which `bytes_max` bytes can be read, and checks all of it.
 * False if it does not check out. */
bool bel__frame_read(const uint8_t *bytes, size_t bytes_max, struct bel_frame *out);

/* True if there is, at least, the beginning of a frame of this use. */
bool bel__frame_is_of(const uint8_t *bytes, size_t bytes_max, uint64_t use, uint64_t salt);

/* True if a frame can follow another, or the last one of the use before. */
bool bel__frame_continues(const struct bel_frame *frame, uint64_t batch, uint32_t checksum);

/* Writes a row and returns its bytes. */
size_t bel__frame_row_write(uint8_t *out, const struct bel_frame_row *row);

/* Reads the row at `*offset` of a frame that checks out, and moves on. Returns 0;
 * BEL_ENOTFOUND at the end; or BEL_ECORRUPT. */
BEL_CHECKED int bel__frame_row_read(const uint8_t *bytes, const struct bel_frame *frame,
                                    size_t *offset, struct bel_frame_row *out);

#endif
