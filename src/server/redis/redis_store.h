/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_REDIS_REDIS_STORE_H
#define BEL_SERVER_REDIS_REDIS_STORE_H

/*
 * redis_store - servers of Redis or Valkey as the store of a server, which any number of servers
 * share.
 */

#include "server/store.h"

extern const struct bel_server_store_kind bel__server_redis;

#endif
