/* SPDX-License-Identifier: MIT */

/*
 * SipHash by Aumasson and Bernstein, with two rounds per word and four at the end. Additions,
 * rotations and exclusive-ors mix four words of state. The input is read as little-endian words,
 * the last of which has the length in its top byte:
 *
 *     word 0 | word 1 | ... | remaining bytes, zeros, length mod 256
 *
 * Hash tables often use fewer rounds. This is the variant that has published test vectors and the
 * security margin its authors chose; keys here are a few words long.
 */
#include "core/siphash.h"

#include <assert.h>

enum {
    ROUNDS_A_WORD = 2,
    ROUNDS_AT_THE_END = 4,
};

struct state {
    uint64_t a, b, c, d;
};

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

/* On little-endian machines this compiles to a single load. */
static uint64_t load_word(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static uint64_t load_last(const uint8_t *p, size_t rest_bytes, size_t bytes)
{
    uint64_t word = (uint64_t)bytes << 56;
    assert(rest_bytes < 8);
    for (size_t i = 0; i < rest_bytes; i++) {
        word |= (uint64_t)p[i] << (8 * i);
    }
    return word;
}

static inline void mix(struct state *s, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        s->a += s->b;
        s->c += s->d;
        s->b = rotate_left(s->b, 13) ^ s->a;
        s->d = rotate_left(s->d, 16) ^ s->c;
        s->a = rotate_left(s->a, 32) + s->d;
        s->c += s->b;
        s->d = rotate_left(s->d, 21) ^ s->a;
        s->b = rotate_left(s->b, 17) ^ s->c;
        s->c = rotate_left(s->c, 32);
    }
}

static inline void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s, ROUNDS_A_WORD);
    s->a ^= word;
}

uint64_t bel__siphash(struct bel_siphash_key key, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    size_t rest_bytes = bytes % 8;
    uint64_t low = load_word(key.bytes), high = load_word(key.bytes + 8);
    assert(data != NULL || bytes == 0);

    struct state s = {
        low ^ UINT64_C(0x736f6d6570736575),
        high ^ UINT64_C(0x646f72616e646f6d),
        low ^ UINT64_C(0x6c7967656e657261),
        high ^ UINT64_C(0x7465646279746573),
    };
    for (size_t i = 0; i < bytes / 8; i++) {
        absorb(&s, load_word(at + 8 * i));
    }
    absorb(&s, load_last(rest_bytes == 0 ? NULL : at + (bytes - rest_bytes), rest_bytes, bytes));
    s.c ^= 0xff;
    mix(&s, ROUNDS_AT_THE_END);
    return s.a ^ s.b ^ s.c ^ s.d;
}
