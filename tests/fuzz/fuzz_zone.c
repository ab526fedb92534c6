/* SPDX-License-Identifier: MIT */

/*
 * The input is a time zone file. A zone that loads must have ordered changes, convert any
 * instant to a local time, and convert that back.
 */
#include "plan/zone.h"

#include <assert.h>

enum {
    CHANGES_MAX = 64, /* checked, from the first */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_order(const struct bel_zone *zone)
{
    for (uint32_t i = 0; i < zone->count; i++) {
        assert(i == 0 || zone->times[i - 1] < zone->times[i]);
        assert(zone->offsets[i] != zone->offsets[i + 1]);
    }
    for (uint32_t i = 0; i <= zone->count; i++) {
        assert(zone->offset_min <= zone->offsets[i] && zone->offsets[i] <= zone->offset_max);
    }
}

static void check_instant(const struct bel_zone *zone, int64_t instant)
{
    struct bel_civil civil;
    struct bel_zone_instants found;
    int64_t change;
    bool changes = bel_zone_next_change(zone, instant, &change);
    if (changes) {
        assert(change > instant);
        assert(bel_zone_offset(zone, change) != bel_zone_offset(zone, instant));
        assert(bel_zone_offset(zone, change - 1) == bel_zone_offset(zone, instant));
    }
    if (bel_zone_civil(zone, instant, &civil) != 0) return;
    int err = bel_zone_at(zone, &civil, &found);
    assert(err == 0 && found.answer != BEL_ZONE_GAP);
    assert(found.first <= instant && instant <= found.second);
    assert((found.first == found.second) == (found.answer == BEL_ZONE_EXACT));
    assert(found.first + bel_zone_offset(zone, found.first) ==
           found.second + bel_zone_offset(zone, found.second));

    civil.hour = (uint8_t)((civil.hour + 1) % 24); /* may be in a gap */
    err = bel_zone_at(zone, &civil, &found);
    assert(err == 0);
    if (found.answer != BEL_ZONE_GAP) return;
    assert(found.first == found.second);
    assert(bel_zone_offset(zone, found.first - 1) < bel_zone_offset(zone, found.first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t instants[] = {
        INT64_MIN,
        INT64_MIN + 1,
        -(INT64_C(1) << 59),
        -INT64_C(377705116800),
        -1,
        0,
        INT64_C(1700000000),
        INT64_C(253402300799),
        INT64_C(1) << 59,
        INT64_MAX - 1,
        INT64_MAX,
    };
    struct bel_zone *zone;
    if (bel__zone_parse("fuzz", data, size, &zone) != 0) return 0;
    check_order(zone);
    for (size_t i = 0; i < sizeof instants / sizeof *instants; i++) {
        check_instant(zone, instants[i]);
    }
    int64_t change = INT64_MIN;
    for (int i = 0; i < CHANGES_MAX && bel_zone_next_change(zone, change, &change); i++) {
        check_instant(zone, change - 1);
        check_instant(zone, change);
    }
    check_instant(zone, zone->cycle_begin);
    check_instant(zone, zone->cycle_end);
    bel__zone_destroy(zone);
    return 0;
}
