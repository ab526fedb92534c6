/* SPDX-License-Identifier: MIT */

/* Past clock changes in zones of the system; prop_zone compares all zones. */
#include "belfry/zone.h"

#include "../check.h"

#include <string.h>

static struct bel_zones *zones;

static const struct bel_zone *zone_of(const char *name)
{
    const struct bel_zone *zone = NULL;
    CHECK_NOTE("%s", name);
    CHECK(bel_zones_find(zones, name, strlen(name), &zone) == 0);
    CHECK(strcmp(bel_zone_name(zone), name) == 0);
    return zone;
}

static struct bel_civil civil_of(const char *text)
{
    int year;
    unsigned month, day, hour, minute, second;
    CHECK_EQ(
        (uint64_t)sscanf(text, "%d-%u-%u %u:%u:%u", &year, &month, &day, &hour, &minute, &second),
        6);
    return (struct bel_civil){.year = year,
                              .month = (uint8_t)month,
                              .day = (uint8_t)day,
                              .hour = (uint8_t)hour,
                              .minute = (uint8_t)minute,
                              .second = (uint8_t)second};
}

static struct bel_zone_instants at(const struct bel_zone *zone, const char *text)
{
    struct bel_zone_instants instants;
    struct bel_civil civil = civil_of(text);
    CHECK_NOTE("%s in %s", text, bel_zone_name(zone));
    CHECK(bel_zone_at(zone, &civil, &instants) == 0);
    return instants;
}

static int64_t utc(const char *text)
{
    struct bel_zone_instants instants = at(bel_zone_utc(), text);
    CHECK(instants.answer == BEL_ZONE_EXACT && instants.first == instants.second);
    return instants.first;
}

static void shows(const char *name, const char *instant, const char *text)
{
    struct bel_civil got, want = civil_of(text);
    const struct bel_zone *zone = zone_of(name);
    CHECK(bel_zone_civil(zone, utc(instant), &got) == 0);
    CHECK_NOTE("%s at %sZ: %d-%02u-%02u %02u:%02u:%02u", name, instant, got.year, got.month,
               got.day, got.hour, got.minute, got.second);
    CHECK(got.year == want.year && got.month == want.month && got.day == want.day);
    CHECK(got.hour == want.hour && got.minute == want.minute && got.second == want.second);
}

static void exact(const char *name, const char *local, const char *instant)
{
    struct bel_zone_instants got = at(zone_of(name), local);
    int64_t want = utc(instant);
    CHECK_NOTE("%s in %s", local, name);
    CHECK(got.answer == BEL_ZONE_EXACT);
    CHECK(got.first == want && got.second == want);
}

static void gap(const char *name, const char *local, const char *instant)
{
    struct bel_zone_instants got = at(zone_of(name), local);
    int64_t want = utc(instant);
    CHECK_NOTE("%s in %s", local, name);
    CHECK(got.answer == BEL_ZONE_GAP);
    CHECK(got.first == want && got.second == want);
}

static void fold(const char *name, const char *local, const char *first, const char *second)
{
    struct bel_zone_instants got = at(zone_of(name), local);
    int64_t want_first = utc(first), want_second = utc(second);
    CHECK_NOTE("%s in %s", local, name);
    CHECK(got.answer == BEL_ZONE_FOLD);
    CHECK(got.first == want_first && got.second == want_second);
}

static void next_is(const char *name, const char *from, const char *to)
{
    int64_t got, want = utc(to), after = utc(from);
    const struct bel_zone *zone = zone_of(name);
    CHECK(bel_zone_next_change(zone, after, &got));
    CHECK(got == want);
}

static void utc_is_there_without_a_file(void)
{
    int64_t change;
    CHECK(zone_of("UTC") == bel_zone_utc());
    CHECK(bel_zone_offset(bel_zone_utc(), INT64_MIN) == 0);
    CHECK(bel_zone_offset(bel_zone_utc(), INT64_MAX) == 0);
    CHECK(!bel_zone_next_change(bel_zone_utc(), 0, &change));
    CHECK(utc("1970-01-01 00:00:00") == 0);
    CHECK(utc("2000-02-29 12:34:56") == 951827696);
    CHECK(utc("0000-03-01 00:00:00") == -62162035200);
    CHECK(utc("-9999-01-01 00:00:00") == -377705116800);
    CHECK(utc("9999-12-31 23:59:59") == 253402300799);
    shows("UTC", "-9999-01-01 00:00:00", "-9999-01-01 00:00:00");
}

static void berlin_has_a_gap_in_march_and_a_fold_in_october(void)
{
    exact("Europe/Berlin", "2024-03-31 01:59:59", "2024-03-31 00:59:59");
    gap("Europe/Berlin", "2024-03-31 02:00:00", "2024-03-31 01:00:00");
    gap("Europe/Berlin", "2024-03-31 02:59:59", "2024-03-31 01:00:00");
    exact("Europe/Berlin", "2024-03-31 03:00:00", "2024-03-31 01:00:00");
    exact("Europe/Berlin", "2024-10-27 01:59:59", "2024-10-26 23:59:59");
    fold("Europe/Berlin", "2024-10-27 02:00:00", "2024-10-27 00:00:00", "2024-10-27 01:00:00");
    fold("Europe/Berlin", "2024-10-27 02:59:59", "2024-10-27 00:59:59", "2024-10-27 01:59:59");
    exact("Europe/Berlin", "2024-10-27 03:00:00", "2024-10-27 02:00:00");
    next_is("Europe/Berlin", "2024-06-01 00:00:00", "2024-10-27 01:00:00");
    next_is("Europe/Berlin", "2024-10-27 00:59:59", "2024-10-27 01:00:00");
    next_is("Europe/Berlin", "2024-10-27 01:00:00", "2025-03-30 01:00:00");
}

static void before_the_first_change_clocks_show_local_mean_time(void)
{
    shows("Europe/Berlin", "1800-01-01 00:00:00", "1800-01-01 00:53:28");
    shows("Europe/Berlin", "-5000-01-01 00:00:00", "-5000-01-01 00:53:28");
    next_is("Europe/Berlin", "-9999-01-01 00:00:00", "1893-03-31 23:06:32");
    CHECK(bel_zone_offset(zone_of("Europe/Berlin"), INT64_MIN) == 53 * 60 + 28);
}

static void the_rule_holds_for_ever(void)
{
    shows("Europe/Berlin", "2999-07-01 00:00:00", "2999-07-01 02:00:00");
    shows("Europe/Berlin", "9999-12-31 22:59:59", "9999-12-31 23:59:59");
    gap("Europe/Berlin", "9999-03-28 02:30:00", "9999-03-28 01:00:00");
    fold("Europe/Berlin", "9999-10-31 02:30:00", "9999-10-31 00:30:00", "9999-10-31 01:30:00");
    next_is("America/New_York", "9998-12-01 00:00:00", "9999-03-14 07:00:00");
    int32_t offset = bel_zone_offset(zone_of("Europe/Berlin"), INT64_MAX);
    CHECK(offset == 3600 || offset == 7200);
}

static void the_rule_goes_over_from_cycle_to_cycle(void)
{
    const struct bel_zone *zone = zone_of("Europe/Berlin");
    int64_t from = utc("2400-01-01 00:00:00"), change;
    for (int i = 0; i < 800; i++) { /* 400 years, wherever the cycle ends */
        CHECK(bel_zone_next_change(zone, from, &change));
        CHECK(change > from && change - from < INT64_C(86400) * 225);
        CHECK(bel_zone_offset(zone, change) != bel_zone_offset(zone, change - 1));
        CHECK(bel_zone_offset(zone, from) == bel_zone_offset(zone, change - 1));
        from = change;
    }
    CHECK(from == utc("2799-10-31 01:00:00"));
}

static void apia_left_out_a_day(void)
{
    exact("Pacific/Apia", "2011-12-29 23:59:59", "2011-12-30 09:59:59");
    gap("Pacific/Apia", "2011-12-30 00:00:00", "2011-12-30 10:00:00");
    gap("Pacific/Apia", "2011-12-30 23:59:59", "2011-12-30 10:00:00");
    exact("Pacific/Apia", "2011-12-31 00:00:00", "2011-12-30 10:00:00");
}

static void kwajalein_left_out_a_day_and_juneau_had_one_twice(void)
{
    gap("Pacific/Kwajalein", "1993-08-21 12:00:00", "1993-08-21 12:00:00");
    exact("Pacific/Kwajalein", "1993-08-22 00:00:00", "1993-08-21 12:00:00");
    fold("America/Juneau", "1867-10-18 16:00:00", "1867-10-18 00:57:41", "1867-10-19 00:57:41");
}

static void dublin_has_its_dst_in_winter(void)
{
    shows("Europe/Dublin", "2040-01-15 12:00:00", "2040-01-15 12:00:00");
    shows("Europe/Dublin", "2040-07-15 12:00:00", "2040-07-15 13:00:00");
    gap("Europe/Dublin", "2040-03-25 01:30:00", "2040-03-25 01:00:00");
    fold("Europe/Dublin", "2040-10-28 01:30:00", "2040-10-28 00:30:00", "2040-10-28 01:30:00");
}

static void casablanca_puts_the_clocks_back_for_ramadan(void)
{
    fold("Africa/Casablanca", "2025-02-23 02:30:00", "2025-02-23 01:30:00", "2025-02-23 02:30:00");
    gap("Africa/Casablanca", "2025-04-06 02:30:00", "2025-04-06 02:00:00");
    shows("Africa/Casablanca", "2100-07-01 00:00:00", "2100-07-01 01:00:00");
    int64_t change;
    CHECK(!bel_zone_next_change(zone_of("Africa/Casablanca"), utc("2100-01-01 00:00:00"), &change));
}

static void some_change_by_half_an_hour_or_two(void)
{
    gap("Australia/Lord_Howe", "2050-10-02 02:15:00", "2050-10-01 15:30:00");
    exact("Australia/Lord_Howe", "2050-10-02 02:30:00", "2050-10-01 15:30:00");
    fold("Australia/Lord_Howe", "2050-04-03 01:45:00", "2050-04-02 14:45:00",
         "2050-04-02 15:15:00");
    gap("Antarctica/Troll", "2050-03-27 02:59:59", "2050-03-27 01:00:00");
    fold("Antarctica/Troll", "2050-10-30 01:00:00", "2050-10-29 23:00:00", "2050-10-30 01:00:00");
}

static void some_rules_are_about_the_day_before_or_after(void)
{
    gap("America/Nuuk", "2050-03-26 23:30:00", "2050-03-27 01:00:00"); /* Sunday at -1:00 */
    fold("America/Nuuk", "2050-10-29 23:30:00", "2050-10-30 00:30:00", "2050-10-30 01:30:00");
    gap("Asia/Gaza", "2040-03-24 02:30:00", "2040-03-24 00:00:00"); /* Thursday at 50:00 */
}

static void what_is_no_date_is_refused(void)
{
    static const struct bel_civil wrong[] = {
        {.year = 2023, .month = 2, .day = 29},
        {.year = 2024, .month = 2, .day = 30},
        {.year = 1900, .month = 2, .day = 29},
        {.year = 2024, .month = 4, .day = 31},
        {.year = 2024, .month = 0, .day = 1},
        {.year = 2024, .month = 13, .day = 1},
        {.year = 2024, .month = 1, .day = 0},
        {.year = 2024, .month = 1, .day = 1, .hour = 24},
        {.year = 2024, .month = 1, .day = 1, .minute = 60},
        {.year = 2024, .month = 1, .day = 1, .second = 60},
        {.year = 10000, .month = 1, .day = 1},
        {.year = -10000, .month = 12, .day = 31},
    };
    struct bel_zone_instants instants = {.first = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_NOTE("row %zu", i);
        CHECK(bel_zone_at(bel_zone_utc(), &wrong[i], &instants) == BEL_EINVAL);
    }
    CHECK(instants.first == 1);
}

static void instants_too_far_away_have_no_date(void)
{
    struct bel_civil civil;
    const struct bel_zone *berlin = zone_of("Europe/Berlin");
    int64_t last = utc("9999-12-31 23:59:59"), first = utc("-9999-01-01 00:00:00");
    CHECK(bel_zone_civil(bel_zone_utc(), last, &civil) == 0);
    CHECK(bel_zone_civil(bel_zone_utc(), last + 1, &civil) == BEL_ERANGE);
    CHECK(bel_zone_civil(bel_zone_utc(), first, &civil) == 0);
    CHECK(bel_zone_civil(bel_zone_utc(), first - 1, &civil) == BEL_ERANGE);
    CHECK(bel_zone_civil(berlin, last - 3600, &civil) == 0);
    CHECK(bel_zone_civil(berlin, last - 3599, &civil) == BEL_ERANGE);
    CHECK(bel_zone_civil(berlin, INT64_MAX, &civil) == BEL_ERANGE);
    CHECK(bel_zone_civil(berlin, INT64_MIN, &civil) == BEL_ERANGE);
}

int main(void)
{
    if (bel_zones_open(NULL, &zones) != 0) {
        printf("skipped: there is no zone on this system\n");
        return 77;
    }
    RUN(utc_is_there_without_a_file);
    RUN(berlin_has_a_gap_in_march_and_a_fold_in_october);
    RUN(before_the_first_change_clocks_show_local_mean_time);
    RUN(the_rule_holds_for_ever);
    RUN(the_rule_goes_over_from_cycle_to_cycle);
    RUN(apia_left_out_a_day);
    RUN(kwajalein_left_out_a_day_and_juneau_had_one_twice);
    RUN(dublin_has_its_dst_in_winter);
    RUN(casablanca_puts_the_clocks_back_for_ramadan);
    RUN(some_change_by_half_an_hour_or_two);
    RUN(some_rules_are_about_the_day_before_or_after);
    RUN(what_is_no_date_is_refused);
    RUN(instants_too_far_away_have_no_date);
    bel_zones_close(zones);
    return 0;
}
