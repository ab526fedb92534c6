/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_H
#define BEL_ENGINE_H

/*
 * engine - embedded durable timers: they survive a crash, are delivered at least once, never early,
 * and never after an acknowledged cancel.
 *
 *     bel_engine_open(&(struct bel_engine_options){.folder = "data", .now = now}, &engine, &why);
 *     struct bel_backend *backend = bel_engine_backend(engine);
 *     bel_backend_submit(backend, &request);
 *     next = bel_backend_turn(backend, now);
 *
 * belfry/backend.h lists the commands. An engine reads no clock and has no event loop: the program
 * passes the time, and calls bel_backend_turn() when a turn is needed.
 *
 * Threads: an engine belongs to one thread. A data directory belongs to one engine at a time.
 */

#include "belfry/backend.h"
#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/pressure.h"
#include "belfry/stats.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_engine; /* opaque */

/* Where the engine waits for a sync (fdatasync) of its log. */
enum bel_engine_sync {
    BEL_ENGINE_SYNC_IN_TURN,   /* in the turn: best if a sync takes well under 1 ms */
    BEL_ENGINE_SYNC_IN_THREAD, /* in a thread: replies leave in a later turn, see `wake` */
    BEL_ENGINE_SYNC_ADAPTIVE,  /* in the turn until most syncs take 5 ms or more, and 10 ms more for
                                  each megabyte; then in a thread, until the engine is closed */
};

/* What a reply waits for, and what a power cut may lose. A crash of the process alone never loses
 * an acknowledged change. After a power cut the state is always one that existed: all changes up to
 * some moment, without gaps. */
enum bel_engine_durability {
    BEL_ENGINE_DURABILITY_COMMIT,   /* waits for the sync: nothing is lost */
    BEL_ENGINE_DURABILITY_INTERVAL, /* waits for the write; a thread syncs every
                                       sync_interval_ms. A power cut may lose about the last
                                       sync_interval_ms. */
    BEL_ENGINE_DURABILITY_NONE,     /* waits for the write; syncs only where the order on disk
                                       requires it, and on close. A power cut may lose everything
                                       since the last checkpoint. */
};

struct bel_engine_options {
    const char *folder;          /* data directory; NULL: in memory only, lost on close */
    struct bel_now now;          /* the current time */
    struct bel_zones *zones;     /* borrowed; NULL: the only zone is UTC */
    uint32_t payload_bytes_max;  /* 0: BEL_PAYLOAD_BYTES_DEFAULT */
    uint64_t job_bytes_max;      /* JSON text of a job; 0: 16 MiB */
    uint64_t job_retention_ms;   /* how long a job that has ended is kept; 0: 24 h */
    uint32_t job_tasks_max;      /* tasks of a job and its `then`; 0: 10,000 */
    uint32_t job_edges_max;      /* dependencies between them; 0: 100,000 */
    uint32_t job_depth_max;      /* `then` inside `then`; 0: BEL_JOB_THEN_DEPTH_DEFAULT; at most
                                    BEL_JOB_THEN_DEPTH_MAX */
    uint32_t topics_max;         /* 0: 2^20 */
    uint32_t ready_max;          /* ready timers per topic kept in memory, the rest stay on disk;
                                    0: 1,000,000 */
    enum bel_engine_sync sync;   /* used with BEL_ENGINE_DURABILITY_COMMIT */
    void (*wake)(void *context); /* called on the sync thread when replies can leave: take a turn */
    void *context;
    enum bel_engine_durability durability;
    uint32_t sync_interval_ms; /* of BEL_ENGINE_DURABILITY_INTERVAL; 0: 1,000 */
    bool is_checked;           /* bel_engine_check() has just found no damage. Otherwise every page
                                  of the tree is checked when it is first used. */
};

/* What went wrong and where, for people. */
struct bel_engine_why {
    char text[BEL_WHY_BYTES]; /* ends in 0; empty if there is no detail */
};

/* Opens an engine and recovers its data. Returns 0 and sets `*out`; or returns BEL_ENOMEM, BEL_EIO,
 * BEL_ECORRUPT, BEL_EFULL if the disk is full, BEL_EBUSY if another engine has the directory open,
 * BEL_ECONFLICT if the directory has files of another program, BEL_EUNSUPPORTED if a newer version
 * wrote it, BEL_EINVAL for an invalid option. On failure sets `*why` unless `why` is NULL. */
BEL_CHECKED int bel_engine_open(const struct bel_engine_options *options, struct bel_engine **out,
                                struct bel_engine_why *why);

/* Closes an engine; NULL is allowed. Pending requests get no reply. Leases are kept, and their time
 * stands still until the engine is opened again. */
void bel_engine_close(struct bel_engine *engine);

/* Returns the backend of an engine, which is valid as long as the engine. */
struct bel_backend *bel_engine_backend(struct bel_engine *engine);

/* Returns the live counters of an engine, which are valid as long as the engine. */
const struct bel_engine_stats *bel_engine_stats(const struct bel_engine *engine);

/* Tells an engine how much of the limits outside of it is used; belfry/pressure.h says what
 * follows. Call it about once a second, between turns. The engine measures the depth of its topics
 * itself, in the same call. Returns whether a turn is needed: the level has changed, so that tasks
 * may start sooner, or the engine can free the space of deleted timers. An engine that was just
 * opened, or gets no samples, is under no pressure. */
bool bel_engine_pressure(struct bel_engine *engine, const struct bel_pressure_sample *sample);

/* Returns how much of the engine's files is free for new timers: the files do not shrink when
 * timers end. A program that measures the disk counts it as free space. 0 if in memory. Cheap. */
uint64_t bel_engine_reusable_bytes(struct bel_engine *engine);

/* Starts a backup of all acknowledged changes to a directory that does not exist, is empty, or has
 * an unfinished backup, which is replaced. A thread copies while the engine continues to take
 * turns. The backup can be opened like any data directory; before it is complete, opening it fails
 * with BEL_ECORRUPT. Returns 0; or returns BEL_EBUSY if a backup is running, BEL_ECONFLICT if the
 * directory is not empty, BEL_EUNSUPPORTED for an engine in memory, BEL_EFULL if the disk of the
 * backup is full, BEL_EIO, BEL_ENOMEM. On failure sets `*why` unless `why` is NULL. */
BEL_CHECKED int bel_engine_backup_begin(struct bel_engine *engine, const char *folder,
                                        struct bel_engine_why *why);

/* Continues a backup; call it regularly between turns, because the backup makes no progress
 * otherwise. Returns BEL_EBUSY while the backup runs. Then returns, once, 0 if the backup is
 * complete and durable, or the error, after which the directory can be removed. BEL_EFULL means
 * that the disk of the backup is full. Returns BEL_ENOTFOUND if no backup was started. */
BEL_CHECKED int bel_engine_backup_poll(struct bel_engine *engine, struct bel_engine_why *why);

/* Makes a backup and returns when it is complete or has failed. For a program without a loop. */
BEL_CHECKED int bel_engine_backup(struct bel_engine *engine, const char *folder,
                                  struct bel_engine_why *why);

/* What a check has read. */
struct bel_engine_report {
    uint64_t topics, timers, leases, plans, ended; /* timers: unfinished ones */
    uint64_t rows;                                 /* rows of every kind */
    uint64_t tree_rows, tree_bytes;                /* of the tree alone, on disk */
    uint64_t time_ms; /* engine time of the last change: wall ms, as far as no clock was set */
};

/* Checks a data directory that is not open, without changing it: every byte is readable and as it
 * was written, every reference has its target, and every counter matches what it counts. A
 * subprocess does the reading, because damaged data may crash it. Returns 0 and sets `*out`; or
 * returns BEL_ECORRUPT and sets `*why`, unless `why` is NULL, to what was found and where;
 * BEL_ENOTFOUND if the directory holds no engine's data; or an error of bel_engine_open(). */
BEL_CHECKED int bel_engine_check(const char *folder, struct bel_engine_report *out,
                                 struct bel_engine_why *why);

/* Like bel_engine_check(), before opening a directory, but only if the last engine did not close it
 * cleanly and the tree has at most `rows_max` rows, because all rows are read: 100,000 rows take
 * about 0.3 s. Otherwise, and if there is no data, returns 0 with `out->rows` 0. Damage that it
 * does not look for is found when a damaged page is used, see `is_checked`. */
BEL_CHECKED int bel_engine_check_if_left(const char *folder, uint64_t rows_max,
                                         struct bel_engine_report *out, struct bel_engine_why *why);

/* Called with one line, which ends in a newline and is valid until the function returns. A return
 * value other than 0 ends the dump. */
typedef int bel_engine_see(void *context, struct bel_view line);

/* Passes every row of a data directory that is not open to `see`, one line of JSON each, without
 * changing anything. Returns 0, the value that `see` returned, or an error of
 * bel_engine_check(). */
BEL_CHECKED int bel_engine_dump(const char *folder, bel_engine_see *see, void *context,
                                struct bel_engine_why *why);

BEL_END_DECLARATIONS
#endif
