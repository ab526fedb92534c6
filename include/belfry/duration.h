/* SPDX-License-Identifier: MIT */
#ifndef BEL_DURATION_H
#define BEL_DURATION_H

/*
 * duration - how long, as people write it, in milliseconds.
 *
 *     500ms 30s 5m 1h30m 30d 2w    numbers with units, from large to small, each once
 *     PT1H30M P1DT2H P2W           ISO 8601; weeks stand alone
 *     1500                         milliseconds
 *
 * A minute has 60 s, a day 24 h, a week 7 days. Years and months are refused, because their
 * length varies. A number may be larger than its unit makes sense for (90m), and the last one
 * may have a decimal fraction if that gives whole milliseconds: 1.5h, PT0.25S, but neither
 * 0.0001s nor 1.5 alone. The comma of ISO 8601 is no decimal point here: lists of durations
 * have it. Upper and lower case differ; there are no spaces and no signs.
 */

#include "belfry/error.h"
#include "belfry/text.h"

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_DURATION_BYTES = 32, /* enough for any duration that is printed, with the 0 */
};

/* Reads all of a text. Returns 0 and sets `*out_ms`; or returns BEL_EINVAL, leaves it alone
 * and says why. What does not fit into 64 bits is refused too. `why` may be NULL. */
BEL_CHECKED int bel_duration_parse(const char *text, size_t bytes, uint64_t *out_ms,
                                   struct bel_text_error *why);

/* Prints a duration: 1h30m, 2w for whole weeks, otherwise days, 0s for none. It parses as the
 * same number. Returns the length it needs, and writes what fits, as snprintf does. */
size_t bel_duration_print(uint64_t ms, char *out, size_t room);

#pragma GCC visibility pop
#endif
