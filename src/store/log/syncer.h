/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_SYNCER_H
#define BEL_STORE_LOG_SYNCER_H

/*
 * syncer - syncs the log some time after it was written, for a lazy log.
 *
 *     wrote ----> [since when, up to where] ----> one sync when the interval is over or on request,
 *                                                  by a thread or by bel__syncer_step()
 *
 * The caller may write while the file is being synced; those writes wait for the next sync. A sync
 * that fails is final: writes since the last successful one may be lost.
 *
 * Threads: a syncer belongs to one thread, and has a thread of its own if `has_thread` is set. The
 * owner writes to the file while the thread syncs it.
 */

#include "store/io/io.h"
#include "store/log/writer.h"

struct bel_syncer_options {
    struct bel_io *io; /* borrowed */
    bool has_thread;
    uint64_t interval_ns;        /* longest time from a write to its sync; 0: only on request */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

struct bel_syncer; /* opaque */

BEL_CHECKED int bel__syncer_open(const struct bel_syncer_options *options, struct bel_syncer **out);

/* Closes the syncer without a sync; NULL is allowed. */
void bel__syncer_close(struct bel_syncer *syncer);

/* Reports a write: everything up to `mark` is durable once the file is synced. All writes between
 * two syncs must be to one file. */
void bel__syncer_wrote(struct bel_syncer *syncer, struct bel_io_file *file,
                       const struct bel_log_writer_mark *mark);

/* Requests a sync now, before the interval is over. */
void bel__syncer_ask(struct bel_syncer *syncer);

/* Syncs if a sync is due. Does nothing if there is a thread. */
void bel__syncer_step(struct bel_syncer *syncer);

/* Syncs all writes and waits until that is done. Returns 0 or the error. */
BEL_CHECKED int bel__syncer_wait(struct bel_syncer *syncer);

/* Return the end of the durable writes, and the final error or 0. */
struct bel_log_writer_mark bel__syncer_mark(struct bel_syncer *syncer);
int bel__syncer_error(struct bel_syncer *syncer);

#endif
