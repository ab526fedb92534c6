/* SPDX-License-Identifier: MIT */

/*
 * Four bytes for the day of the start, one for the policies, and a text. A valid rule must have
 * ascending times, and the same ones when it is asked again. Parsing and searching must be fast:
 * libFuzzer's -timeout finds rules that are searched for ever.
 */
#include "belfry/rrule.h"

#include <assert.h>
#include <string.h>

enum {
    HEADER_BYTES = 5,
    TIMES_MAX = 8,
    DAY = 86400,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void follow(const struct bel_rrule *rrule, const struct bel_zone_when *when, int64_t start)
{
    int64_t at = start - DAY, next, again;
    for (unsigned i = 0; i < TIMES_MAX && bel_rrule_next(rrule, when, at, &next) == 0; i++) {
        assert(next > at);
        int err = bel_rrule_next(rrule, when, next - 1, &again);
        assert(err == 0 && again == next);
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct bel_zones *zones;
    const struct bel_zone *zone = bel_zone_utc();
    int32_t days;
    if (size < HEADER_BYTES) return 0;
    if (zones == NULL && bel_zones_open(NULL, &zones) != 0) zones = NULL;
    memcpy(&days, data, sizeof days);
    if (zones != NULL && (data[4] & 8) != 0) {
        int err = bel_zones_find(zones, "America/New_York", 16, &zone);
        assert(err == 0 || zone == bel_zone_utc());
    }
    struct bel_zone_when when = {zone, (enum bel_gap)(data[4] & 1),
                                 (enum bel_fold)((data[4] >> 1 & 3) % 3)};
    int64_t start = (int64_t)(days % 4000000) * DAY + (int64_t)data[4] * 300;
    struct bel_civil civil;
    if (bel_zone_civil(bel_zone_utc(), start, &civil) != 0) return 0;
    const char *text = (const char *)data + HEADER_BYTES;
    size_t bytes = size - HEADER_BYTES;
    struct bel_rrule *rrule;
    struct bel_text_error why;
    int err = bel_rrule_parse(text, bytes, &civil, &rrule, &why);
    assert(err == 0 || err == BEL_EINVAL);
    if (err) {
        assert(why.position <= bytes && strlen(why.expected) > 0);
        return 0;
    }
    assert(memcmp(bel_rrule_text(rrule), text, bytes) == 0);
    follow(rrule, &when, start);
    bel_rrule_destroy(rrule);
    return 0;
}
