/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_REDIS_H
#define BEL_REDIS_REDIS_H

/*
 * redis - durable timers in a Redis or Valkey server, as a backend that any number of nodes share.
 *
 * Every change is one script that the server runs. A node computes what scripts cannot, such as a
 * backoff, and keeps only what it waits for. ADR 28 says why.
 */

#include "belfry/backend.h"
#include "belfry/zone.h"

#include "core/entropy.h"
#include "redis/link/link.h"

#include <stdbool.h>

struct bel_redis;

enum {
    BEL_REDIS_NAMESPACE_BYTES_MAX = 64,
};

struct bel_redis_options {
    char name_space[BEL_REDIS_NAMESPACE_BYTES_MAX + 1]; /* before every key; must not have { or } */
    struct bel_redis_link_options link;
    struct bel_entropy *entropy; /* NULL: the system's */
    struct bel_zones *zones;     /* borrowed; NULL: plans are in UTC only */
    uint32_t payload_bytes_max;  /* 0: BEL_PAYLOAD_BYTES_DEFAULT */
    bool is_virtual; /* scripts take the time from the turns, not from the server; only one node may
                        use the namespace */
};

/* Opens a backend. Does not wait for the server. Returns 0, BEL_ENOMEM, BEL_EINVAL or BEL_EIO. */
BEL_CHECKED int bel__redis_open(const struct bel_redis_options *options, struct bel_now now,
                                struct bel_redis **out);

/* Closes a backend. Requests that were not answered are answered with BEL_ECLOSED. */
void bel__redis_close(struct bel_redis *redis);

struct bel_backend *bel__redis_backend(struct bel_redis *redis);

/* Returns whether nothing is under way: no request has begun that is not a waiting claim, and every
 * command was answered. For tests with a virtual clock. */
bool bel__redis_is_idle(const struct bel_redis *redis);

#endif
