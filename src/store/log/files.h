/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_FILES_H
#define BEL_STORE_LOG_FILES_H

/*
 * files - creates and opens the files of a log. Private to the log.
 */

#include "store/log/log.h"

enum {
    BEL_LOG_NAME_BYTES = 16,
};

/* Writes the file name of a segment: "log-0". */
void bel__log_name(uint32_t number, char out[BEL_LOG_NAME_BYTES]);

/* Reads the superblock, or creates the log if there is none. Then opens all segments and checks
 * their sizes. Returns 0; or BEL_ECORRUPT, BEL_EUNSUPPORTED, BEL_EIO, BEL_EFULL, BEL_ENOMEM, and
 * sets `*why`. */
BEL_CHECKED int bel__log_open_files(struct bel_log *log, const struct bel_log_options *options,
                                    struct bel_why *why);

/* Checks that nobody has deleted or changed the superblock. Returns 0; or BEL_EIO, and sets the
 * `why` of the log. An error of the system is no answer, and ignored. */
BEL_CHECKED int bel__log_check_superblock(struct bel_log *log);

#endif
