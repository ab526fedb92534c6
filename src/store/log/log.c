/* SPDX-License-Identifier: MIT */

/*
 * Appends batches. Recovery relies on the order of writes and syncs:
 *
 *     all frames of a segment are synced before the header of the next segment is written, which
 *       has the checksum of the last frame;
 *     a header is synced before the first frame after it is written;
 *     a segment is reused only after the tree has all its batches on disk.
 *
 * A lazy log keeps this order, too. It only does not sync each frame. It syncs a segment in
 * LAZY_PARTS parts, so that little is left to sync when the next segment begins.
 */
#include "store/log/log.h"

#include "store/log/closed.h"
#include "store/log/files.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAZY_PARTS = 4, /* per segment; a full part is synced */
};

static uint64_t padded(const struct bel_log *log, uint64_t bytes)
{
    uint64_t block = log->superblock.block_bytes; /* a power of two */
    return (bytes + (block - 1)) & ~(block - 1);
}

bool bel__log_is_full(const struct bel_log *log)
{
    return log->writer != NULL && bel__log_writer_is_full(log->writer);
}

bool bel__log_has_room(const struct bel_log *log, size_t bytes)
{
    if (log->current == NULL || bytes > bel__log_frame_bytes_max(log)) return false;
    assert(log->end >= BEL_SEGMENT_FRAMES && log->end <= log->superblock.segment_bytes);
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
    assert(epoch <= log->batch); /* what is freed is in the tree */
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

/* Returns the free segment that was used least recently. */
static struct bel_log_segment *take_free(struct bel_log *log)
{
    struct bel_log_segment *oldest = NULL;
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        struct bel_log_segment *segment = &log->segments[i];
        if (!segment->is_free) continue;
        if (oldest == NULL || segment->header.use < oldest->header.use) oldest = segment;
    }
    assert(oldest != NULL); /* the caller makes sure of a free segment */
    return oldest;
}

/* Makes the header of the next use of a segment. */
static int make_header(struct bel_log *log, const struct bel_log_segment *segment,
                       struct bel_segment_header *out)
{
    struct bel_segment_header header = {
        .number = (uint32_t)(segment - log->segments),
        .use = log->use + 1,
        .first_batch = log->batch + 1,
        .previous_checksum = log->checksum,
    };
    memcpy(header.id, log->superblock.id, sizeof header.id);
    int err = bel__entropy_u64(log->entropy, &header.salt);
    if (err) return err;
    *out = header;
    return 0;
}

/* Returns the durable end. If the durable batches are of an earlier segment, nothing of the current
 * one is durable but, at most, its header. */
static struct bel_log_writer_mark find_synced(const struct bel_log *log)
{
    struct bel_log_writer_mark mark = {0, 0};
    if (log->is_writing && log->writer != NULL) mark = bel__log_writer_mark(log->writer);
    if (log->is_writing && log->syncer != NULL) mark = bel__syncer_mark(log->syncer);
    assert(mark.batch <= log->batch && log->synced.batch <= log->batch);
    if (mark.batch <= log->synced.batch) mark = log->synced;
    if (log->current != NULL && mark.batch < log->current->header.first_batch) {
        mark.end = BEL_SEGMENT_FRAMES;
    }
    return mark;
}

/* Writes and syncs the header of a segment, after all frames of the current one are synced. */
static int write_header(struct bel_log *log, struct bel_io_file *file)
{
    int err = bel__log_wait(log);
    if (err) return err;
    assert(find_synced(log).batch == log->batch);
    err = log->io->write(log->io, file, 0, log->block, BEL_IO_BLOCK);
    if (err) return err;
    err = log->io->sync(log->io, file);
    if (err) return err;
    log->synced = (struct bel_log_writer_mark){.batch = log->batch, .end = BEL_SEGMENT_FRAMES};
    log->is_writing = false;
    return 0;
}

/* Begins another segment. A writer writes its header, when all frames of the current one are
 * synced. */
static int begin_segment(struct bel_log *log)
{
    struct bel_log_segment *segment = take_free(log);
    struct bel_segment_header header;
    assert(segment != log->current);
    int err = bel__log_check_superblock(log); /* without it, no start finds what is written now */
    if (err) return err;
    err = make_header(log, segment, &header);
    if (err) return err;
    memset(log->block, 0, BEL_IO_BLOCK);
    bel__segment_header_write(&header, log->block);
    if (log->writer == NULL || bel__log_writer_begin(log->writer, segment->file, log->block) != 0) {
        err = write_header(log, segment->file);
    }
    if (err) return err;

    if (log->current != NULL) log->current->last_batch = log->batch;
    segment->is_free = false;
    segment->header = header;
    log->current = segment;
    log->use = header.use;
    log->end = BEL_SEGMENT_FRAMES;
    return 0;
}

/* Seals the next frame of the current segment. */
static void seal(struct bel_log *log, struct bel_frame *frame, uint8_t *bytes)
{
    assert(frame->batch == log->batch + !frame->is_closing);
    frame->use = log->current->header.use;
    frame->salt = log->current->header.salt;
    frame->synced_bytes = find_synced(log).end;
    frame->previous_checksum = log->checksum;
    bel__frame_seal(frame, bytes);
    log->end += padded(log, frame->bytes);
    assert(log->end <= log->superblock.segment_bytes);
    log->batch = frame->batch;
    log->checksum = frame->checksum;
    log->has_appended = true;
}

/* Writes the sealed frame at `offset` and syncs it. */
static int write_at_once(struct bel_log *log, uint64_t offset, const uint8_t *bytes)
{
    struct bel_io_file *file = log->current->file;
    int err = log->io->write(log->io, file, offset, bytes, (size_t)(log->end - offset));
    if (err) return err;
    err = log->io->sync(log->io, file);
    if (err) return err;
    log->synced = (struct bel_log_writer_mark){.batch = log->batch, .end = log->end};
    return 0;
}

/* Writes the sealed frame at `offset`; the syncer syncs it later. */
static int write_lazily(struct bel_log *log, uint64_t offset, const uint8_t *bytes)
{
    struct bel_io_file *file = log->current->file;
    struct bel_log_writer_mark mark = {.batch = log->batch, .end = log->end};
    int err = log->io->write(log->io, file, offset, bytes, (size_t)(log->end - offset));
    if (err) return err;
    bel__syncer_wrote(log->syncer, file, &mark);
    log->is_writing = true;
    log->written = log->batch;
    uint64_t part = log->superblock.segment_bytes / LAZY_PARTS;
    if (log->end - find_synced(log).end >= part) bel__syncer_ask(log->syncer);
    return 0;
}

/* Passes the sealed frame at `offset` to the writer. */
static int give(struct bel_log *log, uint64_t offset, struct bel_batch *batch)
{
    struct bel_io_file *file = log->current->file;
    struct bel_log_writer_mark mark = {.batch = log->batch, .end = log->end};
    int err = bel__log_writer_has_room(log->writer) ? 0 : bel__log_wait(log);
    if (err) return err;
    log->is_writing = true;
    err = bel__log_writer_give(log->writer, file, offset, batch, &mark);
    if (err != BEL_ENOMEM) return err;
    err = bel__log_wait(log);
    return err ? err : bel__log_writer_give(log->writer, file, offset, batch, &mark);
}

/* Records the final error. It is BEL_EIO for any failed write: the space was allocated before. */
static int fail(struct bel_log *log)
{
    log->err = BEL_EIO;
    return log->err;
}

int bel__log_append(struct bel_log *log, struct bel_batch *batch)
{
    assert(batch->bytes <= bel__log_frame_bytes_max(log));
    if (bel__log_error(log) != 0) return fail(log);
    if (!bel__log_has_room(log, batch->bytes) && begin_segment(log) != 0) return fail(log);
    struct bel_frame frame = {
        .bytes = (uint32_t)batch->bytes,
        .row_count = batch->row_count,
        .batch = log->batch + 1,
    };
    uint64_t offset = log->end;
    (void)bel__batch_pad(batch, log->superblock.block_bytes);
    seal(log, &frame, batch->memory);
    if (log->syncer != NULL) {
        return write_lazily(log, offset, batch->memory) == 0 ? 0 : fail(log);
    }
    if (log->writer == NULL) {
        return write_at_once(log, offset, batch->memory) == 0 ? 0 : fail(log);
    }
    return give(log, offset, batch) == 0 ? 0 : fail(log);
}

void bel__log_step(struct bel_log *log)
{
    if (log->writer != NULL) bel__log_writer_step(log->writer);
    if (log->syncer != NULL) bel__syncer_step(log->syncer);
}

void bel__log_ask(struct bel_log *log)
{
    if (log->syncer != NULL) bel__syncer_ask(log->syncer);
}

int bel__log_begin_late(struct bel_log *log, const struct bel_log_options *options)
{
    struct bel_log_writer_options writer_options = {.io = log->io,
                                                    .has_thread = options->driver == BEL_LOG_THREAD,
                                                    .wake = options->wake,
                                                    .context = options->context};
    assert(options->driver != BEL_LOG_AT_ONCE);
    assert(log->writer == NULL && log->syncer == NULL && !log->is_writing);
    assert(log->err != 0 || log->synced.batch == log->batch); /* nothing is under way */
    return bel__log_writer_open(&writer_options, &log->writer);
}

int bel__log_wait(struct bel_log *log)
{
    if (log->syncer != NULL) return bel__syncer_wait(log->syncer);
    return log->writer == NULL ? log->err : bel__log_writer_wait(log->writer);
}

uint64_t bel__log_synced(const struct bel_log *log)
{
    return find_synced(log).batch;
}

uint64_t bel__log_answerable(const struct bel_log *log)
{
    uint64_t synced = bel__log_synced(log);
    assert(log->written <= log->batch);
    return log->written > synced ? log->written : synced;
}

uint64_t bel__log_syncing(const struct bel_log *log)
{
    uint64_t answerable = bel__log_answerable(log);
    uint64_t begun = log->writer == NULL ? 0 : bel__log_writer_begun(log->writer);
    return begun > answerable ? begun : answerable;
}

bool bel__log_is_late(const struct bel_log *log)
{
    return log->writer != NULL;
}

int bel__log_error(const struct bel_log *log)
{
    if (log->err == 0 && log->writer != NULL) return bel__log_writer_error(log->writer);
    if (log->err == 0 && log->syncer != NULL) return bel__syncer_error(log->syncer);
    return log->err;
}

/* Appends a frame that records that all is synced. An error is ignored: the mark is optional. */
static void write_closing_mark(struct bel_log *log)
{
    struct bel_frame frame = {
        .bytes = BEL_FRAME_HEADER_BYTES,
        .batch = log->batch,
        .is_closing = true,
    };
    uint64_t offset = log->end;
    if (!log->has_appended || !bel__log_has_room(log, frame.bytes)) return;
    memset(log->block, 0, BEL_IO_BLOCK);
    seal(log, &frame, log->block);
    (void)write_at_once(log, offset, log->block);
}

void bel__log_close(struct bel_log *log)
{
    if (log == NULL) return;
    if (bel__log_error(log) == 0 && bel__log_wait(log) == 0) {
        write_closing_mark(log);
        bel__closed_write(log);
    }
    bel__log_writer_close(log->writer);
    bel__syncer_close(log->syncer);
    for (uint32_t i = 0; i < BEL_SEGMENT_COUNT_MAX; i++) {
        if (log->segments[i].file != NULL) log->io->close(log->io, log->segments[i].file);
    }
    free(log->block);
    free(log);
}

/* Opens the writer or the syncer that the driver needs. */
static int open_driver(struct bel_log *log, const struct bel_log_options *options)
{
    bool has_thread = options->driver == BEL_LOG_THREAD;
    struct bel_log_writer_options writer_options = {.io = options->io,
                                                    .has_thread = has_thread,
                                                    .wake = options->wake,
                                                    .context = options->context};
    struct bel_syncer_options syncer_options = {.io = options->io,
                                                .has_thread = has_thread,
                                                .interval_ns = options->interval_ns,
                                                .wake = options->wake,
                                                .context = options->context};
    assert(!options->is_lazy || options->driver != BEL_LOG_AT_ONCE);
    if (options->is_lazy) return bel__syncer_open(&syncer_options, &log->syncer);
    if (options->driver == BEL_LOG_AT_ONCE) return 0;
    return bel__log_writer_open(&writer_options, &log->writer);
}

int bel__log_open(const struct bel_log_options *options, struct bel_log **out, struct bel_why *why)
{
    struct bel_log *log = calloc(1, sizeof *log);
    if (log == NULL) return BEL_ENOMEM;
    log->io = options->io;
    log->entropy = options->entropy;
    log->block = aligned_alloc(BEL_IO_BLOCK, BEL_IO_BLOCK);
    int err = log->block == NULL ? BEL_ENOMEM : bel__log_open_files(log, options, why);
    if (!err) bel__closed_read(log);
    if (!err) err = open_driver(log, options);
    if (err) {
        bel__log_close(log); /* accepts a partly opened log */
        return err;
    }
    *out = log;
    return 0;
}
