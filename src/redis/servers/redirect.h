/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_REDIRECT_H
#define BEL_REDIS_SERVERS_REDIRECT_H

/*
 * redirect - what an error reply says about where or when a call must be sent again.
 *
 *     MOVED 3999 127.0.0.1:6381     the slot has another server from now on
 *     ASK 3999 127.0.0.1:6381       only this call goes there, after ASKING
 *     TRYAGAIN, CLUSTERDOWN ...     later
 *     READONLY                      the server is a replica now
 *
 * A server that replies with one of these has not executed the command.
 */

#include "belfry/value.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_REDIRECT_HOST_BYTES = 256, /* with the final 0 */
};

enum bel_redirect_kind {
    BEL_REDIRECT_NONE, /* an error of the command itself */
    BEL_REDIRECT_MOVED,
    BEL_REDIRECT_ASK,
    BEL_REDIRECT_LATER,  /* the server is busy or loading */
    BEL_REDIRECT_MOVING, /* later: the slot is being moved, and a key is not there */
    BEL_REDIRECT_DOWN,   /* later, perhaps from another server: a part of the Cluster is down */
    BEL_REDIRECT_REPLICA,
};

struct bel_redirect {
    enum bel_redirect_kind kind;
    uint16_t slot, port;                /* MOVED, ASK */
    char host[BEL_REDIRECT_HOST_BYTES]; /* empty: the host of the server that has replied */
};

/* Reads an error reply. A malformed MOVED or ASK is BEL_REDIRECT_NONE. */
void bel__redirect_read(const struct bel_value *error, struct bel_redirect *out);

#endif
