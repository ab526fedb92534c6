/* SPDX-License-Identifier: MIT */
#ifndef BEL_TESTS_RANDOM_H
#define BEL_TESTS_RANDOM_H

/*
 * Random numbers for property tests: a seed makes a case, and the same seed makes the same case
 * again. A test runs N seeds, twenty times as many with BEL_TEST_LONG set, or only the seed in its
 * argument. With sanitizers the seeds are N + 1 to 2 N instead of 1 to N, so that the builds do not
 * repeat each other:
 *
 *     struct cases cases = cases_of(argc, argv, 2000);
 *     for (uint64_t seed = cases.first; seed <= cases.last; seed++) run_case(seed);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct cases {
    uint64_t first, last; /* seeds, both included */
};

static inline uint64_t random_u64(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns a number from 0 to below `end`. The bias is too small to matter for a test. */
static inline uint64_t random_below(uint64_t *state, uint64_t end)
{
    return random_u64(state) % end;
}

/* Returns a number with a uniformly distributed magnitude: as likely from 4 to 8 as above 2^63. */
static inline uint64_t random_magnitude(uint64_t *state)
{
    uint64_t shift = random_below(state, 64); /* a separate statement, because compilers differ
                                                 in the order of evaluation */
    return random_u64(state) >> shift;
}

static inline void random_fill(uint64_t *state, void *out, size_t bytes)
{
    uint8_t *byte = out;
    for (size_t i = 0; i < bytes; i++) {
        byte[i] = (uint8_t)random_u64(state);
    }
}

/* A number of cases, or twenty times as many with BEL_TEST_LONG. */
static inline uint64_t cases_count(uint64_t count)
{
    bool is_long = getenv("BEL_TEST_LONG") != NULL; /* NOLINT(concurrency-mt-unsafe) */
    return is_long ? 20 * count : count;
}

static inline struct cases cases_of(int argc, char **argv, uint64_t count)
{
    if (argc > 1) {
        uint64_t seed = strtoull(argv[1], NULL, 0);
        return (struct cases){seed, seed};
    }
    uint64_t end = cases_count(count);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return (struct cases){end + 1, 2 * end};
#else
    return (struct cases){1, end};
#endif
}

#endif
