/* SPDX-License-Identifier: MIT */

/*
 * The system source is getrandom(2). It may be interrupted before it starts and may return fewer
 * bytes after 256; in both cases the loop asks for the rest.
 *
 * The seeded source is xoshiro256** with its state filled by splitmix64, so that seeds that differ
 * in one bit give unrelated sequences. The bytes of each number are taken in little-endian order on
 * every machine, so that a seed gives the same sequence everywhere.
 */
#include "core/entropy.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

static int fill_from_system(struct bel_entropy *entropy, void *out, size_t bytes)
{
    uint8_t *at = out;
    (void)entropy;
    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return BEL_EIO;
        assert((size_t)got <= bytes);
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

struct bel_entropy *bel__entropy_system(void)
{
    static struct bel_entropy system = {fill_from_system};
    return &system;
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    assert(bits > 0 && bits < 64);
    return x << bits | x >> (64 - bits);
}

static uint64_t next_seeded(uint64_t state[static 4])
{
    uint64_t result = rotate_left(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate_left(state[3], 45);
    return result;
}

static int fill_from_seed(struct bel_entropy *entropy, void *out, size_t bytes)
{
    struct bel_entropy_seeded *seeded = (struct bel_entropy_seeded *)entropy;
    uint8_t *at = out;
    uint64_t number = 0;
    assert(entropy->fill == fill_from_seed);
    for (size_t i = 0; i < bytes; i++) {
        number = i % 8 == 0 ? next_seeded(seeded->state) : number >> 8;
        at[i] = (uint8_t)number;
    }
    return 0;
}

void bel__entropy_seed(struct bel_entropy_seeded *seeded, uint64_t seed)
{
    static_assert(offsetof(struct bel_entropy_seeded, entropy) == 0, "seeded is a source");
    seeded->entropy.fill = fill_from_seed;
    for (unsigned i = 0; i < 4; i++) { /* splitmix64 never returns four zeros in a row */
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        seeded->state[i] = z ^ z >> 31;
    }
}

int bel__entropy_fill(struct bel_entropy *entropy, void *out, size_t bytes)
{
    assert(entropy != NULL);
    assert(out != NULL || bytes == 0);
    return entropy->fill(entropy, out, bytes);
}

int bel__entropy_u64(struct bel_entropy *entropy, uint64_t *out)
{
    uint8_t bytes[8];
    int err = bel__entropy_fill(entropy, bytes, sizeof bytes);
    if (err) return err;
    uint64_t number = 0;
    for (unsigned i = 0; i < sizeof bytes; i++) {
        number |= (uint64_t)bytes[i] << (8 * i);
    }
    *out = number;
    return 0;
}
