/* SPDX-License-Identifier: MIT */

/*
 * Checkpoints in steps into a tree that records its calls and fails on demand, and checkpoints in
 * steps and by a thread into real trees.
 */
#include "store/checkpoint.h"

#include "../check.h"
#include "../trees.h"

#include <sched.h>

enum {
    ROWS = 1000,
    TRANSACTION_ROWS = 300,
};

static struct bel_delta delta;
static struct fixture fixture;

/* A tree that passes calls on and counts them. */
struct watched {
    struct bel_tree tree;
    struct bel_tree *below;
    unsigned begins, puts, removes, commits, aborts, expected;
    unsigned puts_max; /* in a transaction */
    unsigned transaction_puts;
    uint64_t epochs[64];  /* of the commits */
    unsigned fail_at_put; /* this put fails, counted from 1 */
    unsigned fail_at_commit;
    int failure;
    struct bel_key last; /* expected or put: keys come in order */
    bool has_last;
};

static struct watched watched;

static int watched_get(struct bel_tree *tree, const struct bel_key *key, struct bel_view *out)
{
    (void)tree;
    return watched.below->get(watched.below, key, out);
}

static int watched_seek(struct bel_tree *tree, struct bel_key *key, struct bel_view *out)
{
    (void)tree;
    return watched.below->seek(watched.below, key, out);
}

static int watched_refresh(struct bel_tree *tree)
{
    (void)tree;
    return watched.below->refresh(watched.below);
}

static uint64_t watched_epoch(const struct bel_tree *tree)
{
    (void)tree;
    return watched.below->epoch(watched.below);
}

static int watched_begin(struct bel_tree *tree)
{
    (void)tree;
    watched.begins++;
    watched.transaction_puts = 0;
    return watched.below->begin(watched.below);
}

static void watched_expect(struct bel_tree *tree, const struct bel_key *key)
{
    (void)tree;
    watched.expected++;
    watched.below->expect(watched.below, key);
}

static int note_change(const struct bel_key *key)
{
    CHECK(!watched.has_last || bel__key_compare(&watched.last, key) < 0);
    watched.last = *key;
    watched.has_last = true;
    watched.transaction_puts++;
    if (watched.transaction_puts > watched.puts_max) watched.puts_max = watched.transaction_puts;
    CHECK(watched.expected >= watched.puts + watched.removes); /* the tree was told before */
    return watched.puts + watched.removes == watched.fail_at_put ? watched.failure : 0;
}

static int watched_put(struct bel_tree *tree, const struct bel_key *key, struct bel_view value)
{
    (void)tree;
    watched.puts++;
    int err = note_change(key);
    return err ? err : watched.below->put(watched.below, key, value);
}

static int watched_remove(struct bel_tree *tree, const struct bel_key *key)
{
    (void)tree;
    watched.removes++;
    int err = note_change(key);
    return err ? err : watched.below->remove(watched.below, key);
}

static int watched_commit(struct bel_tree *tree, uint64_t epoch)
{
    (void)tree;
    CHECK(watched.commits < 64);
    watched.epochs[watched.commits++] = epoch;
    if (watched.commits == watched.fail_at_commit) return watched.failure;
    return watched.below->commit(watched.below, epoch);
}

static void watched_abort(struct bel_tree *tree)
{
    (void)tree;
    watched.aborts++;
    watched.below->abort(watched.below);
}

static struct bel_tree *watch(struct bel_tree *below)
{
    watched = (struct watched){
        .tree = {.get = watched_get,
                 .seek = watched_seek,
                 .refresh = watched_refresh,
                 .epoch = watched_epoch,
                 .begin = watched_begin,
                 .expect = watched_expect,
                 .put = watched_put,
                 .remove = watched_remove,
                 .commit = watched_commit,
                 .abort = watched_abort},
        .below = below,
    };
    return &watched.tree;
}

static struct bel_key key_of(uint64_t number)
{
    return (struct bel_key){{7, number, 1}};
}

/* Deletes every third row and puts the others. */
static void fill_delta(uint64_t rows, const char *text)
{
    bel__delta_init(&delta);
    for (uint64_t i = 0; i < rows; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value = {text, strlen(text)};
        CHECK(bel__delta_reserve(&delta, 1, value.bytes) == 0);
        if (i % 3 == 0) {
            bel__delta_delete(&delta, &key);
        } else {
            bel__delta_put(&delta, &key, value, false);
        }
    }
}

static void check_rows(struct bel_tree *tree, uint64_t rows, const char *text)
{
    struct bel_tree_stats stats;
    CHECK(bel__tree_check(tree, &stats) == 0);
    CHECK_EQ(stats.rows, rows - (rows + 2) / 3);
    for (uint64_t i = 0; i < rows; i++) {
        struct bel_key key = key_of(i);
        struct bel_view value;
        int err = tree->get(tree, &key, &value);
        CHECK(err == (i % 3 == 0 ? BEL_ENOTFOUND : 0));
        if (!err) CHECK(value.bytes == strlen(text) && memcmp(value.data, text, value.bytes) == 0);
    }
}

/* Puts the initial rows, including those that are deleted later. */
static void fill_tree(struct bel_tree *tree)
{
    CHECK(tree->begin(tree) == 0);
    for (uint64_t i = 0; i < ROWS; i++) {
        struct bel_key key = key_of(i);
        CHECK(tree->put(tree, &key, BEL_VIEW("old")) == 0);
    }
    CHECK(tree->commit(tree, 1) == 0);
    CHECK(tree->refresh(tree) == 0);
}

static struct bel_checkpoint *make(struct bel_tree *tree, enum bel_checkpoint_driver driver)
{
    struct bel_checkpoint_options options = {
        .tree = tree, .transaction_rows = TRANSACTION_ROWS, .driver = driver};
    struct bel_checkpoint *checkpoint;
    CHECK(bel__checkpoint_open(&options, &checkpoint) == 0);
    CHECK(bel__checkpoint_is_done(checkpoint));
    CHECK_EQ(bel__checkpoint_progress(checkpoint), BEL_CHECKPOINT_PROGRESS_MAX);
    return checkpoint;
}

static void finish(struct bel_checkpoint *checkpoint)
{
    bel__checkpoint_close(checkpoint);
    bel__delta_finish(&delta);
    fixture_finish(&fixture);
}

static void rows_are_carried_in_transactions_and_the_epoch_with_the_last(void)
{
    fixture_init(&fixture, TREE_MEMORY);
    fill_tree(fixture.tree);
    fill_delta(ROWS, "new");
    struct bel_checkpoint *checkpoint = make(watch(fixture.tree), BEL_CHECKPOINT_STEPS);
    CHECK(!bel__checkpoint_step(checkpoint)); /* there is nothing to do */
    bel__checkpoint_begin(checkpoint, &delta, 2);
    CHECK(!bel__checkpoint_is_done(checkpoint));
    unsigned steps = 1, progress = 0;
    while (bel__checkpoint_step(checkpoint)) {
        CHECK(bel__checkpoint_progress(checkpoint) >= progress);
        progress = bel__checkpoint_progress(checkpoint);
        CHECK(progress < BEL_CHECKPOINT_PROGRESS_MAX);
        CHECK_EQ(progress,
                 (watched.puts + watched.removes + watched.commits * (uint64_t)TRANSACTION_ROWS) /
                     2);
        steps++;
    }
    CHECK_EQ(steps, 7); /* 256 and 44, three times, and 100 */
    CHECK(bel__checkpoint_is_done(checkpoint));
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    CHECK_EQ(bel__checkpoint_progress(checkpoint), BEL_CHECKPOINT_PROGRESS_MAX);
    CHECK_EQ(watched.commits, 4);
    CHECK_EQ(watched.epochs[0], 1);
    CHECK_EQ(watched.epochs[2], 1);
    CHECK_EQ(watched.epochs[3], 2);
    CHECK_EQ(watched.puts_max, TRANSACTION_ROWS);
    CHECK_EQ(watched.expected, ROWS);
    CHECK_EQ(watched.aborts, 0);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 2);
    check_rows(fixture.tree, ROWS, "new");
    finish(checkpoint);
}

static void a_delta_without_rows_still_has_an_epoch(void)
{
    fixture_init(&fixture, TREE_MEMORY);
    fill_delta(0, "");
    struct bel_checkpoint *checkpoint = make(fixture.tree, BEL_CHECKPOINT_STEPS);
    bel__checkpoint_begin(checkpoint, &delta, 9);
    CHECK(!bel__checkpoint_step(checkpoint));
    CHECK(bel__checkpoint_is_done(checkpoint));
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 9);
    finish(checkpoint);
}

/* Runs into a failure, aborts, and starts again. */
static void fail_and_repeat(unsigned put, unsigned commit, int failure)
{
    fixture_init(&fixture, TREE_MEMORY);
    fill_tree(fixture.tree);
    fill_delta(ROWS, "new");
    struct bel_checkpoint *checkpoint = make(watch(fixture.tree), BEL_CHECKPOINT_STEPS);
    watched.fail_at_put = put;
    watched.fail_at_commit = commit;
    watched.failure = failure;
    bel__checkpoint_begin(checkpoint, &delta, 2);
    while (bel__checkpoint_step(checkpoint)) {}
    CHECK(bel__checkpoint_is_done(checkpoint));
    CHECK(bel__checkpoint_error(checkpoint) == failure);
    CHECK_EQ(watched.aborts, 1);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 1);

    watch(fixture.tree);
    bel__checkpoint_begin(checkpoint, &delta, 2);
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    while (bel__checkpoint_step(checkpoint)) {}
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 2);
    check_rows(fixture.tree, ROWS, "new");
    finish(checkpoint);
}

static void one_that_failed_can_be_begun_again(void)
{
    fail_and_repeat(1, 0, BEL_ENOMEM);
    fail_and_repeat(500, 0, BEL_EFULL);
    fail_and_repeat(ROWS, 0, BEL_EFULL);
    fail_and_repeat(0, 1, BEL_EFULL);
    fail_and_repeat(0, 4, BEL_EIO);
}

static void one_that_is_closed_halfway_leaves_the_old_epoch(void)
{
    fixture_init(&fixture, TREE_MEMORY);
    fill_tree(fixture.tree);
    fill_delta(ROWS, "new");
    for (int steps = 0; steps < 7; steps++) {
        struct bel_checkpoint *checkpoint = make(fixture.tree, BEL_CHECKPOINT_STEPS);
        bel__checkpoint_begin(checkpoint, &delta, 2);
        for (int i = 0; i < steps; i++) {
            CHECK(bel__checkpoint_step(checkpoint) == (i < 6));
        }
        bel__checkpoint_close(checkpoint);
        CHECK(fixture.tree->refresh(fixture.tree) == 0);
        CHECK_EQ(fixture.tree->epoch(fixture.tree), 1);
    }
    struct bel_checkpoint *checkpoint = make(fixture.tree, BEL_CHECKPOINT_STEPS);
    bel__checkpoint_begin(checkpoint, &delta, 2);
    while (bel__checkpoint_step(checkpoint)) {}
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    check_rows(fixture.tree, ROWS, "new");
    finish(checkpoint);
}

/* Reads while the thread writes; the reader sees no change. */
static void wait_reading(struct bel_checkpoint *checkpoint, struct bel_tree *tree, uint64_t rows)
{
    for (uint64_t i = 0; !bel__checkpoint_is_done(checkpoint); i++) {
        struct bel_key key = key_of(i % ROWS);
        struct bel_view value;
        struct bel_tree_stats stats;
        if (rows == ROWS) {
            CHECK(tree->get(tree, &key, &value) == 0);
            CHECK(value.bytes == 3 && memcmp(value.data, "old", 3) == 0);
        }
        tree->stats(tree, &stats);
        CHECK_EQ(stats.rows, rows);
        CHECK(!bel__checkpoint_step(checkpoint)); /* the transaction is not ours */
        CHECK(bel__checkpoint_progress(checkpoint) <= BEL_CHECKPOINT_PROGRESS_MAX);
        sched_yield();
    }
}

static void a_thread_carries_rows_while_they_are_read(void)
{
    fixture_init(&fixture, TREE_LMDB);
    fill_tree(fixture.tree);
    fill_delta(ROWS, "new");
    struct bel_checkpoint *checkpoint = make(fixture.tree, BEL_CHECKPOINT_THREAD);
    bel__checkpoint_begin(checkpoint, &delta, 2);
    wait_reading(checkpoint, fixture.tree, ROWS);
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 1);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 2);
    check_rows(fixture.tree, ROWS, "new");

    bel__delta_finish(&delta); /* before the next one */
    fill_delta(UINT64_C(3) * ROWS, "newer");
    bel__checkpoint_begin(checkpoint, &delta, 3);
    wait_reading(checkpoint, fixture.tree, ROWS - (ROWS + 2) / 3);
    CHECK(bel__checkpoint_error(checkpoint) == 0);
    CHECK(fixture.tree->refresh(fixture.tree) == 0);
    CHECK_EQ(fixture.tree->epoch(fixture.tree), 3);
    check_rows(fixture.tree, UINT64_C(3) * ROWS, "newer");
    finish(checkpoint);
}

static void a_thread_can_be_closed_at_any_time(void)
{
    fixture_init(&fixture, TREE_LMDB);
    fill_tree(fixture.tree);
    fill_delta(ROWS, "new");
    for (unsigned progress = 0; progress < BEL_CHECKPOINT_PROGRESS_MAX; progress += 150) {
        struct bel_checkpoint *checkpoint = make(fixture.tree, BEL_CHECKPOINT_THREAD);
        bel__checkpoint_begin(checkpoint, &delta, 2);
        while (bel__checkpoint_progress(checkpoint) < progress) {
            sched_yield();
        }
        bel__checkpoint_close(checkpoint);
        fixture_reopen(&fixture);
        uint64_t epoch = fixture.tree->epoch(fixture.tree);
        CHECK(epoch == 1 || epoch == 2);
        if (epoch == 2) check_rows(fixture.tree, ROWS, "new");
    }
    finish(make(fixture.tree, BEL_CHECKPOINT_THREAD));
}

int main(void)
{
    RUN(rows_are_carried_in_transactions_and_the_epoch_with_the_last);
    RUN(a_delta_without_rows_still_has_an_epoch);
    RUN(one_that_failed_can_be_begun_again);
    RUN(one_that_is_closed_halfway_leaves_the_old_epoch);
    RUN(a_thread_carries_rows_while_they_are_read);
    RUN(a_thread_can_be_closed_at_any_time);
    return 0;
}
