/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SHIM_H
#define BEL_TESTS_FAULTS_SHIM_H

/*
 * shim - intercepts the file operations of a program; records them, fails them, or kills the
 * process.
 *
 *     store/io/system.c -----.
 *                            +--> pwrite, writev, fdatasync, renameat, ... ---> the kernel
 *     LMDB ------------------'              |
 *                                     plan, recording
 *
 * The program defines the functions that change files, and is linked so that libraries bind to
 * them, too. Only files below the watched folder count. Every write, truncation, sync and change of
 * a name there is an event, numbered from 1. Calls of different threads are serialized, so that
 * events have an order.
 *
 * Threads: set the plan before threads are started.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shim_kind {
    SHIM_WRITE,
    SHIM_TRUNCATE, /* to `offset` bytes */
    SHIM_SYNC,     /* of a file or a folder */
    SHIM_LOSS,     /* a failed sync: its pages may never be written */
    SHIM_CREATE,
    SHIM_FOLDER,
    SHIM_RENAME,
    SHIM_REMOVE,
    SHIM_SAY, /* shim_say() was called */
};

/* At which point of an event the process is killed. */
enum shim_moment {
    SHIM_BEFORE,
    SHIM_HALFWAY, /* a write has half of its bytes; like SHIM_BEFORE for other events */
    SHIM_MOMENTS,
};

struct shim_plan {
    bool skips_syncs;      /* syncs are recorded but not made: for kills, not for power cuts */
    uint64_t kill_at;      /* number of the event; 0: none */
    enum shim_moment when; /* point of that event */
    uint64_t full_at;      /* from this event on the disk is full: ENOSPC; 0: never */
    uint64_t fail_sync_at; /* number of the sync, from 1, that fails with EIO; 0: none */
    bool fails_tree;       /* counts syncs of the tree instead of the log */
    bool is_recording;
};

enum {
    SHIM_NAME_BYTES = 48,
};

struct shim_event {
    enum shim_kind kind;
    bool is_durable;                                 /* a write with O_DSYNC */
    char name[SHIM_NAME_BYTES], to[SHIM_NAME_BYTES]; /* relative to the folder; "" is the folder */
    uint64_t offset;
    size_t bytes;
    void *data;
};

/* Starts to watch a folder, whose parent must exist. Drops the previous recording. */
void shim_watch(const char *folder, const struct shim_plan *what);
void shim_stop(void);

/* Ends the failures, but keeps watching. */
void shim_heal(void);

/* Return the number of events and of syncs so far, and whether the planned sync has failed. */
uint64_t shim_event_count(void);
bool shim_has_failed(void);

/* Adds data to the recording, e.g. a reply that was sent. */
void shim_say(const void *data, size_t bytes);

/* The recording. The shim owns it until it is released. */
struct shim_record {
    struct shim_event *events;
    size_t count, room;
};
struct shim_record shim_take_record(void);
void shim_release_record(struct shim_record *what);

#endif
