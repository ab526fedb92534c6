/* SPDX-License-Identifier: MIT */
#ifndef BEL_DURATION_H
#define BEL_DURATION_H

/*
 * duration - durations as people write them, in milliseconds.
 *
 *     500ms 30s 5m 1h30m 30d 2w    numbers with units, from large to small, each once
 *     PT1H30M P1DT2H P2W           ISO 8601; weeks stand alone
 *     1500                         milliseconds
 *
 * A minute has 60 s, a day 24 h, a week 7 days. Years and months are invalid, because their length
 * varies. A number may exceed the next larger unit (90m). The last number may have a decimal
 * fraction if the result is a whole number of milliseconds: 1.5h and PT0.25S are valid, 0.0001s and
 * 1.5 without a unit are not. The decimal comma of ISO 8601 is invalid, because commas separate
 * durations in lists. Units are case-sensitive; spaces and signs are invalid.
 */

#include "belfry/declare.h"
#include "belfry/error.h"
#include "belfry/text.h"

#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_DURATION_BYTES = 32, /* enough for any printed duration, including the final 0 */
};

/* Parses a whole text. Returns 0 and sets `*out_ms`; or returns BEL_EINVAL, also for a duration
 * that does not fit into 64 bits, leaves `*out_ms` unchanged and sets `*why` unless `why` is
 * NULL. */
BEL_CHECKED int bel_duration_parse(const char *text, size_t bytes, uint64_t *out_ms,
                                   struct bel_text_error *why);

/* Prints a duration, e.g. 1h30m; whole weeks as 2w, otherwise days; zero as 0s. The result parses
 * back to the same number. Like snprintf, writes what fits into `room` bytes and returns the full
 * length. */
size_t bel_duration_print(uint64_t ms, char *out, size_t room);

BEL_END_DECLARATIONS
#endif
