/* SPDX-License-Identifier: MIT */

/*
 * Eight bytes for a time, one for zone and policies, and the rest is a rule. An error must have a
 * position. A valid rule must print and parse again as the same rule, and have ascending times.
 */
#include "belfry/cron.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 9,
    TIMES = 8,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bel_zone *pick_zone(unsigned which)
{
    static const char *const names[] = {"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia",
                                        "America/Santiago"};
    static struct bel_zones *zones;
    const struct bel_zone *zone;
    if (zones == NULL && bel_zones_open(NULL, &zones) != 0) return bel_zone_utc();
    const char *name = names[which % 4];
    return bel_zones_find(zones, name, strlen(name), &zone) == 0 ? zone : bel_zone_utc();
}

static void check_printing(const struct bel_cron *cron)
{
    char text[BEL_CRON_TEXT_MAX];
    struct bel_cron again;
    size_t bytes = bel_cron_print(cron, text, sizeof text);
    assert(bytes < sizeof text);
    int err = bel_cron_parse(text, bytes, 0, &again, NULL);
    assert(err == 0);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding is 0 */
    assert(memcmp(cron, &again, sizeof again) == 0);
    (void)err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bel_cron cron;
    struct bel_text_error why = {0};
    int64_t at;
    if (size < HEAD) return 0;
    memcpy(&at, data, sizeof at);
    const char *text = (const char *)data + HEAD;
    if (bel_cron_parse(text, size - HEAD, data[8], &cron, &why) != 0) {
        assert(why.position <= size - HEAD && why.expected[0] != '\0');
        return 0;
    }
    check_printing(&cron);
    struct bel_zone_when when = {pick_zone(data[8]), (enum bel_gap)(data[8] >> 2 & 1),
                                 (enum bel_fold)((data[8] >> 3) % 3)};
    for (unsigned i = 0; i < TIMES; i++) {
        int64_t next;
        if (!bel_cron_next(&cron, &when, at, &next)) break;
        assert(next > at);
        at = next;
    }
    return 0;
}
