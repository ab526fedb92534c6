/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_GREETER_H
#define BEL_REDIS_GREETER_H

/*
 * greeter - what a node sends first on every new connection: it loads the scripts, asks which
 * topics there are, and subscribes to the wake-ups of all of them.
 */

#include "redis/node.h"

/* Creates a greeter. Returns NULL if memory has run out. */
struct bel_greeter *bel__greeter_create(struct bel_redis *node);

/* Destroys a greeter; NULL is allowed. The link must be closed. */
void bel__greeter_destroy(struct bel_greeter *greeter);

/* The connection is ready. */
void bel__greeter_send(struct bel_greeter *greeter);

/* A message of a channel has arrived. */
void bel__greeter_hear(struct bel_greeter *greeter, const struct bel_value *message);

#endif
