/* SPDX-License-Identifier: MIT */

/*
 * Times of day as people type them, in difficult zones and around their clock changes, compared
 * with a scan of every minute: "02:30" is the first later minute at which the clocks show 02:30,
 * and "sun 02:30" the first one on a Sunday. A time that a change skips on the way is the end of
 * the gap instead.
 */
#include "cli/local_time.h"

#include "belfry/instant.h"
#include "property.h"

#include <string.h>

#define HOUR INT64_C(3600)

enum {
    MINUTE = 60,
    MINUTES_MAX = 9 * 1440,
};

static const char *const zone_names[] = {
    "Europe/Berlin",       "America/New_York",  "America/Santiago",
    "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll",
    "Asia/Gaza",           "Europe/Dublin",     "UTC"};
static const char *const weekdays[] = {"sun", "Monday", "tue", "WED", "thursday", "fri", "sat"};

static struct bel_zones *zones;

/* A time of day to look for. */
struct wanted {
    const struct bel_zone *zone;
    unsigned hour, minute;
    int weekday; /* -1: any */
};

/* Returns the weekday of a date, by counting from Thursday, 1970-01-01, in days of noon in UTC. */
static int weekday_of_date(const struct bel_civil *civil)
{
    struct bel_civil noon = *civil;
    struct bel_zone_instants instants;
    noon.hour = 12;
    noon.minute = noon.second = 0;
    CHECK(bel_zone_at(bel_zone_utc(), &noon, &instants) == 0);
    return (int)((instants.first / 86400 + 4) % 7);
}

static bool shows(const struct wanted *wanted, int64_t utc)
{
    struct bel_civil civil;
    CHECK(bel_zone_civil(wanted->zone, utc, &civil) == 0);
    if (civil.hour != wanted->hour || civil.minute != wanted->minute) return false;
    return wanted->weekday < 0 || wanted->weekday == weekday_of_date(&civil);
}

/* Returns whether a time is skipped on some day between two instants. */
static bool is_skipped(const struct wanted *wanted, int64_t from, int64_t to)
{
    int64_t change = from - 1;
    while (bel_zone_next_change(wanted->zone, change, &change) && change <= to) {
        struct bel_civil before, after;
        CHECK(bel_zone_civil(wanted->zone, change - 1, &before) == 0);
        CHECK(bel_zone_civil(wanted->zone, change, &after) == 0);
        unsigned last = before.hour * 60U + before.minute, first = after.hour * 60U + after.minute;
        unsigned at = wanted->hour * 60 + wanted->minute;
        if (first > last + 1 && at > last && at < first) return true;
        if (first + 1440 - last < 720 && (at > last || at < first)) return true; /* over midnight */
    }
    return false;
}

/* Returns a whole minute near a clock change, if the zone has one. */
static int64_t make_now(uint64_t *random, const struct bel_zone *zone)
{
    int64_t now = INT64_C(1500000000) + (int64_t)random_below(random, 500000000), change = 0;
    bool is_near = random_below(random, 4) > 0 && bel_zone_next_change(zone, now, &change);
    if (is_near) now = change - 5 * HOUR + (int64_t)random_below(random, 8 * (uint64_t)HOUR);
    return now - now % MINUTE;
}

static void run_case(uint64_t seed)
{
    uint64_t random = seed;
    const char *name = zone_names[random_below(&random, sizeof zone_names / sizeof zone_names[0])];
    struct wanted wanted = {.weekday = (int)random_below(&random, 14) - 7};
    struct bel_instant_options options = {.zones = zones};
    char text[32], rewritten[CLI_LOCAL_TIME_BYTES];
    struct bel_wall at;
    CHECK(bel_zones_find(zones, name, strlen(name), &wanted.zone) == 0);
    int64_t now = make_now(&random, wanted.zone), next = now;
    wanted.hour = (unsigned)random_below(&random, random_below(&random, 2) == 0 ? 4 : 24);
    wanted.minute = (unsigned)random_below(&random, 60);
    if (wanted.weekday < 0) wanted.weekday = -1;
    (void)snprintf(text, sizeof text, "%s%s%02u:%02u",
                   wanted.weekday < 0 ? "" : weekdays[wanted.weekday],
                   wanted.weekday < 0 ? "" : " ", wanted.hour, wanted.minute);
    CHECK(bel__local_time_rewrite(text, wanted.zone, (struct bel_wall){now * 1000 + 7},
                                  rewritten) == 0);
    CHECK_NOTE("%s in %s, now %" PRId64 ": %s", text, name, now, rewritten);
    CHECK(bel_instant_parse(rewritten, strlen(rewritten), &options, &at, NULL) == 0);
    CHECK(at.ms > now * 1000);
    for (unsigned i = 0; i < MINUTES_MAX; i++) {
        next += MINUTE;
        if (shows(&wanted, next)) break;
    }
    if (at.ms != next * 1000) CHECK(at.ms < next * 1000 && is_skipped(&wanted, now, next));
}

int main(int argc, char **argv)
{
    CHECK(bel_zones_open(NULL, &zones) == 0);
    int status = run_cases(argc, argv, 3000, run_case, "times of day");
    bel_zones_close(zones);
    return status;
}
