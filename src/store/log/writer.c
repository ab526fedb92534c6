/* SPDX-License-Identifier: MIT */

/*
 * A ring of runs. The frames of a run lie one after the other in one file, so that a run is one
 * write and one sync:
 *
 *     run 0: being written, synced    run 1: header of the next segment | frame frame ...
 *     '-- by the thread               '-- the caller appends to the last run, unless it is
 *                                         being written; then to a new one
 *
 * A run that begins a segment has the segment's header, which is written and synced before the
 * first frame. The run before it is synced by then, as recovery requires.
 *
 * The mutex is held while a frame is copied, never during a write or sync. After a failure nothing
 * more is written, and runs are dropped.
 */
#include "store/log/writer.h"
#include "core/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUNS_MAX = 4,
    KEPT_BYTES_MAX = 1 << 20, /* larger memory of a run is freed once it is written */
};

struct run {
    struct bel_io_file *file;
    uint64_t offset; /* of the first frame */
    uint8_t *memory; /* aligned for direct writes; may be NULL */
    size_t bytes, capacity;
    uint8_t *header; /* BEL_IO_BLOCK bytes */
    bool has_header; /* the run begins a segment */
    struct bel_log_writer_mark mark;
};

struct bel_log_writer {
    struct bel_io *io;
    bool has_thread;
    void (*wake)(void *context);
    void *context;
    pthread_t thread;

    pthread_mutex_t mutex; /* protects all below, except a run that is being written */
    pthread_cond_t given, taken;
    struct run runs[RUNS_MAX];
    unsigned first, count;
    size_t bytes; /* total of all runs */
    struct bel_log_writer_mark mark;
    uint64_t begun;  /* the last batch of the run that was begun last */
    bool is_writing; /* the first run is being written */
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

static struct run *run_at(struct bel_log_writer *writer, unsigned index)
{
    return &writer->runs[(writer->first + index) % RUNS_MAX];
}

static int write_run(struct bel_log_writer *writer, const struct run *run)
{
    struct bel_io *io = writer->io;
    if (run->has_header) {
        int err = io->write(io, run->file, 0, run->header, BEL_IO_BLOCK);
        if (err) return err;
        err = io->sync(io, run->file);
        if (err) return err;
    }
    if (run->bytes == 0) return 0;
    int err = io->write(io, run->file, run->offset, run->memory, run->bytes);
    return err ? err : io->sync(io, run->file);
}

/* Removes the first run, which is durable unless there was an error. Keeps its memory. */
static void take_out(struct bel_log_writer *writer, int err)
{
    struct run *run = run_at(writer, 0);
    if (err == 0) {
        writer->mark = run->mark;
    } else {
        writer->err = BEL_EIO;
    }
    writer->bytes -= run->bytes;
    run->bytes = 0;
    run->has_header = false;
    if (run->capacity > KEPT_BYTES_MAX) {
        free(run->memory);
        run->memory = NULL;
        run->capacity = 0;
    }
    writer->first = (writer->first + 1) % RUNS_MAX;
    writer->count--;
    pthread_cond_signal(&writer->taken);
}

/* Writes the first run. The caller holds the mutex, which is released during the write. */
static void write_first(struct bel_log_writer *writer)
{
    assert(writer->count > 0 && !writer->is_writing);
    int err = writer->err;
    if (err == 0) {
        writer->is_writing = true;
        writer->begun = run_at(writer, 0)->mark.batch;
        unlock(writer);
        err = write_run(writer, run_at(writer, 0));
        lock(writer);
        writer->is_writing = false;
    }
    take_out(writer, err);
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
        write_first(writer);
        if (writer->wake == NULL) continue;
        unlock(writer);
        writer->wake(writer->context);
        lock(writer);
    }
    unlock(writer);
    return NULL;
}

static void destroy(struct bel_log_writer *writer)
{
    for (unsigned i = 0; i < RUNS_MAX; i++) {
        free(writer->runs[i].memory);
        free(writer->runs[i].header);
    }
    pthread_cond_destroy(&writer->given);
    pthread_cond_destroy(&writer->taken);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

static int init_runs(struct bel_log_writer *writer)
{
    for (unsigned i = 0; i < RUNS_MAX; i++) {
        writer->runs[i].header = aligned_alloc(BEL_IO_BLOCK, BEL_IO_BLOCK);
        if (writer->runs[i].header == NULL) return BEL_ENOMEM;
    }
    return 0;
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
    int err = init_runs(writer);
    if (err == 0 && writer->has_thread) err = bel__thread_start(&writer->thread, run, writer);
    if (err) {
        destroy(writer);
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
    destroy(writer);
}

/* Returns the last run if frames can be appended to it, or NULL. */
static struct run *open_run(struct bel_log_writer *writer)
{
    if (writer->count == 0 || (writer->count == 1 && writer->is_writing)) return NULL;
    return run_at(writer, writer->count - 1);
}

/* Appends an empty run, which begins at `offset`. */
static struct run *add_run(struct bel_log_writer *writer, struct bel_io_file *file, uint64_t offset)
{
    assert(writer->count < RUNS_MAX);
    struct run *run = run_at(writer, writer->count++);
    assert(run->bytes == 0 && !run->has_header);
    run->file = file;
    run->offset = offset;
    run->mark = writer->mark;
    return run;
}

bool bel__log_writer_has_room(struct bel_log_writer *writer)
{
    lock(writer);
    bool has_room = writer->count < RUNS_MAX || open_run(writer) != NULL;
    unlock(writer);
    return has_room;
}

bool bel__log_writer_is_full(struct bel_log_writer *writer)
{
    lock(writer);
    bool is_full = writer->bytes >= BEL_WRITER_BYTES_MAX;
    unlock(writer);
    return is_full;
}

int bel__log_writer_begin(struct bel_log_writer *writer, struct bel_io_file *file,
                          const uint8_t *header)
{
    lock(writer);
    bool has_room = writer->count < RUNS_MAX;
    if (has_room) {
        struct bel_log_writer_mark mark = writer->mark;
        if (writer->count > 0) mark = run_at(writer, writer->count - 1)->mark;
        struct run *run = add_run(writer, file, 0);
        memcpy(run->header, header, BEL_IO_BLOCK);
        run->has_header = true;
        run->mark = mark; /* a header alone makes no batch durable */
        pthread_cond_signal(&writer->given);
    }
    unlock(writer);
    return has_room ? 0 : BEL_EBUSY;
}

/* Makes room for `bytes` more bytes in a run. */
static int grow(struct run *run, size_t bytes)
{
    if (bytes <= run->capacity - run->bytes) return 0;
    size_t capacity = run->capacity == 0 ? BEL_IO_BLOCK : run->capacity;
    while (capacity < run->bytes + bytes) {
        capacity *= 2;
    }
    uint8_t *memory = aligned_alloc(BEL_IO_BLOCK, capacity);
    if (memory == NULL) return BEL_ENOMEM;
    if (run->bytes > 0) memcpy(memory, run->memory, run->bytes);
    free(run->memory);
    run->memory = memory;
    run->capacity = capacity;
    return 0;
}

/* Appends a frame to a run. An empty run takes the memory of the batch and gives its own. */
static int append(struct run *run, struct bel_batch *batch, size_t bytes)
{
    if (run->bytes == 0) {
        uint8_t *memory = run->memory;
        size_t capacity = run->capacity;
        run->memory = batch->memory;
        run->capacity = batch->capacity;
        *batch = (struct bel_batch){
            .memory = memory, .capacity = capacity, .bytes = BEL_FRAME_HEADER_BYTES};
    } else {
        int err = grow(run, bytes);
        if (err) return err;
        memcpy(run->memory + run->bytes, batch->memory, bytes);
        bel__batch_clear(batch);
    }
    run->bytes += bytes;
    return 0;
}

int bel__log_writer_give(struct bel_log_writer *writer, struct bel_io_file *file, uint64_t offset,
                         struct bel_batch *batch, const struct bel_log_writer_mark *mark)
{
    size_t bytes = (size_t)(mark->end - offset);
    lock(writer);
    struct run *run = open_run(writer);
    if (run == NULL) run = add_run(writer, file, offset);
    if (run->bytes == 0) run->offset = offset;
    assert(run->file == file && run->offset + run->bytes == offset);
    int err = append(run, batch, bytes);
    if (err == 0) {
        run->mark = *mark;
        writer->bytes += bytes;
        pthread_cond_signal(&writer->given);
    }
    unlock(writer);
    return err;
}

void bel__log_writer_step(struct bel_log_writer *writer)
{
    if (writer->has_thread) return;
    lock(writer);
    while (writer->count > 0) {
        write_first(writer);
    }
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

uint64_t bel__log_writer_begun(struct bel_log_writer *writer)
{
    lock(writer);
    uint64_t batch = writer->begun;
    unlock(writer);
    return batch;
}

int bel__log_writer_error(struct bel_log_writer *writer)
{
    lock(writer);
    int err = writer->err;
    unlock(writer);
    return err;
}
