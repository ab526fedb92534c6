/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_ORIGIN_H
#define BEL_REDIS_ORIGIN_H

/*
 * origin - notices that the data of a namespace is gone: after FLUSHALL, SWAPDB, or a restart of a
 * server that has kept nothing, all timers are missing and every command succeeds.
 *
 * A key beside the registry of topics has a random text, which the first node makes that does not
 * find one. A node that finds another text than before, or none, has lost its data.
 *
 *     bel__origin_init(&origin, name_space);
 *     bel__origin_look(&origin, redis, now);      one GET; not before the reply to the last one
 *     if (origin.losses != losses) ...
 *
 * In a Cluster, only the data of the primary that has the registry is watched.
 */

#include "redis/redis.h"

#include "core/buffer.h"

enum {
    BEL_ORIGIN_TEXT_BYTES = 48,
    BEL_ORIGIN_KEY_BYTES = BEL_REDIS_NAMESPACE_BYTES_MAX + 16,
    BEL_ORIGIN_LOOK_MS = 5000, /* how often to look */
};

struct bel_origin {
    uint64_t losses;                  /* read only: how many times the data was found to be gone */
    char text[BEL_ORIGIN_TEXT_BYTES]; /* read only: of the key; empty: not known yet */
    struct bel_server_call call;      /* this and all below is private */
    struct bel_redis *redis;
    struct bel_buffer command;
    char key[BEL_ORIGIN_KEY_BYTES];
    char made[BEL_ORIGIN_TEXT_BYTES]; /* a new one */
    bool is_under_way;
};

void bel__origin_init(struct bel_origin *origin, const char *name_space);
void bel__origin_finish(struct bel_origin *origin);

/* Compares the text of the key, or makes the key. Must be finished after the backend is closed. */
void bel__origin_look(struct bel_origin *origin, struct bel_redis *redis, struct bel_mono now);

#endif
