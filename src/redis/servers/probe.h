/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_PROBE_H
#define BEL_REDIS_SERVERS_PROBE_H

/*
 * probe - asks a server for its role, while calls wait for the answer: a replica may become a
 * primary, and a primary that lacks replicas may get them.
 */

#include "redis/servers/state.h"

/* A connection has become ready. */
void bel__probe_begin(struct bel_server *server);

/* Asks the servers of which something must be known. Returns when to call it again. */
struct bel_mono bel__probe_all(struct bel_servers *servers);

#endif
