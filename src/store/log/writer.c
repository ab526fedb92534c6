/* SPDX-License-Identifier: MIT */

/*
 * A ring buffer of frames. The writing thread writes all waiting frames in order, syncs the file,
 * and only then removes them from the ring. All waiting frames are of one file: the caller waits
 * for the writer before it begins another segment.
 *
 * The mutex is held for a few instructions, never during a write or sync. After a failure nothing
 * more is written, and frames are dropped.
 */
#include "store/log/writer.h"
#include "core/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct frame {
    struct bel_io_file *file;
    uint64_t offset;
    struct bel_batch batch;
    size_t bytes;
    struct bel_log_writer_mark mark;
};

struct bel_log_writer {
    struct bel_io *io;
    bool has_thread;
    void (*wake)(void *context);
    void *context;
    pthread_t thread;

    pthread_mutex_t mutex; /* protects all below */
    pthread_cond_t given, taken;
    struct frame frames[BEL_WRITER_FRAMES_MAX];
    unsigned first, count;
    size_t bytes; /* total of all frames */
    struct bel_log_writer_mark mark;
    bool is_closing;
    int err;
};

static void lock(struct bel_log_writer *writer)
{
    int failed = pthread_mutex_lock(&writer->mutex);
    assert(!failed);
    (void)failed;
}

static void unlock(struct bel_log_writer *writer)
{
    int failed = pthread_mutex_unlock(&writer->mutex);
    assert(!failed);
    (void)failed;
}

static void wait_for(struct bel_log_writer *writer, pthread_cond_t *condition)
{
    int failed = pthread_cond_wait(condition, &writer->mutex);
    assert(!failed);
    (void)failed;
}

static struct frame *frame_at(struct bel_log_writer *writer, unsigned index)
{
    return &writer->frames[(writer->first + index) % BEL_WRITER_FRAMES_MAX];
}

/* Writes the first `count` frames, without removing them, and syncs. */
static int write_frames(struct bel_log_writer *writer, unsigned count)
{
    struct bel_io *io = writer->io;
    for (unsigned i = 0; i < count; i++) {
        const struct frame *frame = frame_at(writer, i);
        int err = io->write(io, frame->file, frame->offset, frame->batch.memory, frame->bytes);
        if (err) return err;
    }
    return io->sync(io, frame_at(writer, 0)->file);
}

/* Removes the first `count` frames, which are durable unless there was an error. */
static void take_out(struct bel_log_writer *writer, unsigned count, int err)
{
    if (err == 0) {
        writer->mark = frame_at(writer, count - 1)->mark;
    } else {
        writer->err = BEL_EIO;
    }
    for (; count > 0; count--) {
        writer->bytes -= frame_at(writer, 0)->bytes;
        bel__batch_finish(&frame_at(writer, 0)->batch);
        writer->first = (writer->first + 1) % BEL_WRITER_FRAMES_MAX;
        writer->count--;
    }
    pthread_cond_signal(&writer->taken);
}

/* Writes the waiting frames. The caller holds the mutex, which is released during the write. */
static void write_some(struct bel_log_writer *writer)
{
    unsigned count = writer->count;
    int err = writer->err;
    if (count == 0) return;
    if (err == 0) {
        unlock(writer);
        err = write_frames(writer, count);
        lock(writer);
    }
    take_out(writer, count, err);
}

static void *run(void *argument)
{
    struct bel_log_writer *writer = argument;
    lock(writer);
    for (;;) {
        while (writer->count == 0 && !writer->is_closing) {
            wait_for(writer, &writer->given);
        }
        if (writer->count == 0) break;
        write_some(writer);
        if (writer->wake == NULL) continue;
        unlock(writer);
        writer->wake(writer->context);
        lock(writer);
    }
    unlock(writer);
    return NULL;
}

int bel__log_writer_open(const struct bel_log_writer_options *options, struct bel_log_writer **out)
{
    struct bel_log_writer *writer = malloc(sizeof *writer);
    if (writer == NULL) return BEL_ENOMEM;
    *writer = (struct bel_log_writer){
        .io = options->io,
        .has_thread = options->has_thread,
        .wake = options->wake,
        .context = options->context,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .given = PTHREAD_COND_INITIALIZER,
        .taken = PTHREAD_COND_INITIALIZER,
    };
    int err = writer->has_thread ? bel__thread_start(&writer->thread, run, writer) : 0;
    if (err) {
        free(writer);
        return err;
    }
    *out = writer;
    return 0;
}

void bel__log_writer_close(struct bel_log_writer *writer)
{
    if (writer == NULL) return;
    bel__log_writer_step(writer);
    if (writer->has_thread) {
        lock(writer);
        writer->is_closing = true;
        pthread_cond_signal(&writer->given);
        unlock(writer);
        int failed = pthread_join(writer->thread, NULL);
        assert(!failed);
        (void)failed;
    }
    assert(writer->count == 0);
    pthread_cond_destroy(&writer->given);
    pthread_cond_destroy(&writer->taken);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

bool bel__log_writer_has_room(struct bel_log_writer *writer)
{
    lock(writer);
    bool has_room = writer->count < BEL_WRITER_FRAMES_MAX && writer->bytes < BEL_WRITER_BYTES_MAX;
    unlock(writer);
    return has_room;
}

void bel__log_writer_give(struct bel_log_writer *writer, struct bel_io_file *file, uint64_t offset,
                          struct bel_batch *batch, const struct bel_log_writer_mark *mark)
{
    lock(writer);
    assert(writer->count < BEL_WRITER_FRAMES_MAX);
    assert(writer->count == 0 || frame_at(writer, 0)->file == file);
    *frame_at(writer, writer->count) = (struct frame){
        .file = file,
        .offset = offset,
        .batch = *batch,
        .bytes = (size_t)(mark->end - offset),
        .mark = *mark,
    };
    writer->bytes += frame_at(writer, writer->count)->bytes;
    writer->count++;
    pthread_cond_signal(&writer->given);
    unlock(writer);
    bel__batch_init(batch);
}

void bel__log_writer_step(struct bel_log_writer *writer)
{
    if (writer->has_thread) return;
    lock(writer);
    write_some(writer);
    unlock(writer);
}

int bel__log_writer_wait(struct bel_log_writer *writer)
{
    bel__log_writer_step(writer);
    lock(writer);
    while (writer->count > 0) {
        wait_for(writer, &writer->taken);
    }
    int err = writer->err;
    unlock(writer);
    return err;
}

struct bel_log_writer_mark bel__log_writer_mark(struct bel_log_writer *writer)
{
    lock(writer);
    struct bel_log_writer_mark mark = writer->mark;
    unlock(writer);
    return mark;
}

int bel__log_writer_error(struct bel_log_writer *writer)
{
    lock(writer);
    int err = writer->err;
    unlock(writer);
    return err;
}
