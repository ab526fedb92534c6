/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_LOG_H
#define BEL_STORE_LOG_LOG_H

/*
 * log - batches in the order of their commits, on disk, each whole or not there.
 *
 *     log-0      log-1      log-2      log-3
 *     [use 5 ]   [use 6 |   [use 3 ]   [use 4 ]
 *     waits      current    free       waits for the tree
 *
 * Segments are used in turn. One whose batches the tree has is free. A batch that does not fit
 * into the current segment goes into a free one, which the caller must have made sure of.
 * docs/FORMAT.md says what is written, and why it can be trusted.
 *
 * A write or sync that fails is final.
 *
 * Threads: a log belongs to one thread.
 */

#include "core/entropy.h"
#include "core/why.h"
#include "store/io/io.h"
#include "store/log/batch.h"
#include "store/log/format.h"
#include "store/log/syncer.h"
#include "store/log/writer.h"

/* Who writes and syncs. */
enum bel_log_driver {
    BEL_LOG_AT_ONCE, /* bel__log_append(): it is synced when that returns */
    BEL_LOG_STEPS,   /* bel__log_step() */
    BEL_LOG_THREAD,  /* a thread, behind the caller's back */
};

struct bel_log_options {
    struct bel_io *io;           /* borrowed, and locked */
    struct bel_entropy *entropy; /* borrowed */
    uint64_t segment_bytes;      /* of a log that is made; one that is there has its own */
    uint32_t segment_count;      /* the same */
    uint64_t first_batch;        /* the same: the tree has those before; 0 or 1: there are none */
    bool is_buffered;            /* never O_DIRECT */
    enum bel_log_driver driver;
    bool is_lazy;                /* appending writes, and the sync comes later; not AT_ONCE */
    uint64_t interval_ns;        /* that much later at most; 0: when it must, or is asked for */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* One file. */
struct bel_log_segment {
    struct bel_io_file *file;
    struct bel_segment_header header; /* of its last use; use 0: never used */
    uint64_t last_batch;              /* of one that is neither free nor current */
    bool is_free;
};

/* A log. The fields are private to the files of the log. */
struct bel_log {
    struct bel_io *io;
    struct bel_entropy *entropy;
    struct bel_superblock superblock;
    struct bel_log_segment segments[BEL_SEGMENT_COUNT_MAX];
    struct bel_log_segment *current; /* NULL before the first use of any */
    uint64_t end;                    /* of the current one: the next frame goes here */
    uint64_t use;                    /* the last one */
    uint64_t batch;
    uint32_t checksum; /* of the last frame */
    bool has_appended; /* since it was opened */
    int err;
    uint8_t *block; /* BEL_IO_BLOCK bytes for headers */

    struct bel_log_writer *writer;     /* NULL if it appends at once, or is lazy */
    struct bel_syncer *syncer;         /* NULL unless it is lazy */
    bool is_writing;                   /* one of them has something of the current segment */
    uint64_t written;                  /* if it is lazy: the last batch that is */
    struct bel_log_writer_mark synced; /* what is durable, apart from that */
};

/* Called with each row, in order. What it returns, if not 0, ends the replay. */
typedef int bel_log_replay(void *context, const struct bel_frame_row *row);

/* Opens the files of a log, or makes them; then it must be recovered. Returns 0 and sets `*out`;
 * or BEL_ECORRUPT, BEL_EUNSUPPORTED for a newer format, BEL_EIO, BEL_EFULL or BEL_ENOMEM, and
 * says why. */
BEL_CHECKED int bel__log_open(const struct bel_log_options *options, struct bel_log **out,
                              struct bel_why *why);

/* Finds the end of the log and replays the batches behind `epoch`, which is what the tree has.
 * Returns 0; or as above, or what `replay` returned. */
BEL_CHECKED int bel__log_recover(struct bel_log *log, uint64_t epoch, bel_log_replay *replay,
                                 void *context, struct bel_why *why);

/* Closes it with a mark; NULL is allowed. */
void bel__log_close(struct bel_log *log);

/* Appends a batch, which is sealed and padded for that and may be emptied, and syncs it, or
 * leaves that to others. Returns 0, or what failed for good. There must be room in the current
 * segment, or a free one. */
BEL_CHECKED int bel__log_append(struct bel_log *log, struct bel_batch *batch);

/* Writes and syncs what was appended, with BEL_LOG_STEPS; otherwise does nothing. If it is lazy,
 * it syncs only when that is due. */
void bel__log_step(struct bel_log *log);

/* Sees to it that what was appended is synced soon, if it is lazy. */
void bel__log_ask(struct bel_log *log);

/* Waits until all is synced. Returns 0, or what failed for good. */
BEL_CHECKED int bel__log_wait(struct bel_log *log);

/* The last batch that is durable, with all before it; the last that may be answered for, which is
 * the same, or if it is lazy the last that is written; and what has failed for good. */
uint64_t bel__log_synced(const struct bel_log *log);
uint64_t bel__log_answerable(const struct bel_log *log);
int bel__log_error(const struct bel_log *log);

/* True if a frame of `bytes` bytes fits into the current segment. */
bool bel__log_has_room(const struct bel_log *log, size_t bytes);

/* The largest frame that fits into a segment. */
size_t bel__log_frame_bytes_max(const struct bel_log *log);

unsigned bel__log_free_count(const struct bel_log *log);

/* The tree has all batches up to `epoch`: segments that have no others are free. */
void bel__log_release(struct bel_log *log, uint64_t epoch);

/* The bytes of segments that are not free, of those alone whose last batch is not behind
 * `batch`. The current one counts as far as it is used, for UINT64_MAX alone. */
uint64_t bel__log_used_bytes(const struct bel_log *log, uint64_t batch);

#endif
