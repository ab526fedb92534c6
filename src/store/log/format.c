/* SPDX-License-Identifier: MIT */

/*
 * Fields are encoded one by one, at the offsets of docs/FORMAT.md, so that neither the compiler's
 * padding nor the machine's byte order gets onto the disk.
 */
#include "store/log/format.h"

#include "core/crc32c.h"
#include "core/endian.h"
#include "store/io/row.h"

#include <assert.h>
#include <string.h>

static const char superblock_magic[8] = {'B', 'E', 'L', 'F', 'R', 'Y', 'D', 'B'};
static const char segment_magic[8] = {'B', 'E', 'L', 'S', 'E', 'G', 'M', 'T'};
static const char frame_magic[4] = {'B', 'E', 'L', 'F'};

enum {
    CLOSING = 1,
};

#define ROW_GONE (UINT32_C(1) << 31)

static bool is_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) return false;
    }
    return true;
}

void bel__superblock_write(const struct bel_superblock *superblock,
                           uint8_t out[BEL_SUPERBLOCK_BYTES])
{
    memset(out, 0, BEL_SUPERBLOCK_BYTES);
    memcpy(out, superblock_magic, sizeof superblock_magic);
    bel__store_le32(out + 8, BEL_FORMAT);
    memcpy(out + 16, superblock->id, BEL_STORE_ID_BYTES);
    bel__store_le64(out + 32, superblock->segment_bytes);
    bel__store_le32(out + 40, superblock->segment_count);
    bel__store_le32(out + 44, superblock->block_bytes);
    bel__store_le32(out + 60, bel__crc32c(0, out, 60));
}

static bool is_possible(const struct bel_superblock *superblock)
{
    return superblock->segment_bytes >= BEL_SEGMENT_BYTES_MIN &&
           superblock->segment_bytes <= BEL_SEGMENT_BYTES_MAX &&
           superblock->segment_bytes % BEL_SEGMENT_FRAMES == 0 &&
           superblock->segment_count >= BEL_SEGMENT_COUNT_MIN &&
           superblock->segment_count <= BEL_SEGMENT_COUNT_MAX &&
           (superblock->block_bytes == 8 || superblock->block_bytes == BEL_SEGMENT_FRAMES);
}

int bel__superblock_read(const uint8_t bytes[BEL_SUPERBLOCK_BYTES], struct bel_superblock *out,
                         uint32_t *out_format)
{
    *out_format = bel__load_le32(bytes + 8);
    if (memcmp(bytes, superblock_magic, sizeof superblock_magic) != 0) return BEL_ECORRUPT;
    if (bel__load_le32(bytes + 60) != bel__crc32c(0, bytes, 60)) return BEL_ECORRUPT;
    if (*out_format == 0) return BEL_ECORRUPT;
    if (*out_format < BEL_FORMAT_OLDEST || *out_format > BEL_FORMAT) return BEL_EUNSUPPORTED;

    struct bel_superblock superblock = {
        .format = *out_format,
        .segment_bytes = bel__load_le64(bytes + 32),
        .segment_count = bel__load_le32(bytes + 40),
        .block_bytes = bel__load_le32(bytes + 44),
    };
    memcpy(superblock.id, bytes + 16, BEL_STORE_ID_BYTES);
    if (!is_possible(&superblock)) return BEL_ECORRUPT;
    *out = superblock;
    return 0;
}

void bel__segment_header_write(const struct bel_segment_header *header,
                               uint8_t out[BEL_SEGMENT_HEADER_BYTES])
{
    memcpy(out, segment_magic, sizeof segment_magic);
    bel__store_le32(out + 8, BEL_FORMAT);
    bel__store_le32(out + 12, header->number);
    bel__store_le64(out + 16, header->use);
    bel__store_le64(out + 24, header->first_batch);
    bel__store_le64(out + 32, header->salt);
    memcpy(out + 40, header->id, BEL_STORE_ID_BYTES);
    bel__store_le32(out + 56, header->previous_checksum);
    bel__store_le32(out + 60, bel__crc32c(0, out, 60));
}

int bel__segment_header_read(const uint8_t bytes[BEL_SEGMENT_HEADER_BYTES],
                             struct bel_segment_header *out)
{
    if (is_zero(bytes, BEL_SEGMENT_HEADER_BYTES)) return BEL_ENOTFOUND;
    if (memcmp(bytes, segment_magic, sizeof segment_magic) != 0) return BEL_ECORRUPT;
    if (bel__load_le32(bytes + 60) != bel__crc32c(0, bytes, 60)) return BEL_ECORRUPT;
    if (bel__load_le32(bytes + 8) > BEL_FORMAT) return BEL_EUNSUPPORTED;
    if (bel__load_le32(bytes + 8) < BEL_FORMAT_OLDEST) return BEL_ECORRUPT;

    struct bel_segment_header header = {
        .number = bel__load_le32(bytes + 12),
        .use = bel__load_le64(bytes + 16),
        .first_batch = bel__load_le64(bytes + 24),
        .salt = bel__load_le64(bytes + 32),
        .previous_checksum = bel__load_le32(bytes + 56),
    };
    memcpy(header.id, bytes + 40, BEL_STORE_ID_BYTES);
    if (header.use == 0 || header.first_batch == 0) return BEL_ECORRUPT;
    *out = header;
    return 0;
}

void bel__frame_seal(struct bel_frame *frame, uint8_t *bytes)
{
    assert(frame->bytes >= BEL_FRAME_HEADER_BYTES);
    memcpy(bytes, frame_magic, sizeof frame_magic);
    bel__store_le32(bytes + 8, frame->bytes);
    bel__store_le32(bytes + 12, frame->row_count);
    bel__store_le64(bytes + 16, frame->use);
    bel__store_le64(bytes + 24, frame->salt);
    bel__store_le64(bytes + 32, frame->batch);
    bel__store_le64(bytes + 40, frame->synced_bytes);
    bel__store_le32(bytes + 48, frame->previous_checksum);
    bel__store_le32(bytes + 52, frame->is_closing ? CLOSING : 0);
    bel__store_le64(bytes + 56, 0);
    frame->checksum = bel__crc32c(0, bytes + 8, frame->bytes - 8);
    bel__store_le32(bytes + 4, frame->checksum);
}

bool bel__frame_read(const uint8_t *bytes, size_t bytes_max, struct bel_frame *out)
{
    if (bytes_max < BEL_FRAME_HEADER_BYTES) return false;
    if (memcmp(bytes, frame_magic, sizeof frame_magic) != 0) return false;
    uint32_t frame_bytes = bel__load_le32(bytes + 8);
    if (frame_bytes < BEL_FRAME_HEADER_BYTES || frame_bytes > bytes_max) return false;
    uint32_t checksum = bel__crc32c(0, bytes + 8, frame_bytes - 8);
    if (checksum != bel__load_le32(bytes + 4)) return false;

    *out = (struct bel_frame){
        .checksum = checksum,
        .bytes = frame_bytes,
        .row_count = bel__load_le32(bytes + 12),
        .use = bel__load_le64(bytes + 16),
        .salt = bel__load_le64(bytes + 24),
        .batch = bel__load_le64(bytes + 32),
        .synced_bytes = bel__load_le64(bytes + 40),
        .previous_checksum = bel__load_le32(bytes + 48),
        .is_closing = bel__load_le32(bytes + 52) == CLOSING,
    };
    return true;
}

bool bel__frame_is_of(const uint8_t *bytes, size_t bytes_max, uint64_t use, uint64_t salt)
{
    return bytes_max >= BEL_FRAME_HEADER_BYTES && bel__load_le64(bytes + 16) == use &&
           bel__load_le64(bytes + 24) == salt &&
           memcmp(bytes, frame_magic, sizeof frame_magic) == 0;
}

bool bel__frame_continues(const struct bel_frame *frame, uint64_t batch, uint32_t checksum)
{
    if (frame->previous_checksum != checksum) return false;
    if (frame->is_closing) return frame->batch == batch && frame->row_count == 0;
    return frame->batch == batch + 1;
}

size_t bel__frame_row_write(uint8_t *out, const struct bel_frame_row *row)
{
    assert(row->value.bytes <= BEL_STORE_VALUE_BYTES_MAX);
    assert(!row->is_gone || row->value.bytes == 0);
    bel__store_le32(out, row->is_gone ? ROW_GONE : (uint32_t)row->value.bytes);
    bel__key_write(&row->key, out + 4);
    if (row->value.bytes > 0) memcpy(out + BEL_FRAME_ROW_BYTES, row->value.data, row->value.bytes);
    return BEL_FRAME_ROW_BYTES + row->value.bytes;
}

int bel__frame_row_read(const uint8_t *bytes, const struct bel_frame *frame, size_t *offset,
                        struct bel_frame_row *out)
{
    size_t at = *offset == 0 ? BEL_FRAME_HEADER_BYTES : *offset;
    size_t left = frame->bytes - at;
    if (left == 0) return BEL_ENOTFOUND;
    if (left < BEL_FRAME_ROW_BYTES) return BEL_ECORRUPT;
    uint32_t head = bel__load_le32(bytes + at);
    size_t value_bytes = head == ROW_GONE ? 0 : head;
    if (value_bytes > BEL_STORE_VALUE_BYTES_MAX) return BEL_ECORRUPT;
    if (value_bytes > left - BEL_FRAME_ROW_BYTES) return BEL_ECORRUPT;
    out->is_gone = head == ROW_GONE;
    out->key = bel__key_read(bytes + at + 4);
    out->value = (struct bel_view){.data = bytes + at + BEL_FRAME_ROW_BYTES, .bytes = value_bytes};
    *offset = at + BEL_FRAME_ROW_BYTES + value_bytes;
    return 0;
}
