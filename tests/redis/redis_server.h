/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_SERVER_H
#define BEL_TESTS_REDIS_SERVER_H

/*
 * redis_server - a redis-server of the test's own, on a Unix socket in a new directory. It keeps
 * nothing on disk, and ends with the test, whatever happens to the test.
 */

#include <stdbool.h>
#include <sys/types.h>

struct redis_server {
    pid_t pid;
    char directory[64];
    char path[96]; /* of the socket */
};

/* Starts a server and waits until it accepts connections. Returns false if the machine has no
 * redis-server. */
bool redis_server_start(struct redis_server *server);
void redis_server_stop(struct redis_server *server);

#endif
