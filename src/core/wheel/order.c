/* SPDX-License-Identifier: MIT */

/*
 * A run is sorted in two steps. The first step sorts the 8-byte entries by tick: one pass
 * distributes them by the upper bits of their ticks over as many places as there are entries, and
 * an insertion sort fixes the small disorder that is left. If the ticks are clustered, the
 * insertion sort needs too many moves, and a radix sort is used instead.
 *
 * The second step sorts each group of equal ticks, usually a single entry, by the exact due,
 * priority and sequence in the slots. Usually they are already in order, because entries are filed
 * in the order of arming.
 */
#include "core/wheel/front.h"

#include <string.h>

enum {
    INSERTION_MAX = 24,
    SPREAD_BITS_MAX = 11, /* up to 2,048 places in the first pass */
    SHIFTS_PER_ENTRY = 4, /* more moves than this mean too much disorder */
    RADIX_BITS = 8,
    RADIX = 1 << RADIX_BITS,
};

/* Returns false if `shifts_max` moves were not enough; no entry is lost then. */
static bool insertion_sort(struct entry *entries, uint32_t count, uint32_t base,
                           uint32_t shifts_max)
{
    uint32_t shifts = 0;
    for (uint32_t i = 1; i < count; i++) {
        struct entry entry = entries[i];
        uint32_t at = i;
        while (at > 0 && entries[at - 1].tick - base > entry.tick - base) {
            entries[at] = entries[at - 1];
            at--;
        }
        entries[at] = entry;
        shifts += i - at;
        if (shifts > shifts_max) return false;
    }
    return true;
}

/* Distributes entries by the upper bits of their ticks; `range` has all bits that occur. */
static void spread(const struct entry *from, struct entry *to, uint32_t count, uint32_t base,
                   uint32_t range)
{
    uint32_t start[1 << SPREAD_BITS_MAX];
    unsigned bits = 32 - (unsigned)__builtin_clz(count);
    unsigned range_bits = 32 - (unsigned)__builtin_clz(range | 1);
    if (bits > SPREAD_BITS_MAX) bits = SPREAD_BITS_MAX;
    unsigned shift = range_bits > bits ? range_bits - bits : 0;
    uint32_t places = (range >> shift) + 1, sum = 0;
    memset(start, 0, places * sizeof start[0]);
    for (uint32_t i = 0; i < count; i++) {
        start[(from[i].tick - base) >> shift]++;
    }
    for (uint32_t place = 0; place < places; place++) {
        uint32_t here = start[place];
        start[place] = sum;
        sum += here;
    }
    for (uint32_t i = 0; i < count; i++) {
        to[start[(from[i].tick - base) >> shift]++] = from[i];
    }
}

/* One stable pass by the digit at `shift`. Returns false if all digits are equal. */
static bool radix_pass(const struct entry *from, struct entry *to, uint32_t count, uint32_t base,
                       unsigned shift)
{
    uint32_t start[RADIX] = {0};
    for (uint32_t i = 0; i < count; i++) {
        start[(from[i].tick - base) >> shift & (RADIX - 1)]++;
    }
    if (start[(from[0].tick - base) >> shift & (RADIX - 1)] == count) return false;
    uint32_t sum = 0;
    for (unsigned digit = 0; digit < RADIX; digit++) {
        uint32_t here = start[digit];
        start[digit] = sum;
        sum += here;
    }
    for (uint32_t i = 0; i < count; i++) {
        to[start[(from[i].tick - base) >> shift & (RADIX - 1)]++] = from[i];
    }
    return true;
}

static void radix_sort(struct workspace *space, uint32_t count, uint32_t base, uint32_t range,
                       struct entry *entries)
{
    struct entry *from = entries, *to = space->other;
    for (unsigned shift = 0; shift < 32 && range >> shift != 0; shift += RADIX_BITS) {
        if (!radix_pass(from, to, count, base, shift)) continue;
        struct entry *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != entries) memcpy(entries, from, count * sizeof *entries);
}

void bel__order_ticks(struct workspace *space, uint32_t count, uint32_t base, struct entry *out)
{
    assert(count > 0 && count <= RUN_MAX);
    const struct entry *entries = space->entries;
    if (count <= INSERTION_MAX) {
        memcpy(out, entries, count * sizeof *out);
        (void)insertion_sort(out, count, base, UINT32_MAX);
        return;
    }
    uint32_t range = 0;
    for (uint32_t i = 0; i < count; i++) {
        range |= entries[i].tick - base;
    }
    spread(entries, out, count, base, range);
    if (!insertion_sort(out, count, base, SHIFTS_PER_ENTRY * count)) {
        radix_sort(space, count, base, range, out);
    }
}

static void merge(const struct key *from, struct key *to, uint32_t middle, uint32_t end)
{
    uint32_t a = 0, b = middle;
    for (uint32_t i = 0; i < end; i++) {
        bool second = a == middle || (b < end && key_before(&from[b], &from[a]));
        to[i] = from[second ? b++ : a++];
    }
}

/* Merges ever longer sorted pieces, alternating between the two arrays. */
static const struct key *merge_sort(struct key *keys, struct key *other, uint32_t count)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t start = 0; start < count; start += 2 * width) {
            uint32_t left = count - start;
            uint32_t middle = width < left ? width : left;
            uint32_t end = 2 * width < left ? 2 * width : left;
            merge(keys + start, other + start, middle, end);
        }
        struct key *sorted = other;
        other = keys;
        keys = sorted;
    }
    return keys;
}

void bel__order_ties(struct workspace *space, const struct slots *slots, struct entry *entries,
                     uint32_t count)
{
    assert(count > 1 && count <= RUN_MAX);
    struct key *keys = space->keys[0];
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count) {
            __builtin_prefetch(slot_at(slots, entries[i + PREFETCH_AHEAD].slot));
        }
        const struct slot *slot = slot_at(slots, entries[i].slot);
        keys[i] = (struct key){slot->due, slot->order, entries[i].slot, 0};
        sorted = sorted && (i == 0 || key_before(&keys[i - 1], &keys[i]));
    }
    if (sorted) return;
    const struct key *result = merge_sort(keys, space->keys[1], count);
    for (uint32_t i = 0; i < count; i++) {
        entries[i].slot = result[i].slot;
    }
}
