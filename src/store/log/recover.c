/* SPDX-License-Identifier: MIT */

/*
 * Recovery, in the steps of docs/FORMAT.md. It reads one whole segment at a time into memory: finds
 * the first segment to replay, goes from frame to frame, decides whether the bytes after the last
 * frame are an unsynced tail or damage, and makes the tail safe.
 *
 * Nothing is written before the whole log was read and found valid. A crash during the writes that
 * follow is harmless: valid frames are overwritten with themselves, and the bytes that are zeroed
 * are not part of the log.
 */
#include "store/log/files.h"
#include "store/log/log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of a recovery. */
struct recovery {
    struct bel_log *log;
    uint64_t epoch, last_batch; /* the batches after `epoch` are replayed, up to `last_batch` */
    bel_log_replay *replay;
    void *context;
    struct bel_why *why;

    uint8_t *bytes;                                      /* content of one segment */
    struct bel_log_segment *uses[BEL_SEGMENT_COUNT_MAX]; /* segments with headers, oldest first */
    unsigned use_count;

    uint64_t end; /* end of the last valid frame in the segment */
    uint64_t batch;
    uint32_t checksum;
    struct bel_frame last; /* the last valid frame of the segment, if has_last */
    bool has_last;
};

static int say_damaged(const struct recovery *recovery, const struct bel_log_segment *segment,
                       uint64_t offset, const char *what)
{
    char name[BEL_LOG_NAME_BYTES];
    bel__log_name((uint32_t)(segment - recovery->log->segments), name);
    return bel__why_say(recovery->why, BEL_ECORRUPT, "%s is damaged at byte %llu: %s", name,
                        (unsigned long long)offset, what);
}

static int read_segment(const struct recovery *recovery, const struct bel_log_segment *segment,
                        size_t bytes)
{
    struct bel_log *log = recovery->log;
    char name[BEL_LOG_NAME_BYTES];
    int err = log->io->read(log->io, segment->file, 0, recovery->bytes, bytes);
    if (!err) return 0;
    bel__log_name((uint32_t)(segment - log->segments), name);
    return bel__why_system(recovery->why, err, name, "read");
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/* Checks a segment without a valid header. It is free, unless it has a batch that the tree lacks,
 * which is damage. If header and first frame are zeros, it was never used. */
static int check_headless(struct recovery *recovery, const struct bel_log_segment *segment)
{
    uint64_t segment_bytes = recovery->log->superblock.segment_bytes;
    struct bel_frame frame;
    if (is_zero(recovery->bytes, BEL_SEGMENT_FRAMES + BEL_FRAME_HEADER_BYTES)) return 0;
    int err = read_segment(recovery, segment, segment_bytes);
    if (err) return err;
    for (uint64_t at = BEL_SEGMENT_FRAMES; at < segment_bytes;
         at += recovery->log->superblock.block_bytes) {
        if (!bel__frame_read(recovery->bytes + at, segment_bytes - at, &frame)) continue;
        if (frame.batch <= recovery->epoch) continue;
        return say_damaged(recovery, segment, 0, "invalid header of a segment in use");
    }
    return 0;
}

/* Inserts a segment into `uses`, sorted by use. */
static void insert_use(struct recovery *recovery, struct bel_log_segment *segment)
{
    unsigned at = recovery->use_count++;
    while (at > 0 && recovery->uses[at - 1]->header.use > segment->header.use) {
        recovery->uses[at] = recovery->uses[at - 1];
        at--;
    }
    recovery->uses[at] = segment;
}

static int read_header(struct recovery *recovery, uint32_t number)
{
    struct bel_log *log = recovery->log;
    struct bel_log_segment *segment = &log->segments[number];
    struct bel_segment_header header;
    int err = read_segment(recovery, segment, 2 * (size_t)BEL_SEGMENT_FRAMES);
    if (err) return err;
    segment->is_free = true;
    err = bel__segment_header_read(recovery->bytes, &header);
    if (err == BEL_EUNSUPPORTED) {
        return bel__why_say(recovery->why, err, "log-%u has a newer format than this build knows",
                            (unsigned)number);
    }
    if (err) return check_headless(recovery, segment);
    if (memcmp(header.id, log->superblock.id, sizeof header.id) != 0) {
        return say_damaged(recovery, segment, 0, "the segment belongs to another store");
    }
    if (header.number != number) {
        return say_damaged(recovery, segment, 0, "the header has another segment number");
    }
    segment->header = header;
    insert_use(recovery, segment);
    return 0;
}

static int replay_rows(const struct recovery *recovery, const struct bel_log_segment *segment,
                       uint64_t offset, const struct bel_frame *frame)
{
    struct bel_frame_row row;
    size_t at = 0;
    uint32_t count = 0;
    int err;
    while ((err = bel__frame_row_read(recovery->bytes + offset, frame, &at, &row)) == 0) {
        count++;
        err = recovery->replay(recovery->context, &row);
        if (err) return bel__why_say(recovery->why, err, "cannot replay a batch");
    }
    if (err == BEL_ENOTFOUND && count == frame->row_count) return 0;
    return say_damaged(recovery, segment, offset, "the batch has invalid rows");
}

/* Decodes the frame at `end`. Returns false if it is invalid or does not continue the log. */
static bool find_frame(const struct recovery *recovery, const struct bel_log_segment *segment,
                       struct bel_frame *out)
{
    uint64_t left = recovery->log->superblock.segment_bytes - recovery->end;
    bool is_frame = bel__frame_read(recovery->bytes + recovery->end, left, out);
    return is_frame && out->use == segment->header.use && out->salt == segment->header.salt &&
           out->synced_bytes <= recovery->end && out->synced_bytes >= BEL_SEGMENT_FRAMES &&
           out->synced_bytes % recovery->log->superblock.block_bytes == 0 &&
           bel__frame_continues(out, recovery->batch, recovery->checksum);
}

static void advance(struct recovery *recovery, const struct bel_frame *frame)
{
    uint64_t block = recovery->log->superblock.block_bytes;
    recovery->end += (frame->bytes + (block - 1)) / block * block;
    recovery->batch = frame->batch;
    recovery->checksum = frame->checksum;
    recovery->last = *frame;
    recovery->has_last = true;
}

/* Starts at the first frame of a segment, with the state from its header. */
static void rewind_to(struct recovery *recovery, const struct bel_log_segment *segment)
{
    recovery->end = BEL_SEGMENT_FRAMES;
    recovery->batch = segment->header.first_batch - 1;
    recovery->checksum = segment->header.previous_checksum;
    recovery->has_last = false;
}

/* Visits the frames of a segment and replays those that the tree lacks. */
static int walk(struct recovery *recovery, const struct bel_log_segment *segment)
{
    struct bel_frame frame;
    int err = read_segment(recovery, segment, recovery->log->superblock.segment_bytes);
    if (err) return err;
    rewind_to(recovery, segment);
    while (find_frame(recovery, segment, &frame) && frame.batch <= recovery->last_batch) {
        if (frame.batch > recovery->epoch) {
            err = replay_rows(recovery, segment, recovery->end, &frame);
            if (err) return err;
        }
        advance(recovery, &frame);
    }
    return 0;
}

/* Checks that a segment begins with the batch after the end of the previous segment. */
static int check_joint(const struct recovery *recovery, unsigned index)
{
    const struct bel_log_segment *before = recovery->uses[index - 1];
    const struct bel_segment_header *header = &recovery->uses[index]->header;
    if (header->use != before->header.use + 1) {
        return bel__why_say(recovery->why, BEL_ECORRUPT, "the log has no segment with use %llu",
                            (unsigned long long)before->header.use + 1);
    }
    if (header->first_batch == recovery->batch + 1 &&
        header->previous_checksum == recovery->checksum) {
        return 0;
    }
    return say_damaged(recovery, before, recovery->end, "invalid batch");
}

/* Visits all segments with batches that the tree lacks, and finds the end of the log. */
static int walk_all(struct recovery *recovery)
{
    unsigned first = recovery->use_count;
    while (first > 0) {
        first--;
        if (recovery->uses[first]->header.first_batch <= recovery->epoch + 1) break;
        if (first > 0) continue;
        return bel__why_say(recovery->why, BEL_ECORRUPT,
                            "the log begins with batch %llu, but the tree ends with %llu",
                            (unsigned long long)recovery->uses[0]->header.first_batch,
                            (unsigned long long)recovery->epoch);
    }
    for (unsigned i = first; i < recovery->use_count; i++) {
        struct bel_log_segment *segment = recovery->uses[i];
        if (segment->header.first_batch > recovery->last_batch) break;
        if (i > first) {
            int err = check_joint(recovery, i);
            if (err) return err;
            recovery->uses[i - 1]->last_batch = recovery->batch;
        }
        int err = walk(recovery, segment);
        if (err) return err;
        segment->is_free = false;
    }
    return 0;
}

/* Returns the offset, from `at` on, of bytes that look like a frame of this use; the end of the
 * segment if there are none. */
static uint64_t find_remains(const struct recovery *recovery, const struct bel_log_segment *segment,
                             uint64_t at)
{
    const struct bel_segment_header *header = &segment->header;
    uint64_t segment_bytes = recovery->log->superblock.segment_bytes;
    while (at < segment_bytes) {
        if (bel__frame_is_of(recovery->bytes + at, segment_bytes - at, header->use, header->salt)) {
            break;
        }
        at += recovery->log->superblock.block_bytes;
    }
    return at;
}

/* Distinguishes damage from an unsynced tail. It is damage if a later frame says that the bytes at
 * `end` were synced, or if the tree has batches that the log lacks. */
static int check_tail(const struct recovery *recovery, const struct bel_log_segment *segment)
{
    uint64_t segment_bytes = recovery->log->superblock.segment_bytes;
    uint64_t block = recovery->log->superblock.block_bytes;
    struct bel_frame frame;
    for (uint64_t at = find_remains(recovery, segment, recovery->end); at < segment_bytes;
         at = find_remains(recovery, segment, at + block)) {
        if (!bel__frame_read(recovery->bytes + at, segment_bytes - at, &frame)) continue;
        if (frame.synced_bytes <= recovery->end) continue;
        return say_damaged(recovery, segment, recovery->end, "invalid batch");
    }
    if (recovery->batch >= recovery->epoch) return 0;
    return say_damaged(recovery, segment, recovery->end, "a batch is missing");
}

/* Rewrites frames that may be only in the page cache, zeroes remains of frames after the end, which
 * a later recovery could take for valid ones, and syncs. */
static int secure_tail(struct recovery *recovery, const struct bel_log_segment *segment)
{
    struct bel_log *log = recovery->log;
    uint64_t segment_bytes = log->superblock.segment_bytes, block = log->superblock.block_bytes;
    uint64_t sure = recovery->has_last ? recovery->last.synced_bytes : recovery->end;
    size_t zero_bytes = block > BEL_FRAME_HEADER_BYTES ? block : BEL_FRAME_HEADER_BYTES;
    int err = log->io->write(log->io, segment->file, 0, recovery->bytes, BEL_IO_BLOCK);
    if (!err && sure < recovery->end) {
        err = log->io->write(log->io, segment->file, sure, recovery->bytes + sure,
                             recovery->end - sure);
    }
    memset(log->block, 0, BEL_IO_BLOCK);
    for (uint64_t at = find_remains(recovery, segment, recovery->end);
         at < segment_bytes && err == 0; at = find_remains(recovery, segment, at + block)) {
        err = log->io->write(log->io, segment->file, at, log->block, zero_bytes);
    }
    if (!err) err = log->io->sync(log->io, segment->file);
    if (!err) return 0;
    return bel__why_system(recovery->why, err, "the end of the log", "written");
}

/* Checks that the log has all that it had at the last clean close. `segment` is its last one. */
static int check_closed(const struct recovery *recovery, const struct bel_log_segment *segment)
{
    char what[128];
    uint64_t closed = recovery->log->closed_batch;
    if (recovery->batch >= closed) return 0;
    (void)snprintf(what, sizeof what,
                   "batch %llu is missing, up to %llu, which the last clean stop noted in CLOSED",
                   (unsigned long long)recovery->batch + 1, (unsigned long long)closed);
    return say_damaged(recovery, segment, recovery->end, what);
}

static int recover(struct recovery *recovery)
{
    struct bel_log *log = recovery->log;
    int err = 0;
    for (uint32_t i = 0; i < log->superblock.segment_count && err == 0; i++) {
        err = read_header(recovery, i);
    }
    if (err) return err;
    if (recovery->use_count == 0) {
        if (recovery->epoch == 0) return check_closed(recovery, &log->segments[0]);
        return bel__why_say(recovery->why, BEL_ECORRUPT,
                            "the log is empty, but the tree ends with batch %llu",
                            (unsigned long long)recovery->epoch);
    }
    err = walk_all(recovery);
    if (err) return err;
    struct bel_log_segment *last = recovery->uses[recovery->use_count - 1];
    err = check_tail(recovery, last);
    if (!err) err = check_closed(recovery, last);
    if (err) return err;
    err = secure_tail(recovery, last);
    if (err) return err;

    log->current = last;
    log->end = recovery->end;
    log->use = last->header.use;
    log->batch = recovery->batch;
    log->synced = (struct bel_log_writer_mark){.batch = log->batch, .end = log->end};
    log->checksum = recovery->checksum;
    return 0;
}

int bel__log_recover(struct bel_log *log, uint64_t epoch, bel_log_replay *replay, void *context,
                     struct bel_why *why)
{
    struct recovery recovery = {.log = log,
                                .epoch = epoch,
                                .last_batch = UINT64_MAX,
                                .replay = replay,
                                .context = context,
                                .why = why};
    recovery.bytes = aligned_alloc(BEL_IO_BLOCK, log->superblock.segment_bytes);
    if (recovery.bytes == NULL) return BEL_ENOMEM;
    int err = recover(&recovery);
    free(recovery.bytes);
    return err;
}

int bel__log_reread(struct bel_log *log, uint64_t epoch, uint64_t last, bel_log_replay *replay,
                    void *context, struct bel_why *why)
{
    struct recovery recovery = {.log = log,
                                .epoch = epoch,
                                .last_batch = last,
                                .replay = replay,
                                .context = context,
                                .why = why};
    if (epoch >= last) return 0;
    recovery.bytes = aligned_alloc(BEL_IO_BLOCK, log->superblock.segment_bytes);
    if (recovery.bytes == NULL) return BEL_ENOMEM;
    for (uint32_t i = 0; i < log->superblock.segment_count; i++) {
        struct bel_log_segment *segment = &log->segments[i];
        if (!segment->is_free && segment->header.use > 0) insert_use(&recovery, segment);
    }
    int err = walk_all(&recovery);
    free(recovery.bytes);
    if (err || recovery.batch >= last) return err;
    return bel__why_say(why, BEL_ECORRUPT, "the log ends with batch %llu instead of %llu",
                        (unsigned long long)recovery.batch, (unsigned long long)last);
}
