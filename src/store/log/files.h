/* SPDX-License-Identifier: MIT */
#ifndef BEL_STORE_LOG_FILES_H
#define BEL_STORE_LOG_FILES_H

/*
 * log_files - making the files of a log, and opening them. Private to the log.
 */

#include "store/log/log.h"

enum {
    BEL_LOG_NAME_BYTES = 16,
};

/* The name of a segment's file. */
void bel__log_name(uint32_t number, char out[BEL_LOG_NAME_BYTES]);

/* Reads the superblock, and makes the log if there is none. Then opens all segments, whose
 * sizes must be right. Returns 0; or BEL_ECORRUPT, BEL_EUNSUPPORTED, BEL_EIO, BEL_EFULL,
 * BEL_ENOMEM, and says why. */
BEL_CHECKED int bel__log_open_files(struct bel_log *log, const struct bel_log_options *options,
                                    struct bel_why *why);

#endif
