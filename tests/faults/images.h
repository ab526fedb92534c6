/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_FAULTS_IMAGES_H
#define BEL_TESTS_FAULTS_IMAGES_H

/*
 * images - what a disk may have after a power cut, from a recording of what was done to it.
 *
 *     record:  write log-1   sync log-1   write tree/data.mdb   rename ...   sync ...
 *                                        ^
 *              cut here: what was synced, and of the rest what chance likes
 *
 * What was written and not synced may be there in pieces: none of it, all of it, pages of 4 KiB,
 * sectors of 512 bytes, each with the chance of the image. Names that were made, changed or removed
 * are durable with the sync of their folder; of those that are not, the first few are kept.
 */

#include "shim.h"

enum images_lie {
    IMAGES_HONEST,
    IMAGES_NO_SYNC,      /* no sync counts: a control, which must be noticed */
    IMAGES_NO_LOG_SYNC,  /* those of the log do not */
    IMAGES_NO_TREE_SYNC, /* those of the tree do not, but for the page that names the root */
    IMAGES_NO_NAME_SYNC, /* those of folders do not */
    IMAGES_LIES,
};

struct images; /* opaque */

/* A disk without the folder; or with what is in it now, all of it durable. */
struct images *images_create(enum images_lie lie);
struct images *images_load(const char *folder, enum images_lie lie);
void images_destroy(struct images *images);

/* Does to it what an event did. */
void images_apply(struct images *images, const struct shim_event *event);

/* Makes a folder of what is there if the power is cut in the middle of an event, or before any if
 * that is NULL. Chance moves on. */
void images_cut(const struct images *images, const struct shim_event *during, const char *folder,
                uint64_t *chance);

#endif
