/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_CLUSTER_H
#define BEL_REDIS_SERVERS_CLUSTER_H

/*
 * cluster - the map of a Cluster: which server has which slot, as CLUSTER SLOTS says.
 *
 * A map is asked for at the start, after MOVED or the loss of a connection, while a slot has no
 * server, and every now and then if there are channels. Any server may answer, also a replica; its
 * answer may be old, and MOVED corrects it.
 */

#include "redis/servers/state.h"

/* Lets calls and connections follow a new map. Returns whether there was one. */
bool bel__cluster_follow(struct bel_servers *servers);

/* Asks for a map, if one is wanted. Returns when to call it again. */
struct bel_mono bel__cluster_ask(struct bel_servers *servers);

/* Returns whether every slot has a server whose connection is ready. */
bool bel__cluster_is_ready(const struct bel_servers *servers);

#endif
