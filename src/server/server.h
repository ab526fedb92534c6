/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVER_H
#define BEL_SERVER_SERVER_H

/*
 * server - the parts put together: an engine, a tracker in front of it, sessions, a loop.
 */

#include "server/config.h"
#include "server/keys.h"
#include "server/logger.h"

/* Where a server that has started can be reached; ports that were 0 are known now. */
struct bel_server_places {
    char resp[BEL_ADDRESS_BYTES];
    char http[BEL_ADDRESS_BYTES]; /* empty: nowhere */
    char data[4096];              /* empty: in memory */
    uint16_t resp_port, http_port;
};

struct bel_server_options {
    const struct bel_config *config; /* borrowed, as is the rest */
    const struct bel_keys *keys;     /* NULL: everybody may do all */
    const struct bel_logger *log;
    /* Called once, when clients can come. Returns 0, or an error that ends the server. */
    int (*started)(const struct bel_server_places *places, const struct bel_config *config);
};

/* Runs a server until it is told to stop. Returns 0; or an error, which was logged. */
BEL_CHECKED int bel__server_run(const struct bel_server_options *options);

#endif
