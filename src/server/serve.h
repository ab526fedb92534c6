/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVE_H
#define BEL_SERVER_SERVE_H

/* Runs belfry serve; argv[0] is the verb. Returns the exit status: 0, 1 on failure, 2 for wrong
 * arguments or settings. */
int bel__serve(int argc, char **argv);

#endif
