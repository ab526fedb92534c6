/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLOCK_H
#define BEL_CLOCK_H

/*
 * clock - the three clocks, the only place where Belfry reads the time.
 *
 * Each of the three times has its own type, so that the compiler rejects mixing them:
 *
 *               runs in suspend   can be set   use
 *     bel_mono  no                no           how long a program has worked
 *     bel_boot  yes               no           delays and deadlines
 *     bel_wall  yes               yes          dates; never for a delay
 *
 * Nothing else in Belfry asks the system for the time. A loop reads its clock once per turn and
 * passes the time to the functions that it calls, which can therefore be tested with any time:
 *
 *     struct bel_boot now = bel_clock_boot(clock);
 *     err = bel_boot_add(now, 30 * SECOND_NS, &due);
 *
 * Threads: any thread may read a clock. Only one thread at a time may move a fake clock.
 */

#include "belfry/declare.h"
#include "belfry/error.h"

#include <stdint.h>

BEL_BEGIN_DECLARATIONS

#define BEL_NEVER UINT64_MAX /* not an instant: later than all instants */

/* Time since the machine started, excluding time in suspend. */
struct bel_mono {
    uint64_t ns;
};

/* Time since the machine started, including time in suspend. */
struct bel_boot {
    uint64_t ns;
};

/* Time since 1970-01-01T00:00:00Z, without leap seconds; negative before that. */
struct bel_wall {
    int64_t ms;
};

/* A clock. To implement one, make this the first member and set all three functions. */
struct bel_clock {
    struct bel_mono (*mono)(const struct bel_clock *clock); /* never goes back */
    struct bel_boot (*boot)(const struct bel_clock *clock); /* never goes back */
    struct bel_wall (*wall)(
        const struct bel_clock *clock); /* goes back when the clock is set back */
};

struct bel_mono bel_clock_mono(const struct bel_clock *clock);
struct bel_boot bel_clock_boot(const struct bel_clock *clock);
struct bel_wall bel_clock_wall(const struct bel_clock *clock);

/* Returns the system clock, which is valid until the program ends. */
const struct bel_clock *bel_clock_system(void);

/*
 * Add a delay to a time. Return 0 and set `*out`; or return BEL_ERANGE and leave `*out` unchanged
 * if the result cannot be represented. BEL_NEVER is never a result; wall times end at INT64_MAX.
 */
BEL_CHECKED int bel_mono_add(struct bel_mono now, uint64_t delay_ns, struct bel_mono *out);
BEL_CHECKED int bel_boot_add(struct bel_boot now, uint64_t delay_ns, struct bel_boot *out);
BEL_CHECKED int bel_wall_add(struct bel_wall now, uint64_t delay_ms, struct bel_wall *out);

/*
 * A fake clock stands still until it is moved. Moving a time past the end of its range is a bug of
 * the caller.
 */
struct bel_clock_fake; /* opaque: shared by threads */

/* Creates a fake clock with the given wall time; mono and boot start at 0. Returns 0 and sets
 * `*out`, or returns BEL_ENOMEM and leaves `*out` unchanged. */
BEL_CHECKED int bel_clock_fake_create(struct bel_wall wall, struct bel_clock_fake **out);

/* Frees a fake clock; NULL is allowed. */
void bel_clock_fake_destroy(struct bel_clock_fake *fake);

/* Returns the fake clock as a bel_clock, which is valid as long as the fake clock. */
const struct bel_clock *bel_clock_fake_clock(const struct bel_clock_fake *fake);

/* Lets time pass: moves all three times by `ns`. The wall time keeps the fraction of a millisecond
 * that it does not show, so that a thousand steps of 1 us add up to 1 ms. */
void bel_clock_fake_advance(struct bel_clock_fake *fake, uint64_t ns);

/* Simulates suspend: moves boot and wall by `ns`, but not mono. */
void bel_clock_fake_suspend(struct bel_clock_fake *fake, uint64_t ns);

/* Simulates setting the clock: moves only the wall time, forward or back. */
void bel_clock_fake_step(struct bel_clock_fake *fake, int64_t ms);

/* Set one time and leave the other two. Mono and boot must not go back. */
void bel_clock_fake_set_mono(struct bel_clock_fake *fake, struct bel_mono mono);
void bel_clock_fake_set_boot(struct bel_clock_fake *fake, struct bel_boot boot);
void bel_clock_fake_set_wall(struct bel_clock_fake *fake, struct bel_wall wall);

BEL_END_DECLARATIONS
#endif
