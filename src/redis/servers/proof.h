/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_PROOF_H
#define BEL_REDIS_SERVERS_PROOF_H

/*
 * proof - under the durability `wait`, a change is answered when replicas have it.
 *
 *     script, script ... WAIT n ms     on the same connection: WAIT counts the replicas that have
 *                                      all that this connection has written
 *
 * Replies to changes are kept until the WAIT behind them has answered. One WAIT is under way at a
 * time and proves everything that was sent before it. If a server keeps an append-only file and
 * knows WAITAOF, the files of both must have the change.
 */

#include "redis/servers/state.h"

/* Keeps the reply to a change that the server has made, until it is proved. */
void bel__proof_keep(struct bel_server *server, struct bel_server_call *call,
                     const struct bel_redis_reply *reply);

/* Sends WAIT where changes have been sent since the last one. */
void bel__proof_ask(struct bel_servers *servers);

/* The connection is lost, or is about to be closed: what is not proved ends with BEL_EIO. */
void bel__proof_lose(struct bel_server *server);

/* Returns whether changes are refused, because it is known that replicas are missing. */
bool bel__proof_refuses(const struct bel_server *server, struct bel_why *why);

#endif
