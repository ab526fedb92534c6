/* SPDX-License-Identifier: MIT */
#ifndef BEL_REDIS_LINK_LOOKUP_H
#define BEL_REDIS_LINK_LOOKUP_H

/*
 * lookup - finds the addresses of a host name without blocking its caller.
 *
 *     err = bel__name_lookup_start("redis.example.org", 6379, &lookup);
 *     ...                                       until its descriptor is readable
 *     err = bel__name_lookup_take(lookup, addresses, ADDRESSES_MAX, &count, &why);
 *     bel__name_lookup_drop(lookup);
 *
 * Threads: a lookup belongs to one thread; its own thread ends by itself.
 */

#include "belfry/error.h"

#include "core/address.h"
#include "core/why.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BEL_NAME_ADDRESSES_MAX = 16, /* others of a name are not used */
};

struct bel_name_lookup; /* opaque: shared with a thread */

/* Parses an IPv4 or IPv6 address, which needs no lookup. Returns 0 and sets `*out`; or returns
 * BEL_EINVAL. */
BEL_CHECKED int bel__name_lookup_numeric(const char *host, uint16_t port, struct bel_address *out);

/* Starts a thread that finds the addresses of `host`. Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel__name_lookup_start(const char *host, uint16_t port,
                                       struct bel_name_lookup **out);

/* Returns a descriptor that is readable when the lookup has ended. */
int bel__name_lookup_descriptor(const struct bel_name_lookup *lookup);

/* Takes the addresses, at least 1 and at most BEL_NAME_ADDRESSES_MAX. Returns 0 and sets `*out`
 * and `*out_count`; BEL_EBUSY if the lookup has not ended; or BEL_EIO and sets `*why`. */
BEL_CHECKED int bel__name_lookup_take(struct bel_name_lookup *lookup,
                                      struct bel_address out[BEL_NAME_ADDRESSES_MAX],
                                      size_t *out_count, struct bel_why *why);

/* Frees a lookup; NULL is allowed. The memory of one that has not ended is freed by its thread. */
void bel__name_lookup_drop(struct bel_name_lookup *lookup);

#endif
