/* SPDX-License-Identifier: MIT */
#include "cli/date_time.h"
#include "cli/duration.h"
#include "cli/local_time.h"
#include "cli/relative_time.h"

#include "belfry/instant.h"

#include "../check.h"

#include <string.h>

#define MINUTE UINT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static void durations_in_words(void)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {
        {"5m", 5 * MINUTE},
        {"5min", 5 * MINUTE},
        {"5 minutes", 5 * MINUTE},
        {"1 minute", MINUTE},
        {"5 MIN", 5 * MINUTE},
        {"90 sec", 90000},
        {"1 hour 30 minutes", HOUR + 30 * MINUTE},
        {"1 hour and 30 min", HOUR + 30 * MINUTE},
        {"2 days, 3 hrs", 2 * DAY + 3 * HOUR},
        {"1.5 hours", HOUR + 30 * MINUTE},
        {"2 weeks", 14 * DAY},
        {"an hour", HOUR},
        {"a week and one day", 8 * DAY},
        {"250 milliseconds", 250},
        {"PT1H", HOUR},
        {"0", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_text_error why;
        uint64_t ms = 7777;
        CHECK_NOTE("'%s'", rows[i].text);
        CHECK(bel__cli_duration(rows[i].text, &ms, &why) == 0);
        CHECK_EQ(ms, rows[i].ms);
    }
}

static void dates_as_people_write_them(void)
{
    static const char *const rows[][2] = {
        {"2026-12-24T18:00Z", "2026-12-24T18:00:00Z"},
        {"2026-12-24 18:00z", "2026-12-24T18:00:00Z"},
        {"2026-12-24 18:00+01:00", "2026-12-24T18:00:00+01:00"},
        {"2026-12-24T18:00:30 -0530", "2026-12-24T18:00:30-05:30"},
        {"2026-12-24T18:00+2", "2026-12-24T18:00:00+02:00"},
        {"2026-12-24 18:00 UTC", "2026-12-24T18:00:00[UTC]"},
        {"2026-12-01 9:00 Europe/Berlin", "2026-12-01T09:00:00[Europe/Berlin]"},
        {"2026-12-01 09:00[Asia/Tokyo]", "2026-12-01T09:00:00[Asia/Tokyo]"},
        {"2026-12-24T18:00:00.25+01[Europe/Berlin]", "2026-12-24T18:00:00.25+01:00[Europe/Berlin]"},
    };
    static const char *const others[] = {
        "2026-12-24T18:00:00Z",  "2026-12-24 18:00",    "18:00",         "2026-12-24",
        "tomorrow 18:00",        "2026-12-24T18:00+1:", "1893484800000", "",
        "2026-12-24 18:00 home", "2026-12-24T18h",      "2026-12-24 ",   "+2h"};
    char out[CLI_DATE_TIME_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_rewritten = bel__date_time_rewrite(rows[i][0], out);
        CHECK_NOTE("'%s': %d '%.90s'", rows[i][0], is_rewritten, out);
        CHECK(is_rewritten && strcmp(out, rows[i][1]) == 0);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK_NOTE("'%s'", others[i]);
        CHECK(!bel__date_time_rewrite(others[i], out));
    }
    CHECK(bel__date_time_is_instant("2026-12-24 18:00Z"));
    CHECK(bel__date_time_is_instant("1893484800000"));
    CHECK(!bel__date_time_is_instant("2026-12-24 18:00"));
    CHECK(!bel__date_time_is_instant("2026-12-24 18:00 Europe/Berlin"));
}

static void what_is_no_duration(void)
{
    static const char *const rows[] = {"5",          "5 monkeys", "minutes",   "5 minutes later",
                                       "",           "5 M",       "30 m 1 h",  "5 and",
                                       "-5 minutes", "and",       "5 min min", "1..5 hours"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_text_error why = {.position = 9999};
        uint64_t ms = 7777;
        CHECK_NOTE("'%s'", rows[i]);
        CHECK(bel__cli_duration(rows[i], &ms, &why) == BEL_EINVAL);
        CHECK(ms == 7777 && why.position <= strlen(rows[i]));
    }
}

static void only_words_are_rewritten(void)
{
    char text[CLI_DURATION_BYTES];
    CHECK(!bel__cli_duration_rewrite("1h30m", text));
    CHECK(!bel__cli_duration_rewrite("PT1H", text));
    CHECK(!bel__cli_duration_rewrite("5", text));
    CHECK(bel__cli_duration_rewrite("1 hour 30 minutes", text));
    CHECK(strcmp(text, "1h30m") == 0);
}

/* It is Wednesday, 2026-11-18, 13:30 in Berlin. */
static void local_times(void)
{
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"18:00", "2026-11-18T18:00:00[Europe/Berlin]"},
        {"13:30", "2026-11-19T13:30:00[Europe/Berlin]"}, /* has begun */
        {"13:30:01", "2026-11-18T13:30:01[Europe/Berlin]"},
        {"9:00", "2026-11-19T09:00:00[Europe/Berlin]"},
        {"today 09:00", "2026-11-18T09:00:00[Europe/Berlin]"},
        {"tomorrow 09:00", "2026-11-19T09:00:00[Europe/Berlin]"},
        {"Tomorrow  09:00:30", "2026-11-19T09:00:30[Europe/Berlin]"},
        {"friday 09:00", "2026-11-20T09:00:00[Europe/Berlin]"},
        {"wed 14:00", "2026-11-18T14:00:00[Europe/Berlin]"},
        {"wed 13:00", "2026-11-25T13:00:00[Europe/Berlin]"},
        {"tue 13:00", "2026-11-24T13:00:00[Europe/Berlin]"},
        {"2026-12-24 18:00", "2026-12-24T18:00:00[Europe/Berlin]"},
        {"2026-12-24T18:00", "2026-12-24T18:00:00[Europe/Berlin]"},
        {"2028-02-29 00:00", "2028-02-29T00:00:00[Europe/Berlin]"},
        {"9am", "2026-11-19T09:00:00[Europe/Berlin]"},
        {"9 PM", "2026-11-18T21:00:00[Europe/Berlin]"},
        {"12:15am", "2026-11-19T00:15:00[Europe/Berlin]"},
        {"12pm", "2026-11-19T12:00:00[Europe/Berlin]"},
        {"noon", "2026-11-19T12:00:00[Europe/Berlin]"},
        {"tomorrow at 9:30 pm", "2026-11-19T21:30:00[Europe/Berlin]"},
        {"18:00 tomorrow", "2026-11-19T18:00:00[Europe/Berlin]"},
        {"9 am friday", "2026-11-20T09:00:00[Europe/Berlin]"},
        {"2026-12-24 at noon", "2026-12-24T12:00:00[Europe/Berlin]"},
    };
    struct bel_zones *zones;
    const struct bel_zone *zone;
    struct bel_wall now = {1795005000000};
    CHECK(bel_zones_open(NULL, &zones) == 0);
    CHECK(bel_zones_find(zones, "Europe/Berlin", 13, &zone) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_instant_options options = {.zones = zones};
        char text[CLI_LOCAL_TIME_BYTES] = "";
        struct bel_wall at;
        CHECK(bel__local_time_is(rows[i].text));
        CHECK(bel__local_time_rewrite(rows[i].text, zone, now, text) == 0);
        CHECK_NOTE("'%s': %s", rows[i].text, text);
        CHECK(strcmp(text, rows[i].wanted) == 0);
        CHECK(bel_instant_parse(text, strlen(text), &options, &at, NULL) == 0);
    }
    char text[CLI_LOCAL_TIME_BYTES];
    CHECK(bel__local_time_rewrite("2027-02-29 00:00", zone, now, text) == BEL_EINVAL);
    CHECK(bel__local_time_rewrite("2026-13-01 00:00", zone, now, text) == BEL_EINVAL);
    bel_zones_close(zones);
}

static void what_is_no_local_time(void)
{
    static const char *const rows[] = {"",
                                       "18",
                                       "24:00",
                                       "18:60",
                                       "18:0",
                                       "18:00Z",
                                       "tomorrow",
                                       "yesterday 09:00",
                                       "2026-12-24",
                                       "2026-12-24T18:00:00Z",
                                       "2026-12-24T18:00+01:00",
                                       "2026-12-24T18:00[Europe/Berlin]",
                                       "1795006200000",
                                       "fr 09:00",
                                       "fridays 09:00",
                                       "0am",
                                       "13pm",
                                       "9 xm",
                                       "18:00 tomorrow 9am",
                                       "next friday 18:00",
                                       "at 18:00"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("'%s'", rows[i]);
        CHECK(!bel__local_time_is(rows[i]));
    }
}

static void days_without_a_time(void)
{
    CHECK(bel__local_time_is_day("tomorrow") && bel__local_time_is_day("Fri"));
    CHECK(bel__local_time_is_day("2026-12-24"));
    CHECK(!bel__local_time_is_day("tomorrow 09:00") && !bel__local_time_is_day("2026-12-24T"));
    CHECK(!bel__local_time_is_day("") && !bel__local_time_is_day("2026-12"));
}

static void only_a_date_does_not_need_now(void)
{
    CHECK(bel__local_time_needs_now("18:00"));
    CHECK(bel__local_time_needs_now("tomorrow 18:00"));
    CHECK(bel__local_time_needs_now("fri 18:00"));
    CHECK(!bel__local_time_needs_now("2026-12-24 18:00"));
    CHECK(!bel__local_time_needs_now("2026-12-24T18:00:00Z"));
}

static void times_by_their_distance(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"now", 7000000},          {"+5m", 7300000},       {"-1h", 3400000},
        {"in 5 minutes", 7300000}, {"In 1h30m", 12400000}, {"30 minutes ago", 5200000},
        {"+0", 7000000},           {"-2h", -200000},
    };
    static const char *const none[] = {"",     "5m",        "+5",       "in",   "in 5",
                                       "ago",  "5 ago",     "+",        "+-5m", "in tomorrow",
                                       "nowt", "+tomorrow", "in 5m ago"};
    struct bel_wall now = {7000000}, out = {77};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("'%s'", rows[i].text);
        CHECK(bel__relative_time_is(rows[i].text));
        CHECK(bel__relative_time(rows[i].text, now, &out) == 0);
        CHECK(out.ms == rows[i].ms);
    }
    out.ms = 77;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_NOTE("'%s'", none[i]);
        CHECK(!bel__relative_time_is(none[i]));
        CHECK(bel__relative_time(none[i], now, &out) == BEL_EINVAL);
    }
    now.ms = INT64_MAX - 1000;
    CHECK(bel__relative_time("+5m", now, &out) == BEL_ERANGE);
    now.ms = INT64_MIN + 1000;
    CHECK(bel__relative_time("-5m", now, &out) == BEL_ERANGE);
    CHECK(out.ms == 77);
}

int main(void)
{
    RUN(durations_in_words);
    RUN(dates_as_people_write_them);
    RUN(what_is_no_duration);
    RUN(only_words_are_rewritten);
    RUN(local_times);
    RUN(what_is_no_local_time);
    RUN(days_without_a_time);
    RUN(only_a_date_does_not_need_now);
    RUN(times_by_their_distance);
    return 0;
}
