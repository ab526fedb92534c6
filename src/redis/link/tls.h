/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_TLS_H
#define BEL_REDIS_LINK_TLS_H

/*
 * tls - TLS 1.2 or later, the client's side, on non-blocking sockets.
 *
 *     err = bel__tls_open(&options, &tls, &why);                 certificates; once for all links
 *     err = bel__tls_begin(tls, fd, "redis.example.org", &session, &why);
 *     err = bel__tls_handshake(session, host, &why);             again after BEL_EBUSY
 *     ... bel__tls_read(), bel__tls_write(), bel__tls_flush() ...
 *     bel__tls_end(session);
 *
 * The certificate of the server must be valid for the host, and be signed by a trusted authority.
 *
 * A function that returns BEL_EBUSY waits for the socket: until it is writable if
 * bel__tls_wants_write(), otherwise until it is readable. Other errors set `*why`.
 */

#include "belfry/error.h"

#include "core/why.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

struct bel_tls;         /* opaque: settings and certificates */
struct bel_tls_session; /* opaque: one connection */

struct bel_tls_options {
    const char *ca,
        *ca_dir;            /* trusted certificates, a file and a folder; both NULL: the system's */
    const char *cert, *key; /* files with a certificate of the client and its key; NULL: none */
    bool is_insecure;       /* the certificate of the server is not checked */
};

/* Reads the certificates. Returns 0 and sets `*out`; or BEL_EINVAL if a file cannot be used, or
 * BEL_ENOMEM. A key that needs a passphrase cannot be used. */
BEL_CHECKED int bel__tls_open(const struct bel_tls_options *options, struct bel_tls **out,
                              struct bel_why *why);

/* Frees the settings, which no session may use any more; NULL is allowed. */
void bel__tls_close(struct bel_tls *tls);

/* Begins a session on a connected socket, which stays the caller's. Returns 0 and sets `*out`, or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__tls_begin(const struct bel_tls *tls, int fd, const char *host,
                               struct bel_tls_session **out, struct bel_why *why);

/* Ends a session and tells the other side, if that does not block; NULL is allowed. */
void bel__tls_end(struct bel_tls_session *session);

/* Returns 0 when the session is secure, BEL_EBUSY, or BEL_EIO; `host` as at the begin, for the
 * message. */
BEL_CHECKED int bel__tls_handshake(struct bel_tls_session *session, const char *host,
                                   struct bel_why *why);

bool bel__tls_wants_write(const struct bel_tls_session *session);

/* Read and write like bel__stream_read() and bel__stream_write(). A byte that is written may still
 * be in memory: bel__tls_flush() returns 0 if none is, or BEL_EBUSY or BEL_EIO. */
BEL_CHECKED int bel__tls_read(struct bel_tls_session *session, void *out, size_t room,
                              size_t *out_count, struct bel_why *why);
BEL_CHECKED int bel__tls_write(struct bel_tls_session *session, const struct iovec *parts,
                               size_t parts_count, size_t *out_count, struct bel_why *why);
BEL_CHECKED int bel__tls_flush(struct bel_tls_session *session, struct bel_why *why);

#endif
