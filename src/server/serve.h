/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_SERVE_H
#define BEL_SERVER_SERVE_H

/* belfry serve: argv[0] is the verb. Returns what the program exits with: 0, 1 if it failed, 2 if
 * it was told wrong. */
int bel__serve(int argc, char **argv);

#endif
