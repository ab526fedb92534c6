/* SPDX-License-Identifier: MIT */

/*
 * The log of a store, on a simulated disk: which damage is detected and how it is reported, and one
 * fixed script that is cut at every operation. Random histories are in prop_log.
 */
#include "core/crc32c.h"
#include "store/state.h"

#include "../check.h"
#include "../sim/disk.h"

#include <string.h>

enum {
    KEYS = 16,
    BATCHES = 36, /* of the script */
    SEGMENT_BYTES = 8192,
    SEGMENTS = 3,
    VALUE_BYTES = 300,
};

static struct disk *disk;
static struct bel_tree *tree;
static struct bel_entropy_seeded entropy;
static struct bel_store_options options;
static struct bel_store *store;
static struct bel_why why;

/* The content of each key after a batch of the script: the batch that put it, or 0. */
static uint64_t contents[BATCHES + 1][KEYS];

static void setup(void)
{
    disk = disk_create(1);
    CHECK(bel__tree_memory_create_lasting(&tree) == 0);
    bel__entropy_seed(&entropy, 1);
    options = (struct bel_store_options){
        .io = disk_io(disk),
        .tree = tree,
        .entropy = &entropy.entropy,
        .segment_bytes = SEGMENT_BYTES,
        .segment_count = SEGMENTS,
    };
}

static void teardown(void)
{
    bel__store_close(store);
    store = NULL;
    bel__tree_memory_destroy(tree);
    disk_destroy(disk);
}

static void open_store(void)
{
    int err = bel__store_open(&options, &store, &why);
    if (err != 0) fprintf(stderr, "%s\n", why.text);
    CHECK(err == 0);
}

static void close_store(void)
{
    bel__store_close(store);
    store = NULL;
}

static bool is_refused(int want, const char *text)
{
    struct bel_store *other = NULL;
    int err = bel__store_open(&options, &other, &why);
    if (err == want && strstr(why.text, text) != NULL) return true;
    fprintf(stderr, "%d: %s\n", err, why.text);
    bel__store_close(other);
    return false;
}

static struct bel_key key_of(uint64_t i)
{
    return (struct bel_key){{i, 0, 7}};
}

static int put(uint64_t i, uint64_t number, enum bel_store_use use)
{
    struct bel_key key = key_of(i);
    uint8_t value[VALUE_BYTES];
    memset(value, (int)number, sizeof value);
    memcpy(value, &number, sizeof number);
    int err = bel__store_reserve(store, 1, sizeof value, use);
    if (err) return err;
    bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_ANY);
    return 0;
}

static int take_out(uint64_t i)
{
    struct bel_key key = key_of(i);
    int err = bel__store_reserve(store, 1, 0, BEL_STORE_END);
    if (err) return err;
    bel__store_delete(store, &key);
    return 0;
}

static bool has(uint64_t i, uint64_t number)
{
    struct bel_key key = key_of(i);
    struct bel_view value;
    int err = bel__store_get(store, &key, &value);
    if (number == 0) return err == BEL_ENOTFOUND;
    return err == 0 && value.bytes == VALUE_BYTES && memcmp(value.data, &number, 8) == 0;
}

static bool is_content(uint64_t batch)
{
    for (uint64_t i = 0; i < KEYS; i++) {
        if (!has(i, contents[batch][i])) return false;
    }
    return true;
}

/* Three rows per batch, sometimes a deletion, until something fails. */
static void run_script(uint64_t *out_synced)
{
    for (uint64_t batch = store->batch + 1; batch <= BATCHES; batch++) {
        memcpy(contents[batch], contents[batch - 1], sizeof contents[batch]);
        for (uint64_t row = 0; row < 3; row++) {
            uint64_t i = (batch * 5 + row * 3) % KEYS;
            bool is_gone = (batch + row) % 4 == 0;
            int err = is_gone ? take_out(i) : put(i, batch, BEL_STORE_END);
            if (err) return;
            contents[batch][i] = is_gone ? 0 : batch;
        }
        CHECK_EQ(bel__store_commit(store), batch);
        (void)bel__store_work(store);
        *out_synced = bel__store_synced(store);
    }
}

static void a_store_keeps_what_was_synced(void)
{
    uint64_t synced = 0;
    setup();
    open_store();
    CHECK(strcmp(why.text, "") == 0);
    run_script(&synced);
    CHECK_EQ(synced, BATCHES);
    CHECK(store->log->use > (uint64_t)2 * SEGMENTS); /* segments were reused */
    close_store();
    for (int i = 0; i < 3; i++) {
        open_store();
        CHECK_EQ(store->batch, BATCHES);
        CHECK(is_content(BATCHES));
        close_store();
    }
    teardown();
}

/* Runs the script up to an operation, and again up to an operation of the recovery after it. */
static void cut_at(uint64_t operation, uint64_t later, bool has_power)
{
    uint64_t synced = 0;
    setup();
    disk_plan(disk)->crash_in = operation;
    if (bel__store_open(&options, &store, NULL) == 0) run_script(&synced);
    for (int i = 0; i < 2; i++) {
        disk_stop(disk);
        close_store();
        if (has_power) {
            disk_kill(disk);
        } else {
            disk_cut_power(disk);
        }
        disk_plan(disk)->crash_in = i == 0 ? later : 0;
        int err = bel__store_open(&options, &store, &why);
        if (err == 0) break;
        if (err != BEL_EIO) fprintf(stderr, "%s\n", why.text);
        CHECK(i == 0 && err == BEL_EIO);
    }
    CHECK(store->batch >= synced && store->batch <= synced + 1);
    CHECK(is_content(store->batch));
    disk_plan(disk)->crash_in = 0;
    if (bel__store_error(store) != 0) { /* it was cut after the recovery */
        teardown();
        return;
    }
    run_script(&synced);
    if (!disk_is_down(disk)) CHECK(is_content(BATCHES));
    teardown();
}

static void a_cut_at_any_operation_loses_nothing(void)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    uint64_t count = disk_operation_count(disk);
    CHECK(count > 60);
    teardown();
    for (uint64_t operation = 1; operation <= count; operation++) {
        for (uint64_t later = 0; later <= 6; later++) {
            CHECK_NOTE("cut at %d, then at %d", (int)operation, (int)later);
            cut_at(operation, later, true);
            cut_at(operation, later, false);
        }
    }
}

/* Copies the disk, flips a byte, and returns whether the damage is reported with the file's name;
 * otherwise it must change nothing. */
static bool is_flip_found(const char *name, size_t offset, uint8_t bits, bool may_lose_last)
{
    struct disk *original = disk;
    disk = disk_clone(original);
    options.io = disk_io(disk);
    disk_flip(disk, name, offset, bits);
    int err = bel__store_open(&options, &store, &why);
    bool is_found = false;
    if (err != 0) {
        is_found = err == BEL_ECORRUPT && strstr(why.text, name) != NULL;
    } else {
        is_found = is_content(store->batch) &&
                   (store->batch == BATCHES || (may_lose_last && store->batch == BATCHES - 1));
    }
    close_store();
    disk_destroy(disk);
    disk = original;
    options.io = disk_io(disk);
    return is_found;
}

/* Returns how many flips were detected. */
static unsigned flip_all(const char *name, bool may_lose_last)
{
    unsigned refused = 0;
    for (size_t offset = 0; offset < disk_size(disk, name); offset++) {
        uint8_t bits = (uint8_t)(1U << offset % 8);
        CHECK_NOTE("%s, byte %zu", name, offset);
        CHECK(is_flip_found(name, offset, bits, may_lose_last));
        refused += why.text[0] != 0;
        CHECK(is_flip_found(name, offset, 0xff, may_lose_last));
    }
    return refused;
}

static void flip_everything(bool is_closed)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    if (!is_closed) disk_stop(disk);
    close_store();
    disk_kill(disk);
    unsigned refused = 0;
    CHECK_EQ(flip_all("superblock", false), BEL_SUPERBLOCK_BYTES);
    refused += flip_all("log-0", !is_closed);
    refused += flip_all("log-1", !is_closed);
    refused += flip_all("log-2", !is_closed);
    CHECK(refused > 2000); /* a segment is full of batches that are not in the tree */
    teardown();
}

static void every_flipped_byte_is_found_after_a_close(void)
{
    flip_everything(true);
}

static void every_flipped_byte_is_found_after_a_kill_but_in_the_last_batch(void)
{
    flip_everything(false);
}

/* A log whose batches are all in the tree needs no replay, but its damage is still detected. */
static void damage_in_what_the_tree_has_is_found_too(void)
{
    uint64_t batch = 0;
    setup();
    open_store();
    while (store->freeze == BEL_FREEZE_NONE) {
        CHECK(put(1, batch + 1, BEL_STORE_ADD) == 0);
        CHECK_EQ(bel__store_commit(store), ++batch);
    }
    while (bel__store_work(store)) {}
    disk_stop(disk);
    close_store();
    disk_kill(disk);
    CHECK_EQ(tree->epoch(tree), batch);
    disk_flip(disk, "log-1", BEL_SEGMENT_FRAMES + 100,
              1); /* the last batch, alone in its segment */
    CHECK(is_refused(BEL_ECORRUPT, "log-1 is damaged at byte 4096: a batch is missing"));
    disk_flip(disk, "log-1", BEL_SEGMENT_FRAMES + 100, 1);
    open_store();
    CHECK(has(1, batch));
    teardown();
}

/* A frame with a valid checksum that does not consist of rows was written by another program. */
static void a_batch_that_is_not_made_of_rows_is_refused(void)
{
    uint8_t bytes[BEL_FRAME_HEADER_BYTES + 40];
    struct bel_frame frame;
    struct bel_io_file *file;
    setup();
    open_store();
    CHECK(take_out(1) == 0);
    CHECK_EQ(bel__store_commit(store), 1);
    disk_stop(disk);
    close_store();
    disk_kill(disk);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = disk_byte(disk, "log-0", BEL_SEGMENT_FRAMES + i);
    }
    CHECK(bel__frame_read(bytes, sizeof bytes, &frame));
    frame.row_count = 2;
    bel__frame_seal(&frame, bytes);
    struct bel_io *io = disk_io(disk);
    CHECK(io->open(io, "log-0", BEL_IO_READ, &file) == 0);
    CHECK(io->write(io, file, BEL_SEGMENT_FRAMES, bytes, sizeof bytes) == 0);
    CHECK(is_refused(BEL_ECORRUPT, "log-0 is damaged at byte 4096: the batch has invalid rows"));
    frame.row_count = 1;
    frame.bytes += 1;
    bel__frame_seal(&frame, bytes);
    CHECK(io->write(io, file, BEL_SEGMENT_FRAMES, bytes, sizeof bytes) == 0);
    CHECK(is_refused(BEL_ECORRUPT, "log-0 is damaged at byte 4096: the batch has invalid rows"));
    teardown();
}

static void two_openers_are_one_too_many(void)
{
    setup();
    open_store();
    CHECK(is_refused(BEL_EBUSY, "in use"));
    close_store();
    open_store();
    teardown();
}

/* Changes the format of a header and corrects its checksum. */
static void set_format(const char *name, uint32_t format)
{
    uint8_t bytes[64], changed[64];
    for (size_t i = 0; i < sizeof bytes; i++) {
        changed[i] = bytes[i] = disk_byte(disk, name, i);
    }
    changed[8] = (uint8_t)format;
    uint32_t checksum = bel__crc32c(0, changed, 60);
    for (size_t i = 0; i < 4; i++) {
        changed[60 + i] = (uint8_t)(checksum >> 8 * i);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        disk_flip(disk, name, i, bytes[i] ^ changed[i]);
    }
}

static void another_format_is_refused_as_that(void)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    close_store();
    set_format("superblock", BEL_FORMAT + 1);
    CHECK(is_refused(BEL_EUNSUPPORTED, "superblock has format 5; this build knows 2 to 4"));
    set_format("superblock", BEL_FORMAT_OLDEST - 1);
    CHECK(is_refused(BEL_EUNSUPPORTED, "superblock has format 1; this build knows 2 to 4"));
    set_format("superblock", 0);
    CHECK(is_refused(BEL_ECORRUPT, "superblock is damaged"));
    set_format("superblock", BEL_FORMAT);
    set_format("log-1", BEL_FORMAT + 1);
    CHECK(is_refused(BEL_EUNSUPPORTED, "log-1 has a newer format"));
    set_format("log-1", BEL_FORMAT);
    open_store();
    CHECK(is_content(BATCHES));
    teardown();
}

/* Opens a store of an older format, and cuts the power at an operation. Returns whether the store
 * was open before. */
static bool raise_until(uint64_t operation)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    close_store();
    set_format("superblock", BEL_FORMAT_OLDEST);
    set_format("log-1", BEL_FORMAT_OLDEST);
    disk_plan(disk)->crash_in = operation;
    bool is_open = bel__store_open(&options, &store, NULL) == 0;
    bool is_raised = disk_byte(disk, "superblock", 8) == BEL_FORMAT;
    CHECK(!is_open || is_raised);
    disk_stop(disk);
    close_store();
    disk_cut_power(disk);
    disk_plan(disk)->crash_in = 0;
    open_store();
    CHECK(is_content(BATCHES));
    CHECK(disk_byte(disk, "superblock", 8) == BEL_FORMAT);
    teardown();
    return is_open;
}

/* A power cut during the raise leaves the old superblock or the new one. */
static void an_older_format_is_raised(void)
{
    uint64_t operation = 1;
    while (!raise_until(operation)) {
        operation++;
    }
    CHECK(operation > 5); /* the cuts have reached the raise */
}

static void a_file_that_is_missing_is_named(void)
{
    struct bel_io *io;
    setup();
    open_store();
    CHECK(put(1, 1, BEL_STORE_ADD) == 0);
    CHECK_EQ(bel__store_commit(store), 1);
    close_store();
    io = disk_io(disk);
    CHECK(io->rename(io, "log-2", "elsewhere") == 0);
    CHECK(is_refused(BEL_ECORRUPT, "log-2 is missing"));
    CHECK(io->rename(io, "elsewhere", "log-2") == 0);
    CHECK(io->rename(io, "superblock", "elsewhere") == 0);
    CHECK(is_refused(BEL_ECORRUPT, "superblock is missing, but log-0 was used"));
    CHECK(io->rename(io, "elsewhere", "superblock") == 0);
    CHECK(io->rename(io, "log-0", "elsewhere") == 0);
    CHECK(io->rename(io, "log-1", "log-0") == 0);
    CHECK(io->rename(io, "elsewhere", "log-1") == 0);
    CHECK(is_refused(BEL_ECORRUPT, "log-1 is damaged at byte 0"));
    teardown();
}

static void a_tree_that_was_lost_is_noticed(void)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    close_store();
    bel__tree_memory_destroy(tree);
    CHECK(bel__tree_memory_create_lasting(&tree) == 0);
    options.tree = tree;
    CHECK(is_refused(BEL_ECORRUPT, "but the tree ends with 0"));
    teardown();
}

static void a_log_that_was_lost_is_noticed(void)
{
    uint64_t synced = 0;
    setup();
    open_store();
    run_script(&synced);
    close_store();
    struct disk *empty = disk_create(2);
    options.io = disk_io(empty);
    CHECK(is_refused(BEL_ECORRUPT, "the log is empty"));
    disk_destroy(empty);
    teardown();
}

/* Overwrites a segment with zeros from `offset` on. */
static void zero_from(const char *name, size_t offset)
{
    for (size_t at = offset; at < disk_size(disk, name); at++) {
        disk_flip(disk, name, at, disk_byte(disk, name, at));
    }
}

/* Zeros in place of the last batches, or of the whole log, look like a log that was never longer.
 * After a clean close, the file CLOSED says otherwise. */
static void zeros_in_place_of_batches_are_found_after_a_close(void)
{
    enum {
        FEW = 5
    }; /* batches, so that all are in one segment, and none in the tree */
    for (size_t offset = 0; offset < SEGMENT_BYTES; offset += 8) {
        setup();
        open_store();
        for (uint64_t batch = 1; batch <= FEW; batch++) {
            CHECK(put(batch, batch, BEL_STORE_END) == 0);
            CHECK_EQ(bel__store_commit(store), batch);
        }
        close_store();
        open_store();
        close_store(); /* a close without a new batch keeps the file */
        zero_from("log-0", offset);
        CHECK_NOTE("zeros from byte %zu", offset);
        int err = bel__store_open(&options, &store, &why);
        if (err == 0) CHECK_EQ(store->batch, FEW); /* only the closing mark was there */
        CHECK(err != 0 || offset > BEL_SEGMENT_FRAMES);
        CHECK(err == 0 || (err == BEL_ECORRUPT && strstr(why.text, "log-0") != NULL));
        teardown();
    }
}

/* The file CLOSED of another time, of another store, or torn, does not hinder an opening. */
static void an_old_mark_of_a_close_says_nothing(void)
{
    setup();
    for (uint64_t batch = 1; batch <= 2; batch++) {
        open_store();
        CHECK(put(batch, batch, BEL_STORE_END) == 0);
        CHECK_EQ(bel__store_commit(store), batch);
        if (batch == 2) disk_stop(disk);
        close_store();
    }
    disk_kill(disk);
    open_store(); /* the file says 1 */
    CHECK(has(2, 2));
    close_store();
    for (size_t offset = 0; offset < disk_size(disk, "CLOSED"); offset++) {
        disk_flip(disk, "CLOSED", offset, 0xff);
        CHECK_NOTE("byte %zu of CLOSED", offset);
        open_store();
        close_store();
    }
    teardown();
}

static void a_sync_that_fails_is_final(void)
{
    setup();
    open_store();
    CHECK(put(1, 1, BEL_STORE_ADD) == 0);
    CHECK_EQ(bel__store_commit(store), 1);
    CHECK(put(1, 2, BEL_STORE_ADD) == 0);
    disk_plan(disk)->fail_sync_in = 1;
    CHECK_EQ(bel__store_commit(store), 2);
    CHECK_EQ(bel__store_synced(store), 1);
    CHECK(bel__store_error(store) == BEL_EIO);
    CHECK(put(1, 3, BEL_STORE_END) == BEL_EIO);
    CHECK_EQ(bel__store_commit(store), 2);
    CHECK_EQ(bel__store_synced(store), 1);
    CHECK(has(1, 2));
    close_store();
    disk_cut_power(disk);
    open_store();
    CHECK(has(1, store->batch));
    CHECK(store->batch == 1 || store->batch == 2);
    teardown();
}

static void who_adds_leaves_a_segment_and_who_ends_gets_it(void)
{
    uint64_t batch = 0;
    setup();
    open_store();
    while (put(batch % KEYS, batch + 1, BEL_STORE_ADD) == 0) { /* and no checkpoint runs */
        CHECK_EQ(bel__store_commit(store), ++batch);
        CHECK(batch < 1000);
    }
    CHECK(put(1, 1, BEL_STORE_ADD) == BEL_EFULL);
    CHECK(bel__store_pressure(store) > 900);
    CHECK(store->err == 0);
    for (uint64_t i = 0; i < 1000; i++) { /* and waits for the tree if necessary */
        CHECK(take_out(i % KEYS) == 0);
        CHECK_EQ(bel__store_commit(store), ++batch);
        CHECK_EQ(bel__store_synced(store), batch);
    }
    while (bel__store_work(store)) {}
    (void)bel__store_commit(store);
    while (bel__store_work(store)) {}
    CHECK(put(1, 1, BEL_STORE_ADD) == 0);
    teardown();
}

static void who_adds_leaves_some_of_the_disk(void)
{
    setup();
    options.disk_reserve_bytes = 10 << 20;
    disk_plan(disk)->free_bytes = 11 << 20;
    options.segment_bytes = 4 << 20;
    CHECK(is_refused(BEL_EFULL, "log-2 cannot be filled with zeros: No space left"));
    disk_plan(disk)->free_bytes = 24 << 20;
    open_store();
    uint64_t count = 0;
    while (put(1, 1, BEL_STORE_ADD) == 0) { /* which fails, but others succeed */
        disk_plan(disk)->free_bytes -= VALUE_BYTES;
        CHECK(++count < 100000);
        CHECK(bel__store_commit(store) == count);
        while (bel__store_work(store)) {}
    }
    uint64_t owed =
        bel__delta_row_bytes(store->active) + bel__delta_row_bytes(store->frozen); /* to the tree */
    CHECK(owed > 0);
    CHECK(disk_plan(disk)->free_bytes < (10 << 20) + owed);
    CHECK(disk_plan(disk)->free_bytes > (8 << 20) + owed);
    CHECK(put(1, 1, BEL_STORE_END) == 0);
    CHECK(take_out(1) == 0);
    disk_plan(disk)->free_bytes = (11 << 20) + owed;
    CHECK(put(1, 1, BEL_STORE_ADD) == 0);
    teardown();
}

static bool is_tree_full;
static int (*begin_tree)(struct bel_tree *self);

static int begin_or_not(struct bel_tree *self)
{
    return is_tree_full ? BEL_EFULL : begin_tree(self);
}

static void a_tree_without_space_refuses_in_time_and_recovers(void)
{
    uint64_t batch = 0, refused_at = 0;
    setup();
    begin_tree = tree->begin;
    tree->begin = begin_or_not;
    open_store();
    is_tree_full = true;
    for (int i = 0; i < 100; i++) {
        enum bel_store_use use = refused_at == 0 ? BEL_STORE_ADD : BEL_STORE_END;
        int err = put(1, batch + 1, use);
        if (err == BEL_EFULL && refused_at == 0) refused_at = batch;
        if (err == 0) CHECK_EQ(bel__store_commit(store), ++batch);
        (void)bel__store_work(store);
    }
    CHECK(refused_at > 0 && refused_at < batch); /* requests that end timers had more room */
    CHECK(put(1, batch + 1, BEL_STORE_END) == BEL_EFULL);
    CHECK(bel__store_error(store) == 0);
    CHECK_EQ(bel__store_synced(store), batch);
    CHECK(has(1, batch));
    is_tree_full = false;
    CHECK(bel__store_wait_ns(store) <= 500000000);
    for (int i = 0; i < 500; i++) {
        disk_plan(disk)->mono_ns += 2000000; /* a second in all */
        (void)bel__store_work(store);
        (void)bel__store_commit(store);
    }
    CHECK(bel__store_wait_ns(store) == UINT64_MAX);
    CHECK(put(1, batch + 1, BEL_STORE_ADD) == 0);
    CHECK_EQ(bel__store_commit(store), ++batch);
    close_store();
    open_store();
    CHECK(has(1, batch));
    teardown();
}

static void a_batch_that_is_too_large_says_so(void)
{
    setup();
    open_store();
    CHECK(bel__store_reserve(store, 1, 8000, BEL_STORE_ADD) == BEL_EFULL);
    CHECK(bel__store_reserve(store, SIZE_MAX, SIZE_MAX, BEL_STORE_ADD) == BEL_EFULL);
    CHECK(put(1, 1, BEL_STORE_ADD) == 0);
    CHECK(bel__store_reserve(store, 1, 3900, BEL_STORE_ADD) == BEL_EBUSY);
    CHECK_EQ(bel__store_commit(store), 1);
    CHECK(bel__store_reserve(store, 1, 3900, BEL_STORE_ADD) == 0);
    teardown();
}

static void batches_can_share_a_sync(void)
{
    setup();
    options.sync = BEL_SYNC_IN_WORK;
    open_store();
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK(put(i, i, BEL_STORE_ADD) == 0);
        CHECK_EQ(bel__store_commit(store), i);
    }
    CHECK_EQ(bel__store_synced(store), 0);
    uint64_t operations = disk_operation_count(disk);
    (void)bel__store_work(store);
    CHECK_EQ(bel__store_synced(store), 5);
    CHECK_EQ(disk_operation_count(disk) - operations, 2 + 2); /* header and frames, each synced */
    for (uint64_t i = 6; i <= 8; i++) {
        CHECK(put(i, i, BEL_STORE_ADD) == 0);
        CHECK_EQ(bel__store_commit(store), i);
    }
    operations = disk_operation_count(disk);
    (void)bel__store_work(store);
    CHECK_EQ(disk_operation_count(disk) - operations, 1 + 1); /* all frames at once, and a sync */
    teardown();
}

/* Neither the number of batches nor the end of a segment makes a commit wait for the disk. */
static void a_commit_does_not_wait_for_a_late_sync(void)
{
    enum {
        MANY = 1000
    };
    setup();
    options.sync = BEL_SYNC_IN_WORK;
    options.segment_bytes = BEL_SEGMENT_FRAMES + MANY * 512;
    open_store();
    uint64_t operations = disk_operation_count(disk);
    for (uint64_t i = 1; i <= MANY + MANY / 2; i++) {
        CHECK(put(i % KEYS, i, BEL_STORE_ADD) == 0);
        CHECK_EQ(bel__store_commit(store), i);
    }
    CHECK_EQ(store->log->use, 2);
    CHECK_EQ(bel__store_synced(store), 0);
    CHECK_EQ(disk_operation_count(disk) - operations, 0);
    (void)bel__store_work(store);
    CHECK_EQ(bel__store_synced(store), MANY + MANY / 2);
    CHECK_EQ(disk_operation_count(disk) - operations, 8);
    disk_stop(disk);
    close_store();
    disk_cut_power(disk);
    open_store();
    CHECK_EQ(store->batch, MANY + MANY / 2);
    teardown();
}

/* At most this is lost: what was not synced, wherever the power fails between two segments. */
static void a_crash_between_two_segments_leaves_a_row_of_batches(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        setup();
        disk_destroy(disk);
        disk = disk_create(seed);
        disk_plan(disk)->has_direct = seed % 2 == 0;
        options.io = disk_io(disk);
        options.sync = BEL_SYNC_IN_WORK;
        open_store();
        CHECK(put(0, 1, BEL_STORE_ADD) == 0);
        CHECK_EQ(bel__store_commit(store), 1);
        (void)bel__store_work(store);
        CHECK_EQ(bel__store_synced(store), 1);
        uint64_t use = store->log->use, batch = 1;
        while (store->log->use == use) {
            CHECK(put(batch % KEYS, batch + 1, BEL_STORE_ADD) == 0);
            CHECK_EQ(bel__store_commit(store), ++batch);
        }
        disk_plan(disk)->crash_in = 1 + seed % 6;
        (void)bel__store_work(store);
        close_store();
        disk_cut_power(disk);
        open_store();
        CHECK(store->batch >= 1 && store->batch <= batch);
        for (uint64_t i = 0; i < KEYS; i++) {
            uint64_t last = 0;
            for (uint64_t at = 1; at <= store->batch; at++) {
                if ((at - 1) % KEYS == i) last = at;
            }
            CHECK(has(i, last));
        }
        teardown();
    }
}

static void a_crash_before_the_sync_leaves_a_row_of_batches(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        setup();
        disk_destroy(disk);
        disk = disk_create(seed);
        disk_plan(disk)->has_direct = seed % 2 == 0;
        options.io = disk_io(disk);
        options.segment_bytes = 65536;
        options.sync = BEL_SYNC_IN_WORK;
        open_store();
        for (uint64_t i = 1; i <= 8; i++) {
            CHECK(put(i, i, BEL_STORE_ADD) == 0);
            CHECK_EQ(bel__store_commit(store), i);
        }
        disk_plan(disk)->crash_in = 4; /* the sync of the frames */
        (void)bel__store_work(store);
        CHECK(bel__store_error(store) == BEL_EIO);
        close_store();
        disk_cut_power(disk);
        open_store();
        for (uint64_t i = 1; i <= 8; i++) {
            CHECK(has(i, i <= store->batch ? i : 0));
        }
        teardown();
    }
}

int main(void)
{
    RUN(a_store_keeps_what_was_synced);
    RUN(a_cut_at_any_operation_loses_nothing);
    RUN(every_flipped_byte_is_found_after_a_close);
    RUN(every_flipped_byte_is_found_after_a_kill_but_in_the_last_batch);
    RUN(damage_in_what_the_tree_has_is_found_too);
    RUN(a_batch_that_is_not_made_of_rows_is_refused);
    RUN(two_openers_are_one_too_many);
    RUN(another_format_is_refused_as_that);
    RUN(an_older_format_is_raised);
    RUN(a_file_that_is_missing_is_named);
    RUN(a_tree_that_was_lost_is_noticed);
    RUN(a_log_that_was_lost_is_noticed);
    RUN(zeros_in_place_of_batches_are_found_after_a_close);
    RUN(an_old_mark_of_a_close_says_nothing);
    RUN(a_sync_that_fails_is_final);
    RUN(who_adds_leaves_a_segment_and_who_ends_gets_it);
    RUN(who_adds_leaves_some_of_the_disk);
    RUN(a_tree_without_space_refuses_in_time_and_recovers);
    RUN(a_batch_that_is_too_large_says_so);
    RUN(batches_can_share_a_sync);
    RUN(a_commit_does_not_wait_for_a_late_sync);
    RUN(a_crash_between_two_segments_leaves_a_row_of_batches);
    RUN(a_crash_before_the_sync_leaves_a_row_of_batches);
    return 0;
}
