/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_WRITER_H
#define BEL_STORE_LOG_WRITER_H

/*
 * writer - writes and syncs frames while the caller builds the next ones (group commit).
 *
 *     give ----> [frame frame frame] ----> all waiting frames in one write, then one sync
 *     begin ---> [header]                   by a thread, or by bel__log_writer_step()
 *
 * A sync covers all frames given before it began, so on a slower disk more batches share one sync.
 * Steps are for tests, which control when things happen, and for a caller that commits several
 * batches before it replies to anybody.
 *
 * Threads: a writer belongs to one thread, and has a thread of its own if `has_thread` is set. The
 * writer uses a file until the frames given for it are synced.
 */

#include "store/io/io.h"
#include "store/log/batch.h"

enum {
    BEL_WRITER_BYTES_MAX = 32 << 20, /* waiting bytes from which on a writer is full */
};

struct bel_log_writer_options {
    struct bel_io *io; /* borrowed */
    bool has_thread;
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* The end of the durable part of the log. */
struct bel_log_writer_mark {
    uint64_t batch;
    uint64_t end; /* offset in the file that was written last */
};

struct bel_log_writer; /* opaque */

BEL_CHECKED int bel__log_writer_open(const struct bel_log_writer_options *options,
                                     struct bel_log_writer **out);

/* Waits until all frames are written or have failed, and closes the writer; NULL is allowed. */
void bel__log_writer_close(struct bel_log_writer *writer);

/* Returns whether a frame can be given now. If not, wait; only segments of a few frames get there,
 * each of which is a write of its own. */
bool bel__log_writer_has_room(struct bel_log_writer *writer);

/* Returns whether so much waits that the caller should change nothing until a sync has ended. */
bool bel__log_writer_is_full(struct bel_log_writer *writer);

/* Begins a segment: its header, BEL_IO_BLOCK bytes, is written and synced after everything given so
 * far is durable. The next frames are of this file. Returns 0, or BEL_EBUSY: wait first. */
BEL_CHECKED int bel__log_writer_begin(struct bel_log_writer *writer, struct bel_io_file *file,
                                      const uint8_t *header);

/* Passes on a sealed and padded frame, which empties the batch. There must be room. `mark` is the
 * end of the durable part once the frame is synced. Returns 0; or BEL_ENOMEM, which cannot happen
 * if nothing waits, and changes nothing. */
BEL_CHECKED int bel__log_writer_give(struct bel_log_writer *writer, struct bel_io_file *file,
                                     uint64_t offset, struct bel_batch *batch,
                                     const struct bel_log_writer_mark *mark);

/* Writes and syncs the waiting frames. Does nothing if there is a thread. */
void bel__log_writer_step(struct bel_log_writer *writer);

/* Writes and syncs all frames, and waits until that is done. Returns 0 or the error. */
BEL_CHECKED int bel__log_writer_wait(struct bel_log_writer *writer);

/* Returns the last batch of the run that is being written, or was written last. */
uint64_t bel__log_writer_begun(struct bel_log_writer *writer);

/* Return the end of the durable part, and the final error or 0. */
struct bel_log_writer_mark bel__log_writer_mark(struct bel_log_writer *writer);
int bel__log_writer_error(struct bel_log_writer *writer);

#endif
