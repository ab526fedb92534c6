/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_SENTINEL_H
#define BEL_REDIS_SERVERS_SENTINEL_H

/*
 * sentinel - finds the primary: its address is that which more than half of the Sentinels of the
 * options name.
 *
 * They are asked at the start, while the primary cannot be reached or says that it is a replica,
 * and for a while after one of them has announced that the primary has changed. So the list should
 * name all Sentinels, at least three.
 */

#include "redis/servers/state.h"

BEL_CHECKED int bel__sentinels_open(struct bel_servers *servers);
void bel__sentinels_close(struct bel_servers *servers);

/* Asks the Sentinels, if that is needed. Returns when to call it again. */
struct bel_mono bel__sentinels_ask(struct bel_servers *servers);

/* Connects to the primary that the Sentinels name. */
void bel__sentinels_follow(struct bel_servers *servers);

/* Returns why the connection to a Sentinel has failed; empty if none has. */
const char *bel__sentinels_why(const struct bel_servers *servers);

/* Returns whether no question is under way or needed. */
bool bel__sentinels_are_idle(const struct bel_servers *servers);

#endif
