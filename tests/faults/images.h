/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_IMAGES_H
#define BEL_TESTS_FAULTS_IMAGES_H

/*
 * images - makes disk images as they may be after a power cut, from a recording of file operations.
 *
 *     record:  write log-1   sync log-1   write tree/data.mdb   rename ...   sync ...
 *                                        ^
 *              cut here: all that was synced, and a random part of the rest
 *
 * Unsynced writes may survive in pieces: none, all, pages of 4 KiB or sectors of 512 bytes, each
 * with the probability of the image. Created, renamed and removed names are durable after the sync
 * of their folder; of the unsynced changes of names, the first few survive.
 */

#include "shim.h"

enum images_lie {
    IMAGES_HONEST,
    IMAGES_NO_SYNC,      /* a disk that ignores all syncs: a control that must fail */
    IMAGES_NO_LOG_SYNC,  /* ignores syncs of the log */
    IMAGES_NO_TREE_SYNC, /* ignores syncs of the tree, except of its meta pages */
    IMAGES_NO_NAME_SYNC, /* ignores syncs of folders */
    IMAGES_LIES,
};

struct images; /* opaque */

/* Create a disk without the folder; or with its current content, all of it durable. */
struct images *images_create(enum images_lie lie);
struct images *images_load(const char *folder, enum images_lie lie);
void images_destroy(struct images *images);

/* Applies an event to the disk. */
void images_apply(struct images *images, const struct shim_event *event);

/* Writes a folder as it may be if the power is cut during an event, or between events if that is
 * NULL. Advances the random generator. */
void images_cut(const struct images *images, const struct shim_event *during, const char *folder,
                uint64_t *chance);

#endif
