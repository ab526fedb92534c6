/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_SHIM_H
#define BEL_TESTS_FAULTS_SHIM_H

/*
 * shim - what stands between a program and the kernel, and breaks when it is told.
 *
 *     our log, io_system.c --.
 *                            +--> pwrite, writev, fdatasync, renameat, ... ---> the kernel
 *     the library of trees --'              |
 *                                     plan, recording
 *
 * The program defines the calls by which files are changed, and is linked so that libraries bind
 * to these too. Only files below the folder that is watched count. Every write, truncation, sync
 * and change of a name there is an event, and has a number from 1 on. The calls are made one
 * after the other, whatever the threads do, so that events have an order.
 *
 * Threads: the plan is made before there are any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shim_kind {
    SHIM_WRITE,
    SHIM_TRUNCATE, /* to `offset` bytes */
    SHIM_SYNC,     /* of a file or a folder */
    SHIM_LOSS,     /* a sync that failed: what it was to write may never get there */
    SHIM_CREATE,
    SHIM_FOLDER,
    SHIM_RENAME,
    SHIM_REMOVE,
    SHIM_SAY, /* shim_say(): somebody was told something */
};

/* Where in an event the process is killed. */
enum shim_moment {
    SHIM_BEFORE,
    SHIM_HALFWAY, /* a write has half of its bytes; other events as before */
    SHIM_MOMENTS,
};

struct shim_plan {
    bool skips_syncs;      /* they are noted and not made: it is a kill, not a power cut */
    uint64_t kill_at;      /* the event; 0: none */
    enum shim_moment when; /* in it */
    uint64_t fail_sync_at; /* the sync, from 1 on, that fails with EIO; 0: none */
    bool fails_tree;       /* it is one of the tree's that is counted, not of the log's */
    bool is_recording;
};

enum {
    SHIM_NAME_BYTES = 48,
};

struct shim_event {
    enum shim_kind kind;
    bool is_durable;                                 /* a write that is synced when it returns */
    char name[SHIM_NAME_BYTES], to[SHIM_NAME_BYTES]; /* below the folder; "" is the folder */
    uint64_t offset;
    size_t bytes;
    void *data;
};

/* Watches a folder, whose parent is there, from now on. Forgets what was before. */
void shim_watch(const char *folder, const struct shim_plan *what);
void shim_stop(void);

/* Goes on watching, and nothing fails any more. */
void shim_heal(void);

/* Events and syncs so far; whether the sync that was to fail has done so. */
uint64_t shim_event_count(void);
bool shim_has_failed(void);

/* Notes in the recording that somebody was told something. */
void shim_say(const void *data, size_t bytes);

/* What was recorded; it is the shim's, until it is released. */
struct shim_record {
    struct shim_event *events;
    size_t count, room;
};
struct shim_record shim_take_record(void);
void shim_release_record(struct shim_record *what);

#endif
