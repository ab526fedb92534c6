/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKOFF_H
#define BEL_BACKOFF_H

/*
 * backoff - when to try again what has failed, and when to give up.
 *
 *     5s,30s,5m                            these delays, one after the other, then no more
 *     exp(10s,2,1h)                        10 s, 20 s, 40 s ... but never more than 1 h
 *     exp(10s,1.5,1h) jitter(0.2) max(20)  each up to 20 % shorter or longer, 20 attempts in all
 *
 * Attempts count from 1. max(n) is n attempts in all, the first one included; max(0) is read
 * as max(1). A list of k delays makes k + 1 attempts, or max(n) if that is less. exp() without
 * max() never gives up. A factor is from 1 to 1000, a jitter from 0 to 1, both with at most
 * three decimals. jitter() and max() come in any order, each once, after spaces; commas may
 * have spaces after them.
 */

#include "belfry/error.h"
#include "belfry/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_BACKOFF_DELAYS_MAX = 32,          /* in a list */
    BEL_BACKOFF_FACTOR_MAX = 1000 * 1000, /* thousandths */
    BEL_BACKOFF_BYTES = 1024,             /* enough for any policy that is printed, with the 0 */
};

/* A policy. Fill it in by parsing, or all of it by hand; what is not used is 0. */
struct bel_backoff {
    uint32_t attempts_max; /* in all; 0 if only a list's end ends them */
    uint32_t jitter;       /* thousandths of a delay, up to 1000 */
    uint32_t delays_count; /* 0 for exp() */
    uint32_t factor;       /* of exp(), thousandths, from 1000 */
    uint64_t base_ms;      /* of exp(), from 1 */
    uint64_t cap_ms;       /* of exp(), from base_ms; a jitter may go past it */
    uint64_t delays_ms[BEL_BACKOFF_DELAYS_MAX];
};

/* exp(10s,2,1h) jitter(0.1) max(20) */
struct bel_backoff bel_backoff_default(void);

/* Reads all of a text. Returns 0 and sets `*out`; or returns BEL_EINVAL, leaves it alone
 * and says why. `why` may be NULL. */
BEL_CHECKED int bel_backoff_parse(const char *text, size_t bytes, struct bel_backoff *out,
                                  struct bel_text_error *why);

/* Prints a policy, which parses as the same one. Returns the length it needs, and writes what
 * fits, as snprintf does. */
size_t bel_backoff_print(const struct bel_backoff *backoff, char *out, size_t room);

/* How long to wait after the failure of an attempt. False, and `*out_ms` is left alone, if
 * that was the last one. Any number of attempts is fine; the same random word gives the same
 * delay. exp() rounds to the nearest millisecond, then takes the cap, then the jitter. */
bool bel_backoff_delay(const struct bel_backoff *backoff, uint64_t attempt, uint64_t random_word,
                       uint64_t *out_ms);

#pragma GCC visibility pop
#endif
