/* SPDX-License-Identifier: MIT */
#ifndef BEL_WHEEL_H
#define BEL_WHEEL_H

/*
 * wheel - stores timers and returns them in the order in which they are due.
 *
 * The order is exact, to the nanosecond and for every 64-bit instant: (due, priority, order of
 * arming). Arming, cancelling and re-arming take constant time. A wheel reads no clock, starts no
 * thread and has no callbacks: the caller passes the time and pops.
 *
 *     bel_wheel_arm(wheel, now + 30 * SECOND, BEL_PRIORITY_DEFAULT, conn_id, &conn->idle);
 *     ...
 *     do {
 *         while (bel_wheel_pop(wheel, now, &timer)) conn_close(timer.user);
 *         wait_for_input_until(bel_wheel_next(wheel));
 *     } while (running);
 *
 * No call does work proportional to the number of timers, except walk and valid. To keep this
 * bound, bel_wheel_pop() may stop early. Then bel_wheel_next() returns a time that is not after
 * `now`, so that the loop above continues at once.
 *
 * Threads: a wheel belongs to one thread at a time. Units: nanoseconds on one timeline of the
 * caller's choice.
 */

#include "belfry/clock.h"
#include "belfry/declare.h"
#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_PRIORITY_DEFAULT = 128, /* 0 goes first, 255 last, among timers with the same due */
    BEL_WHEEL_WORK_MAX = 2048,  /* entries that one call touches per timer, at most */
};

/* A handle of an armed timer. After the timer ends, its handle is never reused by the same wheel. A
 * handle of another wheel is detected except for one chance in 2^30, unless both wheels have the
 * same handle_seed. */
typedef uint64_t bel_timer_t;

#define BEL_TIMER_NONE ((bel_timer_t)0)

struct bel_wheel; /* opaque: owns memory */

struct bel_wheel_options {
    uint64_t now;         /* the time at the start; earlier dues are due at once */
    uint32_t timers_max;  /* arming fails with BEL_EFULL above this number; 0: 2^28 */
    uint32_t handle_seed; /* mixed into handles; 0: a seed unique to the wheel */
    /* Stale entries are swept when they exceed this percentage of the armed timers, so there are at
     * most about twice as many, plus 16 K. 5 to 100; 0: 100. */
    uint32_t stale_percent;
};

struct bel_wheel_timer {
    uint64_t due;
    uint64_t user; /* the caller's word */
    bel_timer_t timer;
    uint8_t priority;
};

struct bel_rearm {
    bel_timer_t timer;
    uint64_t due;
    int result; /* out: the result of bel_wheel_rearm() for this timer */
};

struct bel_wheel_stats {
    uint64_t armed;       /* timers */
    uint64_t entries;     /* stored for the timers, including stale ones */
    uint64_t bytes;       /* memory in use or kept for reuse */
    uint64_t retired;     /* slots whose generation numbers are used up */
    uint32_t touched_max; /* entries touched by the most expensive call so far */
};

/* Creates an empty wheel; NULL options: the defaults, at time 0. Returns 0 and sets `*out`; or
 * returns BEL_ENOMEM, or BEL_EINVAL for an option out of range, and leaves `*out` unchanged. */
BEL_CHECKED int bel_wheel_create(const struct bel_wheel_options *options, struct bel_wheel **out);

/* Frees a wheel and its timers; NULL is allowed. */
void bel_wheel_destroy(struct bel_wheel *wheel);

/* Allocates memory for `timers` armed timers. Up to this number, arming does not fail with
 * BEL_ENOMEM, and makes no system call unless thousands are armed for a time that has passed.
 * Returns 0, BEL_ENOMEM, or BEL_EFULL if `timers` exceeds timers_max. */
BEL_CHECKED int bel_wheel_reserve(struct bel_wheel *wheel, uint32_t timers);

/* Arms a timer. A `due` in the past is due at once, in its place in the order. Returns 0 and sets
 * `*out`; or, with nothing changed, BEL_ERANGE if `due` is BEL_NEVER, BEL_EFULL or BEL_ENOMEM. */
BEL_CHECKED int bel_wheel_arm(struct bel_wheel *wheel, uint64_t due, uint8_t priority,
                              uint64_t user, bel_timer_t *out);

/* Moves an armed timer to `due`, earlier or later. The timer keeps its handle, priority and user
 * word, and comes after the timers already armed for the same due and priority. Returns 0; or, with
 * the timer unmoved, BEL_ESTALE if it is not armed, BEL_ERANGE or BEL_ENOMEM. */
BEL_CHECKED int bel_wheel_rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due);

/* Re-arms many timers, in order, with prefetching: the fastest way to restart a batch of timeouts.
 * Returns the number moved and sets `result` of each. */
size_t bel_wheel_rearm_many(struct bel_wheel *wheel, struct bel_rearm *moves, size_t count);

/* Prefetches what the wheel keeps for a timer that is re-armed, cancelled or found soon: with a
 * million timers, a call some operations before the operation saves a cache miss. Changes nothing,
 * and any handle is allowed, of an ended timer too. */
void bel_wheel_expect(const struct bel_wheel *wheel, bel_timer_t timer);

/* Disarms a timer. Returns false if it is not armed: popped or cancelled before, or of another
 * wheel. The next timer armed reuses its memory. */
bool bel_wheel_cancel(struct bel_wheel *wheel, bel_timer_t timer);

/* Finds an armed timer. Returns false and leaves `*out` unchanged if it is not armed. */
bool bel_wheel_find(const struct bel_wheel *wheel, bel_timer_t timer, struct bel_wheel_timer *out);

/* Removes the first timer with due <= now and returns true. Returns false if none is due, the work
 * limit of the call is reached, or memory has run out: see bel_wheel_next(). `now` may go back:
 * then fewer timers are due. Between two pops any call is allowed. */
bool bel_wheel_pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out);

/* Pops up to `max` timers and returns the number popped. The work limit is that of one
 * bel_wheel_pop(). */
size_t bel_wheel_pop_many(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out,
                          size_t max);

/* Returns when to pop again: no timer is due before. May be too early, never too late. BEL_NEVER
 * for an empty wheel. */
uint64_t bel_wheel_next(const struct bel_wheel *wheel);

/* Searches for the exact due of the first timer. Returns true and sets `*out` to it, or to
 * BEL_NEVER for an empty wheel. Returns false if the work limit is reached: `*out` is a lower
 * bound; call again. */
bool bel_wheel_next_exact(struct bel_wheel *wheel, uint64_t *out);

/* Returns the number of armed timers. */
uint64_t bel_wheel_count(const struct bel_wheel *wheel);

void bel_wheel_stats(const struct bel_wheel *wheel, struct bel_wheel_stats *out);

/*
 * A walk visits every armed timer in order, for a snapshot. Opening one takes time and memory (24
 * bytes a timer) proportional to the number of timers. The walk sees the timers as they were when
 * it was opened; the wheel must not be used until the walk is closed.
 */
struct bel_wheel_walk;

/* Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel_wheel_walk_open(const struct bel_wheel *wheel, struct bel_wheel_walk **out);
bool bel_wheel_walk_next(struct bel_wheel_walk *walk, struct bel_wheel_timer *out);
void bel_wheel_walk_close(struct bel_wheel_walk *walk);

/* Returns whether every invariant holds. Takes time proportional to the number of timers. For
 * tests. */
bool bel_wheel_valid(const struct bel_wheel *wheel);

BEL_END_DECLARATIONS
#endif
