/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVER_H
#define BEL_SERVER_SERVER_H

/*
 * server - assembles and runs the parts: a store, a request tracker, sessions, a loop.
 */

#include "server/config.h"
#include "server/keys.h"
#include "server/logger.h"
#include "server/store.h"

/* The addresses of a started server, with the actual ports. */
struct bel_server_places {
    char resp[BEL_ADDRESS_BYTES];
    char http[BEL_ADDRESS_BYTES]; /* empty: no HTTP */
    const char *store_name;       /* of the next: "data" */
    char store[4096];             /* where the timers are, without secrets; empty: in memory */
    uint16_t resp_port, http_port;
};

struct bel_server_options {
    const struct bel_config *config; /* borrowed, like all below */
    const struct bel_server_store_kind *kind;
    struct bel_keys *keys; /* NULL: no authentication; SIGHUP reads them again */
    const struct bel_logger *log;
    const char *program; /* the path of this program, which is run to check the tree */
    /* Is called once, when clients can connect. Returns 0, or an error that ends the server. */
    int (*started)(const struct bel_server_places *places, const struct bel_config *config);
};

/* Runs a server until a signal or SHUTDOWN stops it. Returns 0; or an error, which was logged. */
BEL_CHECKED int bel__server_run(const struct bel_server_options *options);

#endif
