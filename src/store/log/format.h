/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_FORMAT_H
#define BEL_STORE_LOG_FORMAT_H

/*
 * format - encodes and decodes the superblock, segment headers and frames. docs/FORMAT.md has the
 * tables. Decoding accepts arbitrary bytes. Nothing here uses a file.
 */

#include "belfry/error.h"
#include "belfry/view.h"
#include "core/sorted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BEL_FORMAT = 4,
    BEL_FORMAT_OLDEST = 2, /* that this build reads; it raises an older one: bel__log_raise() */
    BEL_STORE_ID_BYTES = 16,
    BEL_SUPERBLOCK_BYTES = 64,
    BEL_SEGMENT_HEADER_BYTES = 64,
    BEL_SEGMENT_FRAMES = 4096, /* offset of the first frame in a segment */
    BEL_FRAME_HEADER_BYTES = 64,
    BEL_FRAME_ROW_BYTES = 28, /* a row without its value */
    BEL_SEGMENT_COUNT_MIN = 3,
    BEL_SEGMENT_COUNT_MAX = 64,
};

#define BEL_SEGMENT_BYTES_MIN ((uint64_t)2 * BEL_SEGMENT_FRAMES)
#define BEL_SEGMENT_BYTES_MAX ((uint64_t)1 << 30)

struct bel_superblock {
    uint32_t format; /* as read; BEL_FORMAT is written */
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
    uint32_t bytes; /* length of header and rows */
    uint32_t row_count;
    uint64_t use;
    uint64_t salt;
    uint64_t batch;
    uint64_t synced_bytes; /* of the segment: everything before this offset was synced */
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

/* Decodes a superblock. Returns 0; BEL_ECORRUPT if it is invalid; or BEL_EUNSUPPORTED if it has
 * a format that this build does not read. Sets `*out_format` in each case. */
BEL_CHECKED int bel__superblock_read(const uint8_t bytes[BEL_SUPERBLOCK_BYTES],
                                     struct bel_superblock *out, uint32_t *out_format);

void bel__segment_header_write(const struct bel_segment_header *header,
                               uint8_t out[BEL_SEGMENT_HEADER_BYTES]);

/* Decodes a segment header. Returns 0; BEL_ENOTFOUND if it is all zeros; BEL_EUNSUPPORTED if it has
 * a newer format; or BEL_ECORRUPT. */
BEL_CHECKED int bel__segment_header_read(const uint8_t bytes[BEL_SEGMENT_HEADER_BYTES],
                                         struct bel_segment_header *out);

/* Writes the header of a frame before its rows in `bytes`. Sets the checksum of both in the header
 * and in `frame`. */
void bel__frame_seal(struct bel_frame *frame, uint8_t *bytes);

/* Decodes the header of a frame and checks the whole frame, which must lie within `bytes_max`
 * bytes. Returns false if it is invalid. */
bool bel__frame_read(const uint8_t *bytes, size_t bytes_max, struct bel_frame *out);

/* Returns whether the bytes look like the header of a frame of this use, valid or not. */
bool bel__frame_is_of(const uint8_t *bytes, size_t bytes_max, uint64_t use, uint64_t salt);

/* Returns whether a frame can follow the one with this batch number and checksum. */
bool bel__frame_continues(const struct bel_frame *frame, uint64_t batch, uint32_t checksum);

/* Encodes a row. Returns its length. */
size_t bel__frame_row_write(uint8_t *out, const struct bel_frame_row *row);

/* Decodes the row at `*offset` of a valid frame and advances `*offset`, which starts at 0. Returns
 * 0; BEL_ENOTFOUND at the end; or BEL_ECORRUPT. */
BEL_CHECKED int bel__frame_row_read(const uint8_t *bytes, const struct bel_frame *frame,
                                    size_t *offset, struct bel_frame_row *out);

#endif
