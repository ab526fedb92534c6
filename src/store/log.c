/* SPDX-License-Identifier: MIT */

/*
 * Appending. The order of writes and syncs is what recovery relies on:
 *
 *     all frames of a segment are synced
 *       before the header of the next one is written, which names the last of them;
 *     a header is synced before the first frame behind it is written;
 *     a segment is used again after the tree has all of it, on disk.
 */
#include "store/log.h"
#include "store/log_files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t padded(const struct bel_log *log, uint64_t bytes)
{
    uint64_t block = log->superblock.block_bytes;
    return (bytes + (block - 1)) / block * block;
}

bool bel__log_has_room(const struct bel_log *log, size_t bytes)
{
    if (log->current == NULL || bytes > bel__log_frame_bytes_max(log)) return false;
    return padded(log, bytes) <= log->superblock.segment_bytes - log->end;
}

size_t bel__log_frame_bytes_max(const struct bel_log *log)
{
    return (size_t)(log->superblock.segment_bytes - BEL_SEGMENT_FRAMES);
}

unsigned bel__log_free_count(const struct bel_log *log)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        count += log->segments[i].is_free;
    }
    return count;
}

void bel__log_release(struct bel_log *log, uint64_t epoch)
{
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        struct bel_log_segment *segment = &log->segments[i];
        if (segment != log->current && segment->last_batch <= epoch) segment->is_free = true;
    }
}

uint64_t bel__log_used_bytes(const struct bel_log *log, uint64_t batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        const struct bel_log_segment *segment = &log->segments[i];
        if (segment == log->current) {
            if (batch == UINT64_MAX) bytes += log->end - BEL_SEGMENT_FRAMES;
        } else if (!segment->is_free && segment->last_batch <= batch) {
            bytes += log->superblock.segment_bytes - BEL_SEGMENT_FRAMES;
        }
    }
    return bytes;
}

/* The free segment that was used least recently. */
static struct bel_log_segment *take_free(struct bel_log *log)
{
    struct bel_log_segment *oldest = NULL;
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        struct bel_log_segment *segment = &log->segments[i];
        if (!segment->is_free) continue;
        if (oldest == NULL || segment->header.use < oldest->header.use) oldest = segment;
    }
    assert(oldest != NULL); /* or the caller did not make sure */
    return oldest;
}

/* Goes on in another segment. */
static int begin_segment(struct bel_log *log)
{
    struct bel_log_segment *segment = take_free(log);
    struct bel_segment_header header = {
        .number = (uint32_t)(segment - log->segments),
        .use = log->use + 1,
        .first_batch = log->batch + 1,
        .previous_checksum = log->checksum,
    };
    memcpy(header.id, log->superblock.id, sizeof header.id);
    int err = bel__entropy_u64(log->entropy, &header.salt);
    if (err) return err;
    memset(log->block, 0, BEL_IO_BLOCK);
    bel__segment_header_write(&header, log->block);
    err = log->io->write(log->io, segment->file, 0, log->block, BEL_IO_BLOCK);
    if (err) return err;
    err = log->io->sync(log->io, segment->file);
    if (err) return err;

    if (log->current != NULL) log->current->last_batch = log->batch;
    segment->is_free = false;
    segment->header = header;
    log->current = segment;
    log->use = header.use;
    log->end = BEL_SEGMENT_FRAMES;
    return 0;
}

/* Seals a frame of the current segment, writes it with the zeros behind it, and syncs. */
static int write_frame(struct bel_log *log, struct bel_frame *frame, uint8_t *bytes)
{
    uint64_t frame_bytes = padded(log, frame->bytes);
    frame->use = log->current->header.use;
    frame->salt = log->current->header.salt;
    frame->synced_bytes = log->end;
    frame->previous_checksum = log->checksum;
    bel__frame_seal(frame, bytes);
    int err = log->io->write(log->io, log->current->file, log->end, bytes, frame_bytes);
    if (err) return err;
    err = log->io->sync(log->io, log->current->file);
    if (err) return err;
    log->end += frame_bytes;
    log->batch = log->synced = frame->batch;
    log->checksum = frame->checksum;
    log->has_appended = true;
    return 0;
}

/* Whatever a write says, it is the disk that has failed: space was made sure of before. */
static int fail(struct bel_log *log)
{
    log->err = BEL_EIO;
    return log->err;
}

int bel__log_append(struct bel_log *log, struct bel_batch *batch)
{
    assert(batch->bytes <= bel__log_frame_bytes_max(log));
    if (log->err) return log->err;
    if (!bel__log_has_room(log, batch->bytes) && begin_segment(log) != 0) return fail(log);
    struct bel_frame frame = {
        .bytes = (uint32_t)batch->bytes,
        .row_count = batch->row_count,
        .batch = log->batch + 1,
    };
    (void)bel__batch_pad(batch, log->superblock.block_bytes);
    return write_frame(log, &frame, batch->memory) == 0 ? 0 : fail(log);
}

/* Says that all is synced. What comes of it does not matter any more. */
static void write_closing_mark(struct bel_log *log)
{
    struct bel_frame frame = {
        .bytes = BEL_FRAME_HEADER_BYTES,
        .batch = log->batch,
        .is_closing = true,
    };
    if (!log->has_appended || log->err != 0) return;
    if (!bel__log_has_room(log, frame.bytes)) return;
    memset(log->block, 0, BEL_IO_BLOCK);
    (void)write_frame(log, &frame, log->block);
}

void bel__log_close(struct bel_log *log)
{
    if (log == NULL) return;
    write_closing_mark(log);
    for (uint32_t i = 0; i < BEL_SEGMENT_COUNT_MAX; i++) {
        if (log->segments[i].file != NULL) log->io->close(log->io, log->segments[i].file);
    }
    free(log->block);
    free(log);
}

int bel__log_open(const struct bel_log_options *options, struct bel_log **out, struct bel_why *why)
{
    struct bel_log *log = calloc(1, sizeof *log);
    if (log == NULL) return BEL_ENOMEM;
    log->io = options->io;
    log->entropy = options->entropy;
    log->block = aligned_alloc(BEL_IO_BLOCK, BEL_IO_BLOCK);
    int err = log->block == NULL ? BEL_ENOMEM : bel__log_open_files(log, options, why);
    if (err) {
        bel__log_close(log); /* takes a half-made one */
        return err;
    }
    *out = log;
    return 0;
}
