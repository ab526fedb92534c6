/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_LOG_H
#define BEL_STORE_LOG_LOG_H

/*
 * log - a write-ahead log of batches, in the order of their commits. After a crash a batch is there
 * completely or not at all.
 *
 *     log-0      log-1      log-2      log-3
 *     [use 5 ]   [use 6 |   [use 3 ]   [use 4 ]
 *     waits      current    free       waits for the tree
 *
 * Segments are used in turn. A segment is free when the tree has all its batches. A batch that does
 * not fit into the current segment begins a free one; the caller makes sure that there is one.
 * docs/FORMAT.md describes the format, and why recovery can trust it.
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

/* What writes and syncs. */
enum bel_log_driver {
    BEL_LOG_AT_ONCE, /* bel__log_append(): the batch is synced when it returns */
    BEL_LOG_STEPS,   /* bel__log_step() */
    BEL_LOG_THREAD,  /* a thread of the log */
};

struct bel_log_options {
    struct bel_io *io;           /* borrowed, and locked */
    struct bel_entropy *entropy; /* borrowed */
    uint64_t segment_bytes;      /* for a new log only */
    uint32_t segment_count;      /* for a new log only */
    uint64_t first_batch;        /* 0, or for the log of a backup: the tree has those before */
    bool is_buffered;            /* never use O_DIRECT */
    enum bel_log_driver driver;
    bool is_lazy;                /* an append writes, the sync follows later; not AT_ONCE */
    uint64_t interval_ns;        /* if lazy: longest delay of a sync; 0: when necessary or asked */
    void (*wake)(void *context); /* called by the thread after each sync; may be NULL */
    void *context;
};

/* A segment: one file of the log. */
struct bel_log_segment {
    struct bel_io_file *file;
    struct bel_segment_header header; /* of its last use; use 0: never used */
    uint64_t last_batch;              /* if it is neither free nor current */
    bool is_free;
};

/* A log. The fields are private to the files of the log. */
struct bel_log {
    struct bel_io *io;
    struct bel_entropy *entropy;
    struct bel_superblock superblock;
    struct bel_log_segment segments[BEL_SEGMENT_COUNT_MAX];
    struct bel_log_segment *current; /* NULL until a segment is used */
    uint64_t end;                    /* offset of the next frame in the current segment */
    uint64_t use;                    /* the last use of a segment */
    uint64_t batch;                  /* the last batch */
    uint64_t closed_batch;           /* the last batch at the last clean close; 0: unknown */
    uint32_t checksum;               /* of the last frame */
    bool has_appended;               /* since it was opened */
    int err;
    struct bel_why why; /* of `err`, if the files do not know it; or empty */
    uint8_t *block;     /* BEL_IO_BLOCK bytes for headers */

    struct bel_log_writer *writer;     /* NULL if BEL_LOG_AT_ONCE or lazy */
    struct bel_syncer *syncer;         /* NULL unless lazy */
    bool is_writing;                   /* writer or syncer has got frames */
    uint64_t written;                  /* if lazy: the last batch written */
    struct bel_log_writer_mark synced; /* the durable end, unless writer or syncer are ahead */
};

/* Is called with each row, in order. A result other than 0 ends the replay. */
typedef int bel_log_replay(void *context, const struct bel_frame_row *row);

/* Opens the files of a log, or creates them; bel__log_recover() must follow. Returns 0 and sets
 * `*out`; or BEL_ECORRUPT, BEL_EUNSUPPORTED for a newer format, BEL_EIO, BEL_EFULL or BEL_ENOMEM,
 * and sets `*why`. */
BEL_CHECKED int bel__log_open(const struct bel_log_options *options, struct bel_log **out,
                              struct bel_why *why);

/* Finds the end of the log and replays the batches after `epoch`, the last batch in the tree.
 * Returns 0; an error as bel__log_open(); or the result of `replay`. */
BEL_CHECKED int bel__log_recover(struct bel_log *log, uint64_t epoch, bel_log_replay *replay,
                                 void *context, struct bel_why *why);

/* Replays the batches after `epoch` up to `last`, which must be synced, once more. `log` is a copy
 * of the struct of a log in use, which another thread may read as long as no segment is released.
 * Returns as bel__log_recover(). */
BEL_CHECKED int bel__log_reread(struct bel_log *log, uint64_t epoch, uint64_t last,
                                bel_log_replay *replay, void *context, struct bel_why *why);

/* Marks a directory as an unfinished backup, which cannot be opened as a log: writes a placeholder
 * for the superblock. bel__log_open() with a `first_batch` replaces it at its end. The placeholder
 * becomes durable with bel__log_sync_copy(). */
BEL_CHECKED int bel__log_begin_copy(struct bel_io *io, struct bel_why *why);
BEL_CHECKED int bel__log_sync_copy(struct bel_io *io, struct bel_why *why);

/* Frees the disk space of a backup that has failed; the placeholder stays. */
void bel__log_abandon_copy(struct bel_io *io);

/* Looks for a superblock. Returns 0 if there is one, which may be damaged; BEL_ENOTFOUND; or
 * BEL_ECORRUPT for the placeholder of an unfinished backup. Sets `*why`, except for 0 and
 * BEL_ENOTFOUND. */
BEL_CHECKED int bel__log_look(struct bel_io *io, struct bel_why *why);

/* Raises the format of the superblock to BEL_FORMAT, so that older builds refuse the store. Call it
 * after recovery, and before rows that older builds do not know. Returns 0 or an error of
 * writing. */
BEL_CHECKED int bel__log_raise(struct bel_log *log, struct bel_why *why);

/* Writes a closing mark and closes the log; NULL is allowed. */
void bel__log_close(struct bel_log *log);

/* Appends a batch, and syncs it as the driver says. Seals and pads the batch, and may empty it.
 * Waits for no sync if a thread syncs, unless the log is lazy and a segment begins.
 * Returns 0 or the final error. There must be room in the current segment, or a free segment. */
BEL_CHECKED int bel__log_append(struct bel_log *log, struct bel_batch *batch);

/* Writes and syncs what was appended, with BEL_LOG_STEPS; otherwise does nothing. If it is lazy,
 * it syncs only when that is due. */
void bel__log_step(struct bel_log *log);

/* From now on a writer writes and syncs, as BEL_LOG_THREAD or BEL_LOG_STEPS says; so far every
 * append did (BEL_LOG_AT_ONCE). Only the driver, `wake` and `context` of the options are used.
 * Returns 0; or BEL_ENOMEM, with nothing changed. */
BEL_CHECKED int bel__log_begin_late(struct bel_log *log, const struct bel_log_options *options);

/* Requests a sync of a lazy log now. */
void bel__log_ask(struct bel_log *log);

/* Waits until all batches are synced. Returns 0 or the final error. */
BEL_CHECKED int bel__log_wait(struct bel_log *log);

/* Return the last durable batch; the last batch that may be acknowledged, which is the last durable
 * one, or in a lazy log the last written one; and the final error or 0. */
uint64_t bel__log_synced(const struct bel_log *log);
uint64_t bel__log_answerable(const struct bel_log *log);
int bel__log_error(const struct bel_log *log);

/* Returns the last batch that a sync covers which has ended or is running. */
uint64_t bel__log_syncing(const struct bel_log *log);

/* Returns whether batches may be acknowledged only some time after they were appended. */
bool bel__log_is_late(const struct bel_log *log);

/* Returns whether so much waits for a writer that nothing more should be appended until a sync has
 * ended. */
bool bel__log_is_full(const struct bel_log *log);

/* Returns whether a frame of `bytes` bytes fits into the current segment. */
bool bel__log_has_room(const struct bel_log *log, size_t bytes);

/* Returns the length of the largest frame that fits into a segment. */
size_t bel__log_frame_bytes_max(const struct bel_log *log);

unsigned bel__log_free_count(const struct bel_log *log);

/* Marks segments as free whose batches are all in the tree, which has those up to `epoch`. */
void bel__log_release(struct bel_log *log, uint64_t epoch);

/* Returns the bytes of the segments in use whose last batch is at most `batch`. The current segment
 * is counted, as far as it is filled, only for UINT64_MAX. */
uint64_t bel__log_used_bytes(const struct bel_log *log, uint64_t batch);

#endif
