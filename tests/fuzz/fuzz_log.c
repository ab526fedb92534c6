/* SPDX-License-Identifier: MIT */

/*
 * The input becomes a log in three ways: as a segment; as the body of a frame with a valid
 * checksum, so that its rows are parsed; and as a list of frames, each with a byte that selects
 * what is wrong with it. A log that opens must open again with the same rows. An error must name a
 * file.
 */
#include "store/state.h"

#include "../sim/disk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENT_BYTES = 3 * BEL_SEGMENT_FRAMES,
    SEGMENTS = 3,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct disk *disk;
static struct bel_tree *tree;
static struct bel_entropy_seeded entropy;

static int open_store(struct bel_store **out)
{
    struct bel_why why;
    struct bel_store_options options = {
        .io = disk_io(disk),
        .tree = tree,
        .entropy = &entropy.entropy,
        .segment_bytes = SEGMENT_BYTES,
        .segment_count = SEGMENTS,
    };
    int err = bel__store_open(&options, out, &why);
    assert(err == 0 || (err == BEL_ECORRUPT && strstr(why.text, "log") != NULL));
    return err;
}

static void write_segment(uint64_t offset, const void *data, size_t size)
{
    struct bel_io *io = disk_io(disk);
    struct bel_io_file *file;
    int err = io->open(io, "log-0", BEL_IO_READ, &file);
    assert(err == 0);
    err = io->write(io, file, offset, data, size);
    assert(err == 0);
    io->close(io, file);
}

/* Returns a hash of all rows, in order. */
static uint64_t digest(struct bel_store *store)
{
    static const struct bel_key first = {{0, 0, 0}};
    struct bel_store_cursor cursor;
    uint64_t sum = store->batch;
    int err;
    for (err = bel__store_seek(store, &first, &cursor); err == 0;
         err = bel__store_next(store, &cursor)) {
        for (int i = 0; i < 3; i++) {
            sum = sum * 31 + cursor.key.words[i];
        }
        for (size_t i = 0; i < cursor.value.bytes; i++) {
            sum = sum * 31 + ((const uint8_t *)cursor.value.data)[i];
        }
    }
    assert(err == BEL_ENOTFOUND);
    return sum;
}

/* Opens the log, adds a row, and opens it again. */
static void check_log(void)
{
    struct bel_key key = {{1, 2, 3}};
    struct bel_store *store;
    if (open_store(&store) != 0) return;
    uint64_t found = digest(store);
    disk_stop(disk);
    bel__store_close(store);
    disk_kill(disk);

    int err = open_store(&store);
    assert(err == 0);
    assert(digest(store) == found);
    err = bel__store_reserve(store, 1, 3, BEL_STORE_END);
    assert(err == 0);
    bel__store_put(store, &key, BEL_VIEW("end"), BEL_ROW_ANY);
    uint64_t batch = bel__store_commit(store);
    found = digest(store);
    bel__store_close(store);

    err = open_store(&store);
    assert(err == 0);
    assert(store->batch == batch && digest(store) == found);
    bel__store_close(store);
}

/* Creates a log with one batch, and returns its header and frame. */
static void setup(struct bel_segment_header *out_header, struct bel_frame *out_frame)
{
    struct bel_key key = {{1, 1, 1}};
    struct bel_store *store;
    disk = disk_create(1);
    int err = bel__tree_memory_create_lasting(&tree);
    assert(err == 0);
    bel__entropy_seed(&entropy, 1);
    err = open_store(&store);
    assert(err == 0);
    err = bel__store_reserve(store, 1, 0, BEL_STORE_ADD);
    assert(err == 0);
    bel__store_put(store, &key, (struct bel_view){NULL, 0}, BEL_ROW_ANY);
    (void)bel__store_commit(store);
    *out_header = store->log->current->header;
    *out_frame = (struct bel_frame){
        .use = out_header->use,
        .salt = out_header->salt,
        .batch = 1,
        .checksum = store->log->checksum,
        .bytes = (uint32_t)(store->log->end - BEL_SEGMENT_FRAMES), /* the next frame follows it */
    };
    disk_stop(disk);
    bel__store_close(store);
    disk_kill(disk);
}

static void teardown(void)
{
    disk_destroy(disk);
    bel__tree_memory_destroy(tree);
}

/* Writes frames after the first: a byte for what is wrong, one for the number of rows, one for the
 * length of the body, and the body. */
static void write_frames(const uint8_t *data, size_t size, struct bel_frame last)
{
    uint8_t bytes[BEL_FRAME_HEADER_BYTES + 256];
    uint64_t offset = BEL_SEGMENT_FRAMES + last.bytes;
    while (size >= 3) {
        uint8_t wrong = data[0];
        size_t body = data[2] < size - 3 ? data[2] : size - 3;
        struct bel_frame frame = {
            .bytes = (uint32_t)(BEL_FRAME_HEADER_BYTES + body),
            .row_count = data[1],
            .use = last.use + (wrong == 1),
            .salt = last.salt + (wrong == 2),
            .batch = last.batch + 1 + (wrong == 3),
            .synced_bytes = offset + (wrong == 4 ? 4096 : 0),
            .previous_checksum = last.checksum + (wrong == 5),
            .is_closing = wrong == 6,
        };
        if (wrong == 6) frame.batch = last.batch;
        if (offset + frame.bytes > SEGMENT_BYTES) return;
        memcpy(bytes + BEL_FRAME_HEADER_BYTES, data + 3, body);
        bel__frame_seal(&frame, bytes);
        if (wrong == 7) bytes[frame.bytes - 1] ^= 1;
        write_segment(offset, bytes, frame.bytes);
        offset += ((uint64_t)frame.bytes + 7) / 8 * 8;
        last = frame;
        data += 3 + body;
        size -= 3 + body;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_segment_header header;
    struct bel_frame frame;
    if (size < 1 || size > SEGMENT_BYTES - 512) return 0;
    setup(&header, &frame);
    if (data[0] % 3 == 0) {
        write_segment(0, data + 1, size - 1);
    } else if (data[0] % 3 == 1) {
        uint8_t *bytes = calloc(1, BEL_FRAME_HEADER_BYTES + size);
        assert(bytes != NULL);
        memcpy(bytes + BEL_FRAME_HEADER_BYTES, data + 1, size - 1);
        uint64_t offset = BEL_SEGMENT_FRAMES + frame.bytes;
        struct bel_frame next = {
            .bytes = (uint32_t)(BEL_FRAME_HEADER_BYTES + size - 1),
            .row_count = (uint32_t)(size / 28),
            .use = frame.use,
            .salt = frame.salt,
            .batch = 2,
            .synced_bytes = offset,
            .previous_checksum = frame.checksum,
        };
        bel__frame_seal(&next, bytes);
        if (offset + next.bytes <= SEGMENT_BYTES) write_segment(offset, bytes, next.bytes);
        free(bytes);
    } else {
        write_frames(data + 1, size - 1, frame);
    }
    check_log();
    teardown();
    return 0;
}
