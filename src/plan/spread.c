/* SPDX-License-Identifier: MIT */

/* Multiplies a window by a 64-bit word as a fraction of 2^64: no division, and no measurable bias
 * in a window of less than a thousand years. */
#include "belfry/spread.h"

#include "core/siphash.h"

#include <assert.h>

__extension__ typedef unsigned __int128 wide;

static const struct bel_siphash_key KEY = {
    {'b', 'e', 'l', 'f', 'r', 'y', '/', 's', 'p', 'r', 'e', 'a', 'd', '/', 'v', '1'}};

static uint64_t place(uint64_t word, uint64_t window)
{
    return (uint64_t)((wide)word * window >> 64);
}

uint64_t bel_spread_offset(const void *id, size_t bytes, uint64_t window_ms)
{
    assert(id != NULL || bytes == 0);
    return place(bel__siphash(KEY, id, bytes), window_ms);
}

uint64_t bel_spread_jitter(uint64_t delay_ms, uint32_t share, uint64_t random_word)
{
    assert(share <= BEL_SPREAD_WHOLE);
    uint64_t half = (uint64_t)((wide)delay_ms * share / BEL_SPREAD_WHOLE), sum;
    wide places = (wide)half * 2 + 1; /* up to 2^65 - 1 */
    uint64_t offset = places > UINT64_MAX ? random_word : place(random_word, (uint64_t)places);
    return __builtin_add_overflow(delay_ms - half, offset, &sum) ? UINT64_MAX : sum;
}
