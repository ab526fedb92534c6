/* SPDX-License-Identifier: MIT */
#ifndef BEL_LOCAL_NODE_REDIS_NODE_H
#define BEL_LOCAL_NODE_REDIS_NODE_H

/*
 * redis_node - a node on Redis inside a program: the servers are examined, then a local node runs
 * over a backend on them.
 */

#include "core/why.h"
#include "redis/place.h"

#include <stdint.h>

struct bel_redis_node; /* opaque */

/* Opens a node, and waits for its servers for `wait_ms` at most. Returns 0 and sets `*out`.
 * Otherwise sets `why` and returns BEL_EINVAL if the place is not valid, BEL_EBUSY if the servers
 * cannot be reached, BEL_ECONFLICT if they must not be used; or BEL_EIO, BEL_ENOMEM or
 * BEL_EUNSUPPORTED. */
BEL_CHECKED int bel__redis_node_open(const struct bel_redis_place *place, uint32_t wait_ms,
                                     struct bel_redis_node **out, struct bel_why *why);

/* Returns the address for clients of this program; valid until the node is closed. */
const char *bel__redis_node_address(const struct bel_redis_node *node);

/* Closes a node; its clients are closed before. NULL is allowed. */
void bel__redis_node_close(struct bel_redis_node *node);

#endif
