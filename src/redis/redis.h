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
#include "redis/servers/servers.h"

#include <stdbool.h>

struct bel_redis;

/* After so many bytes of payloads and headers a claim gets no more, nor does a page of a list. */
#define BEL_REDIS_LOAD_BYTES_MAX ((size_t)1 << 20)

enum {
    BEL_REDIS_NAMESPACE_BYTES_MAX = 64,
    BEL_REDIS_KEY_BYTES = 256, /* of a key in a message; a longer one is cut */
};

struct bel_redis_options {
    char name_space[BEL_REDIS_NAMESPACE_BYTES_MAX + 1]; /* before every key; must not have { or } */
    struct bel_servers_options servers;
    struct bel_entropy *entropy; /* NULL: the system's */
    struct bel_zones *zones;     /* borrowed; NULL: plans are in UTC only */
    uint32_t payload_bytes_max;  /* 0: BEL_PAYLOAD_BYTES_DEFAULT */
    /* For a copy: scripts take the time from the turns, in which nothing has to happen, and other
     * nodes hear nothing of new topics and earlier times. */
    bool is_quiet;
    bool is_virtual; /* scripts take the time from the turns, not from the server; only one node may
                        use the namespace */
};

/*
 * Fills the options with what the URL of a store says, src/redis/link/url.h describes it; all other
 * fields become 0, and the namespace "belfry" if the URL names none. Returns 0, and the caller must
 * call bel__redis_forget() after the backend is closed. Otherwise `*out` is unchanged and `*why` is
 * the reason, without password and host: BEL_EINVAL, BEL_EIO if a file cannot be read, or
 * BEL_ENOMEM. Mode, master and hosts are in out->servers; durability and replicas are not part of a
 * URL, and can be set there.
 */
BEL_CHECKED int bel__redis_parse(const char *text, size_t bytes, struct bel_redis_options *out,
                                 struct bel_why *why);

/* Frees what bel__redis_parse() has allocated; zeroed options are allowed. */
void bel__redis_forget(struct bel_redis_options *options);

/* Opens a backend. Does not wait for the server. Returns 0, BEL_ENOMEM, BEL_EINVAL or BEL_EIO. */
BEL_CHECKED int bel__redis_open(const struct bel_redis_options *options, struct bel_now now,
                                struct bel_redis **out);

/* Closes a backend. Requests that were not answered are answered with BEL_ECLOSED. */
void bel__redis_close(struct bel_redis *redis);

struct bel_backend *bel__redis_backend(struct bel_redis *redis);

/* Sends a call of the caller's to the servers, among those of the backend, and as
 * bel__servers_send(). It is sent in the next turn. */
BEL_CHECKED int bel__redis_send(struct bel_redis *redis, struct bel_server_call *call,
                                struct bel_mono now);

/* Returns whether a backend on Redis knows a verb. */
bool bel__redis_does(enum bel_verb verb);

/* Returns the servers that a backend uses, to tell of them. */
const struct bel_servers *bel__redis_servers(const struct bel_redis *redis);

/* The requests that servers have refused with an error that is not about the request, such as
 * MISCONF or WRONGTYPE. */
struct bel_redis_refusals {
    uint64_t count;
    char why[BEL_WHY_BYTES];       /* of the last one */
    char key[BEL_REDIS_KEY_BYTES]; /* of another type than it should have; empty: none was found */
    bool is_looking;               /* for such a key */
    struct bel_mono look_again;    /* not before; until then `key` stays */
};

const struct bel_redis_refusals *bel__redis_refusals(const struct bel_redis *redis);

/* Returns whether nothing is under way: no request has begun that is not a waiting claim, and every
 * command was answered. For tests with a virtual clock. */
bool bel__redis_is_idle(const struct bel_redis *redis);

#endif
