/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLOCK_H
#define BEL_CLOCK_H

/*
 * clock - the door through which the time comes in.
 *
 * There are three times, and each is a type of its own, so that the compiler
 * refuses to take one for another:
 *
 *               runs in suspend   can be set   use it for
 *     bel_mono  no                no           how long a program has worked
 *     bel_boot  yes               no           delays and deadlines
 *     bel_wall  yes               yes          dates; never for a delay
 *
 * Nothing else in Belfry asks the system for the time. A loop reads its clock once
 * a turn and passes the time on; what it passes it to can be tested with any time:
 *
 *     struct bel_boot now = bel_clock_boot(clock);
 *     err = bel_boot_add(now, 30 * SECOND_NS, &due);
 *
 * Threads: any thread may read a clock; a fake clock is moved by one at a time.
 */

#include "belfry/error.h"

#include <stdint.h>

#pragma GCC visibility push(default)

#define BEL_NEVER UINT64_MAX /* no instant: after all of them */

/* Time since the machine started, without the time it was suspended. */
struct bel_mono {
    uint64_t ns;
};

/* Time since the machine started, suspended or not. */
struct bel_boot {
    uint64_t ns;
};

/* Time since 1970-01-01T00:00:00Z without leap seconds; negative before. */
struct bel_wall {
    int64_t ms;
};

/* A clock. To make one of your own, put this first in it and fill in all three. */
struct bel_clock {
    struct bel_mono (*mono)(const struct bel_clock *clock); /* never goes back */
    struct bel_boot (*boot)(const struct bel_clock *clock); /* never goes back */
    struct bel_wall (*wall)(const struct bel_clock *clock); /* goes where it is set */
};

struct bel_mono bel_clock_mono(const struct bel_clock *clock);
struct bel_boot bel_clock_boot(const struct bel_clock *clock);
struct bel_wall bel_clock_wall(const struct bel_clock *clock);

/* The system's clock. It lives as long as the program. */
const struct bel_clock *bel_clock_system(void);

/*
 * Adds a delay. Returns 0 and sets `*out`; or BEL_ERANGE, leaving it alone, if the
 * result cannot be represented. BEL_NEVER is no instant and never a result; a wall
 * time ends at INT64_MAX.
 */
BEL_CHECKED int bel_mono_add(struct bel_mono now, uint64_t delay_ns, struct bel_mono *out);
BEL_CHECKED int bel_boot_add(struct bel_boot now, uint64_t delay_ns, struct bel_boot *out);
BEL_CHECKED int bel_wall_add(struct bel_wall now, uint64_t delay_ms, struct bel_wall *out);

/*
 * A fake clock stands still until it is moved. What is moved past the end of a time
 * is a bug of the caller.
 */
struct bel_clock_fake; /* opaque: threads share it */

/* Makes a fake clock: `wall` as given, the other two at 0. Returns 0 and sets `*out`,
 * or returns BEL_ENOMEM and leaves it alone. */
BEL_CHECKED int bel_clock_fake_create(struct bel_wall wall, struct bel_clock_fake **out);

/* Frees a fake clock; NULL is allowed. */
void bel_clock_fake_destroy(struct bel_clock_fake *fake);

/* The fake as a clock to hand on. It lives as long as the fake. */
const struct bel_clock *bel_clock_fake_clock(const struct bel_clock_fake *fake);

/* Time passes: all three move by `ns`. The wall keeps the part of a millisecond that
 * it does not show, so that a thousand microseconds are one. */
void bel_clock_fake_advance(struct bel_clock_fake *fake, uint64_t ns);

/* The machine sleeps: boot and wall move by `ns`, mono does not. */
void bel_clock_fake_suspend(struct bel_clock_fake *fake, uint64_t ns);

/* Someone sets the clock: only the wall moves, forward or back. */
void bel_clock_fake_step(struct bel_clock_fake *fake, int64_t ms);

/* Sets one time and leaves the others. Mono and boot do not go back. */
void bel_clock_fake_set_mono(struct bel_clock_fake *fake, struct bel_mono mono);
void bel_clock_fake_set_boot(struct bel_clock_fake *fake, struct bel_boot boot);
void bel_clock_fake_set_wall(struct bel_clock_fake *fake, struct bel_wall wall);

#pragma GCC visibility pop
#endif
