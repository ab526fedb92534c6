/* SPDX-License-Identifier: MIT */
#ifndef BEL_SPREAD_H
#define BEL_SPREAD_H

/*
 * spread - moves timers apart that would ring at the same instant.
 *
 * By name: a thousand daily timers with a window of one hour are spread over that hour, and each
 * keeps its offset on every day, machine and release. By chance: retries get a slightly shorter or
 * longer delay each time.
 */

#include "belfry/declare.h"

#include <stddef.h>
#include <stdint.h>

BEL_BEGIN_DECLARATIONS

enum {
    BEL_SPREAD_WHOLE = 1000, /* shares are in thousandths */
};

/*
 * Returns the offset of an id in a window, from 0 to below `window_ms`; 0 if the window is 0. The
 * offset is the high half of the 128-bit product of the window and the SipHash-2-4 of the id, with
 * the 16 bytes "belfry/spread/v1" as the key. This formula never changes: a release that moved
 * timers within their windows would ring some twice and some not at all.
 *
 * The key is not secret: a user who chooses ids can choose their offsets.
 */
uint64_t bel_spread_offset(const void *id, size_t bytes, uint64_t window_ms);

/*
 * Returns a delay that is randomly shorter or longer by up to `share` thousandths (at most all of
 * it), uniformly distributed: 900 to 1100 for 1000 ms and a share of 100. The same random word
 * gives the same delay. A result above 64 bits becomes UINT64_MAX.
 */
uint64_t bel_spread_jitter(uint64_t delay_ms, uint32_t share, uint64_t random_word);

BEL_END_DECLARATIONS
#endif
