/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_EMBEDDED_EMBEDDED_H
#define BEL_SERVER_EMBEDDED_EMBEDDED_H

/*
 * embedded - a durable engine in the process as the store of a server: a data directory, or memory.
 */

#include "server/store.h"

extern const struct bel_server_store_kind bel__server_embedded;

#endif
