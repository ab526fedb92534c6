/* SPDX-License-Identifier: MIT */
#ifndef BEL_RESP_READER_H
#define BEL_RESP_READER_H

/*
 * reader - an incremental parser of RESP2 and RESP3 replies.
 *
 *     err = bel__reader_scan(&reader, data, bytes);         BEL_EBUSY: read more, scan again
 *     err = bel__reader_build(&reader, data, &value);       after the scan returned 0
 *     ... value ...
 *     consume reader.bytes; bel__reader_reset(&reader);
 *
 * `data` always starts with the first byte of the reply. Between two scans it may grow and move. A
 * scan continues where the last one ended.
 */

#include "belfry/error.h"
#include "belfry/value.h"

enum {
    BEL_READER_DEPTH_MAX = 8,         /* nesting of lists; the server's replies have up to 5 */
    BEL_READER_LINE_BYTES = 64 << 10, /* the longest status, error or number */
};

struct bel_reader {
    size_t bytes;                /* read only: length of the reply; 0 until it is complete */
    size_t bytes_max;            /* read only: the largest reply allowed, in bytes */
    size_t values_max;           /* read only: the largest reply allowed, in values */
    bool is_aside;               /* read only: not a reply but a pushed message or attributes */
    size_t at, searched, values; /* this and all below is private */
    unsigned depth;
    uint64_t left[BEL_READER_DEPTH_MAX]; /* outstanding values, by depth */
    struct bel_value *nodes;
    size_t nodes_capacity;
};

/* Initializes a reader. Allocates nothing. */
void bel__reader_init(struct bel_reader *reader, size_t bytes_max, size_t values_max);
void bel__reader_finish(struct bel_reader *reader);

/* Prepares for the next reply. Invalidates the values that were built. */
void bel__reader_reset(struct bel_reader *reader);

/* Scans more bytes. Returns 0 and sets `bytes` and `is_aside` if the reply is complete; BEL_EBUSY
 * if it is not; BEL_EINVAL if it is not valid RESP or nested too deeply; BEL_EFULL if it exceeds
 * `bytes_max` or `values_max`. */
BEL_CHECKED int bel__reader_scan(struct bel_reader *reader, const uint8_t *data, size_t bytes);

/* Builds the values of a complete reply. The reader owns them, and their texts point into `data`.
 * Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__reader_build(struct bel_reader *reader, const uint8_t *data,
                                  const struct bel_value **out);

#endif
