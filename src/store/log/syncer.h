/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_SYNCER_H
#define BEL_STORE_LOG_SYNCER_H

/*
 * syncer - syncs a file some time after it was written to, for those who do not wait for that.
 *
 *     wrote ----> [since when, up to where] ----> the interval is over, or somebody asks: a sync
 *                                                  by a thread, or by the caller's steps
 *
 * Whoever writes goes on writing while the file is synced; what comes meanwhile is for the next
 * time. A sync that fails is final: what was written since the last good one may be lost.
 *
 * Threads: a syncer belongs to one thread, and has one itself if it is told so. Files are used by
 * both, one to write, the other to sync.
 */

#include "store/io/io.h"
#include "store/log/writer.h"

struct bel_syncer_options {
    struct bel_io *io; /* borrowed */
    bool has_thread;
    uint64_t interval_ns;        /* from a write to its sync, at most; 0: until it is asked */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

struct bel_syncer; /* opaque */

BEL_CHECKED int bel__syncer_open(const struct bel_syncer_options *options, struct bel_syncer **out);

/* Closes it, without a sync; NULL is allowed. */
void bel__syncer_close(struct bel_syncer *syncer);

/* Something was written: all of `mark` is durable once the file is synced. All that waits is of one
 * file. */
void bel__syncer_wrote(struct bel_syncer *syncer, struct bel_io_file *file,
                       const struct bel_log_writer_mark *mark);

/* Syncs soon, without waiting for the interval to end. */
void bel__syncer_ask(struct bel_syncer *syncer);

/* Syncs if it is time to, if there is no thread for that. */
void bel__syncer_step(struct bel_syncer *syncer);

/* Syncs all that was written, and returns when it is: 0, or what has failed. */
BEL_CHECKED int bel__syncer_wait(struct bel_syncer *syncer);

/* What is durable, if anything was written yet; and what has failed, for good. */
struct bel_log_writer_mark bel__syncer_mark(struct bel_syncer *syncer);
int bel__syncer_error(struct bel_syncer *syncer);

#endif
