/* SPDX-License-Identifier: MIT */

/*
 * A rate counts from the nominal due, so late rings do not make it drift:
 *
 *     due   +p    +2p   +3p   +4p
 *      |-----|-----|--x--|-----|        x: the ring, late by two and a half periods
 *                        ^ BEL_RATE_SKIP, 2 missed
 *            ^ BEL_RATE_BURST            ^ x + p: BEL_RATE_DELAY, 2 missed
 */
#include "runtime/repeat.h"

#include <assert.h>

static uint64_t add(uint64_t time, uint64_t span)
{
    uint64_t last = BEL_NEVER - 1;
    return span > last - time ? last : time + span;
}

uint64_t bel__repeat_missed(const struct beat *beat)
{
    assert(beat->period_ns > 0);
    bool leaves_out = beat->repeat == BEL_RATE_SKIP || beat->repeat == BEL_RATE_DELAY;
    if (!leaves_out || beat->now < beat->due) return 0;
    return (beat->now - beat->due) / beat->period_ns;
}

uint64_t bel__repeat_next(const struct beat *beat)
{
    assert(beat->repeat != BEL_ONCE);
    uint64_t missed = bel__repeat_missed(beat);
    switch (beat->repeat) {
    case BEL_RATE_SKIP: /* missed * period <= now - due, so only the sum can overflow */
        return add(add(beat->due, missed * beat->period_ns), beat->period_ns);
    case BEL_RATE_BURST:
        return add(beat->due, beat->period_ns);
    case BEL_RATE_DELAY:
        return add(missed > 0 ? beat->now : beat->due, beat->period_ns);
    case BEL_DELAY:
        return add(beat->end, beat->period_ns);
    case BEL_ONCE:
        break;
    }
    return BEL_NEVER; /* not reached */
}
