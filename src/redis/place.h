/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_PLACE_H
#define BEL_REDIS_PLACE_H

/*
 * place - where a store on Redis is, as people give it: a URL, a file with its password and a
 * namespace.
 */

#include "redis/redis.h"

#include "core/why.h"

enum {
    BEL_REDIS_SHOWN_BYTES = 1024,
};

struct bel_redis_place {
    const char *url;           /* borrowed, as are the next two */
    const char *password_file; /* NULL or empty: the URL has it, if there is one */
    const char *name_space;    /* the same; then "belfry" */
};

/* Checks the texts alone. Returns 0; or BEL_EINVAL or BEL_ENOMEM and sets `why`, without password
 * and host. */
BEL_CHECKED int bel__redis_place_check(const struct bel_redis_place *place, struct bel_why *why);

/* Fills the options, and reads the files that the place names. Returns 0, and the caller must call
 * bel__redis_forget(); or an error as bel__redis_parse(). */
BEL_CHECKED int bel__redis_place_parse(const struct bel_redis_place *place,
                                       struct bel_redis_options *out, struct bel_why *why);

/* Prints the URL for people, without credentials and options; empty if it is not valid. */
void bel__redis_place_print(const struct bel_redis_place *place, char out[BEL_REDIS_SHOWN_BYTES]);

#endif
