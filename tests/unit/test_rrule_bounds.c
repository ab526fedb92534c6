/* SPDX-License-Identifier: MIT */

/*
 * The work to find a next time, counted rather than timed: calls of libical, each of which searches
 * at most forty years, and steps of arithmetic.
 */
#include "plan/rrule.h"

#include "../check.h"

#include <string.h>

enum {
    DAY = 86400,
    DAYS_OF_40_YEARS = 40 * 366,
    PLACES = 50,
};

static struct bel_rrule *parse(const char *text)
{
    struct bel_rrule *rrule;
    struct bel_text_error why;
    struct bel_civil start = {.year = 2024, .month = 2, .day = 29, .hour = 9};
    int err = bel_rrule_parse(text, strlen(text), &start, &rrule, &why);
    CHECK_NOTE("%.100s: at %zu: %s", text, err ? why.position : 0, err ? why.expected : "");
    CHECK(err == 0);
    return rrule;
}

/* Searches for the next time from starting points spread over many years, each with a new
 * search. */
static void check_work(const char *text, unsigned calls_max, unsigned steps_max)
{
    struct bel_rrule *rrule = parse(text);
    for (int64_t place = 0; place < PLACES; place++) {
        struct rrule_search search;
        bel__rrule_search_begin(&search, rrule);
        int64_t local = rrule->start + place * (INT64_C(100) * 365 + 17) * DAY;
        int64_t next = bel__rrule_next_local(&search, local);
        bel__rrule_search_end(&search);
        CHECK_NOTE("%s from %" PRId64 ": %u calls, %u steps", text, local, search.calls,
                   search.steps);
        CHECK(search.err == 0);
        CHECK(next == LOCAL_NONE || next > local);
        CHECK(search.calls <= calls_max && search.steps <= steps_max);
    }
    bel_rrule_destroy(rrule);
}

static void what_people_write_takes_a_call_or_two(void)
{
    static const char *const rules[] = {
        "FREQ=MONTHLY;BYDAY=-1FR",
        "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=29",
        "FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=YEARLY;BYYEARDAY=366",
        "FREQ=YEARLY;BYDAY=53MO",
        "FREQ=DAILY;BYMONTH=1",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        check_work(rules[i], 2, 2);
    }
}

static void days_and_weeks_take_none(void)
{
    check_work("FREQ=DAILY;INTERVAL=36500", 0, 1);
    check_work("FREQ=DAILY;INTERVAL=13;BYDAY=MO", 0, 13);
    check_work("FREQ=WEEKLY;INTERVAL=5200;BYDAY=SU,MO", 0, 2);
    check_work("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", 0, 53 * 13);
    check_work("FREQ=HOURLY;INTERVAL=100000", 0, 1);
    check_work("FREQ=SECONDLY;INTERVAL=7;BYHOUR=9;BYMINUTE=0;BYSECOND=0", 0, 2 * 14);
    check_work("FREQ=MINUTELY;BYMONTH=12;BYDAY=MO", 0, 11 + 7);
}

/* Of each period the days are looked at, and no times. */
static void positions_take_a_step_for_each_day(void)
{
    check_work("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", 0, 2 * 31);
    check_work("FREQ=YEARLY;BYDAY=MO;BYHOUR=1,2,3;BYSETPOS=100", 0, 2 * 366);
    check_work("FREQ=YEARLY;BYDAY=MO;BYSETPOS=53", 0, 13 * 366);
    check_work("FREQ=DAILY;BYSECOND=1,2,3;BYMINUTE=7;BYSETPOS=2", 0, 2);
}

static void rare_rules_stay_within_the_limits(void)
{
    static const char *const rules[] = {
        "FREQ=DAILY;INTERVAL=999;BYMONTHDAY=29;BYMONTH=2",
        "FREQ=DAILY;INTERVAL=97;BYDAY=TH;BYMONTHDAY=29",
        "FREQ=WEEKLY;INTERVAL=51;BYMONTH=2",
        "FREQ=YEARLY;INTERVAL=28;BYMONTH=2;BYMONTHDAY=29;BYDAY=TH",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTHDAY=29",
        "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "FREQ=MINUTELY;INTERVAL=99991;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=HOURLY;INTERVAL=997;BYMONTH=2;BYMINUTE=0,30;BYSETPOS=-1",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        check_work(rules[i], RRULE_CALLS_MAX, RRULE_STEPS_MAX);
    }
}

/* Otherwise a call of libical would take longer. */
static void a_call_looks_through_forty_years_at_most(void)
{
    static const char *const rules[] = {
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=TH",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=-29;BYDAY=1TH",
        "FREQ=MONTHLY;BYMONTH=2;BYDAY=TH;BYSETPOS=5",
        "FREQ=YEARLY;BYYEARDAY=366;BYDAY=MO",
        "FREQ=YEARLY;BYYEARDAY=-366;BYDAY=SU",
        "FREQ=YEARLY;BYDAY=-53WE",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct bel_rrule *rrule = parse(rules[i]);
        struct rrule_search search;
        bel__rrule_search_begin(&search, rrule);
        for (int64_t day = 0; day < RRULE_CYCLE;) {
            int64_t date = bel__rrule_date_of_any(&search, day);
            CHECK_NOTE("%s: from day %" PRId64 " to %" PRId64, rules[i], day, date);
            CHECK(date >= day && date - day <= DAYS_OF_40_YEARS);
            day = date + 1;
        }
        bel__rrule_search_end(&search);
        bel_rrule_destroy(rrule);
    }
}

/* A search that has used up its calls finds nothing, and makes no more calls. */
static void the_limits_hold(void)
{
    struct bel_rrule *rrule = parse("FREQ=MONTHLY;BYMONTHDAY=1");
    struct rrule_search search;
    bel__rrule_search_begin(&search, rrule);
    search.calls_max = 10;
    int64_t local = rrule->start, found = 0;
    for (; local != LOCAL_NONE; found++) {
        local = bel__rrule_next_local(&search, local);
    }
    CHECK_EQ(search.calls, 10);
    CHECK_EQ((uint64_t)found, 11);
    bel__rrule_search_end(&search);
    bel_rrule_destroy(rrule);
}

static void the_largest_counts_are_found(void)
{
    bel_rrule_destroy(parse("FREQ=DAILY;COUNT=10000"));
    bel_rrule_destroy(parse("FREQ=WEEKLY;COUNT=10000"));
    bel_rrule_destroy(parse("FREQ=DAILY;INTERVAL=3;BYMONTH=1,2,3,4,5,6,7,8,9,10,11;COUNT=3000"));
    bel_rrule_destroy(parse("FREQ=MONTHLY;COUNT=4000"));
    bel_rrule_destroy(parse("FREQ=SECONDLY;INTERVAL=11;BYMINUTE=0,7;COUNT=10000"));
}

int main(void)
{
    RUN(what_people_write_takes_a_call_or_two);
    RUN(days_and_weeks_take_none);
    RUN(positions_take_a_step_for_each_day);
    RUN(rare_rules_stay_within_the_limits);
    RUN(a_call_looks_through_forty_years_at_most);
    RUN(the_limits_hold);
    RUN(the_largest_counts_are_found);
    return EXIT_SUCCESS;
}
