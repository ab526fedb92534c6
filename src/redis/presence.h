/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_PRESENCE_H
#define BEL_REDIS_PRESENCE_H

/*
 * presence - which nodes use a namespace now.
 *
 * Every node that is not quiet listens to the channels of its namespace, so a message that nobody
 * understands is received by all of them, and the reply says how many there are. Nothing is kept in
 * the store: a node that was killed is gone with its connection. The names of connections say where
 * the nodes are, and in which database, which channels do not know.
 *
 * A node that connects again in this moment is not seen.
 */

#include "redis/redis.h"

#include "core/why.h"

enum {
    BEL_PRESENCE_NAME_BYTES = 256, /* of a connection */
    BEL_PRESENCE_TEXT_BYTES = 200,
    BEL_PRESENCE_SHOWN = 3,
    BEL_PRESENCE_CHANNEL_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 16,
};

struct bel_presence {
    size_t count;
    char text[BEL_PRESENCE_TEXT_BYTES]; /* "process 4711 on web-1, process 12 on web-2"; empty: the
                                           server does not tell, or there are none */
};

/* Writes the name of the connections of a node in this process: belfry:namespace:host:process. */
void bel__presence_name(const char *name_space, char out[BEL_PRESENCE_NAME_BYTES]);

/* A message that means nothing to a node, as the words of a command, and its channel. */
struct bel_presence_message {
    char channel[BEL_PRESENCE_CHANNEL_BYTES];
    const char *words[4]; /* PUBLISH or SPUBLISH, channel, text; NULL at the end */
};

void bel__presence_message(const struct bel_redis_options *options,
                           struct bel_presence_message *out);

/* Asks for the nodes of a namespace; waits for the servers for `wait_ms`. Returns 0; or, and sets
 * `*why`, BEL_EBUSY if they cannot be reached, BEL_EINVAL, BEL_EIO or BEL_ENOMEM. */
BEL_CHECKED int bel__presence_look(const struct bel_redis_options *options, uint32_t wait_ms,
                                   struct bel_presence *out, struct bel_why *why);

#endif
