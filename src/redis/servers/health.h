/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_HEALTH_H
#define BEL_REDIS_SERVERS_HEALTH_H

/*
 * health - what an operator, or a full disk, can do to a server that runs: another eviction policy,
 * and writes to its disk that fail. Each primary is asked when its connection becomes ready and
 * every `health_ms` after that, by one INFO; not at all if that is 0.
 *
 * While a server may evict, calls that add something are refused: it could delete them, or any
 * other timer. While it cannot write to its disk, it refuses changes itself.
 */

#include "redis/servers/state.h"

/* The connection of a server has become ready. */
void bel__health_begin(struct bel_server *server);

/* Asks the servers whose turn it is. Returns when to call it again. */
struct bel_mono bel__health_ask(struct bel_servers *servers);

/* A server has replied with an error. */
void bel__health_hear(struct bel_server *server, const struct bel_value *error);

/* A server has carried out a change: whatever its disk does, it refuses none. */
void bel__health_wrote(struct bel_server *server);

/* Returns whether calls that add something have to wait, because it is not known how a server is
 * that has become ready just now. */
static inline bool bel__health_is_open(const struct bel_server *server)
{
    return server->is_new;
}

/* Returns whether calls that add something are refused, and why. `why` may be NULL. */
bool bel__health_refuses(const struct bel_server *server, struct bel_why *why);

/* Says what is wrong with a server; empty if nothing is. */
void bel__health_say(const struct bel_server *server, struct bel_why *why);

#endif
