/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_WRITER_H
#define BEL_STORE_LOG_WRITER_H

/*
 * writer - writes frames and syncs them while the next ones are being made.
 *
 *     give ----> [frame frame frame] ----> all that wait are written, then one sync
 *                 at most 64, or 32 MB      by a thread, or by the caller's steps
 *
 * A sync covers all that was given before it began, so the slower the disk is, the more batches
 * share one. Steps are for tests, which want to know what happens when; and for who has more
 * than one batch to commit before it answers anybody.
 *
 * Threads: a writer belongs to one thread, and has one itself if it is told so. Files are the
 * writer's until what was given for them is synced.
 */

#include "store/io/io.h"
#include "store/log/batch.h"

enum {
    BEL_WRITER_FRAMES_MAX = 64,
    BEL_WRITER_BYTES_MAX = 32 << 20, /* and one frame more */
};

struct bel_log_writer_options {
    struct bel_io *io; /* borrowed */
    bool has_thread;
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* What is durable. */
struct bel_log_writer_mark {
    uint64_t batch;
    uint64_t end; /* in the file that was written last */
};

struct bel_log_writer; /* opaque */

BEL_CHECKED int bel__log_writer_open(const struct bel_log_writer_options *options,
                                     struct bel_log_writer **out);

/* Waits until everything is written, or has failed, and closes it; NULL is allowed. */
void bel__log_writer_close(struct bel_log_writer *writer);

/* True if one more frame can be given. */
bool bel__log_writer_has_room(struct bel_log_writer *writer);

/* Gives a sealed and padded frame, with its memory: the batch is empty then. There must be
 * room. `mark` is what is durable once it is synced. */
void bel__log_writer_give(struct bel_log_writer *writer, struct bel_io_file *file, uint64_t offset,
                          struct bel_batch *batch, const struct bel_log_writer_mark *mark);

/* Writes and syncs what waits, if there is no thread for that. */
void bel__log_writer_step(struct bel_log_writer *writer);

/* The same, and returns when all is synced: 0, or what has failed. */
BEL_CHECKED int bel__log_writer_wait(struct bel_log_writer *writer);

/* What is durable, if anything was given yet; and what has failed, for good. */
struct bel_log_writer_mark bel__log_writer_mark(struct bel_log_writer *writer);
int bel__log_writer_error(struct bel_log_writer *writer);

#endif
