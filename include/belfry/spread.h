/* SPDX-License-Identifier: MIT */
#ifndef BEL_SPREAD_H
#define BEL_SPREAD_H

/*
 * spread - moving apart what would happen at the same instant.
 *
 * By name: a thousand daily timers with a window of an hour get a thousand places in that
 * hour, and each keeps its own on every day, machine and release. By chance: retries get a
 * delay a little shorter or longer each time.
 */

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

enum {
    BEL_SPREAD_WHOLE = 1000, /* shares are in thousandths */
};

/*
 * A place in a window, from 0 to below `window_ms`; 0 if there is no window. It is the high
 * half of the 128-bit product of the window and the SipHash-2-4 of the id, with the 16 bytes
 * "belfry/spread/v1" as the key. That does not change: a release that moved every timer by
 * up to a window would ring some twice and some not at all.
 *
 * The key is no secret. Who chooses ids can choose their places.
 */
uint64_t bel_spread_offset(const void *id, size_t bytes, uint64_t window_ms);

/*
 * A delay that is shorter or longer by up to `share` thousandths of it, at most all of it,
 * every millisecond between as likely as the other: 900 to 1100 for 1000 ms and a share of
 * 100. The same random word gives the same delay. What is too long for 64 bits is the
 * largest number.
 */
uint64_t bel_spread_jitter(uint64_t delay_ms, uint32_t share, uint64_t random_word);

#pragma GCC visibility pop
#endif
