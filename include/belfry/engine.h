/* SPDX-License-Identifier: MIT */
#ifndef BEL_ENGINE_H
#define BEL_ENGINE_H

/*
 * engine - durable timers in a program: kept through a crash, delivered at least once, never
 * early, and never after a cancel that was answered.
 *
 *     bel_engine_open(&(struct bel_engine_options){.folder = "data", .now = now}, &engine, &why);
 *     struct bel_backend *backend = bel_engine_backend(engine);
 *     bel_backend_submit(backend, &request);
 *     next = bel_backend_turn(backend, now);
 *
 * What can be asked of it is in belfry/backend.h. An engine reads no clock and has no loop: the
 * program says when it is, and calls a turn when there is something to do.
 *
 * Threads: an engine belongs to one thread. A folder belongs to one engine.
 */

#include "belfry/backend.h"
#include "belfry/error.h"
#include "belfry/stats.h"
#include "belfry/zone.h"

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct bel_engine; /* opaque */

/* Who waits for the disk. */
enum bel_engine_sync {
    BEL_ENGINE_SYNC_IN_TURN,   /* the turn: the best there is if a sync takes well under 1 ms */
    BEL_ENGINE_SYNC_IN_THREAD, /* a thread: answers leave in a later turn, see `wake` */
};

/* What an answer waits for, and what of it may be lost. The process may die in any of them: nothing
 * that was answered is lost. After a power cut all that comes back is what was there at some
 * moment: a beginning of what was answered, without holes. */
enum bel_engine_durability {
    BEL_ENGINE_DURABILITY_COMMIT,   /* the sync: nothing is lost */
    BEL_ENGINE_DURABILITY_INTERVAL, /* the write; a thread syncs within sync_interval_ms: what was
                                       answered in about that time before a power cut may be lost */
    BEL_ENGINE_DURABILITY_NONE,     /* the write; it is synced where the order on disk demands it,
                                       and when the engine is closed: all of it that is not in the
                                       tree yet may be lost */
};

struct bel_engine_options {
    const char *folder;          /* where it is kept; NULL: in memory, and forgotten at the end */
    struct bel_now now;          /* when it is opened */
    struct bel_zones *zones;     /* borrowed; NULL: there is no zone but UTC */
    uint32_t payload_bytes_max;  /* 0: BEL_PAYLOAD_BYTES_DEFAULT */
    uint32_t topics_max;         /* 0: 2^20 */
    uint32_t ready_max;          /* of a topic, in memory; the others wait; 0: 1,000,000 */
    enum bel_engine_sync sync;   /* with BEL_ENGINE_DURABILITY_COMMIT */
    void (*wake)(void *context); /* called by that thread: answers can leave, take a turn */
    void *context;
    enum bel_engine_durability durability;
    uint32_t sync_interval_ms; /* of BEL_ENGINE_DURABILITY_INTERVAL; 0: 1,000 */
};

/* What was found where, for a person. */
struct bel_engine_why {
    char text[256]; /* ends in 0; empty if there is nothing to say */
};

/* Opens an engine and recovers what there is. Returns 0 and sets `*out`; or returns BEL_ENOMEM,
 * BEL_EIO, BEL_ECORRUPT, BEL_EFULL for no space on the disk, BEL_EBUSY if another has the folder,
 * BEL_EUNSUPPORTED if a newer version wrote it, BEL_EINVAL for an option; and says in `*why`, which
 * may be NULL, what it was. */
BEL_CHECKED int bel_engine_open(const struct bel_engine_options *options, struct bel_engine **out,
                                struct bel_engine_why *why);

/* Closes an engine; NULL is allowed. Requests that it has are not answered. Leases stay, and
 * their time does not run until it is opened again. */
void bel_engine_close(struct bel_engine *engine);

/* The engine as a backend. It lives as long as the engine. */
struct bel_backend *bel_engine_backend(struct bel_engine *engine);

/* Counts that go on while the engine is open, and live as long. */
const struct bel_engine_stats *bel_engine_stats(const struct bel_engine *engine);

/* Begins to copy all that has been answered, to a folder that is not there or empty, while the
 * engine goes on: turns are taken as ever, and the copying is done by a thread. The copy can be
 * opened like any other folder. Returns 0; or BEL_EBUSY if one is under way, BEL_ECONFLICT if there
 * is something in the folder, BEL_EUNSUPPORTED for an engine in memory, BEL_EIO, BEL_ENOMEM; and
 * says in `*why`, which may be NULL, what it was. */
BEL_CHECKED int bel_engine_backup_begin(struct bel_engine *engine, const char *folder,
                                        struct bel_engine_why *why);

/* Sees how far it is, between two turns, and has to be called now and then for it to go on. Returns
 * BEL_EBUSY while it is under way; then, once, 0 if the copy is whole and durable, or why there is
 * none, and the folder can be removed; BEL_ENOTFOUND if none was begun. */
BEL_CHECKED int bel_engine_backup_poll(struct bel_engine *engine, struct bel_engine_why *why);

/* Both, for a program without a loop: returns when the copy is made, or cannot be. */
BEL_CHECKED int bel_engine_backup(struct bel_engine *engine, const char *folder,
                                  struct bel_engine_why *why);

/* What a check has looked at. */
struct bel_engine_report {
    uint64_t topics, timers, leases, plans, ended; /* timers: unfinished ones */
    uint64_t rows;                                 /* all there are, of every kind */
    uint64_t tree_rows, tree_bytes;                /* of the tree alone, on disk */
};

/* Checks the folder of an engine that is not open, and changes nothing in it: every byte that was
 * written can be read and is what was written, everything leads to where it should, and what is
 * counted is what there is. It is read by a process of its own, which may not survive the
 * damage. Returns 0 and sets `*out`; or BEL_ECORRUPT, and says in `*why`, which may be NULL, what
 * was found where; BEL_ENOTFOUND if there is no engine's data, and the errors of
 * bel_engine_open(). */
BEL_CHECKED int bel_engine_check(const char *folder, struct bel_engine_report *out,
                                 struct bel_engine_why *why);

/* The same before it is opened, but only if the engine that had it last has not closed it, and the
 * tree has at most `rows_max` rows, for they are all read: 100,000 take some 0.3 s. Else, and
 * if there is no data, it returns 0 and `out->rows` is 0. */
BEL_CHECKED int bel_engine_check_if_left(const char *folder, uint64_t rows_max,
                                         struct bel_engine_report *out, struct bel_engine_why *why);

/* Called with a line, which ends in a newline and is good until it returns. What it returns, if
 * not 0, ends the dump. */
typedef int bel_engine_see(void *context, struct bel_view line);

/* Shows every row in the folder of an engine that is not open, each as a line of JSON, and changes
 * nothing. Returns 0, what `see` returned, or as bel_engine_check() does. */
BEL_CHECKED int bel_engine_dump(const char *folder, bel_engine_see *see, void *context,
                                struct bel_engine_why *why);

#pragma GCC visibility pop
#endif
