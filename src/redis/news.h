/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_NEWS_H
#define BEL_REDIS_NEWS_H

/*
 * news - how a node gets to know what other nodes have done: which topics there are, and when
 * something happens in them earlier than it has known.
 */

#include "redis/node.h"

enum {
    BEL_NEWS_PATTERN_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 32,
};

/* Writes the pattern of all channels of a namespace, for servers that are not a Cluster. */
void bel__news_pattern(const char *name_space, char out[BEL_NEWS_PATTERN_BYTES]);

/* Creates the news of a node, before its servers are opened. Returns NULL if memory has run out. */
struct bel_news *bel__news_create(struct bel_redis *node);

/* Destroys the news; NULL is allowed. The servers must be closed. */
void bel__news_destroy(struct bel_news *news);

/* Asks again what was not answered. Returns when the next turn is needed. */
struct bel_mono bel__news_turn(struct bel_news *news, struct bel_mono now);

/* Sets what the servers need to know of their owner. */
void bel__news_fill(struct bel_news *news, struct bel_servers_owner *out);

#endif
