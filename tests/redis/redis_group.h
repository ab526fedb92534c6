/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_REDIS_GROUP_H
#define BEL_TESTS_REDIS_GROUP_H

/*
 * redis_group - servers of the test's own that belong together, on free ports of the loopback: a
 * Cluster, or a primary with replicas and Sentinels. Each has a directory of its own, keeps nothing
 * on disk, and ends with the test, whatever happens to the test.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    GROUP_SERVERS_MAX = 8,
    GROUP_URL_BYTES = 256,
    GROUP_REPLY_BYTES = 64 << 10,
};

struct group_server {
    pid_t pid; /* 0: does not run */
    uint16_t port, bus_port;
    char directory[64];
};

struct redis_group {
    struct group_server servers[GROUP_SERVERS_MAX]; /* primaries come first, Sentinels last */
    size_t count, primaries, sentinels;
    bool is_cluster;
    const char *clock_library; /* of the first server; NULL: none */
    unsigned ahead_s;
    char url[GROUP_URL_BYTES];
};

/* Starts a Cluster of three primaries with one replica each; `spare`: and a primary without slots.
 * Waits until it serves. Returns false if the machine has no such server. */
bool group_start_cluster(struct redis_group *group, bool has_spare);

/* Starts a Cluster of three primaries and no replicas. If there is a library, the clock of the
 * first primary is ahead by some seconds. */
bool group_start_primaries(struct redis_group *group, const char *clock_library, unsigned ahead_s);

/* Starts a primary with two replicas, and three Sentinels that watch them as "belfry". Returns
 * false if the machine has no such server. */
bool group_start_sentinels(struct redis_group *group);

/* Starts a primary with replicas. The URL is that of the primary. */
bool group_start_replicas(struct redis_group *group, size_t replicas);

void group_stop(struct redis_group *group);

/* End a server at once; start it again with the same ports, and without its data. */
void group_kill(struct redis_group *group, size_t index);
void group_restart(struct redis_group *group, size_t index);

/* Sends a line, such as "CLUSTER INFO", to a server and returns the text of the reply, which lasts
 * until the next call; NULL if the server does not answer. Errors begin with '-'. */
const char *group_ask(const struct redis_group *group, size_t index, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sends a line that must succeed. */
void group_tell(const struct redis_group *group, size_t index, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Finds a key of a slot. Returns false if the server has none. */
bool group_key_of(const struct redis_group *group, size_t index, unsigned slot, char *out,
                  size_t room);

/* Lets a server stand still, or go on. */
void group_stand_still(const struct redis_group *group, size_t index, bool is_still);

/* Waits until the reply to a line contains a text. */
void group_await(const struct redis_group *group, size_t index, const char *line, const char *text);

/* Returns the index of the primary that has a slot. */
size_t group_primary_of(const struct redis_group *group, unsigned slot);

/* Lets the replica of a primary that is gone take over, without a vote. Returns its index. */
size_t group_take_over(struct redis_group *group, size_t primary);

#endif
