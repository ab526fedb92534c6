/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_CALLS_H
#define BEL_REDIS_SERVERS_CALLS_H

/*
 * calls - the way of a call: to the server of its slot, to another one after a redirect, and to the
 * list of parked calls while its slot has no server or its server cannot execute it now.
 */

#include "redis/servers/state.h"

BEL_CHECKED int bel__calls_send(struct bel_servers *servers, struct bel_server_call *call);

/* Sends parked calls that need not wait any longer, and ends those that have waited too long.
 * Returns when to call it again. */
struct bel_mono bel__calls_pump(struct bel_servers *servers);

/* Parks the calls that a server was given and that do not belong there any more, unless they have
 * left. */
void bel__calls_take_back(struct bel_server *server);

/* When a connection is lost or there is another one: parks the calls that have not left, if the
 * server is a replica, under `wait` the changes, until it is known how many replicas it has, and
 * those that add, until it is known whether it evicts; and all that came after one of these. */
void bel__calls_take_unfit_back(struct bel_server *server);

/* Ends all parked calls with BEL_ECLOSED. */
void bel__calls_drop(struct bel_servers *servers);

#endif
