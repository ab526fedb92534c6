/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVE_H
#define BEL_SERVER_SERVE_H

#include "server/store.h"

/* Runs belfry serve with one of the stores; argv[0] is the verb. Returns the exit status: 0, 1 on
 * failure, 2 for wrong arguments or settings. */
int bel__serve(int argc, char **argv, const struct bel_server_stores *stores);

#endif
