/* SPDX-License-Identifier: MIT */

/*
 * Whole plans: which kind of rule a text is, its limits, and its description in words. The rules
 * have their own tests.
 */
#include "belfry/plan.h"

#include "../check.h"

#include <string.h>

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)

static struct bel_zones *zones;

static struct bel_plan *make(const char *text, const struct bel_plan_options *options)
{
    struct bel_plan *plan;
    struct bel_text_error why = {0};
    int err = bel_plan_create(text, strlen(text), options, &plan, &why);
    CHECK_NOTE("%s: at %zu: %s", text, why.position, why.expected);
    CHECK(err == 0);
    return plan;
}

static int64_t next(const struct bel_plan *plan, int64_t after, uint64_t made)
{
    struct bel_wall out = {-1};
    int err = bel_plan_next(plan, (struct bel_wall){after}, made, &out);
    CHECK(err == 0 || err == BEL_ERANGE);
    return err == 0 ? out.ms : -1;
}

static void an_interval_starts_a_period_after_now_and_does_not_drift(void)
{
    struct bel_plan_options options = {.now = {1000}};
    struct bel_plan *plan = make("5m", &options);
    CHECK(bel_plan_kind(plan) == BEL_PLAN_EVERY);
    CHECK(next(plan, 1000, 0) == 1000 + 5 * MINUTE);
    CHECK(next(plan, 1000 + 5 * MINUTE, 1) == 1000 + 10 * MINUTE);
    CHECK(next(plan, 1000 + 12 * MINUTE + 7, 1) == 1000 + 15 * MINUTE); /* late: no drift */
    CHECK(next(plan, -HOUR, 0) == 1000 + 5 * MINUTE);
    bel_plan_destroy(plan);
}

static void an_interval_with_a_start_begins_there(void)
{
    struct bel_plan_options options = {.has_start = true, .start = {HOUR}};
    struct bel_plan *plan = make("@every 1h", &options);
    CHECK(next(plan, 0, 0) == HOUR);
    CHECK(next(plan, HOUR, 1) == 2 * HOUR);
    bel_plan_destroy(plan);
}

static void a_delay_counts_from_the_end_of_the_one_before(void)
{
    struct bel_plan_options options = {.now = {0}, .mode = BEL_PLAN_DELAY};
    struct bel_plan *plan = make("10m", &options);
    CHECK(next(plan, 0, 0) == 10 * MINUTE);
    CHECK(next(plan, 17 * MINUTE, 1) == 27 * MINUTE);
    bel_plan_destroy(plan);
    struct bel_text_error why;
    struct bel_plan *none = NULL;
    CHECK(bel_plan_create("0 9 * * *", 9, &options, &none, &why) == BEL_EINVAL);
    CHECK(none == NULL);
}

static void a_start_is_the_first_time_whatever_the_rule_says_of_it(void)
{
    struct bel_plan_options options = {.has_start = true, .start = {HOUR / 2}};
    struct bel_plan *plan = make("0 * * * *", &options);
    CHECK(bel_plan_kind(plan) == BEL_PLAN_CRON);
    CHECK(next(plan, 0, 0) == HOUR / 2);
    CHECK(next(plan, HOUR / 2, 1) == HOUR);
    bel_plan_destroy(plan);
}

static void count_and_until_end_a_plan(void)
{
    struct bel_plan_options options = {.count = 2, .has_until = true, .until = {3 * HOUR}};
    struct bel_plan *plan = make("@hourly", &options);
    CHECK(next(plan, 0, 0) == HOUR);
    CHECK(next(plan, HOUR, 1) == 2 * HOUR);
    CHECK(next(plan, 2 * HOUR, 2) == -1);
    CHECK(next(plan, 2 * HOUR, 1) == 3 * HOUR); /* until includes the time itself */
    CHECK(next(plan, 3 * HOUR, 1) == -1);
    bel_plan_destroy(plan);
}

static void times_between_seconds_are_after_the_second(void)
{
    struct bel_plan *plan = make("* * * * * *", NULL);
    CHECK(next(plan, 1500, 0) == 2000);
    CHECK(next(plan, -1500, 0) == -1000);
    CHECK(next(plan, 1999, 0) == 2000);
    CHECK(next(plan, 2000, 0) == 3000);
    bel_plan_destroy(plan);
}

static void nothing_overflows_at_the_ends_of_time(void)
{
    struct bel_plan_options options = {.now = {INT64_MAX - 5}};
    struct bel_plan *plan = make("10ms", &options);
    CHECK(next(plan, 0, 0) == -1);
    bel_plan_destroy(plan);
    options = (struct bel_plan_options){.has_start = true, .start = {INT64_MIN}};
    plan = make("7ms", &options);
    struct bel_wall out;
    CHECK(bel_plan_next(plan, (struct bel_wall){INT64_MAX - 100}, 0, &out) == 0);
    CHECK(out.ms > INT64_MAX - 100);
    CHECK(((uint64_t)out.ms - (uint64_t)INT64_MIN) % 7 == 0);
    CHECK(bel_plan_next(plan, (struct bel_wall){INT64_MAX - 1}, 0, &out) == BEL_ERANGE);
    bel_plan_destroy(plan);
    plan = make("@daily", NULL);
    CHECK(bel_plan_next(plan, (struct bel_wall){INT64_MAX}, 0, &out) == BEL_ERANGE);
    bel_plan_destroy(plan);
}

static void texts_that_are_no_rule_are_refused_where_they_are_wrong(void)
{
    static const struct {
        const char *text;
        size_t position;
    } rows[] = {
        {"", 0},         {"0s", 0},        {"@every", 0}, {"@every 0s", 7},
        {"@every x", 7}, {"5 parsecs", 2}, {"5x", 1},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_plan *plan = NULL;
        struct bel_text_error why = {0};
        CHECK_NOTE("'%s'", rows[i].text);
        CHECK(bel_plan_create(rows[i].text, strlen(rows[i].text), NULL, &plan, &why) == BEL_EINVAL);
        CHECK(plan == NULL);
        CHECK(why.expected[0] != '\0');
        CHECK_EQ(why.position, rows[i].position);
    }
    bel_plan_destroy(NULL);
}

struct sentence {
    const char *rule, *sentence;
};

static void check_sentences(const struct sentence *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char text[200];
        struct bel_plan *plan = make(rows[i].rule, NULL);
        size_t bytes = bel_plan_explain(plan, text, sizeof text);
        CHECK_NOTE("%.40s: %s", rows[i].rule, text);
        CHECK(strcmp(text, rows[i].sentence) == 0);
        CHECK_EQ(bytes, strlen(text));
        bel_plan_destroy(plan);
    }
}

static void the_end_of_a_plan_in_english(void)
{
    struct bel_plan_options options = {
        .count = 3, .has_until = true, .until = {HOUR}, .mode = BEL_PLAN_DELAY};
    char text[200];
    struct bel_plan *plan = make("1m", &options);
    (void)bel_plan_explain(plan, text, sizeof text);
    CHECK(strcmp(text, "Every 1m, counted from the end of the previous run, at most 3 times, until "
                       "1970-01-01 01:00 UTC.") == 0);
    bel_plan_destroy(plan);
}

static void times_of_day_in_english(void)
{
    static const struct sentence rows[] = {
        {"90m", "Every 1h30m."},
        {"0 9 * * 1-5", "At 09:00 on Monday to Friday, UTC."},
        {"0\t9\t*\t*\t1-5", "At 09:00 on Monday to Friday, UTC."},
        {"*/15 * * * *", "Every 15 minutes, UTC."},
        {"* * * * *", "Every minute, UTC."},
        {"*/10 * * * * *", "Every 10 seconds, UTC."},
        {"5 * * * *", "At minute 5 of every hour, UTC."},
        {"*/20 9-17 * * *", "Every 20 minutes of hours 9 to 17, UTC."},
        {"*/30 * * * *", "Every 30 minutes, UTC."},
        {"*/7 * * * *", "At every 7th minute from 0 to 56 of every hour, UTC."},
        {"*/45 * * * *", "At minutes 0 and 45 of every hour, UTC."},
        {"*/13 9-17 * * *", "At every 13th minute from 0 to 52 of hours 9 to 17, UTC."},
        {"*/8 * * * * *", "At every 8th second from 0 to 56 of every minute, UTC."},
        {"30 * * * * *", "At second 30 of every minute, UTC."},
        {"30 * 9-17 * * *", "At second 30 of every minute of hours 9 to 17, UTC."},
        {"*/50 */50 * * * *", "At seconds 0 and 50 of minutes 0 and 50 of every hour, UTC."},
        {"*/50 */10 * * * *", "At seconds 0 and 50 of every 10 minutes, UTC."},
        {"*/10 */50 * * * *", "Every 10 seconds of minutes 0 and 50 of every hour, UTC."},
        {"*/10 * 9-17 * * *", "Every 10 seconds of hours 9 to 17, UTC."},
        {"0 */7 * * *", "At minute 0 of hours 0, 7, 14 and 21, UTC."},
        {"0 */2 * * *", "Every 2 hours, UTC."},
        {"0 */30 * * *", "At 00:00, UTC."},
        {"15,45 */24 * * *", "At 00:15 and 00:45, UTC."},
        {"0 * * * *", "Every hour, UTC."},
        {"0 9-17 * * *", "Every hour from 09:00 to 17:00, UTC."},
        {"0 22-6 * * 1-5", "Every hour from 22:00 to 06:00 on Monday to Friday, UTC."},
        {"0 8-18/2 * * *", "Every 2 hours from 08:00 to 18:00, UTC."},
        {"0 0-22 * * *", "Every hour from 00:00 to 22:00, UTC."},
        {"0 2-0 * * *", "Every hour from 02:00 to 00:00, UTC."},
        {"30 9-17 * * *", "At minute 30 of hours 9 to 17, UTC."},
        {"0 0-6,20-23,12 * * *", "At minute 0 of hours 12 and 20 to 6, UTC."},
        {"0 0 */2 * * *", "Every 2 hours, UTC."},
        {"0 0-23/2 * * *", "Every 2 hours, UTC."},
        {"5 */2 * * *", "At minute 5 of every 2nd hour, UTC."},
        {"*/15 */2 * * *", "Every 15 minutes of every 2nd hour, UTC."},
        {"0,5,10,15,20,25,30,35,40,45,50,55 * * * *", "Every 5 minutes, UTC."},
        {"0 1-23/2 * * *", "Every 2 hours from 01:00 to 23:00, UTC."},
    };
    check_sentences(rows, sizeof rows / sizeof rows[0]);
}

static void days_in_english(void)
{
    static const struct sentence rows[] = {
        {"0 0 * * FRI-SUN", "At 00:00 on Friday to Sunday, UTC."},
        {"0 0 * * SAT,SUN", "At 00:00 on Sunday and Saturday, UTC."},
        {"*/10 22-6 * * *", "Every 10 minutes of hours 22 to 6, UTC."},
        {"0 0 1 NOV-MAR,jul *",
         "At 00:00 on day 1 of the month in July and November to March, UTC."},
        {"0 0 L-5W * *",
         "At 00:00 on the weekday nearest to 5 days before the last of the month, UTC."},
        {"0 0 9 1 1 ? 2030", "At 09:00:00 on day 1 of the month in January of 2030, UTC."},
        {"0 0 9 ? * ? 2030-2032,2040", "At 09:00:00 in 2030 to 2032 and 2040, UTC."},
        {"0 0 9 ? * ? 2027/2", "At 09:00:00 in every 2nd year from 2027, UTC."},
        {"0 0 9 ? 5 ? 2030-2050/4", "At 09:00:00 in May of every 4th year from 2030 to 2050, UTC."},
        {"0 0 9 ? * ? 2030-2036/2", "At 09:00:00 in 2030, 2032, 2034 and 2036, UTC."},
        {"0 0 9 ? * ? 2030,2032,2034,2036,2039",
         "At 09:00:00 in 2030, 2032, 2034, 2036 and 2039, UTC."},
        {"0 0 9 ? * ? 2030/1", "At 09:00:00 in 2030 to 2199, UTC."},
        {"30 8,20 * * *", "At 08:30 and 20:30, UTC."},
        {"0 0 1 1,7 *", "At 00:00 on day 1 of the month in January and July, UTC."},
        {"0 0 13 * FRI", "At 00:00 on day 13 of the month or on Friday, UTC."},
        {"0 0 L * *", "At 00:00 on the last day of the month, UTC."},
        {"0 0 L-3,15W,LW * *",
         "At 00:00 on 3 days before the last day of the month, the weekday nearest to day 15 of "
         "the month and the last weekday of the month, UTC."},
        {"0 0 * * 5L,1#2",
         "At 00:00 on the second Monday of the month and the last Friday of the month, UTC."},
        {"0 0 */2 * 5",
         "At 00:00 on every 2nd day from 1 to 31 of the month if that is Friday, UTC."},
    };
    check_sentences(rows, sizeof rows / sizeof rows[0]);
}

static void notes_say_what_clock_changes_do(void)
{
    static const struct {
        const char *rule;
        enum bel_gap gap;
        enum bel_fold fold;
        const char *notes[2];
    } rows[] = {
        {"30 2 * * *",
         BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"2026-03-29: 02:30 does not exist, runs at 03:00",
          "2026-10-25: 02:30 occurs twice, runs the first time"}},
        {"0,30 2 * * *",
         BEL_GAP_NEXT,
         BEL_FOLD_SECOND,
         {"2026-03-29: 02:00 to 02:30 do not exist, run once, at 03:00",
          "2026-10-25: 02:00 to 02:30 occur twice, run the second time"}},
        {"15 2 29 3 *",
         BEL_GAP_SKIP,
         BEL_FOLD_BOTH,
         {"2026-03-29: 02:15 does not exist, does not run", NULL}},
        {"30 * * * *",
         BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"2026-10-25: 02:30 occurs twice, runs both times", NULL}},
        {"0 12 * * *", BEL_GAP_NEXT, BEL_FOLD_FIRST, {NULL, NULL}},
        {"FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30;BYSECOND=0",
         BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"2026-03-29: 02:00 to 02:30 do not exist, run once, at 03:00",
          "2026-10-25: 02:00 to 02:30 occur twice, run the first time"}},
        {"FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2;BYMINUTE=30;BYSECOND=0 EXDATE:20261025T023000",
         BEL_GAP_SKIP,
         BEL_FOLD_FIRST,
         {"2026-03-29: 02:30 does not exist, does not run", NULL}},
        {"FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0;UNTIL=20260601T000000",
         BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"2026-03-29: 02:30 does not exist, runs at 03:00", NULL}},
        {"FREQ=HOURLY;BYMINUTE=30;BYSECOND=0",
         BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"2026-10-25: 02:30 occurs twice, runs both times", NULL}},
        {"FREQ=DAILY;BYHOUR=12;BYMINUTE=0;BYSECOND=0", BEL_GAP_NEXT, BEL_FOLD_FIRST, {NULL, NULL}},
    };
    struct bel_plan_options options = {0};
    CHECK(bel_zones_find(zones, "Europe/Berlin", 13, &options.zone) == 0);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_wall at = {INT64_C(1767225600000)}, to = {INT64_C(1798761600000)}; /* 2026 */
        char text[160];
        if (strncmp(rows[i].rule, "FREQ", 4) == 0 && !bel_rrule_is_supported()) continue;
        options.gap = rows[i].gap;
        options.fold = rows[i].fold;
        struct bel_plan *plan = make(rows[i].rule, &options);
        for (unsigned k = 0; k < 2 && rows[i].notes[k] != NULL; k++) {
            CHECK(bel_plan_note(plan, &at, to, text, sizeof text));
            CHECK_NOTE("%s: %s", rows[i].rule, text);
            CHECK(strcmp(text, rows[i].notes[k]) == 0);
        }
        CHECK(!bel_plan_note(plan, &at, to, text, sizeof text));
        bel_plan_destroy(plan);
    }
}

static void a_recurrence_rule_is_a_plan_too(void)
{
    static const char rule[] = "FREQ=DAILY;INTERVAL=2;COUNT=3";
    struct bel_plan_options options = {.has_start = true, .start = {9 * HOUR}};
    struct bel_plan *none = NULL;
    struct bel_text_error why = {0};
    char text[160];
    if (!bel_rrule_is_supported()) {
        CHECK(bel_plan_create(rule, strlen(rule), NULL, &none, &why) == BEL_EINVAL);
        CHECK(why.expected[0] != '\0');
        return;
    }
    struct bel_plan *plan = make(rule, &options);
    CHECK(bel_plan_kind(plan) == BEL_PLAN_RRULE);
    CHECK(next(plan, 0, 0) == 9 * HOUR);
    CHECK(next(plan, 9 * HOUR, 1) == 57 * HOUR);
    CHECK(next(plan, 57 * HOUR, 2) == 105 * HOUR);
    CHECK(next(plan, 105 * HOUR, 3) == -1);
    (void)bel_plan_explain(plan, text, sizeof text);
    CHECK(strcmp(text, "Every 2 days at 09:00, until 1970-01-05 09:00, UTC.") == 0);
    bel_plan_destroy(plan);
    plan =
        make("INTERVAL=2;FREQ=DAILY\n  EXDATE:19700103T090000\nEXDATE:19700105T090000", &options);
    CHECK(next(plan, 9 * HOUR, 1) == 153 * HOUR);
    (void)bel_plan_explain(plan, text, sizeof text);
    CHECK(strcmp(text, "Every 2 days at 09:00, with 2 exceptions, UTC.") == 0);
    bel_plan_destroy(plan);
    CHECK(bel_plan_create("FREQ=NEVER", 10, NULL, &none, &why) == BEL_EINVAL);
    CHECK_EQ(why.position, 5);
    CHECK(bel_plan_create("COUNT=2", 7, NULL, &none, &why) == BEL_EINVAL);
    CHECK(strcmp(why.expected, "; and FREQ=") == 0);
}

static void recurrence_rules_say_what_they_are_in_english(void)
{
    static const struct {
        const char *rule, *sentence;
    } rows[] = {
        {"FREQ=DAILY", "Every day at 09:00, UTC."},
        {"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "Every 2 weeks on Monday and Friday at 09:00, UTC."},
        {"FREQ=WEEKLY", "Every week on Thursday at 09:00, UTC."},
        {"FREQ=MONTHLY;BYDAY=-1FR", "Every month on the last Friday at 09:00, UTC."},
        {"FREQ=MONTHLY;BYMONTHDAY=1,15,-1",
         "Every month on days 1 and 15, the last day at 09:00, UTC."},
        {"FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
         "Every month on day 13 if that is Friday at 09:00, UTC."},
        {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
         "Every month on Monday to Friday at 09:00, of these the last, UTC."},
        {"FREQ=YEARLY", "Every year in January on day 1 at 09:00, UTC."},
        {"FREQ=YEARLY;BYDAY=2SU", "Every year on the 2nd Sunday at 09:00, UTC."},
        {"FREQ=YEARLY;BYYEARDAY=100,-1",
         "Every year on the 100th day of the year, the last day of the year at 09:00, UTC."},
        {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "Every year in week 20 on Monday at 09:00, UTC."},
        {"FREQ=DAILY;BYHOUR=9,17;BYMINUTE=30", "Every day at 09:30 and 17:30, UTC."},
        {"FREQ=MINUTELY;INTERVAL=15;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12",
         "Every 15 minutes on Monday to Friday at hours 9 to 12, UTC."},
        {"FREQ=HOURLY;BYMONTH=11,12,1,2", "Every hour in November to February at minute 0, UTC."},
        {"FREQ=DAILY;UNTIL=19710101", "Every day at 09:00, until 1971-01-01 23:59:59, UTC."},
        {"FREQ=DAILY;UNTIL=19710101T000000Z",
         "Every day at 09:00, until 1971-01-01 00:00 UTC, UTC."},
    };
    struct bel_plan_options options = {.has_start = true, .start = {9 * HOUR}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0] && bel_rrule_is_supported(); i++) {
        char text[200];
        struct bel_plan *plan = make(rows[i].rule, &options);
        (void)bel_plan_explain(plan, text, sizeof text);
        CHECK_NOTE("%.40s: %s", rows[i].rule, text);
        CHECK(strcmp(text, rows[i].sentence) == 0);
        bel_plan_destroy(plan);
    }
}

static void a_recurrence_rule_may_have_its_start(void)
{
    static const struct {
        const char *text;
        size_t position;
        const char *expected;
    } rows[] = {
        {"DTSTART:19700102", 16, "a time like :20260131T090000"},
        {"DTSTART;VALUE=DATE:19700102 FREQ=DAILY", 8, "TZID= or :"},
        {"DTSTART:19700132T090000 FREQ=DAILY", 8, "a time that exists"},
        {"DTSTART;TZID=Europe/Berlin:19700102T090000 FREQ=DAILY", 7,
         "the time zone of the plan: UTC"},
        {"DTSTART:19700102T090000", 23, "a line below or a space, then RRULE:"},
        {"DTSTART:19700102T090000\nFREQ=NEVER", 29, "YEARLY"},
        {"FREQ=DAILY EXDATE;TZID=Europe/Berlin:19700102T090000", 23,
         "the time zone of the rule: UTC"},
        {"FREQ=DAILY EXDATE;TZID=UT:19700102T090000", 23, "the time zone of the rule: UTC"},
        {"FREQ=DAILY EXDATE;TZID=UTC", 26, ": and a time"},
        {"FREQ=DAILY EXDATE;VALUE=DATE:19700102", 11, "EXDATE: or the end"},
    };
    struct bel_plan_options options = {.now = {INT64_C(2400) * HOUR}};
    struct bel_plan *plan;
    struct bel_text_error why;
    struct bel_view zone = {0};
    if (!bel_rrule_is_supported()) return;
    plan = make("DTSTART:19700102T090000\nRRULE:FREQ=DAILY;INTERVAL=3;COUNT=3", &options);
    CHECK(next(plan, 0, 0) == 33 * HOUR);
    CHECK(next(plan, 33 * HOUR, 0) == 105 * HOUR);
    CHECK(next(plan, 105 * HOUR, 0) == 177 * HOUR);
    CHECK(next(plan, 177 * HOUR, 0) == -1);
    bel_plan_destroy(plan);
    plan = make("DTSTART;TZID=UTC:19700102T090000\nRRULE:FREQ=DAILY;COUNT=4\n"
                "EXDATE;TZID=UTC:19700103T090000,19700104T090000\nEXDATE:19700102T090000Z\n",
                &options);
    CHECK(next(plan, 0, 0) == 105 * HOUR); /* as calendars export it */
    CHECK(next(plan, 105 * HOUR, 0) == -1);
    bel_plan_destroy(plan);
    plan = make("dtstart;tzid=UTC:19700102T090000Z RRULE:FREQ=DAILY", &options);
    CHECK(next(plan, 0, 0) == 33 * HOUR);
    bel_plan_destroy(plan);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("%s", rows[i].text);
        CHECK(bel_plan_create(rows[i].text, strlen(rows[i].text), &options, &plan, &why) ==
              BEL_EINVAL);
        CHECK_NOTE("%s: %s", rows[i].text, why.expected);
        CHECK_EQ(why.position, rows[i].position);
        CHECK(strncmp(why.expected, rows[i].expected, strlen(rows[i].expected)) == 0);
    }
    options.has_start = true;
    CHECK(bel_plan_create("DTSTART:19700102T090000 FREQ=DAILY", 34, &options, &plan, NULL) ==
          BEL_EINVAL);
    CHECK(!bel_rrule_zone(BEL_VIEW("FREQ=DAILY"), &zone));
    CHECK(bel_rrule_zone(BEL_VIEW("DTSTART;TZID=Asia/Tokyo:19700102T090000 FREQ=DAILY"), &zone));
    CHECK_EQ(zone.bytes, 10);
}

static void a_recurrence_rule_without_a_start_starts_not_before_now(void)
{
    static const char rule[] = "FREQ=DAILY;COUNT=2";
    struct bel_plan_options options = {.now = {9 * HOUR + 263}};
    if (!bel_rrule_is_supported()) return;
    struct bel_plan *plan = make(rule, &options);
    CHECK(next(plan, 9 * HOUR + 262, 0) == 9 * HOUR + 1000);
    CHECK(next(plan, 9 * HOUR + 1000, 1) == 33 * HOUR + 1000);
    CHECK(next(plan, 33 * HOUR + 1000, 2) == -1);
    bel_plan_destroy(plan);
    options.now.ms = 9 * HOUR;
    plan = make(rule, &options);
    CHECK(next(plan, 9 * HOUR - 1, 0) == 9 * HOUR);
    bel_plan_destroy(plan);
}

static bool next_of_plan(void *context, struct bel_wall after, struct bel_wall *out)
{
    return bel_plan_next(context, after, 0, out) == 0;
}

static void missed_times_of_a_plan_are_chosen(void)
{
    struct bel_wall times[3];
    struct bel_plan *plan = make("@hourly", NULL);
    struct bel_misfire_plan missed = {next_of_plan, plan};
    struct bel_misfire_range range = {{0}, {10 * HOUR}};
    struct bel_misfire_result result =
        bel_misfire_choose(BEL_MISFIRE_ALL, 3, &missed, range, times);
    CHECK_EQ(result.made_count, 3);
    CHECK_EQ(result.skipped_count, 7);
    CHECK(times[0].ms == 8 * HOUR && times[2].ms == 10 * HOUR);
    CHECK(result.has_next && result.next.ms == 11 * HOUR);
    bel_plan_destroy(plan);
}

int main(void)
{
    CHECK(bel_zones_open(NULL, &zones) == 0);
    RUN(an_interval_starts_a_period_after_now_and_does_not_drift);
    RUN(an_interval_with_a_start_begins_there);
    RUN(a_delay_counts_from_the_end_of_the_one_before);
    RUN(a_start_is_the_first_time_whatever_the_rule_says_of_it);
    RUN(count_and_until_end_a_plan);
    RUN(times_between_seconds_are_after_the_second);
    RUN(nothing_overflows_at_the_ends_of_time);
    RUN(texts_that_are_no_rule_are_refused_where_they_are_wrong);
    RUN(times_of_day_in_english);
    RUN(days_in_english);
    RUN(the_end_of_a_plan_in_english);
    RUN(notes_say_what_clock_changes_do);
    RUN(a_recurrence_rule_is_a_plan_too);
    RUN(recurrence_rules_say_what_they_are_in_english);
    RUN(a_recurrence_rule_may_have_its_start);
    RUN(a_recurrence_rule_without_a_start_starts_not_before_now);
    RUN(missed_times_of_a_plan_are_chosen);
    bel_zones_close(zones);
    return 0;
}
