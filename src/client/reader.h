/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLIENT_READER_H
#define BEL_CLIENT_READER_H

/*
 * reader - replies out of bytes that come in pieces, in RESP2 and RESP3.
 *
 *     err = bel__reader_scan(&reader, data, bytes);         BEL_EBUSY: come back with more
 *     err = bel__reader_build(&reader, data, &value);       0: the reply is whole
 *     ... value ...
 *     consume reader.bytes; bel__reader_reset(&reader);
 *
 * `data` always starts with the reply; with each scan there is more of it, maybe elsewhere in
 * memory. A scan goes on where the last one ended.
 */

#include "belfry/client.h"

enum {
    BEL_READER_DEPTH_MAX = 8,         /* lists in lists; the server's own have 5 */
    BEL_READER_LINE_BYTES = 64 << 10, /* of a status, an error or a number */
};

struct bel_reader {
    size_t bytes;     /* read only: of the reply, when it is whole */
    size_t bytes_max; /* read only, and the next: what is allowed of one reply */
    size_t values_max;
    bool is_aside;               /* read only: whole, but no answer: something that was pushed */
    size_t at, searched, values; /* private, as is all the rest */
    unsigned depth;
    uint64_t left[BEL_READER_DEPTH_MAX]; /* values that are still to come, by depth */
    struct bel_value *nodes;
    size_t nodes_capacity;
};

/* Makes a reader that has no memory yet. */
void bel__reader_init(struct bel_reader *reader, size_t bytes_max, size_t values_max);
void bel__reader_finish(struct bel_reader *reader);

/* Goes on to the next reply. What was built is gone. */
void bel__reader_reset(struct bel_reader *reader);

/* Looks at more. Returns 0 if the reply is whole and sets `bytes` and `is_aside`; BEL_EBUSY if it
 * is not; BEL_EINVAL if it is no reply, or too deep; BEL_EFULL if it says that it is larger than
 * allowed. */
BEL_CHECKED int bel__reader_scan(struct bel_reader *reader, const uint8_t *data, size_t bytes);

/* Makes values of a reply that is whole. They are the reader's, and their texts are in `data`.
 * Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__reader_build(struct bel_reader *reader, const uint8_t *data,
                                  const struct bel_value **out);

#endif
