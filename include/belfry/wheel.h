/* SPDX-License-Identifier: MIT */
#ifndef BEL_WHEEL_H
#define BEL_WHEEL_H

/*
 * wheel - keeps timers and gives them back in the order they are due.
 *
 * The order is exact: (due, priority, order of arming), to the nanosecond, over
 * every 64-bit instant. Arming, cancelling and re-arming take constant time. A
 * wheel reads no clock, starts no thread and calls nothing back: it is told the
 * time and popped.
 *
 *     bel_wheel_arm(wheel, now + 30 * SECOND, BEL_PRIORITY_DEFAULT, conn_id, &conn->idle);
 *     ...
 *     do {
 *         while (bel_wheel_pop(wheel, now, &timer)) conn_close(timer.user);
 *         wait_for_input_until(bel_wheel_next(wheel));
 *     } while (running);
 *
 * No call does work proportional to the number of timers, except walk and valid:
 * bel_wheel_pop() may stop early to keep its bound. It says so through
 * bel_wheel_next(), which then answers a time that is not after `now`, so that
 * the loop above comes back at once.
 *
 * Threads: a wheel belongs to one thread at a time. Units: nanoseconds on any
 * timeline the caller likes, as long as it is one.
 */

#include "belfry/clock.h"
#include "belfry/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_PRIORITY_DEFAULT = 128, /* 0 goes first, 255 last, among timers of one due */
    BEL_WHEEL_WORK_MAX = 2048,  /* entries that one call, for one timer, touches at most */
};

/* Names one armed timer, and after it ends never another one of the same wheel. The
 * handle of another wheel is refused but for one chance in 2^30, unless both were made
 * with the same handle_seed. */
typedef uint64_t bel_timer_t;

#define BEL_TIMER_NONE ((bel_timer_t)0)

struct bel_wheel; /* opaque: it owns memory */

struct bel_wheel_options {
    uint64_t now;         /* the time at the start; earlier dues are due at once */
    uint32_t timers_max;  /* arming fails with BEL_EFULL beyond it; 0: 2^28 */
    uint32_t handle_seed; /* what handles are mixed with; 0: something of its own */
    /* From how many stale entries on they are swept, in percent of the armed timers: there
     * are at most about twice as many, and 16 K. 0: 100, the most; 5 is the least. */
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
    int result; /* out: what bel_wheel_rearm() would have returned */
};

struct bel_wheel_stats {
    uint64_t armed;       /* timers */
    uint64_t entries;     /* places held for them, stale ones included */
    uint64_t bytes;       /* memory in use and kept for reuse */
    uint64_t retired;     /* slots whose generations are used up */
    uint32_t touched_max; /* entries touched by the busiest call so far */
};

/* Makes an empty wheel; NULL options are the defaults, at time 0. Returns 0 and
 * sets `*out`; or returns BEL_ENOMEM, or BEL_EINVAL for an option out of its range, and leaves
 * it alone. */
BEL_CHECKED int bel_wheel_create(const struct bel_wheel_options *options, struct bel_wheel **out);

/* Frees a wheel and forgets its timers; NULL is allowed. */
void bel_wheel_destroy(struct bel_wheel *wheel);

/* Makes memory ready for `timers` armed at once: up to there, arming does not fail for
 * lack of it, and does not wait for the system unless thousands are armed for a time that
 * has come already. Returns 0, BEL_ENOMEM, or BEL_EFULL beyond timers_max. */
BEL_CHECKED int bel_wheel_reserve(struct bel_wheel *wheel, uint32_t timers);

/* Arms a timer. A `due` in the past is due at once, in its place in the order.
 * Returns 0 and sets `*out`; or BEL_ERANGE if `due` is BEL_NEVER, BEL_EFULL or
 * BEL_ENOMEM, and nothing has changed. */
BEL_CHECKED int bel_wheel_arm(struct bel_wheel *wheel, uint64_t due, uint8_t priority,
                              uint64_t user, bel_timer_t *out);

/* Moves an armed timer to `due`, earlier or later. It keeps handle, priority and
 * user word and goes behind the timers already armed for that instant. Returns 0,
 * or BEL_ESTALE if it is not armed, BEL_ERANGE, BEL_ENOMEM, and it stays. */
BEL_CHECKED int bel_wheel_rearm(struct bel_wheel *wheel, bel_timer_t timer, uint64_t due);

/* Re-arms many, in order, hiding the memory's latency: the cheapest way to restart
 * a batch of timeouts. Returns how many moved; each says in `result` how it went. */
size_t bel_wheel_rearm_many(struct bel_wheel *wheel, struct bel_rearm *moves, size_t count);

/* Disarms a timer. False if it is not armed: popped or cancelled before, or not
 * this wheel's. Its memory is used again by the next timer armed. */
bool bel_wheel_cancel(struct bel_wheel *wheel, bel_timer_t timer);

/* Looks at an armed timer; false, and `*out` untouched, if it is not. */
bool bel_wheel_find(const struct bel_wheel *wheel, bel_timer_t timer, struct bel_wheel_timer *out);

/* Takes out the first timer with due <= now. False when none is left, or the call has
 * done its share of work, or there is no memory to go on: see bel_wheel_next(). Time may
 * go back: then less is due. Between two pops any call is allowed. */
bool bel_wheel_pop(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out);

/* Pops up to `max` timers and returns how many. The bound on work is one call's. */
size_t bel_wheel_pop_many(struct bel_wheel *wheel, uint64_t now, struct bel_wheel_timer *out,
                          size_t max);

/* When to pop again: no timer is due before it. It can be early, never late, and is
 * BEL_NEVER for an empty wheel. */
uint64_t bel_wheel_next(const struct bel_wheel *wheel);

/* Works towards the exact due of the first timer. True: `*out` is that, or BEL_NEVER.
 * False: the call has done its share of work, `*out` is a bound; call again. */
bool bel_wheel_next_exact(struct bel_wheel *wheel, uint64_t *out);

/* How many timers are armed. */
uint64_t bel_wheel_count(const struct bel_wheel *wheel);

void bel_wheel_stats(const struct bel_wheel *wheel, struct bel_wheel_stats *out);

/*
 * A walk visits every armed timer in order, for a snapshot. Opening one takes time
 * and memory (24 bytes a timer) linear in the timers; it sees them as they were
 * then, and the wheel may not be used until it is closed.
 */
struct bel_wheel_walk;

/* Returns 0 and sets `*out`, or BEL_ENOMEM. */
BEL_CHECKED int bel_wheel_walk_open(const struct bel_wheel *wheel, struct bel_wheel_walk **out);
bool bel_wheel_walk_next(struct bel_wheel_walk *walk, struct bel_wheel_timer *out);
void bel_wheel_walk_close(struct bel_wheel_walk *walk);

/* Checks every invariant, in time linear in the timers. For tests. */
bool bel_wheel_valid(const struct bel_wheel *wheel);

#pragma GCC visibility pop
#endif
