/* SPDX-License-Identifier: MIT */

/* Every instant printed in UTC or in a zone parses as the same instant. */
#include "belfry/instant.h"
#include "property.h"

#include <string.h>

enum {
    TIMES = 50,
};

#define YEAR_1972_MS INT64_C(63072000000) /* since then no offset has seconds */
#define YEAR_9999_MS INT64_C(253370764800000)

/* Half-hour folds, changes at midnight, the negative summer time of Dublin, a skipped day, a
 * rule for ever and none at all. */
static const char *const NAMES[] = {
    "UTC",          "Europe/Berlin",    "Europe/Dublin",    "Australia/Lord_Howe", "Asia/Bangkok",
    "Pacific/Apia", "America/New_York", "America/Santiago", "Africa/Casablanca",   "Asia/Kathmandu",
};

static struct bel_zones *zones;

static void check_parses(const char *text, size_t bytes, int64_t want)
{
    struct bel_instant_options options = {.zones = zones, .gap = BEL_GAP_SKIP};
    struct bel_text_error why = {0};
    struct bel_wall again = {~want};
    CHECK(bytes == strlen(text));
    int err = bel_instant_parse(text, bytes, &options, &again, &why);
    CHECK_NOTE("%" PRId64 " printed as %s: %d %zu %s", want, text, err, why.position, why.expected);
    CHECK(err == 0 && again.ms == want);
}

static void check_utc(int64_t ms)
{
    char text[BEL_INSTANT_BYTES];
    size_t bytes = bel_instant_print((struct bel_wall){ms}, text, sizeof text);
    check_parses(text, bytes, ms);
}

static void check_zoned(const struct bel_zone *zone, int64_t ms)
{
    char text[BEL_INSTANT_BYTES];
    size_t bytes = bel_instant_print_zoned((struct bel_wall){ms}, zone, text, sizeof text);
    check_parses(text, bytes, ms);
}

static void check_around_a_change(const struct bel_zone *zone, int64_t ms, uint64_t *state)
{
    int64_t change = 0;
    if (!bel_zone_next_change(zone, ms / 1000, &change)) return;
    int64_t near = (int64_t)random_below(state, 10800000) - 3600000;
    check_zoned(zone, change * 1000 + near);
    check_zoned(zone, change * 1000);
    check_zoned(zone, change * 1000 - 1);
}

static void run_case(uint64_t seed)
{
    uint64_t state = seed;
    const char *name = NAMES[random_below(&state, sizeof NAMES / sizeof NAMES[0])];
    const struct bel_zone *zone = NULL;
    CHECK_NOTE("zone %s", name);
    CHECK(bel_zones_find(zones, name, strlen(name), &zone) == 0);
    for (int i = 0; i < TIMES; i++) {
        int64_t magnitude = (int64_t)(random_magnitude(&state) >> 1);
        int64_t ms = YEAR_1972_MS + magnitude % (YEAR_9999_MS - YEAR_1972_MS);
        check_utc(magnitude);
        check_utc(~magnitude);
        check_zoned(zone, ms);
        check_around_a_change(zone, ms, &state);
    }
}

int main(int argc, char **argv)
{
    if (bel_zones_open(NULL, &zones) != 0) return 77;
    int status = run_cases(argc, argv, 2000, run_case, "lists of round trips");
    bel_zones_close(zones);
    return status;
}
