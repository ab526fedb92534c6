/* SPDX-License-Identifier: MIT */
#ifndef BEL_LOCAL_NODE_LOCAL_NODE_H
#define BEL_LOCAL_NODE_LOCAL_NODE_H

/*
 * local_node - a node inside a program, for the clients of this program: sessions over a backend,
 * as a server has them, on a socket that only processes of the same user can reach.
 *
 *     client, crew ----> [ socket ] ----> session ----> backend
 *      (any thread)                  '----- thread of the node
 *
 *     err = bel__local_node_open(&options, &node, &why);
 *     err = bel_client_connect(bel__local_node_address(node), NULL, &client, &client_why);
 *     ...
 *     bel__local_node_stop(node);       no request is under way any more, as far as that can be
 *     ...close the backend...
 *     bel__local_node_destroy(node);
 *
 * The socket is in the abstract namespace of Linux: it leaves no file behind, and another user who
 * connects to it is refused.
 *
 * Threads: the backend belongs to the thread of the node from opening to stopping.
 */

#include "belfry/backend.h"
#include "belfry/clock.h"
#include "belfry/error.h"
#include "belfry/zone.h"
#include "core/why.h"
#include "session/session.h"

#include <stdint.h>

struct bel_local_node; /* opaque */

struct bel_local_node_options {
    struct bel_backend *backend;   /* borrowed, as are the next two; must have a descriptor */
    const struct bel_clock *clock; /* the system's */
    struct bel_zones *zones;       /* may be NULL */
    uint32_t payload_bytes_max;
    /* INFO, as of struct bel_service; NULL: none. Called on the thread of the node. */
    int (*info)(void *context, struct bel_view section, const struct bel_scope *scope,
                struct bel_buffer *out);
    void *context;
};

/* Starts the thread. Returns 0 and sets `*out`; or BEL_EIO or BEL_ENOMEM, and sets `why`. */
BEL_CHECKED int bel__local_node_open(const struct bel_local_node_options *options,
                                     struct bel_local_node **out, struct bel_why *why);

/* Returns the address for clients; valid until the node is destroyed. */
const char *bel__local_node_address(const struct bel_local_node *node);

/* Closes all connections and ends the thread. Requests that the backend has not answered within
 * STOP_MS_MAX are answered when it is closed. */
void bel__local_node_stop(struct bel_local_node *node);

/* Frees a node that was stopped; the backend must be closed. NULL is allowed. */
void bel__local_node_destroy(struct bel_local_node *node);

#endif
