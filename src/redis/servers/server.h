/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_SERVERS_SERVER_H
#define BEL_REDIS_SERVERS_SERVER_H

/*
 * server - one server: its address and its connection.
 *
 * Connections are opened and closed only between the two halves of a turn, because the poller does
 * not allow that while it runs.
 */

#include "redis/servers/state.h"

/* Finds the server of an address, or adds it without a connection. Returns NULL if memory has run
 * out. `host` NULL: the path of the options. */
struct bel_server *bel__server_at(struct bel_servers *servers, const char *host, uint16_t port);

/* Opens the connection, if it is closed. Returns 0, BEL_EINVAL or BEL_ENOMEM. */
BEL_CHECKED int bel__server_open(struct bel_server *server);

/* Closes the connection; its calls end. */
void bel__server_close(struct bel_server *server);

/* Closes the connection and removes the server. No slot may have it. */
void bel__server_remove(struct bel_server *server);

/* Connects to another address from now on. Calls that have not left go there. Returns 0 or
 * BEL_ENOMEM. */
BEL_CHECKED int bel__server_move(struct bel_server *server, const char *host, uint16_t port);

/* Sends the owner's first commands; for a connection that has become ready. */
void bel__server_greet(struct bel_server *server);

/* Ends a call that is in no list. */
void bel__server_call_end(struct bel_server_call *call, const struct bel_redis_reply *reply);

bool bel__server_is_ready(const struct bel_server *server);

/* Prints the address of a server. */
void bel__server_print(const struct bel_server *server, char out[BEL_SERVER_NAME_BYTES]);

/* Under `wait`: returns whether too few replicas are connected, or it is not known how many. */
bool bel__server_lacks_replicas(const struct bel_server *server);

#endif
