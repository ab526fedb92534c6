/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_STREAM_H
#define BEL_REDIS_LINK_STREAM_H

/*
 * stream - a non-blocking socket that is being connected or is connected, with or without TLS.
 *
 * Functions that return an error also set `*why`.
 */

#include "redis/link/tls.h"

#include "belfry/error.h"

#include "core/address.h"
#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

enum {
    BEL_STREAM_PARTS_MAX = 64, /* of one write */
};

struct bel_stream {
    int fd;                      /* read only; -1: closed */
    struct bel_tls_session *tls; /* NULL: without TLS */
};

/* Initialises a closed stream. */
void bel__stream_init(struct bel_stream *stream);

/* Sets the address of a Unix socket. Returns 0, or BEL_EINVAL if the path is too long. */
BEL_CHECKED int bel__stream_path(const char *path, struct bel_address *out);

/* Begins to connect. Returns 0 if that is under way: the descriptor becomes writable when it has
 * ended, see bel__stream_connected(). Or returns BEL_EIO, and the stream is closed. */
BEL_CHECKED int bel__stream_connect(struct bel_stream *stream, const struct bel_address *address,
                                    struct bel_why *why);

/* Returns 0 if the stream is connected, or BEL_EIO. The descriptor must be writable. */
BEL_CHECKED int bel__stream_connected(struct bel_stream *stream, struct bel_why *why);

/* Begins TLS on a connected stream, with `host` as the name that the certificate must have. Returns
 * 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__stream_secure(struct bel_stream *stream, const struct bel_tls *tls,
                                   const char *host, struct bel_why *why);

/* Goes on with the handshake with `host`. Returns 0 when the stream is secure, BEL_EBUSY, or
 * BEL_EIO. */
BEL_CHECKED int bel__stream_handshake(struct bel_stream *stream, const char *host,
                                      struct bel_why *why);

/* Returns whether the last BEL_EBUSY is over when the descriptor is writable. */
bool bel__stream_wants_write(const struct bel_stream *stream);

/* Reads up to `room` bytes. Returns 0 and sets `*out_count`, at least 1; BEL_EBUSY if there is
 * nothing to read now; BEL_ECLOSED if the other side has closed; or BEL_EIO. */
BEL_CHECKED int bel__stream_read(struct bel_stream *stream, void *out, size_t room,
                                 size_t *out_count, struct bel_why *why);

/* Writes the beginning of some parts, at most BEL_STREAM_PARTS_MAX. Returns 0 and sets `*out_count`
 * to the number of bytes, at least 1; BEL_EBUSY if nothing can be written now; or BEL_EIO. */
BEL_CHECKED int bel__stream_write(struct bel_stream *stream, const struct iovec *parts,
                                  size_t parts_count, size_t *out_count, struct bel_why *why);

/* Sends bytes that were written and are still in memory. Returns 0 if there are none, BEL_EBUSY, or
 * BEL_EIO. */
BEL_CHECKED int bel__stream_flush(struct bel_stream *stream, struct bel_why *why);

/* Closes a stream; a closed stream is allowed. The poller must not watch it any more. */
void bel__stream_close(struct bel_stream *stream);

#endif
