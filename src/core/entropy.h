/* SPDX-License-Identifier: MIT */
#ifndef BEL_CORE_ENTROPY_H
#define BEL_CORE_ENTROPY_H

/*
 * entropy - the door through which chance comes in.
 *
 * Two sources behind one interface. The system's is for everything that nobody may
 * guess: tokens, hash keys, ids. A seeded one gives the same numbers for the same
 * seed, for tests and the simulator; it is NOT cryptographic, and a few numbers of
 * it give away all the others.
 *
 *     struct bel_entropy *entropy = bel__entropy_system();
 *     err = bel__entropy_fill(entropy, token, sizeof token);
 *
 * Threads: the system's source may be used by any; a seeded one belongs to one.
 */

#include "belfry/error.h"

#include <stddef.h>
#include <stdint.h>

struct bel_entropy {
    int (*fill)(struct bel_entropy *entropy, void *out, size_t bytes);
};

/* A seeded source. The fields are private; hand on `&seeded->entropy`. */
struct bel_entropy_seeded {
    struct bel_entropy entropy;
    uint64_t state[4];
};

/* The system's source. It lives as long as the program. */
struct bel_entropy *bel__entropy_system(void);

/* Makes a source whose numbers follow from `seed`. There is nothing to release. */
void bel__entropy_seed(struct bel_entropy_seeded *seeded, uint64_t seed);

/*
 * Each returns 0, or BEL_EIO if the system has no entropy to give. A seeded source
 * does not fail. After a failure the filled bytes are worth nothing.
 */

/* Fills `bytes` bytes, of which there may be none. */
BEL_CHECKED int bel__entropy_fill(struct bel_entropy *entropy, void *out, size_t bytes);

/* Any 64-bit number, each as likely as the other. */
BEL_CHECKED int bel__entropy_u64(struct bel_entropy *entropy, uint64_t *out);

/* A number from 0 to below `end`, each as likely as the other; `end` is not 0. */
BEL_CHECKED int bel__entropy_below(struct bel_entropy *entropy, uint64_t end, uint64_t *out);

#endif
