/* SPDX-License-Identifier: MIT */
#ifndef BEL_BACKOFF_H
#define BEL_BACKOFF_H

/*
 * backoff - retry policies: the delay before each retry, and when to give up.
 *
 *     5s,30s,5m                            these delays in order, then give up
 *     exp(10s,2,1h)                        10 s, 20 s, 40 s ... at most 1 h
 *     exp(10s,1.5,1h) jitter(0.2) max(20)  each delay up to 20 % shorter or longer, 20 attempts
 *     fixed(1s) max(3)                     1 s before each retry, 3 attempts
 *     max(3)                               the default policy, but 3 attempts
 *
 * Attempts are numbered from 1. max(n) allows n attempts in total, including the first; max(0) is
 * read as max(1). A list of k delays allows k + 1 attempts, or n with max(n) if n is smaller. exp()
 * and fixed() without max() never give up. A factor is from 1 to 1000 and a jitter from 0 to 1,
 * both with at most three decimals. jitter() and max() come in any order, each at most once, and
 * are separated by spaces. Commas may be followed by spaces.
 *
 * A text that is only a number is invalid: 3 could be 3 attempts or a delay of 3 ms.
 */

#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_BACKOFF_DELAYS_MAX = 32,          /* delays in a list, at most */
    BEL_BACKOFF_FACTOR_MAX = 1000 * 1000, /* in thousandths */
    BEL_BACKOFF_BYTES = 1024,             /* enough for any printed policy, including the final 0 */
};

/* A retry policy. Set by bel_backoff_parse(), or by hand: then every unused field must be 0. */
struct bel_backoff {
    uint32_t attempts_max; /* in total; 0: no limit other than the end of a list */
    uint32_t jitter;       /* thousandths of a delay, 0 to 1000 */
    uint32_t delays_count; /* number of delays_ms in use; 0: exp() */
    uint32_t factor;       /* of exp(), in thousandths, at least 1000 */
    uint64_t base_ms;      /* of exp(), the first delay, at least 1 */
    uint64_t cap_ms;       /* of exp(), the longest delay before jitter, at least base_ms */
    uint64_t delays_ms[BEL_BACKOFF_DELAYS_MAX];
};

/* Returns the default policy: exp(10s,2,1h) jitter(0.1) max(20). */
struct bel_backoff bel_backoff_default(void);

/* Parses a whole text. Returns 0 and sets `*out`; or returns BEL_EINVAL, leaves `*out` unchanged
 * and sets `*why` unless `why` is NULL. */
BEL_CHECKED int bel_backoff_parse(const char *text, size_t bytes, struct bel_backoff *out,
                                  struct bel_text_error *why);

/* Prints a policy in a form that parses back to the same policy. Like snprintf, writes what fits
 * into `room` bytes and returns the full length. */
size_t bel_backoff_print(const struct bel_backoff *backoff, char *out, size_t room);

/* Computes the delay after attempt number `attempt` has failed. Returns false and leaves `*out_ms`
 * unchanged if that attempt was the last. Any attempt number is allowed. The same random word gives
 * the same delay. exp() rounds to the nearest millisecond, applies the cap, then the jitter. */
bool bel_backoff_delay(const struct bel_backoff *backoff, uint64_t attempt, uint64_t random_word,
                       uint64_t *out_ms);

BEL_END_DECLARATIONS
#endif
