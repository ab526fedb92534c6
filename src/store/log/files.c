/* SPDX-License-Identifier: MIT */

/*
 * Creation writes the superblock last. Without a superblock there is no store, so an interrupted
 * creation starts over. Before that it checks existing segments: only an unused one, whose header
 * is zeros, may be overwritten.
 *
 * A backup must not be taken for an interrupted creation, because its tree has rows before its log
 * exists. So a backup begins with a placeholder for the superblock: a text of another size, which
 * earlier versions refuse as damage. The superblock replaces it in one step, a rename. A disk that
 * is full from the beginning has room for the name of the placeholder only: an empty superblock
 * beside no other file is a placeholder, too.
 */
#include "store/log/files.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char superblock_name[] = "superblock";
static const char superblock_new_name[] = "superblock.new";
static const char placeholder[] = "unfinished Belfry backup\n"; /* without its last byte, a 0 */

static_assert(sizeof placeholder - 1 < BEL_SUPERBLOCK_BYTES, "it is not taken for a superblock");

void bel__log_name(uint32_t number, char out[BEL_LOG_NAME_BYTES])
{
    int bytes = snprintf(out, BEL_LOG_NAME_BYTES, "log-%u", (unsigned)number);
    assert(bytes > 0 && bytes < BEL_LOG_NAME_BYTES);
}

/* Checks that a segment does not exist, or is unused. */
static int check_unused(struct bel_io *io, const char *name, struct bel_why *why)
{
    struct bel_io_file *file;
    uint8_t bytes[BEL_SEGMENT_HEADER_BYTES] = {0};
    struct bel_segment_header header;
    uint64_t size;
    int err = io->open(io, name, BEL_IO_READ, &file);
    if (err == BEL_ENOTFOUND) return 0;
    if (err) return bel__why_system(why, err, name, "opened");
    err = io->size(io, file, &size);
    if (!err && size > sizeof bytes) size = sizeof bytes;
    if (!err && size > 0) err = io->read(io, file, 0, bytes, size);
    if (err) err = bel__why_system(why, err, name, "read");
    io->close(io, file);
    if (err) return err;
    if (bel__segment_header_read(bytes, &header) == BEL_ENOTFOUND) return 0;
    return bel__why_say(why, BEL_ECORRUPT, "superblock is missing, but %s was used", name);
}

/* Writes the header of the first segment of a log whose first batch is not 1: the log of a backup,
 * whose tree has the batches before. */
static int write_first_header(struct bel_log *log, struct bel_io_file *file, uint64_t first_batch)
{
    struct bel_segment_header header = {.use = 1, .first_batch = first_batch};
    memcpy(header.id, log->superblock.id, sizeof header.id);
    int err = bel__entropy_u64(log->entropy, &header.salt);
    if (err) return err;
    memset(log->block, 0, BEL_IO_BLOCK);
    bel__segment_header_write(&header, log->block);
    return log->io->write(log->io, file, 0, log->block, BEL_IO_BLOCK);
}

/* Creates one segment of zeros. Segment 0 gets a header if `first_batch` is above 1. */
static int make_segment(struct bel_log *log, uint32_t number, uint64_t first_batch, bool is_direct,
                        struct bel_why *why)
{
    char name[BEL_LOG_NAME_BYTES];
    bel__log_name(number, name);
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    int err = io->open(io, name, BEL_IO_CREATE | (is_direct ? BEL_IO_DIRECT : 0U), &file);
    if (err == BEL_EUNSUPPORTED) return err;
    if (err) return bel__why_system(why, err, name, "made");
    err = io->fill(io, file, 0, log->superblock.segment_bytes);
    if (!err && number == 0 && first_batch > 1) err = write_first_header(log, file, first_batch);
    if (!err) err = io->sync(io, file);
    if (err) err = bel__why_system(why, err, name, "filled with zeros");
    io->close(io, file);
    return err;
}

static int write_superblock(struct bel_log *log, struct bel_why *why)
{
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    uint8_t bytes[BEL_SUPERBLOCK_BYTES];
    bel__superblock_write(&log->superblock, bytes);
    int err = io->open(io, superblock_new_name, BEL_IO_CREATE, &file);
    if (err) return bel__why_system(why, err, superblock_new_name, "made");
    err = io->write(io, file, 0, bytes, sizeof bytes);
    if (!err) err = io->sync(io, file);
    io->close(io, file);
    if (!err) err = io->rename(io, superblock_new_name, superblock_name);
    if (err) return bel__why_system(why, err, superblock_name, "written");
    log->superblock.format = BEL_FORMAT;
    return 0;
}

int bel__log_check_superblock(struct bel_log *log)
{
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    uint8_t want[BEL_SUPERBLOCK_BYTES], bytes[BEL_SUPERBLOCK_BYTES] = {0};
    uint64_t size;
    int err = io->open(io, superblock_name, BEL_IO_READ, &file);
    if (err == BEL_ENOTFOUND) {
        return bel__why_say(&log->why, BEL_EIO, "superblock was deleted by another process");
    }
    if (err) return 0;
    bel__superblock_write(&log->superblock, want);
    err = io->size(io, file, &size);
    if (!err && size >= sizeof bytes) err = io->read(io, file, 0, bytes, sizeof bytes);
    io->close(io, file);
    if (err || (size == sizeof bytes && memcmp(bytes, want, sizeof bytes) == 0)) return 0;
    return bel__why_say(&log->why, BEL_EIO, "superblock was changed by another process");
}

int bel__log_raise(struct bel_log *log, struct bel_why *why)
{
    if (log->superblock.format == BEL_FORMAT) return 0;
    assert(log->superblock.format >= BEL_FORMAT_OLDEST);
    int err = write_superblock(log, why);
    if (err == BEL_ENOTFOUND) { /* a read-only view creates no files */
        if (why != NULL) why->text[0] = 0;
        return 0;
    }
    if (err) return err;
    err = log->io->sync_directory(log->io);
    return err ? bel__why_system(why, err, "the data directory", "synced") : 0;
}

/* Creates all segments, then the superblock. */
static int make(struct bel_log *log, const struct bel_log_options *options, struct bel_why *why)
{
    struct bel_superblock *superblock = &log->superblock;
    char name[BEL_LOG_NAME_BYTES];
    assert(options->segment_count >= BEL_SEGMENT_COUNT_MIN);
    assert(options->segment_count <= BEL_SEGMENT_COUNT_MAX);
    assert(options->segment_bytes >= BEL_SEGMENT_BYTES_MIN);
    assert(options->segment_bytes <= BEL_SEGMENT_BYTES_MAX);
    assert(options->segment_bytes % BEL_SEGMENT_FRAMES == 0);
    superblock->segment_bytes = options->segment_bytes;
    superblock->segment_count = options->segment_count;
    int err = bel__entropy_fill(log->entropy, superblock->id, sizeof superblock->id);
    if (err) return bel__why_say(why, err, "the system has no entropy for a store id");

    for (uint32_t i = 0; i < BEL_SEGMENT_COUNT_MAX && err == 0; i++) {
        bel__log_name(i, name);
        err = check_unused(log->io, name, why);
    }
    bool is_direct = !options->is_buffered;
    for (uint32_t i = 0; i < superblock->segment_count && err == 0; i++) {
        err = make_segment(log, i, options->first_batch, is_direct, why);
        if (err != BEL_EUNSUPPORTED) continue;
        is_direct = false;
        err = make_segment(log, i, options->first_batch, is_direct, why);
    }
    superblock->block_bytes = is_direct ? BEL_IO_BLOCK : 8;
    if (err) return err;
    err = log->io->sync_directory(log->io); /* segments must exist before the superblock does */
    if (err) return bel__why_system(why, err, "the data directory", "synced");
    return write_superblock(log, why);
}

/* Sets `context` if there is another file than the superblock, LOCK, which means nothing, and
 * "lost+found" of a file system. */
static void see_other(void *context, const char *name)
{
    static const char *const names[] = {superblock_name, "LOCK", "lost+found"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return;
    }
    *(bool *)context = true;
}

/* Sets `*out` to whether a superblock of this size is the placeholder of a backup, be it partly
 * written. An empty file beside others may have been anything. */
static int is_placeholder(struct bel_io *io, struct bel_io_file *file, uint64_t size, bool *out)
{
    char bytes[sizeof placeholder];
    *out = false;
    if (size >= sizeof placeholder) return 0;
    if (size == 0) {
        bool has_others = false;
        int err = io->list(io, see_other, &has_others);
        *out = err == 0 && !has_others;
        return err;
    }
    int err = io->read(io, file, 0, bytes, size);
    if (!err) *out = memcmp(bytes, placeholder, size) == 0;
    return err;
}

int bel__log_look(struct bel_io *io, struct bel_why *why)
{
    struct bel_io_file *file;
    uint64_t size;
    bool is_copy = false;
    int err = io->open(io, superblock_name, BEL_IO_READ, &file);
    if (err == BEL_ENOTFOUND) return err;
    if (err) return bel__why_system(why, err, superblock_name, "opened");
    err = io->size(io, file, &size);
    if (!err) err = is_placeholder(io, file, size, &is_copy);
    if (err) err = bel__why_system(why, err, superblock_name, "read");
    io->close(io, file);
    if (err || !is_copy) return err;
    return bel__why_say(why, BEL_ECORRUPT,
                        "an unfinished backup: it was interrupted or has failed; remove it, or "
                        "repeat BACKUP to this path");
}

int bel__log_begin_copy(struct bel_io *io, struct bel_why *why)
{
    struct bel_io_file *file;
    int err = io->open(io, superblock_name, BEL_IO_CREATE, &file);
    if (err) return bel__why_system(why, err, superblock_name, "made");
    err = io->write(io, file, 0, placeholder, sizeof placeholder - 1);
    if (err) err = bel__why_system(why, err, superblock_name, "written");
    io->close(io, file); /* stays if it is empty: the directory has a name for what it is */
    return err;
}

int bel__log_sync_copy(struct bel_io *io, struct bel_why *why)
{
    struct bel_io_file *file;
    int err = io->open(io, superblock_name, BEL_IO_READ, &file);
    if (err) return bel__why_system(why, err, superblock_name, "opened");
    err = io->sync(io, file);
    io->close(io, file);
    if (!err) err = io->sync_directory(io);
    return err ? bel__why_system(why, err, superblock_name, "synced") : 0;
}

void bel__log_abandon_copy(struct bel_io *io)
{
    char name[BEL_LOG_NAME_BYTES];
    for (uint32_t i = 0; i < BEL_SEGMENT_COUNT_MAX; i++) {
        bel__log_name(i, name);
        (void)!io->remove(io, name);
    }
    (void)!io->remove(io, superblock_new_name);
}

static int read_superblock(struct bel_log *log, struct bel_why *why)
{
    struct bel_io *io = log->io;
    struct bel_io_file *file;
    uint8_t bytes[BEL_SUPERBLOCK_BYTES];
    uint64_t size;
    uint32_t format;
    int err = io->open(io, superblock_name, BEL_IO_READ, &file);
    if (err == BEL_ENOTFOUND) return err;
    if (err) return bel__why_system(why, err, superblock_name, "opened");
    err = io->size(io, file, &size);
    if (!err && size == sizeof bytes) err = io->read(io, file, 0, bytes, sizeof bytes);
    if (err) err = bel__why_system(why, err, superblock_name, "read");
    io->close(io, file);
    if (err) return err;
    if (size == 0) { /* a power failure before the placeholder of a backup was synced */
        return bel__why_say(why, BEL_ECORRUPT,
                            "superblock is empty: an unfinished backup, or damage");
    }
    if (size != sizeof bytes) {
        return bel__why_say(why, BEL_ECORRUPT, "superblock has %llu bytes instead of %zu",
                            (unsigned long long)size, sizeof bytes);
    }
    err = bel__superblock_read(bytes, &log->superblock, &format);
    if (err == BEL_EUNSUPPORTED) {
        return bel__why_say(why, err, "superblock has format %u; this build knows %d to %d",
                            (unsigned)format, BEL_FORMAT_OLDEST, BEL_FORMAT);
    }
    if (err) return bel__why_say(why, err, "superblock is damaged, or is not one");
    return 0;
}

static int open_segment(struct bel_log *log, uint32_t number, bool is_direct, struct bel_why *why)
{
    struct bel_io *io = log->io;
    struct bel_log_segment *segment = &log->segments[number];
    char name[BEL_LOG_NAME_BYTES];
    uint64_t size;
    bel__log_name(number, name);
    int err = io->open(io, name, is_direct ? BEL_IO_DIRECT : BEL_IO_READ, &segment->file);
    if (err == BEL_EUNSUPPORTED) err = io->open(io, name, BEL_IO_READ, &segment->file);
    if (err == BEL_ENOTFOUND) return bel__why_say(why, BEL_ECORRUPT, "%s is missing", name);
    if (err) return bel__why_system(why, err, name, "opened");
    err = io->size(io, segment->file, &size);
    if (err) return bel__why_system(why, err, name, "measured");
    if (size == log->superblock.segment_bytes) return 0;
    return bel__why_say(why, BEL_ECORRUPT, "%s has %llu bytes instead of %llu", name,
                        (unsigned long long)size,
                        (unsigned long long)log->superblock.segment_bytes);
}

int bel__log_open_files(struct bel_log *log, const struct bel_log_options *options,
                        struct bel_why *why)
{
    int err = bel__log_look(log->io, why);
    if (err == BEL_ECORRUPT && options->first_batch > 0) err = BEL_ENOTFOUND; /* our own */
    if (!err) err = read_superblock(log, why);
    if (err == BEL_ENOTFOUND) err = make(log, options, why);
    if (err) return err;

    /* A crash during creation may have left the directory unsynced. */
    err = log->io->sync_directory(log->io);
    if (err) return bel__why_system(why, err, "the data directory", "synced");
    bool is_direct =
        !options->is_buffered && !options->is_lazy && log->superblock.block_bytes == BEL_IO_BLOCK;
    for (uint32_t i = 0; i < log->superblock.segment_count && err == 0; i++) {
        err = open_segment(log, i, is_direct, why);
    }
    return err;
}
