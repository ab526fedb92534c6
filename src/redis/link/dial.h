/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_DIAL_H
#define BEL_REDIS_LINK_DIAL_H

/*
 * dial - from a host name or a path to a socket that is being connected: finds the addresses, and
 * tries them in turn.
 *
 *     err = bel__dial_begin(&dial, &why);              BEL_EBUSY: a lookup has begun
 *     err = bel__dial_resolve(&dial, &why);            when bel__dial_descriptor() is readable
 *     err = bel__dial_next(&dial, &stream, &why);      again, if this address was not good
 */

#include "redis/link/lookup.h"
#include "redis/link/stream.h"

#include "belfry/error.h"

#include "core/address.h"
#include "core/why.h"

#include <stddef.h>
#include <stdint.h>

struct bel_dial {
    char *host; /* read only: NULL: `path` */
    char *path; /* read only: NULL: `host` */
    uint16_t port;
    struct bel_name_lookup *lookup; /* this and all below is private; NULL: none is under way */
    struct bel_address addresses[BEL_NAME_ADDRESSES_MAX];
    size_t addresses_count, addresses_tried;
};

/* Initialises a dial with a host, or with a path if `host` is NULL. Returns 0; or BEL_EINVAL if the
 * path is too long, or BEL_ENOMEM. */
BEL_CHECKED int bel__dial_init(struct bel_dial *dial, const char *host, uint16_t port,
                               const char *path);

/* Frees the memory, and abandons a lookup. A zeroed dial is allowed. */
void bel__dial_finish(struct bel_dial *dial);

/* Begins to find the addresses. Returns 0 if they are known, BEL_EBUSY if a lookup is under way, or
 * BEL_ENOMEM and sets `*why`. */
BEL_CHECKED int bel__dial_begin(struct bel_dial *dial, struct bel_why *why);

/* Returns the descriptor of the lookup. */
int bel__dial_descriptor(const struct bel_dial *dial);

/* Takes the addresses from the lookup. Returns 0, BEL_EBUSY if it has not ended, or BEL_EIO and
 * sets `*why`. */
BEL_CHECKED int bel__dial_resolve(struct bel_dial *dial, struct bel_why *why);

/* Returns the number of addresses that were not tried. */
size_t bel__dial_left(const struct bel_dial *dial);

/* Begins to connect to the next address that does not fail at once. Returns 0; or BEL_EIO if no
 * address is left, and sets `*why` to the last failure, if there was one. */
BEL_CHECKED int bel__dial_next(struct bel_dial *dial, struct bel_stream *stream,
                               struct bel_why *why);

#endif
