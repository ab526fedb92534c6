/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_DIRECTORY_H
#define BEL_STORE_DIRECTORY_H

/*
 * directory - tells a data directory from one where a store can be created, and from other
 * directories, before anything in it is changed.
 */

#include "core/why.h"
#include "store/io/io.h"

/* Returns 0 if the directory has a superblock, of a store or of an unfinished backup; BEL_ENOTFOUND
 * if a store can be created, because it is empty, or an earlier creation was interrupted;
 * BEL_ECORRUPT if it has parts of a store but no superblock; BEL_ECONFLICT if it has files of
 * somebody else; or BEL_EIO, BEL_ENOMEM. Sets `*why`, except for 0 and BEL_ENOTFOUND. */
BEL_CHECKED int bel__directory_look(struct bel_io *io, struct bel_why *why);

/* Locks a directory, and creates nothing in it. Returns 0; BEL_EBUSY if it is in use; or another
 * error of struct bel_io. Sets `*why`, which names the directory as `name`, and the process that
 * uses it. */
BEL_CHECKED int bel__directory_lock(struct bel_io *io, const char *name, struct bel_why *why);

/* Creates the file LOCK in a locked directory that is to have a store. Returns as
 * bel__directory_lock(). */
BEL_CHECKED int bel__directory_sign(struct bel_io *io, const char *name, struct bel_why *why);

#endif
