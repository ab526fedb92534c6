/* SPDX-License-Identifier: MIT */

/*
 * How long commands are held back while a checkpoint is behind. The checkpoint's thread stops at a
 * gate in the tree, and the clock of the file interface stands still, so a test decides both.
 */
#include "store/state.h"

#include "../check.h"
#include "../sim/disk.h"

#include <pthread.h>
#include <string.h>

enum {
    SEGMENT_BYTES = 64 << 10,
    SEGMENTS = 4,
    VALUE_BYTES = 900,
    MS_NS = 1000000,
    HOLD_NS_MAX = 400 * MS_NS,
};

static struct disk *disk;
static struct bel_tree *tree;
static struct bel_store *store;
static uint64_t time_ns, batches;
static int (*begin_tree)(struct bel_tree *self);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static bool is_gate_open;

static void set_gate(bool is_open)
{
    CHECK(pthread_mutex_lock(&mutex) == 0);
    is_gate_open = is_open;
    CHECK(pthread_cond_broadcast(&opened) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static int begin_at_gate(struct bel_tree *self)
{
    CHECK(pthread_mutex_lock(&mutex) == 0);
    while (!is_gate_open) {
        CHECK(pthread_cond_wait(&opened, &mutex) == 0);
    }
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return begin_tree(self);
}

static uint64_t mono_ns(struct bel_io *io)
{
    (void)io;
    return time_ns;
}

static void no_pause(struct bel_io *io, uint64_t ns)
{
    (void)io;
    (void)ns;
    CHECK(false); /* a commit sleeps */
}

static void setup(void)
{
    struct bel_store_options options = {.segment_bytes = SEGMENT_BYTES,
                                        .segment_count = SEGMENTS,
                                        .disk_reserve_bytes = 1,
                                        .has_thread = true};
    disk = disk_create(1);
    disk_plan(disk)->free_bytes = UINT64_C(1) << 40;
    options.io = disk_io(disk);
    options.io->mono_ns = mono_ns;
    options.io->pause = no_pause;
    CHECK(bel__tree_memory_create_lasting(&tree) == 0);
    begin_tree = tree->begin;
    tree->begin = begin_at_gate;
    options.tree = tree;
    is_gate_open = false;
    time_ns = UINT64_C(3600) * 1000 * MS_NS;
    batches = 0;
    CHECK(bel__store_open(&options, &store, NULL) == 0);
}

static void teardown(void)
{
    set_gate(true);
    bel__store_close(store);
    bel__tree_memory_destroy(tree);
    disk_destroy(disk);
}

/* Commits a row. Returns the error of the reservation. */
static int commit_one(enum bel_store_use use)
{
    static const uint8_t value[VALUE_BYTES];
    struct bel_key key = {{++batches, 0, 0}};
    int err = bel__store_reserve(store, 1, sizeof value, use);
    if (err) return err;
    bel__store_put(store, &key, (struct bel_view){value, sizeof value}, BEL_ROW_NEW);
    (void)bel__store_commit(store);
    return 0;
}

static uint64_t hold_of(enum bel_store_use use)
{
    return bel__store_hold_ns(store, use);
}

/* Fills a segment, so that a checkpoint begins. */
static void begin_checkpoint(void)
{
    while (store->freeze != BEL_FREEZE_BEGUN) {
        CHECK(commit_one(BEL_STORE_ADD) == 0);
        CHECK(hold_of(BEL_STORE_ADD) == 0 && hold_of(BEL_STORE_END) == 0);
    }
}

static void who_adds_is_held_back_and_who_ends_is_not(void)
{
    setup();
    begin_checkpoint();
    unsigned held = 0;
    int err;
    while ((err = commit_one(BEL_STORE_ADD)) == 0) {
        uint64_t add = hold_of(BEL_STORE_ADD);
        CHECK(add <= HOLD_NS_MAX);
        CHECK(held == 0 || add > 0); /* the checkpoint makes no progress */
        if (add > 0) held++;
        CHECK_EQ(hold_of(BEL_STORE_END), 0);
    }
    CHECK(err == BEL_EFULL && held > 50);
    teardown();
}

static void a_hold_ends_with_its_time_or_the_checkpoint(void)
{
    setup();
    begin_checkpoint();
    while (hold_of(BEL_STORE_ADD) == 0) {
        CHECK(commit_one(BEL_STORE_ADD) == 0);
    }
    uint64_t add = hold_of(BEL_STORE_ADD);
    CHECK_EQ(hold_of(BEL_STORE_ADD), add); /* it is asked for, not used up */
    time_ns += add - 1;
    CHECK_EQ(hold_of(BEL_STORE_ADD), 1);
    time_ns++;
    CHECK_EQ(hold_of(BEL_STORE_ADD), 0);

    CHECK(commit_one(BEL_STORE_END) == 0); /* takes room, too: additions wait again */
    CHECK(hold_of(BEL_STORE_ADD) > 0);
    set_gate(true);
    bel__checkpoint_wait(store->checkpoint);
    CHECK_EQ(hold_of(BEL_STORE_ADD), 0);
    (void)bel__store_commit(store);
    CHECK(commit_one(BEL_STORE_ADD) == 0);
    teardown();
}

/* The last segment is for those that end timers; they are held back as it fills, and before it is
 * full, so that no commit has to wait for the checkpoint. */
static void the_reserve_is_rationed(void)
{
    setup();
    begin_checkpoint();
    while (commit_one(BEL_STORE_ADD) == 0) {
        CHECK_EQ(hold_of(BEL_STORE_END), 0);
    }
    size_t last = bel__log_frame_bytes_max(store->log) / 16;
    unsigned held = 0;
    while (bel__log_free_count(store->log) > 0 || bel__log_has_room(store->log, last)) {
        CHECK(commit_one(BEL_STORE_END) == 0);
        uint64_t ns = hold_of(BEL_STORE_END);
        CHECK(ns <= HOLD_NS_MAX);
        CHECK(held == 0 || ns > 0);
        if (ns > 0) held++;
    }
    CHECK(held > 20);
    time_ns += UINT64_C(3600) * 1000 * MS_NS;
    CHECK(hold_of(BEL_STORE_END) > 0); /* until the checkpoint ends, whatever the time */
    set_gate(true);
    bel__checkpoint_wait(store->checkpoint);
    CHECK_EQ(hold_of(BEL_STORE_END), 0);
    teardown();
}

int main(void)
{
    RUN(who_adds_is_held_back_and_who_ends_is_not);
    RUN(a_hold_ends_with_its_time_or_the_checkpoint);
    RUN(the_reserve_is_rationed);
    return 0;
}
