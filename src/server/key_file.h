/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_KEY_FILE_H
#define BEL_SERVER_KEY_FILE_H

/*
 * key_file - reads the key file, at start and again on SIGHUP.
 */

#include "server/keys.h"
#include "server/logger.h"

/* Reads a whole file of at most `bytes_max` bytes, or one byte more, so that the caller can see
 * that the file is too large. Sets `*mode` to its mode bits, unless that is NULL. The caller frees
 * the text. Returns NULL and sets errno on failure. */
char *bel__file_read(const char *path, size_t bytes_max, unsigned *mode, size_t *bytes);

/* Reads a key file. If `*keys` is NULL, creates the keys; otherwise replaces them. A file that
 * everybody can write is refused; one that everybody can read is logged. Returns 0; or BEL_EIO,
 * BEL_ENOMEM or BEL_EINVAL, sets `why`, and leaves the keys unchanged. */
BEL_CHECKED int bel__key_file_read(const char *path, const struct bel_logger *log,
                                   struct bel_keys **keys, struct bel_why *why);

#endif
