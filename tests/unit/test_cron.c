/* SPDX-License-Identifier: MIT */

/*
 * Single rules: their meaning, parse errors, and the effect of clock changes. Times are in UTC;
 * prop_cron compares with a scan of every minute.
 */
#include "belfry/cron.h"

#include "../check.h"

#include <string.h>
#include <time.h>

static struct bel_zones *zones;

static const struct bel_zone *zone(const char *name)
{
    const struct bel_zone *found;
    CHECK_NOTE("zone %s", name);
    CHECK(bel_zones_find(zones, name, strlen(name), &found) == 0);
    return found;
}

static struct bel_cron parse(const char *text)
{
    struct bel_cron cron;
    struct bel_text_error why;
    int err = bel_cron_parse(text, strlen(text), 0, &cron, &why);
    CHECK_NOTE("%s: at %zu: %s", text, err ? why.position : 0, err ? why.expected : "");
    CHECK(err == 0);
    return cron;
}

/* "2026-03-29 01:00:00" as UTC. */
static int64_t utc(const char *text)
{
    struct tm tm = {0};
    CHECK(strptime(text, "%Y-%m-%d %H:%M:%S", &tm) != NULL);
    return timegm(&tm);
}

struct run {
    const char *rule, *zone;
    enum bel_gap gap;
    enum bel_fold fold;
    const char *from;
    const char *times[6]; /* the next ones, in UTC */
};

static void check_run(const struct run *run)
{
    struct bel_cron cron = parse(run->rule);
    struct bel_zone_when when = {zone(run->zone), run->gap, run->fold};
    int64_t at = utc(run->from);
    for (unsigned i = 0; i < 6 && run->times[i] != NULL; i++) {
        int64_t next;
        CHECK(bel_cron_next(&cron, &when, at, &next));
        char text[32];
        time_t seconds = next;
        struct tm tm;
        CHECK(gmtime_r(&seconds, &tm) != NULL);
        CHECK(strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0);
        CHECK_NOTE("%s in %s after %s: got %s, want %s", run->rule, run->zone, run->from, text,
                   run->times[i]);
        CHECK(strcmp(text, run->times[i]) == 0);
        at = next;
    }
}

static void check_runs(const struct run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_run(&runs[i]);
    }
}

static void fields_mean_what_they_say(void)
{
    static const struct run runs[] = {
        {"0 9 * * 1-5",
         "UTC",
         0,
         0,
         "2026-01-02 09:00:00",
         {"2026-01-05 09:00:00", "2026-01-06 09:00:00"}},
        {"*/15 * * * *",
         "UTC",
         0,
         0,
         "2026-01-01 00:07:00",
         {"2026-01-01 00:15:00", "2026-01-01 00:30:00", "2026-01-01 00:45:00"}},
        {"5/20 1 * * *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-01 01:05:00", "2026-01-01 01:25:00", "2026-01-01 01:45:00",
          "2026-01-02 01:05:00"}},
        {"10-30/10,55 1 * * *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-01 01:10:00", "2026-01-01 01:20:00", "2026-01-01 01:30:00",
          "2026-01-01 01:55:00"}},
        {"30 0 12 1 JAN,jul ?",
         "UTC",
         0,
         0,
         "2026-01-01 12:00:29",
         {"2026-01-01 12:00:30", "2026-07-01 12:00:30", "2027-01-01 12:00:30"}},
        {"0 0 1 */3 *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-04-01 00:00:00", "2026-07-01 00:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void sunday_is_0_and_7(void)
{
    static const struct run runs[] = {
        {"0 0 * * 0", "UTC", 0, 0, "2026-01-01 00:00:00", {"2026-01-04 00:00:00"}},
        {"0 0 * * 7", "UTC", 0, 0, "2026-01-01 00:00:00", {"2026-01-04 00:00:00"}},
        {"0 0 * * 5-7",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-02 00:00:00", "2026-01-03 00:00:00", "2026-01-04 00:00:00",
          "2026-01-09 00:00:00"}},
        {"0 0 * * sun", "UTC", 0, 0, "2026-01-01 00:00:00", {"2026-01-04 00:00:00"}},
        {"0 0 * * 7/3",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-03 00:00:00", "2026-01-04 00:00:00", "2026-01-07 00:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void a_step_past_the_end_leaves_the_first_value(void)
{
    static const struct run runs[] = {
        {"0 */30 * * *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-02 00:00:00", "2026-01-03 00:00:00"}},
        {"0 0 1 */999 *", "UTC", 0, 0, "2026-01-01 00:00:00", {"2027-01-01 00:00:00"}},
        /* The star restricts a list of days to a weekday: the first Monday of a month. */
        {"1 1 */100,1-7 * MON",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-05 01:01:00", "2026-02-02 01:01:00", "2026-03-02 01:01:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void a_day_and_a_weekday_mean_either(void)
{
    static const struct run runs[] = {
        {"0 0 13 * 5",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-02 00:00:00", "2026-01-09 00:00:00", "2026-01-13 00:00:00",
          "2026-01-16 00:00:00"}},
        /* A field that starts with a star is unrestricted: both must match. */
        {"0 0 */2 * 5",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-09 00:00:00", "2026-01-23 00:00:00"}},
        {"0 0 13 * ?",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-13 00:00:00", "2026-02-13 00:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void last_days_nearest_weekdays_and_nth_weekdays(void)
{
    static const struct run runs[] = {
        {"0 0 L * *",
         "UTC",
         0,
         0,
         "2028-01-31 00:00:00",
         {"2028-02-29 00:00:00", "2028-03-31 00:00:00", "2028-04-30 00:00:00"}},
        {"0 0 L-2 * *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-29 00:00:00", "2026-02-26 00:00:00"}},
        /* 2026-08-15 is a Saturday, 2026-11-15 a Sunday, 2026-08-01 a Saturday. */
        {"0 0 15W 8,11 *",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-08-14 00:00:00", "2026-11-16 00:00:00"}},
        {"0 0 1W 8 *", "UTC", 0, 0, "2026-01-01 00:00:00", {"2026-08-03 00:00:00"}},
        /* 2026-05-31 is a Sunday: LW stays within the month. */
        {"0 0 LW 5 *", "UTC", 0, 0, "2026-01-01 00:00:00", {"2026-05-29 00:00:00"}},
        {"0 0 * * 5L",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-30 00:00:00", "2026-02-27 00:00:00"}},
        {"0 0 * * FRI#2",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-01-09 00:00:00", "2026-02-13 00:00:00"}},
        {"0 0 * * 1#5",
         "UTC",
         0,
         0,
         "2026-01-01 00:00:00",
         {"2026-03-30 00:00:00", "2026-06-29 00:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void forms_of_other_crons(void)
{
    static const struct run runs[] = {
        {"0 22-2/2 * * *",
         "UTC",
         0,
         0,
         "2026-01-01 12:00:00",
         {"2026-01-01 22:00:00", "2026-01-02 00:00:00", "2026-01-02 02:00:00",
          "2026-01-02 22:00:00"}},
        {"0 9 * * FRI-SUN",
         "UTC",
         0,
         0,
         "2026-01-01 12:00:00", /* a Thursday */
         {"2026-01-02 09:00:00", "2026-01-03 09:00:00", "2026-01-04 09:00:00",
          "2026-01-09 09:00:00"}},
        {"0 9 * * 7-1",
         "UTC",
         0,
         0,
         "2026-01-01 12:00:00",
         {"2026-01-04 09:00:00", "2026-01-05 09:00:00", "2026-01-11 09:00:00"}},
        {"0 0 1 NOV-feb *",
         "UTC",
         0,
         0,
         "2026-02-01 12:00:00",
         {"2026-11-01 00:00:00", "2026-12-01 00:00:00", "2027-01-01 00:00:00",
          "2027-02-01 00:00:00", "2027-11-01 00:00:00"}},
        {"0 0 30-1 * *",
         "UTC",
         0,
         0,
         "2026-02-01 12:00:00",
         {"2026-03-01 00:00:00", "2026-03-30 00:00:00", "2026-03-31 00:00:00",
          "2026-04-01 00:00:00"}},
        {"0 9 * january friday", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-02 09:00:00"}},
        {"0 9 * Sept Thurs", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-09-03 09:00:00"}},
        {"0 9 ? * ?", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-02 09:00:00"}},
        {"0 0 L-5W * *", /* the 26th is a Monday; the 23rd of February, a Monday too */
         "UTC",
         0,
         0,
         "2026-01-01 12:00:00",
         {"2026-01-26 00:00:00", "2026-02-23 00:00:00", "2026-03-26 00:00:00",
          "2026-04-24 00:00:00"}},
        {"0 0 L-0W * *", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-30 00:00:00"}},
        {"0 0 ? * L5", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-30 00:00:00"}},
        {"0 0 ? * LFRI", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-30 00:00:00"}},
        {"0 0 ? * FRI#L", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-30 00:00:00"}},
        {"0 0 ? * FRIL", "UTC", 0, 0, "2026-01-01 12:00:00", {"2026-01-30 00:00:00"}},
        {"0 0 9 1 1 ? 2030,2032-2033",
         "UTC",
         0,
         0,
         "2026-01-01 12:00:00",
         {"2030-01-01 09:00:00", "2032-01-01 09:00:00", "2033-01-01 09:00:00"}},
        {"0 0 9 1 1 ? *", "UTC", 0, 0, "2026-01-01 12:00:00", {"2027-01-01 09:00:00"}},
        {"0 0 9 29 2 ? 2027/1", "UTC", 0, 0, "2026-01-01 12:00:00", {"2028-02-29 09:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
    struct bel_cron cron = parse("0 0 9 1 1 ? 2030");
    struct bel_zone_when when = {zone("UTC"), 0, 0};
    int64_t next;
    CHECK(!bel_cron_next(&cron, &when, utc("2030-01-01 09:00:00"), &next));
}

static void a_zone_before_a_rule_is_split_off(void)
{
    static const struct {
        const char *text, *zone, *rule;
    } rows[] = {
        {"TZ=Asia/Tokyo 0 9 * * *", "Asia/Tokyo", "0 9 * * *"},
        {"CRON_TZ=UTC\t @daily", "UTC", "@daily"},
        {"TZ=UTC", "UTC", ""},
        {"TZ= 0 9 * * *", "", "0 9 * * *"},
        {"0 9 * * *", NULL, "0 9 * * *"},
        {"TZ", NULL, "TZ"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_view rule = {rows[i].text, strlen(rows[i].text)}, name = {0};
        CHECK_NOTE("%s", rows[i].text);
        CHECK(bel_cron_split_zone(&rule, &name) == (rows[i].zone != NULL));
        CHECK_EQ(rule.bytes, strlen(rows[i].rule));
        CHECK(memcmp(rule.data, rows[i].rule, rule.bytes) == 0);
        if (rows[i].zone == NULL) continue;
        CHECK_EQ(name.bytes, strlen(rows[i].zone));
        CHECK(memcmp(name.data, rows[i].zone, name.bytes) == 0);
    }
}

static void rare_dates_are_found(void)
{
    static const struct run runs[] = {
        {"0 0 29 2 *", "UTC", 0, 0, "2096-03-01 00:00:00", {"2104-02-29 00:00:00"}},
        /* A 29 February that is a Monday: the star makes both hold. */
        {"0 0 29-29/1 2 */7,1", "UTC", 0, 0, "2026-01-01 00:00:00", {"2032-02-29 00:00:00"}},
        {"0 12 31 12 ?", "UTC", 0, 0, "2399-12-31 12:00:00", {"2400-12-31 12:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void a_time_in_a_gap_comes_at_its_end_once_or_not_at_all(void)
{
    static const struct run runs[] = {
        {"30 2 * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-28 02:00:00",
         {"2026-03-29 01:00:00", "2026-03-30 00:30:00"}},
        {"30 2 * * *",
         "Europe/Berlin",
         BEL_GAP_SKIP,
         0,
         "2026-03-28 02:00:00",
         {"2026-03-30 00:30:00"}},
        {"0,30 2 * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-28 02:00:00",
         {"2026-03-29 01:00:00", "2026-03-30 00:00:00"}},
        {"0 2,3 * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-28 03:00:00",
         {"2026-03-29 01:00:00", "2026-03-30 00:00:00"}},
        /* After the last second before the gap. */
        {"30 2 * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-29 00:59:59",
         {"2026-03-29 01:00:00", "2026-03-30 00:30:00"}},
        {"59 29,59 1-2 * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-29 00:29:59",
         {"2026-03-29 00:59:59", "2026-03-29 01:00:00", "2026-03-29 23:29:59"}},
        /* A star follows real time. */
        {"30 * * * *",
         "Europe/Berlin",
         BEL_GAP_NEXT,
         0,
         "2026-03-29 00:00:00",
         {"2026-03-29 00:30:00", "2026-03-29 01:30:00"}},
        /* Apia left out a whole day. */
        {"0 12 30 12 *",
         "Pacific/Apia",
         BEL_GAP_NEXT,
         0,
         "2011-12-29 00:00:00",
         {"2011-12-30 10:00:00", "2012-12-29 22:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void a_time_that_comes_twice_is_taken_as_told(void)
{
    static const struct run runs[] = {
        {"30 2 * * *",
         "Europe/Berlin",
         0,
         BEL_FOLD_FIRST,
         "2026-10-24 12:00:00",
         {"2026-10-25 00:30:00", "2026-10-26 01:30:00"}},
        {"30 2 * * *",
         "Europe/Berlin",
         0,
         BEL_FOLD_SECOND,
         "2026-10-24 12:00:00",
         {"2026-10-25 01:30:00", "2026-10-26 01:30:00"}},
        {"30 2 * * *",
         "Europe/Berlin",
         0,
         BEL_FOLD_BOTH,
         "2026-10-24 12:00:00",
         {"2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-26 01:30:00"}},
        {"30 * * * *",
         "Europe/Berlin",
         0,
         BEL_FOLD_FIRST,
         "2026-10-24 23:30:00",
         {"2026-10-25 00:30:00", "2026-10-25 01:30:00", "2026-10-25 02:30:00"}},
        {"*/30 2 * * *",
         "Europe/Berlin",
         0,
         BEL_FOLD_SECOND,
         "2026-10-24 12:00:00",
         {"2026-10-25 01:00:00", "2026-10-25 01:30:00", "2026-10-26 01:00:00"}},
        {"15 1,2 * * *",
         "Australia/Lord_Howe",
         0,
         BEL_FOLD_FIRST,
         "2026-04-04 00:00:00",
         {"2026-04-04 14:15:00", "2026-04-04 15:45:00", "2026-04-05 14:45:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void nicknames_stand_for_rules(void)
{
    static const struct run runs[] = {
        {"@hourly", "UTC", 0, 0, "2026-01-01 00:30:00", {"2026-01-01 01:00:00"}},
        {"@Daily", "UTC", 0, 0, "2026-01-01 00:30:00", {"2026-01-02 00:00:00"}},
        {"@midnight", "UTC", 0, 0, "2026-01-01 00:30:00", {"2026-01-02 00:00:00"}},
        {"@weekly", "UTC", 0, 0, "2026-01-01 00:30:00", {"2026-01-04 00:00:00"}},
        {"@monthly", "UTC", 0, 0, "2026-01-01 00:30:00", {"2026-02-01 00:00:00"}},
        {"@yearly", "UTC", 0, 0, "2026-01-01 00:30:00", {"2027-01-01 00:00:00"}},
        {"@annually", "UTC", 0, 0, "2026-01-01 00:30:00", {"2027-01-01 00:00:00"}},
    };
    check_runs(runs, sizeof runs / sizeof runs[0]);
}

static void bad_rules_are_refused_where_they_are_wrong(void)
{
    static const struct {
        const char *rule;
        size_t position;
        const char *expected;
    } rows[] = {
        {"", 0, "five fields"},
        {"* * * *", 7, "five fields"},
        {"60 * * * *", 0, "a minute from 0 to 59"},
        {"0 25 * * *", 2, "an hour from 0 to 23"},
        {"0 0 0 * *", 4, "a day from 1 to 31"},
        {"0 0 1 13 *", 6, "a month from 1 to 12"},
        {"0 0 1 1 8", 8, "a weekday from 0 to 7"},
        {"0 0 1 1 MONDAYS", 14, ", or the end"},
        {"0 0 1 1 MO", 8, "a weekday from 0 to 7"},
        {"*/0 * * * *", 2, "a step from 1 to 999"},
        {"*/ * * * *", 2, "a step"},
        {"1,,2 * * * *", 2, "a minute"},
        {"1, * * * *", 2, "a minute"},
        {"0 0 L-31 * *", 6, "days before the last"},
        {"0 0 * * 1#6", 10, "a number from 1 to 5"},
        {"0 0 * * L", 9, "a weekday"},
        {"0 0 L-3X * *", 7, ", or a space"},
        {"every 5 minutes", 0, "five fields, e.g. */5 * * * *"},
        {"daily", 0, "five fields, e.g. */5 * * * *"},
        {"at 9", 0, "five fields, e.g. */5 * * * *"},
        {"9:00", 0, "five fields, e.g. */5 * * * *"},
        {"R/PT5M", 0, "five fields, e.g. */5 * * * *"},
        {"*", 0, "five fields, e.g. */5 * * * *"},
        {"0 0 0 1 1 ? 1969", 12, "a year from 1970 to 2199"},
        {"0 0 0 1 1 ? 20300", 12, "a year from 1970 to 2199"},
        {"0 0 0 1 1 ? 2030-2020", 16, "a later year"},
        {"0 0 0 29 2 ? 2027", 0, "a date that exists"},
        {"? * * * *", 0, "a minute"},
        {"0 0 31 2 *", 0, "a date that exists"},
        {"0 0 30 2 ?", 0, "a date that exists"},
        {"0 0 0 0 0 0 0", 6, "a day"},
        {"* * * * * * * *", 14, "the end"},
        {"@fortnightly", 0, "@hourly"},
        {"0x5 * * * *", 1, ", or a space"},
        {"0000 * * * *", 0, "a minute"},
        {"H(5-1) * * * *", 4, "a range from low to high"},
        {"H(5 * * * *", 3, "- and the range's end"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_cron cron = {.hours = 77};
        struct bel_text_error why = {0};
        CHECK(bel_cron_parse(rows[i].rule, strlen(rows[i].rule), 0, &cron, &why) == BEL_EINVAL);
        CHECK_NOTE("'%s': at %zu: %s", rows[i].rule, why.position, why.expected);
        CHECK_EQ(why.position, rows[i].position);
        CHECK(strncmp(why.expected, rows[i].expected, strlen(rows[i].expected)) == 0);
        CHECK_EQ(cron.hours, 77);
        CHECK(bel_cron_parse(rows[i].rule, strlen(rows[i].rule), 0, &cron, NULL) == BEL_EINVAL);
    }
}

static void a_rule_that_is_too_long_is_refused(void)
{
    static char text[4096];
    struct bel_cron cron;
    struct bel_text_error why;
    memset(text, ' ', sizeof text);
    CHECK(bel_cron_parse(text, sizeof text, 0, &cron, &why) == BEL_EINVAL);
    CHECK_EQ(why.position, BEL_CRON_TEXT_MAX);
}

static void what_is_printed_means_the_same(void)
{
    static const struct {
        const char *rule, *printed;
    } rows[] = {
        {"0 9 * * MON-FRI", "0 9 * * 1-5"},
        {"*/15 * * * *", "*/15 * * * *"},
        {"*/20,5 1,2,3,7 ? JAN 7", "*/20,5 1-3,7 * 1 0"},
        {"30 0 0 L,15W,LW,L-3 * 5L,1#2", "30 0 0 L,L-3,15W,LW * 1#2,5L"},
        {"@weekly", "0 0 * * 0"},
        {"5/20 0 1 1 *", "5,25,45 0 1 1 *"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[160], short_text[4] = "xxx";
        struct bel_cron cron = parse(rows[i].rule), again;
        size_t bytes = bel_cron_print(&cron, text, sizeof text);
        CHECK_NOTE("%s -> %s", rows[i].rule, text);
        CHECK(strcmp(text, rows[i].printed) == 0);
        CHECK_EQ(bytes, strlen(text));
        CHECK_EQ(bel_cron_print(&cron, short_text, sizeof short_text), bytes);
        CHECK(short_text[3] == '\0' && memcmp(short_text, text, 3) == 0);
        again = parse(text);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): what is between is 0 */
        CHECK(memcmp(&cron, &again, sizeof cron) == 0);
    }
}

static void h_depends_on_the_seed_alone_and_stays_in_its_range(void)
{
    static const char rule[] = "H(10-19) H/8 H * *";
    uint64_t minutes_seen = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct bel_cron a, b;
        CHECK(bel_cron_parse(rule, strlen(rule), seed, &a, NULL) == 0);
        CHECK(bel_cron_parse(rule, strlen(rule), seed, &b, NULL) == 0);
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): what is between is 0 */
        CHECK(memcmp(&a, &b, sizeof a) == 0);
        CHECK_EQ((uint64_t)__builtin_popcountll(a.minutes), 1);
        CHECK((a.minutes & ~(UINT64_C(0x3ff) << 10)) == 0);
        CHECK_EQ((uint64_t)__builtin_popcount(a.hours), 3);
        CHECK_EQ((uint64_t)__builtin_popcount(a.days), 1);
        CHECK(a.days < UINT32_C(1) << 29);
        minutes_seen |= a.minutes;
    }
    CHECK_EQ(minutes_seen, UINT64_C(0x3ff) << 10); /* every value comes up */
}

static void next_is_always_later_and_ends_with_the_year_9999(void)
{
    struct bel_cron cron = parse("* * * * * *");
    struct bel_zone_when when = {bel_zone_utc(), BEL_GAP_NEXT, BEL_FOLD_FIRST};
    int64_t next, last = utc("9999-12-31 00:00:00");
    CHECK(bel_cron_next(&cron, &when, utc("2026-01-01 00:00:00"), &next));
    CHECK(next == utc("2026-01-01 00:00:01"));
    CHECK(!bel_cron_next(&cron, &when, last, &next));
    CHECK(!bel_cron_next(&cron, &when, INT64_MAX, &next));
    CHECK(bel_cron_next(&cron, &when, INT64_MIN, &next));
    cron = parse("0 0 29 2 *");
    CHECK(!bel_cron_next(&cron, &when, utc("9996-03-01 00:00:00"), &next));
}

int main(void)
{
    CHECK(bel_zones_open(NULL, &zones) == 0);
    RUN(fields_mean_what_they_say);
    RUN(sunday_is_0_and_7);
    RUN(a_step_past_the_end_leaves_the_first_value);
    RUN(a_day_and_a_weekday_mean_either);
    RUN(last_days_nearest_weekdays_and_nth_weekdays);
    RUN(forms_of_other_crons);
    RUN(a_zone_before_a_rule_is_split_off);
    RUN(rare_dates_are_found);
    RUN(a_time_in_a_gap_comes_at_its_end_once_or_not_at_all);
    RUN(a_time_that_comes_twice_is_taken_as_told);
    RUN(nicknames_stand_for_rules);
    RUN(bad_rules_are_refused_where_they_are_wrong);
    RUN(a_rule_that_is_too_long_is_refused);
    RUN(what_is_printed_means_the_same);
    RUN(h_depends_on_the_seed_alone_and_stays_in_its_range);
    RUN(next_is_always_later_and_ends_with_the_year_9999);
    bel_zones_close(zones);
    return 0;
}
