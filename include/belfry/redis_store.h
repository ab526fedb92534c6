/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_STORE_H
#define BEL_REDIS_STORE_H

/*
 * redis_store - durable timers in Redis or Valkey servers, for programs that use the library: the
 * store that `belfry serve --store redis://` has, without a server of Belfry.
 *
 *     struct bel_redis_store_options options = {.url = "redis://10.0.0.7"};
 *     err = bel_redis_store_open(&options, &store, &why);
 *     err = bel_driver_start(bel_redis_store_backend(store), NULL, &driver);
 *     err = bel_driver_schedule(driver, "mail", "hello", BEL_VIEW("Good morning"), 5000);
 *     ...
 *     bel_driver_destroy(driver);
 *     bel_redis_store_close(store);
 *
 * The program becomes a node: any number of nodes, and of servers of Belfry, share the timers of a
 * namespace. None of them has state that another one would miss. Timers follow the clock of Redis.
 *
 * belfry/backend.h lists the commands. Jobs, groups, resources and limits of concurrency fail with
 * BEL_EUNSUPPORTED. Here BEL_EIO is not permanent: the servers did not answer in time, or
 * refused. `why` says whether nothing was changed or the outcome is unknown, and names the reason.
 *
 * Without a driver: poll bel_backend_descriptor(), and take a turn when it is readable and when
 * struct bel_next says so.
 *
 * Threads: a store belongs to one thread, that of its backend.
 */

#include "belfry/backend.h"
#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/zone.h"

#include <stdint.h>

BEL_BEGIN_DECLARATIONS

struct bel_redis_store; /* opaque */

/* When a change is acknowledged. */
enum bel_redis_store_durability {
    BEL_REDIS_STORE_ASYNC, /* the primary has it; a failover may lose the latest changes */
    BEL_REDIS_STORE_WAIT,  /* replicas have it, too. With fewer replicas: BEL_EIO */
};

/* What the examination of the servers has found. */
struct bel_redis_store_finding {
    const char *about;  /* a word: "persistence", "replicas" ... */
    const char *what;   /* what was found */
    const char *advice; /* what to do about it */
};

struct bel_redis_store_options {
    const char *url;           /* redis://, rediss://, redis+sentinel://, redis+cluster://, unix://:
                                   docs/OPERATIONS.md of the source has the parts of a URL */
    const char *password_file; /* its first line is the password; NULL: as the URL says */
    const char *name_space;    /* prefix of all keys; NULL: as the URL says, or "belfry" */
    struct bel_zones *zones;   /* borrowed; NULL: the only zone is UTC */
    uint32_t payload_bytes_max; /* 0: BEL_PAYLOAD_BYTES_DEFAULT */
    enum bel_redis_store_durability durability;
    uint32_t replicas; /* of BEL_REDIS_STORE_WAIT; 0: as many as are connected at the start */
    uint32_t wait_ms;  /* how long opening waits for servers that cannot be reached; 0: 5 s */
    /* Called by bel_redis_store_open() for each finding that is a warning; may be NULL. */
    void (*warn)(void *context, const struct bel_redis_store_finding *finding);
    void *context;
};

/* What went wrong, for people. */
struct bel_redis_store_why {
    char text[BEL_WHY_BYTES]; /* ends in 0; never has a password */
};

/* Examines the servers and opens a store. Blocks until the servers have answered. Returns 0 and
 * sets `*out`; or returns BEL_EINVAL for an invalid option or URL, BEL_EBUSY if the servers could
 * not be reached in time, BEL_ECONFLICT if they must not be used (a wrong password, an untrusted
 * certificate, a replica, an evicting maxmemory-policy ...), BEL_EIO if a file of the URL cannot
 * be read, BEL_EUNSUPPORTED or BEL_ENOMEM. On failure sets `*why` unless `why` is NULL. */
BEL_CHECKED int bel_redis_store_open(const struct bel_redis_store_options *options,
                                     struct bel_redis_store **out, struct bel_redis_store_why *why);

/* Closes a store; NULL is allowed. A driver on it must be destroyed before. Requests that were not
 * answered are answered with BEL_ECLOSED. Leases go on, by the clock of Redis. */
void bel_redis_store_close(struct bel_redis_store *store);

/* Returns the backend of a store, which is valid as long as the store. */
struct bel_backend *bel_redis_store_backend(struct bel_redis_store *store);

BEL_END_DECLARATIONS
#endif
