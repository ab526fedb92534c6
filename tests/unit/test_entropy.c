/* SPDX-License-Identifier: MIT */

/* The source is compiled in, with a getrandom() that returns fewer bytes on demand. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

static ssize_t scripted_getrandom(void *out, size_t bytes, unsigned flags);

#define getrandom scripted_getrandom
#include "core/entropy.c" /* NOLINT(bugprone-suspicious-include) */
#undef getrandom

#include "../check.h"

enum {
    INTERRUPTED = -1,
    BROKEN = -2,
};

static const int *script; /* result of each call: a number of bytes, or one of the above */
static unsigned calls;

static ssize_t scripted_getrandom(void *out, size_t bytes, unsigned flags)
{
    CHECK_EQ(flags, 0);
    if (script == NULL) return getrandom(out, bytes, flags);
    int act = script[calls++];
    errno = act == INTERRUPTED ? EINTR : ENOSYS;
    if (act < 0) return -1;
    size_t got = (size_t)act < bytes ? (size_t)act : bytes;
    memset(out, (int)calls, got);
    return (ssize_t)got;
}

static void play(const int *acts)
{
    script = acts;
    calls = 0;
}

static void the_system_fills_bytes_that_differ_each_time(void)
{
    uint8_t a[1024] = {0}, b[1024] = {0};
    play(NULL);
    CHECK(bel__entropy_fill(bel__entropy_system(), a, sizeof a) == 0);
    CHECK(bel__entropy_fill(bel__entropy_system(), b, sizeof b) == 0);
    CHECK(memcmp(a, b, sizeof a) != 0);
}

static void a_short_or_interrupted_read_is_continued(void)
{
    uint8_t got[6] = {0};
    const uint8_t want[6] = {1, 1, 3, 5, 5, 5};
    play((const int[]){2, INTERRUPTED, 1, INTERRUPTED, 99});
    CHECK(bel__entropy_fill(bel__entropy_system(), got, sizeof got) == 0);
    CHECK(memcmp(got, want, sizeof got) == 0);
    CHECK_EQ(calls, 5);
}

static void nothing_to_fill_asks_the_system_nothing(void)
{
    play((const int[]){BROKEN});
    CHECK(bel__entropy_fill(bel__entropy_system(), NULL, 0) == 0);
    CHECK_EQ(calls, 0);
}

static void a_system_without_entropy_is_an_error_and_sets_nothing(void)
{
    uint64_t number = 7;
    uint8_t byte;
    play((const int[]){BROKEN, BROKEN, BROKEN});
    CHECK(bel__entropy_fill(bel__entropy_system(), &byte, 1) == BEL_EIO);
    CHECK(bel__entropy_u64(bel__entropy_system(), &number) == BEL_EIO);
    CHECK_EQ(number, 7);
}

static void one_seed_is_one_history(void)
{
    struct bel_entropy_seeded a, b, c;
    uint64_t from_a = 0, from_b = 0, from_c = 0;
    bel__entropy_seed(&a, 1);
    bel__entropy_seed(&b, 1);
    bel__entropy_seed(&c, 2);
    for (int i = 0; i < 100; i++) {
        CHECK(bel__entropy_u64(&a.entropy, &from_a) == 0);
        CHECK(bel__entropy_u64(&b.entropy, &from_b) == 0);
        CHECK(bel__entropy_u64(&c.entropy, &from_c) == 0);
        CHECK_EQ(from_a, from_b);
        CHECK(from_a != from_c);
    }
}

/* The generator's published first outputs for the state 1, 2, 3, 4. */
static void the_seeded_source_is_the_generator_it_says(void)
{
    static const uint64_t want[] = {11520, 0, 1509978240, UINT64_C(1215971899390074240)};
    struct bel_entropy_seeded seeded;
    bel__entropy_seed(&seeded, 0);
    memcpy(seeded.state, (const uint64_t[]){1, 2, 3, 4}, sizeof seeded.state);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t got = 0;
        CHECK(bel__entropy_u64(&seeded.entropy, &got) == 0);
        CHECK_EQ(got, want[i]);
    }
}

int main(void)
{
    RUN(the_system_fills_bytes_that_differ_each_time);
    RUN(a_short_or_interrupted_read_is_continued);
    RUN(nothing_to_fill_asks_the_system_nothing);
    RUN(a_system_without_entropy_is_an_error_and_sets_nothing);
    RUN(one_seed_is_one_history);
    RUN(the_seeded_source_is_the_generator_it_says);
    return 0;
}
