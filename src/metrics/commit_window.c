/* SPDX-License-Identifier: MIT */

/* A slot whose number is too old counts as empty, and is cleared when its second comes again. */
#include "metrics/commit_window.h"

#include "core/units.h"

static uint64_t slot_number(struct bel_mono now)
{
    return now.ns / NS_PER_S + 1;
}

void bel__commit_window_record(struct bel_commit_window *window, uint64_t ns, struct bel_mono now)
{
    uint64_t bucket_ns = (uint64_t)BEL_COMMIT_BUCKET_MS * NS_PER_MS;
    uint64_t bucket = ns / bucket_ns, number = slot_number(now);
    if (ns > 0 && ns % bucket_ns == 0) bucket--; /* a bound belongs to the bucket below */
    if (bucket >= BEL_COMMIT_BUCKETS) bucket = BEL_COMMIT_BUCKETS - 1;
    unsigned slot = (unsigned)(number % BEL_COMMIT_SLOTS);
    if (window->numbers[slot] != number) {
        for (unsigned i = 0; i < BEL_COMMIT_BUCKETS; i++) {
            window->counts[slot][i] = 0;
        }
        window->numbers[slot] = number;
    }
    window->counts[slot][bucket]++;
}

uint64_t bel__commit_window_p99_ms(const struct bel_commit_window *window, struct bel_mono now)
{
    uint64_t sums[BEL_COMMIT_BUCKETS] = {0}, all = 0, below = 0, number = slot_number(now);
    for (unsigned slot = 0; slot < BEL_COMMIT_SLOTS; slot++) {
        if (window->numbers[slot] + BEL_COMMIT_SLOTS <= number) continue;
        for (unsigned i = 0; i < BEL_COMMIT_BUCKETS; i++) {
            sums[i] += window->counts[slot][i];
            all += window->counts[slot][i];
        }
    }
    unsigned bucket = 0;
    while (bucket < BEL_COMMIT_BUCKETS && (below += sums[bucket]) * 100 < all * 99) {
        bucket++;
    }
    return all == 0 ? 0 : (uint64_t)(bucket + 1) * BEL_COMMIT_BUCKET_MS;
}
