/* SPDX-License-Identifier: MIT */
#ifndef BEL_COPY_WHOLE_H
#define BEL_COPY_WHOLE_H

/*
 * whole - a timer as a copy has it, and a digest over the timers of a topic, in order.
 */

#include "belfry/timer.h"
#include "core/buffer.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BEL_WHOLE_BYTES_MAX = 80 << 20, /* the largest payload, and more */
};

/* Returns a timer as it arrives: a leased one is ready, what deliveries add is not in the headers,
 * and a count that older versions kept is settled. */
struct bel_timer bel__whole_of(const struct bel_timer *timer, bool has_group, bool has_resource);

/* A digest: `chain` depends on the order, `sum` does not. The caller initialises `scratch` for
 * BEL_WHOLE_BYTES_MAX bytes. */
struct bel_digest {
    uint64_t chain, sum;
    struct bel_buffer *scratch;
};

/* Adds a timer, which is whole. Returns 0, or BEL_ENOMEM. */
BEL_CHECKED int bel__digest_add(struct bel_digest *digest, const struct bel_timer *timer);

#endif
