/* SPDX-License-Identifier: MIT */

/*
 * Iterates over the delta in steps:
 *
 *     rows   |-----256-----|-----256-----|- ... -|--256--|commit|-----256-----|- ...
 *              a step        a step                a step         a step
 *
 * The thread, if there is one, takes the same steps as a caller would. The shared state (the run
 * and its progress) is protected by one mutex, which is held for a few instructions and never while
 * a row is written.
 *
 * A second iteration runs ahead and tells the tree which rows will be written. It gets up to one
 * transaction ahead, so that a tree on disk can prefetch pages during a commit, when the disk has
 * no other reads.
 *
 * A transaction ends after its number of rows and after the last row. An empty delta is one
 * transaction, too, which stores the epoch. A row counts half for the progress when it is put and
 * half when it is committed, which is about how the time is spent.
 */
#include "store/checkpoint.h"

#include "core/thread.h"
#include "store/pressure.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    EXPECTED_ROWS = 2 * BEL_CHECKPOINT_STEP_ROWS, /* prefetched per step, at most */
};

static_assert((int)BEL_CHECKPOINT_PROGRESS_MAX == (int)BEL_PRESSURE_PROGRESS_MAX,
              "a checkpoint's progress is passed to bel_pressure");

struct bel_checkpoint {
    struct bel_tree *tree;
    size_t transaction_rows;
    enum bel_checkpoint_driver driver;

    /* Owned by the thread that does the work, until `done`. */
    const struct bel_delta *delta;
    uint64_t epoch, old_epoch; /* the epoch to store, and the tree's before */
    struct bel_delta_place place, ahead;
    bool has_place, has_ahead; /* `place`, `ahead` are at a row, not at the end */
    bool in_transaction;
    size_t row_count; /* rows of the transaction so far */
    uint64_t expected_count, put_count, committed_count;

    /* Shared, protected by the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* signals a change of `done` or `closing` */
    bool done, closing;
    int err;
    unsigned progress;

    pthread_t thread; /* of BEL_CHECKPOINT_THREAD */
};

static void lock(struct bel_checkpoint *checkpoint)
{
    int failed = pthread_mutex_lock(&checkpoint->mutex);
    assert(!failed);
    (void)failed;
}

static void unlock(struct bel_checkpoint *checkpoint)
{
    int failed = pthread_mutex_unlock(&checkpoint->mutex);
    assert(!failed);
    (void)failed;
}

/* Prefetches rows that will be written. */
static void expect_some(struct bel_checkpoint *checkpoint)
{
    struct bel_tree *tree = checkpoint->tree;
    uint64_t end = checkpoint->put_count + checkpoint->transaction_rows;
    for (int i = 0; i < EXPECTED_ROWS && checkpoint->has_ahead; i++) {
        if (checkpoint->expected_count >= end) break;
        tree->expect(tree, &checkpoint->ahead.key);
        checkpoint->expected_count++;
        checkpoint->has_ahead = bel__delta_next(checkpoint->delta, &checkpoint->ahead);
    }
}

/* Writes the current row to the tree. */
static int write_row(struct bel_checkpoint *checkpoint)
{
    struct bel_tree *tree = checkpoint->tree;
    const struct bel_delta_place *place = &checkpoint->place;
    if (bel__entry_is_gone(place->entry)) return tree->remove(tree, &place->key);
    return tree->put(tree, &place->key, bel__entry_value(place->entry));
}

/* Writes the rows of one step, but not beyond the end of the transaction. */
static int write_rows(struct bel_checkpoint *checkpoint)
{
    for (int i = 0; i < BEL_CHECKPOINT_STEP_ROWS && checkpoint->has_place; i++) {
        if (checkpoint->row_count == checkpoint->transaction_rows) break;
        bel__delta_expect(&checkpoint->place);
        int err = write_row(checkpoint);
        if (err) return err;
        checkpoint->row_count++;
        checkpoint->put_count++;
        checkpoint->has_place = bel__delta_next(checkpoint->delta, &checkpoint->place);
    }
    return 0;
}

static int commit(struct bel_checkpoint *checkpoint)
{
    struct bel_tree *tree = checkpoint->tree;
    uint64_t epoch = checkpoint->has_place ? checkpoint->old_epoch : checkpoint->epoch;
    int err = tree->commit(tree, epoch);
    if (err) return err;
    checkpoint->in_transaction = false;
    checkpoint->committed_count = checkpoint->put_count;
    checkpoint->row_count = 0;
    return 0;
}

/* Does one step. Sets `*out` if it was the last. */
static int advance(struct bel_checkpoint *checkpoint, bool *out)
{
    struct bel_tree *tree = checkpoint->tree;
    if (!checkpoint->in_transaction) {
        int err = tree->begin(tree);
        if (err) return err;
        checkpoint->in_transaction = true;
    }
    expect_some(checkpoint);
    int err = write_rows(checkpoint);
    if (err) return err;
    if (checkpoint->has_place && checkpoint->row_count < checkpoint->transaction_rows) return 0;

    err = commit(checkpoint);
    if (!err) *out = !checkpoint->has_place;
    return err;
}

static unsigned progress_of(const struct bel_checkpoint *checkpoint)
{
    uint64_t count = bel__delta_count(checkpoint->delta);
    uint64_t done = checkpoint->put_count + checkpoint->committed_count;
    if (count == 0) return 0;
    return (unsigned)(done * BEL_CHECKPOINT_PROGRESS_MAX / (2 * count));
}

static void give_up(struct bel_checkpoint *checkpoint)
{
    if (checkpoint->in_transaction) checkpoint->tree->abort(checkpoint->tree);
    checkpoint->in_transaction = false;
}

/* Does one step and publishes the result. Returns whether there is more to do. */
static bool work(struct bel_checkpoint *checkpoint)
{
    bool last = false;
    int err = advance(checkpoint, &last);
    if (err) give_up(checkpoint);
    bool done = err != 0 || last;
    unsigned progress = done ? BEL_CHECKPOINT_PROGRESS_MAX : progress_of(checkpoint);

    lock(checkpoint);
    checkpoint->progress = progress;
    checkpoint->err = err;
    checkpoint->done = done;
    if (done) pthread_cond_signal(&checkpoint->changed); /* wakes bel__checkpoint_wait() */
    unlock(checkpoint);
    return !done;
}

/* Waits for a run to begin. Returns false if the thread is to exit. */
static bool wait_for_job(struct bel_checkpoint *checkpoint)
{
    lock(checkpoint);
    while (checkpoint->done && !checkpoint->closing) {
        int failed = pthread_cond_wait(&checkpoint->changed, &checkpoint->mutex);
        assert(!failed);
        (void)failed;
    }
    bool has_job = !checkpoint->closing;
    unlock(checkpoint);
    return has_job;
}

static void *run(void *argument)
{
    struct bel_checkpoint *checkpoint = argument;
    while (wait_for_job(checkpoint)) {
        (void)work(checkpoint);
    }
    give_up(checkpoint); /* LMDB requires the thread that began a transaction to end it */
    return NULL;
}

int bel__checkpoint_open(const struct bel_checkpoint_options *options, struct bel_checkpoint **out)
{
    assert(options->tree != NULL);
    struct bel_checkpoint *checkpoint = malloc(sizeof *checkpoint);
    if (checkpoint == NULL) return BEL_ENOMEM;
    *checkpoint = (struct bel_checkpoint){
        .tree = options->tree,
        .transaction_rows = options->transaction_rows > 0 ? options->transaction_rows
                                                          : BEL_CHECKPOINT_TRANSACTION_ROWS,
        .driver = options->driver,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .done = true,
        .progress = BEL_CHECKPOINT_PROGRESS_MAX,
    };
    if (options->driver == BEL_CHECKPOINT_THREAD) {
        int err = bel__thread_start(&checkpoint->thread, run, checkpoint);
        if (err) {
            free(checkpoint);
            return err;
        }
    }
    *out = checkpoint;
    return 0;
}

void bel__checkpoint_close(struct bel_checkpoint *checkpoint)
{
    if (checkpoint == NULL) return;
    if (checkpoint->driver == BEL_CHECKPOINT_THREAD) {
        lock(checkpoint);
        checkpoint->closing = true;
        pthread_cond_signal(&checkpoint->changed);
        unlock(checkpoint);
        int failed = pthread_join(checkpoint->thread, NULL);
        assert(!failed);
        (void)failed;
    }
    give_up(checkpoint);
    pthread_cond_destroy(&checkpoint->changed);
    pthread_mutex_destroy(&checkpoint->mutex);
    free(checkpoint);
}

void bel__checkpoint_begin(struct bel_checkpoint *checkpoint, const struct bel_delta *delta,
                           uint64_t epoch)
{
    static const struct bel_key zero = {{0, 0, 0}};
    lock(checkpoint);
    assert(checkpoint->done);
    assert(!checkpoint->in_transaction);
    checkpoint->delta = delta;
    checkpoint->epoch = epoch;
    checkpoint->old_epoch = checkpoint->tree->epoch(checkpoint->tree);
    checkpoint->has_place = bel__delta_seek(delta, &zero, &checkpoint->place);
    checkpoint->has_ahead = checkpoint->has_place;
    checkpoint->ahead = checkpoint->place;
    checkpoint->row_count = 0;
    checkpoint->expected_count = 0;
    checkpoint->put_count = 0;
    checkpoint->committed_count = 0;
    checkpoint->err = 0;
    checkpoint->progress = 0;
    checkpoint->done = false;
    pthread_cond_signal(&checkpoint->changed);
    unlock(checkpoint);
}

bool bel__checkpoint_step(struct bel_checkpoint *checkpoint)
{
    if (checkpoint->driver == BEL_CHECKPOINT_THREAD) return false;
    return !bel__checkpoint_is_done(checkpoint) && work(checkpoint);
}

void bel__checkpoint_wait(struct bel_checkpoint *checkpoint)
{
    if (checkpoint->driver != BEL_CHECKPOINT_THREAD) return;
    lock(checkpoint);
    while (!checkpoint->done) {
        int failed = pthread_cond_wait(&checkpoint->changed, &checkpoint->mutex);
        assert(!failed);
        (void)failed;
    }
    unlock(checkpoint);
}

bool bel__checkpoint_is_done(struct bel_checkpoint *checkpoint)
{
    lock(checkpoint);
    bool done = checkpoint->done;
    unlock(checkpoint);
    return done;
}

int bel__checkpoint_error(struct bel_checkpoint *checkpoint)
{
    lock(checkpoint);
    int err = checkpoint->err;
    unlock(checkpoint);
    return err;
}

unsigned bel__checkpoint_progress(struct bel_checkpoint *checkpoint)
{
    lock(checkpoint);
    unsigned progress = checkpoint->progress;
    unlock(checkpoint);
    return progress;
}
