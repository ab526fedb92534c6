/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ENTROPY_H
#define BEL_CORE_ENTROPY_H

/*
 * entropy - random numbers, from the system or from a seed.
 *
 * The system source is for everything that must be unpredictable: tokens, hash keys, ids. A seeded
 * source repeats the same numbers for the same seed, for tests and the simulator. It is NOT
 * cryptographic: a few of its numbers reveal all the others.
 *
 *     struct bel_entropy *entropy = bel__entropy_system();
 *     err = bel__entropy_fill(entropy, token, sizeof token);
 *
 * Threads: any thread may use the system source; a seeded source belongs to one thread.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

struct bel_entropy {
    int (*fill)(struct bel_entropy *entropy, void *out, size_t bytes);
};

/* A seeded source. The fields are private; pass `&seeded->entropy`. */
struct bel_entropy_seeded {
    struct bel_entropy entropy;
    uint64_t state[4];
};

/* Returns the system source, which is valid until the program ends. */
struct bel_entropy *bel__entropy_system(void);

/* Initialises a source with a seed. There is nothing to free. */
void bel__entropy_seed(struct bel_entropy_seeded *seeded, uint64_t seed);

/*
 * Each function returns 0, or BEL_EIO if the system has no entropy. A seeded source does not fail.
 * After a failure the contents of the output are undefined.
 */

/* Fills `bytes` bytes, which may be 0. */
BEL_CHECKED int bel__entropy_fill(struct bel_entropy *entropy, void *out, size_t bytes);

/* Sets `*out` to a uniformly distributed 64-bit number. */
BEL_CHECKED int bel__entropy_u64(struct bel_entropy *entropy, uint64_t *out);

#endif
