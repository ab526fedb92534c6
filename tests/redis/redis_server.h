/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_SERVER_H
#define BEL_TESTS_REDIS_SERVER_H

/*
 * redis_server - a redis-server or valkey-server of the test's own, on a Unix socket in a new
 * directory. It keeps nothing on disk, and ends with the test, whatever happens to the test.
 */

#include <stdbool.h>
#include <stddef.h>
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

/* Sends a line, such as "INFO commandstats", and writes the text of the reply to `out`. */
void redis_server_ask(const struct redis_server *server, const char *line, char *out, size_t room);

/* Returns how many times the server has executed a command, e.g. "evalsha". */
unsigned long redis_server_calls(const struct redis_server *server, const char *command);

#endif
