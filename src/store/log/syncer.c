/* SPDX-License-Identifier: MIT */

/*
 * Keeps the end of the last write, the end of the durable writes, and the time of the first write
 * that no running sync covers. The mutex is held for a few instructions, never during a sync.
 *
 * The thread sleeps until there is a write, then until the interval is over, by the clock of the
 * file interface.
 */
#include "store/log/syncer.h"

#include "core/thread.h"
#include "core/units.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct bel_syncer {
    struct bel_io *io;
    bool has_thread;
    uint64_t interval_ns;
    void (*wake)(void *context);
    void *context;
    pthread_t thread;

    pthread_mutex_t mutex; /* protects all below */
    pthread_cond_t changed, synced;
    struct bel_io_file *file;
    struct bel_log_writer_mark written, mark; /* ends of all writes, and of the durable ones */
    uint64_t since_ns;                        /* time of the first write that no sync covers */
    bool is_dirty;                            /* there is such a write */
    bool is_asked, is_closing;
    int err;
};

static void lock(struct bel_syncer *syncer)
{
    int failed = pthread_mutex_lock(&syncer->mutex);
    assert(!failed);
    (void)failed;
}

static void unlock(struct bel_syncer *syncer)
{
    int failed = pthread_mutex_unlock(&syncer->mutex);
    assert(!failed);
    (void)failed;
}

static bool is_due(const struct bel_syncer *syncer)
{
    if (!syncer->is_dirty || syncer->err != 0) return false;
    if (syncer->is_asked) return true;
    if (syncer->interval_ns == 0) return false;
    return syncer->io->mono_ns(syncer->io) - syncer->since_ns >= syncer->interval_ns;
}

/* Syncs all writes so far. The caller holds the mutex, which is released during the sync. */
static void sync_some(struct bel_syncer *syncer)
{
    struct bel_io *io = syncer->io;
    struct bel_io_file *file = syncer->file;
    struct bel_log_writer_mark mark = syncer->written;
    syncer->is_dirty = syncer->is_asked = false;
    unlock(syncer);
    int err = io->sync(io, file);
    lock(syncer);
    if (err == 0) {
        syncer->mark = mark;
    } else {
        syncer->err = BEL_EIO;
    }
    pthread_cond_signal(&syncer->synced);
}

/* Waits until a write, a request or a close, or until the interval is over. */
static void doze(struct bel_syncer *syncer)
{
    if (!syncer->is_dirty || syncer->interval_ns == 0 || syncer->err != 0) {
        (void)pthread_cond_wait(&syncer->changed, &syncer->mutex);
        return;
    }
    uint64_t until_ns = syncer->since_ns + syncer->interval_ns;
    struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
    (void)pthread_cond_timedwait(&syncer->changed, &syncer->mutex, &until);
}

static void *run(void *argument)
{
    struct bel_syncer *syncer = argument;
    lock(syncer);
    while (!syncer->is_closing) {
        if (!is_due(syncer)) {
            doze(syncer);
            continue;
        }
        sync_some(syncer);
        if (syncer->wake == NULL) continue;
        unlock(syncer);
        syncer->wake(syncer->context);
        lock(syncer);
    }
    unlock(syncer);
    return NULL;
}

/* Initializes the condition with the clock of the file interface. */
static void init_changed(struct bel_syncer *syncer)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    if (!failed) failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!failed) failed = pthread_cond_init(&syncer->changed, &attributes);
    assert(!failed);
    (void)failed;
    (void)pthread_condattr_destroy(&attributes);
}

static void destroy(struct bel_syncer *syncer)
{
    pthread_cond_destroy(&syncer->changed);
    pthread_cond_destroy(&syncer->synced);
    pthread_mutex_destroy(&syncer->mutex);
    free(syncer);
}

int bel__syncer_open(const struct bel_syncer_options *options, struct bel_syncer **out)
{
    struct bel_syncer *syncer = malloc(sizeof *syncer);
    if (syncer == NULL) return BEL_ENOMEM;
    *syncer = (struct bel_syncer){
        .io = options->io,
        .has_thread = options->has_thread,
        .interval_ns = options->interval_ns,
        .wake = options->wake,
        .context = options->context,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .synced = PTHREAD_COND_INITIALIZER,
    };
    init_changed(syncer);
    int err = syncer->has_thread ? bel__thread_start(&syncer->thread, run, syncer) : 0;
    if (err) {
        destroy(syncer);
        return err;
    }
    *out = syncer;
    return 0;
}

void bel__syncer_close(struct bel_syncer *syncer)
{
    if (syncer == NULL) return;
    if (syncer->has_thread) {
        lock(syncer);
        syncer->is_closing = true;
        pthread_cond_signal(&syncer->changed);
        unlock(syncer);
        int failed = pthread_join(syncer->thread, NULL);
        assert(!failed);
        (void)failed;
    }
    destroy(syncer);
}

void bel__syncer_wrote(struct bel_syncer *syncer, struct bel_io_file *file,
                       const struct bel_log_writer_mark *mark)
{
    lock(syncer);
    assert(mark->batch > syncer->written.batch);
    assert(file == syncer->file || syncer->mark.batch == syncer->written.batch || syncer->err != 0);
    syncer->file = file;
    syncer->written = *mark;
    if (!syncer->is_dirty) {
        syncer->is_dirty = true;
        syncer->since_ns = syncer->io->mono_ns(syncer->io);
        pthread_cond_signal(&syncer->changed);
    }
    unlock(syncer);
}

void bel__syncer_ask(struct bel_syncer *syncer)
{
    lock(syncer);
    if (syncer->is_dirty && !syncer->is_asked) {
        syncer->is_asked = true;
        pthread_cond_signal(&syncer->changed);
    }
    unlock(syncer);
}

void bel__syncer_step(struct bel_syncer *syncer)
{
    if (syncer->has_thread) return;
    lock(syncer);
    if (is_due(syncer)) sync_some(syncer);
    unlock(syncer);
}

int bel__syncer_wait(struct bel_syncer *syncer)
{
    bel__syncer_ask(syncer);
    bel__syncer_step(syncer);
    lock(syncer);
    while (syncer->mark.batch != syncer->written.batch && syncer->err == 0) {
        (void)pthread_cond_wait(&syncer->synced, &syncer->mutex);
    }
    int err = syncer->err;
    unlock(syncer);
    return err;
}

struct bel_log_writer_mark bel__syncer_mark(struct bel_syncer *syncer)
{
    lock(syncer);
    struct bel_log_writer_mark mark = syncer->mark;
    unlock(syncer);
    return mark;
}

int bel__syncer_error(struct bel_syncer *syncer)
{
    lock(syncer);
    int err = syncer->err;
    unlock(syncer);
    return err;
}
