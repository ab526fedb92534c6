/* SPDX-License-Identifier: MIT */

/*
 * Recurrence rules: the examples of RFC 5545, section 3.8.5.3, in New York; then exceptions, ends,
 * clock changes, far years, and invalid rules. Times are local, 09:00:00 unless given; a dot means
 * that there are no more.
 */
#include "belfry/rrule.h"

#include "../check.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    SKIPPED = 77,
    DAY = 86400,
};

static struct bel_zones *zones;

static const struct bel_zone *zone(const char *name)
{
    const struct bel_zone *found;
    CHECK_NOTE("zone %s", name);
    CHECK(bel_zones_find(zones, name, strlen(name), &found) == 0);
    return found;
}

static int number(const char *text, size_t digits)
{
    int value = 0;
    for (; digits > 0; digits--, text++) {
        CHECK(*text >= '0' && *text <= '9');
        value = value * 10 + (*text - '0');
    }
    return value;
}

/* 19970902 or 19970902T0930 or 19970902T093015. */
static struct bel_civil civil(const char *text)
{
    size_t bytes = strcspn(text, " ");
    CHECK(bytes == 8 || bytes == 13 || bytes == 15);
    return (struct bel_civil){
        .year = number(text, 4),
        .month = (uint8_t)number(text + 4, 2),
        .day = (uint8_t)number(text + 6, 2),
        .hour = (uint8_t)(bytes > 8 ? number(text + 9, 2) : 9),
        .minute = (uint8_t)(bytes > 8 ? number(text + 11, 2) : 0),
        .second = (uint8_t)(bytes > 13 ? number(text + 13, 2) : 0),
    };
}

static int64_t utc(const char *text)
{
    struct bel_civil time = civil(text);
    struct bel_zone_instants instants;
    CHECK(bel_zone_at(bel_zone_utc(), &time, &instants) == 0);
    return instants.first;
}

static struct bel_rrule *parse(const char *text, const char *start)
{
    struct bel_rrule *rrule;
    struct bel_text_error why;
    struct bel_civil at = civil(start);
    int err = bel_rrule_parse(text, strlen(text), &at, &rrule, &why);
    CHECK_NOTE("%.100s: at %zu: %s", text, err ? why.position : 0, err ? why.expected : "");
    CHECK(err == 0);
    return rrule;
}

struct run {
    const char *start, *rule, *times;
};

/* Follows a rule from long before its start, and compares with the expected times. */
static void check_run_in(const struct run *run, const struct bel_zone_when *when, bool is_utc)
{
    struct bel_rrule *rrule = parse(run->rule, run->start);
    int64_t at = INT64_MIN, next;
    for (const char *word = run->times; *word != '\0'; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        int err = bel_rrule_next(rrule, when, at, &next);
        CHECK_NOTE("%.90s: no more, want %.50s", run->rule, word);
        CHECK((err == BEL_ERANGE) == (*word == '.'));
        if (err) break;
        CHECK(next > at);
        at = next;
        /* A search that begins in the second before, possibly in another span, finds it too. */
        CHECK(bel_rrule_next(rrule, when, at - 1, &next) == 0);
        CHECK(next == at);
        struct bel_civil got, want = civil(word);
        CHECK(bel_zone_civil(is_utc ? bel_zone_utc() : when->zone, next, &got) == 0);
        CHECK_NOTE("%.90s: got %04d%02d%02dT%02d%02d%02d, want %.40s", run->rule, got.year,
                   got.month, got.day, got.hour, got.minute, got.second, word);
        CHECK(got.year == want.year && got.month == want.month && got.day == want.day);
        CHECK(got.hour == want.hour && got.minute == want.minute && got.second == want.second);
    }
    bel_rrule_destroy(rrule);
}

static void check_runs(const struct run *runs, size_t count)
{
    struct bel_zone_when when = {.zone = zone("America/New_York")};
    for (size_t i = 0; i < count; i++) {
        check_run_in(&runs[i], &when, false);
    }
}

#define CHECK_RUNS(runs) check_runs(runs, sizeof(runs) / sizeof((runs)[0]))

static void days_and_weeks_of_the_rfc(void)
{
    static const struct run runs[] = {
        {"19970902", "RRULE:FREQ=DAILY;COUNT=10",
         "19970902 19970903 19970904 19970905 19970906 19970907 19970908 19970909 19970910 "
         "19970911 ."},
        {"19970902", "FREQ=DAILY;INTERVAL=2", "19970902 19970904 19970906 19970908"},
        {"19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5",
         "19970902 19970912 19970922 19971002 19971012 ."},
        {"19970902", "FREQ=WEEKLY;COUNT=10",
         "19970902 19970909 19970916 19970923 19970930 19971007 19971014 19971021 19971028 "
         "19971104 ."},
        {"19970902", "FREQ=WEEKLY;UNTIL=19971224T000000Z",
         "19970902 19970909 19970916 19970923 19970930 19971007 19971014 19971021 19971028 "
         "19971104 19971111 19971118 19971125 19971202 19971209 19971216 19971223 ."},
        {"19970902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
         "19970902 19970916 19970930 19971014 19971028 19971111 19971125 19971209 19971223 "
         "19980106 19980120 19980203"},
        {"19970902", "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
         "19970902 19970904 19970909 19970911 19970916 19970918 19970923 19970925 19970930 "
         "19971002 ."},
        {"19970902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
         "19970902 19970904 19970909 19970911 19970916 19970918 19970923 19970925 19970930 "
         "19971002 ."},
        {"19970901", "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
         "19970901 19970903 19970905 19970915 19970917 19970919 19970929 19971001 19971003 "
         "19971013 19971015 19971017 19971027 19971029 19971031 19971110 19971112 19971114 "
         "19971124 19971126 19971128 19971208 19971210 19971212 19971222 ."},
        {"19970902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
         "19970902 19970904 19970916 19970918 19970930 19971002 19971014 19971016 ."},
        {"19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
         "19970805 19970810 19970819 19970824 ."},
        {"19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
         "19970805 19970817 19970819 19970831 ."},
    };
    CHECK_RUNS(runs);
}

/* The examples that match every day for months. */
static void long_lists_of_the_rfc(void)
{
    static const struct {
        const char *start, *rule, *last;
        unsigned count;
    } lists[] = {
        {"19970902", "FREQ=DAILY;UNTIL=19971224T000000Z", "19971223T140000", 113},
        {"19980101", "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
         "20000131T140000", 93},
        {"19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", "20000131T140000", 93},
    };
    struct bel_zone_when when = {.zone = zone("America/New_York")};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct bel_rrule *rrule = parse(lists[i].rule, lists[i].start);
        int64_t at = 0;
        unsigned count = 0;
        while (bel_rrule_next(rrule, &when, at, &at) == 0) {
            count++;
        }
        CHECK_EQ(count, lists[i].count);
        CHECK_EQ((uint64_t)at, (uint64_t)utc(lists[i].last));
        bel_rrule_destroy(rrule);
    }
}

static void months_of_the_rfc(void)
{
    static const struct run runs[] = {
        {"19970905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
         "19970905 19971003 19971107 19971205 19980102 19980206 19980306 19980403 19980501 "
         "19980605 ."},
        {"19970905", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
         "19970905 19971003 19971107 19971205 ."},
        {"19970907", "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
         "19970907 19970928 19971102 19971130 19980104 19980125 19980301 19980329 19980503 "
         "19980531 ."},
        {"19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
         "19970922 19971020 19971117 19971222 19980119 19980216 ."},
        {"19970928", "FREQ=MONTHLY;BYMONTHDAY=-3",
         "19970928 19971029 19971128 19971229 19980129 19980226"},
        {"19970902", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
         "19970902 19970915 19971002 19971015 19971102 19971115 19971202 19971215 19980102 "
         "19980115 ."},
        {"19970930", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
         "19970930 19971001 19971031 19971101 19971130 19971201 19971231 19980101 19980131 "
         "19980201 ."},
        {"19970910", "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
         "19970910 19970911 19970912 19970913 19970914 19970915 19990310 19990311 19990312 "
         "19990313 ."},
        {"19970902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
         "19970902 19970909 19970916 19970923 19970930 19971104 19971111 19971118 19971125 "
         "19980106 19980113 19980120 19980127 19980303 19980310 19980317 19980324 19980331"},
        {"19970902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13 EXDATE:19970902T090000",
         "19980213 19980313 19981113 19990813 20001013"},
        {"19970913", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
         "19970913 19971011 19971108 19971213 19980110 19980207 19980307 19980411 19980509 "
         "19980613"},
        {"19970904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
         "19970904 19971007 19971106 ."},
        {"19970929", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
         "19970929 19971030 19971127 19971230 19980129 19980226 19980330"},
        {"20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
         "20070115 20070130 20070215 20070315 20070330 ."},
    };
    CHECK_RUNS(runs);
}

static void years_of_the_rfc(void)
{
    static const struct run runs[] = {
        {"19970610", "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
         "19970610 19970710 19980610 19980710 19990610 19990710 20000610 20000710 20010610 "
         "20010710 ."},
        {"19970310", "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
         "19970310 19990110 19990210 19990310 20010110 20010210 20010310 20030110 20030210 "
         "20030310 ."},
        {"19970101", "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
         "19970101 19970410 19970719 20000101 20000409 20000718 20030101 20030410 20030719 "
         "20060101 ."},
        {"19970519", "FREQ=YEARLY;BYDAY=20MO", "19970519 19980518 19990517"},
        {"19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "19970512 19980511 19990517"},
        {"19970313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
         "19970313 19970320 19970327 19980305 19980312 19980319 19980326 19990304 19990311 "
         "19990318 19990325"},
        {"19970605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
         "19970605 19970612 19970619 19970626 19970703 19970710 19970717 19970724 19970731 "
         "19970807 19970814 19970821 19970828 19980604 19980611"},
        {"19961105", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
         "19961105 20001107 20041102"},
    };
    CHECK_RUNS(runs);
}

/* In the first the RFC's UNTIL is corrected, as its erratum 3883 does. */
static void hours_and_minutes_of_the_rfc(void)
{
    static const char every_20_minutes[] =
        "19970902T0900 19970902T0920 19970902T0940 19970902T1000 19970902T1020 19970902T1040 "
        "19970902T1100 19970902T1120 19970902T1140 19970902T1200 19970902T1220 19970902T1240 "
        "19970902T1300 19970902T1320 19970902T1340 19970902T1400 19970902T1420 19970902T1440 "
        "19970902T1500 19970902T1520 19970902T1540 19970902T1600 19970902T1620 19970902T1640 "
        "19970903T0900 19970903T0920";
    static const struct run runs[] = {
        {"19970902", "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z",
         "19970902T0900 19970902T1200 19970902T1500 ."},
        {"19970902", "FREQ=MINUTELY;INTERVAL=15;COUNT=6",
         "19970902T0900 19970902T0915 19970902T0930 19970902T0945 19970902T1000 19970902T1015 ."},
        {"19970902", "FREQ=MINUTELY;INTERVAL=90;COUNT=4",
         "19970902T0900 19970902T1030 19970902T1200 19970902T1330 ."},
        {"19970902", "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40", every_20_minutes},
        {"19970902", "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16", every_20_minutes},
    };
    CHECK_RUNS(runs);
}

static void parts_come_in_any_order_and_case(void)
{
    static const struct run runs[] = {
        {"20260105", "byday=fr,Mo;freq=Weekly;count=3", "20260105 20260109 20260112 ."},
        {"20260105", "rrule:INTERVAL=02;FREQ=DAILY\r\n", "20260105 20260107"},
        {"20260105", "FREQ=DAILY;BYHOUR=17,8,8;BYSECOND=5",
         "20260105T170005 20260106T080005 20260106T170005"},
    };
    CHECK_RUNS(runs);
    static const char text[] = "RRULE:FREQ=DAILY\nEXDATE:20260105T090000";
    struct bel_rrule *rrule = parse(text, "20260105");
    CHECK(strcmp(bel_rrule_text(rrule), text) == 0);
    bel_rrule_destroy(rrule);
}

static void the_start_comes_only_if_it_is_named(void)
{
    static const struct run runs[] = {
        {"20260101", "FREQ=WEEKLY;BYDAY=MO;COUNT=2", "20260105 20260112 ."},
        {"20260131", "FREQ=MONTHLY", "20260131 20260331 20260531 20260731"},
        {"20240229", "FREQ=YEARLY", "20240229 20280229 20320229"},
        {"20260110", "FREQ=DAILY;BYHOUR=8", "20260111T0800 20260112T0800"},
    };
    CHECK_RUNS(runs);
}

static void exceptions_are_left_out(void)
{
    static const struct run runs[] = {
        {"20260101", "FREQ=DAILY;COUNT=5 EXDATE:20260102T090000,20260104T140000Z",
         "20260101 20260103 20260105 ."},
        {"20260101", "FREQ=DAILY;COUNT=3\nEXDATE:20260103T090000\nEXDATE:20260101T140000Z\n",
         "20260102 ."},
        {"20260101", "FREQ=DAILY;COUNT=1 EXDATE:20260101T090000", "."},
        {"20260101", "FREQ=DAILY;COUNT=2 EXDATE:20260101T090001,20260102T085959Z",
         "20260101 20260102 ."},
    };
    CHECK_RUNS(runs);
}

static void until_includes_its_own_time(void)
{
    static const struct run runs[] = {
        {"20260101", "FREQ=DAILY;UNTIL=20260103T090000", "20260101 20260102 20260103 ."},
        {"20260101", "FREQ=DAILY;UNTIL=20260103T085959", "20260101 20260102 ."},
        {"20260101", "FREQ=DAILY;UNTIL=20260103T140000Z", "20260101 20260102 20260103 ."},
        {"20260101", "FREQ=DAILY;UNTIL=20260103T135959Z", "20260101 20260102 ."},
        {"20260101", "FREQ=DAILY;UNTIL=20251231T000000", "."},
        {"20260101", "FREQ=DAILY;UNTIL=20260103", "20260101 20260102 20260103 ."},
    };
    CHECK_RUNS(runs);
}

/* In UTC. New York's clocks go from 2:00 to 3:00 on 8 March 2026, from 2:00 to 1:00 on 1
 * November. */
static void clock_changes_follow_the_policies(void)
{
    static const struct {
        enum bel_gap gap;
        enum bel_fold fold;
        struct run run;
    } rows[] = {
        {BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"20260307T0230", "FREQ=DAILY;COUNT=3", "20260307T0730 20260308T0700 20260309T0630 ."}},
        {BEL_GAP_SKIP,
         BEL_FOLD_FIRST,
         {"20260307T0230", "FREQ=DAILY;COUNT=3", "20260307T0730 20260309T0630 ."}},
        {BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"20260308T0130", "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30;COUNT=5",
          "20260308T0630 20260308T0700 20260308T0730 ."}},
        {BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"20260308T0130", "FREQ=DAILY;BYHOUR=2 EXDATE:20260308T070000Z", "20260309T0630"}},
        {BEL_GAP_NEXT,
         BEL_FOLD_FIRST,
         {"20261031T0130", "FREQ=DAILY;COUNT=3", "20261031T0530 20261101T0530 20261102T0630 ."}},
        {BEL_GAP_NEXT,
         BEL_FOLD_SECOND,
         {"20261031T0130", "FREQ=DAILY;COUNT=3", "20261031T0530 20261101T0630 20261102T0630 ."}},
        {BEL_GAP_NEXT,
         BEL_FOLD_BOTH,
         {"20261031T0130", "FREQ=DAILY;COUNT=3",
          "20261031T0530 20261101T0530 20261101T0630 20261102T0630 ."}},
        {BEL_GAP_NEXT,
         BEL_FOLD_BOTH,
         {"20261101T0100", "FREQ=DAILY;BYHOUR=1;BYMINUTE=0,30;COUNT=2 EXDATE:20261101T060000Z",
          "20261101T0500 20261101T0530 20261101T0630 ."}},
    };
    struct bel_zone_when when = {.zone = zone("America/New_York")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        when.gap = rows[i].gap;
        when.fold = rows[i].fold;
        check_run_in(&rows[i].run, &when, true);
    }
}

static void hours_follow_real_time(void)
{
    static const struct run runs[] = {
        {"20260308T0000", "FREQ=HOURLY;COUNT=5",
         "20260308T0500 20260308T0600 20260308T0700 20260308T0800 ."},
        {"20261101T0030", "FREQ=HOURLY;COUNT=3",
         "20261101T0430 20261101T0530 20261101T0630 20261101T0730 ."},
        {"20261101T0045", "FREQ=MINUTELY;INTERVAL=30;COUNT=4",
         "20261101T0445 20261101T0515 20261101T0545 20261101T0615 20261101T0645 20261101T0715 ."},
        {"20261101T0030", "FREQ=HOURLY;BYHOUR=0,1,2;COUNT=3",
         "20261101T0430 20261101T0530 20261101T0730 ."},
    };
    struct bel_zone_when when = {.zone = zone("America/New_York")};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        check_run_in(&runs[i], &when, true);
    }
}

static void weeks_have_the_numbers_of_iso_8601(void)
{
    struct bel_zone_when when = {.zone = bel_zone_utc()};
    for (int week = 1; week <= 53; week++) {
        char text[64];
        int64_t next;
        (void)snprintf(text, sizeof text, "FREQ=YEARLY;BYWEEKNO=%d;BYDAY=SU,MO,TH", week);
        struct bel_rrule *rrule = parse(text, "19900101");
        CHECK(bel_rrule_next(rrule, &when, 0, &next) == 0);
        for (int64_t day = utc("19900101"); day < utc("20300101"); day += DAY) {
            char name[8];
            struct tm tm;
            CHECK(gmtime_r(&day, &tm) != NULL);
            if (tm.tm_wday != 0 && tm.tm_wday != 1 && tm.tm_wday != 4) continue;
            CHECK(strftime(name, sizeof name, "%V", &tm) > 0);
            if (strtol(name, NULL, 10) != week) continue;
            CHECK_NOTE("week %d: got %" PRId64 ", want %" PRId64, week, next, day);
            CHECK(next == day);
            CHECK(bel_rrule_next(rrule, &when, next, &next) == 0);
        }
        bel_rrule_destroy(rrule);
    }
}

/* libical ends in the year 2582, and cannot start after it. */
static void far_years_are_like_near_ones(void)
{
    static const struct {
        const char *rule, *start, *after, *next;
    } rows[] = {
        {"FREQ=YEARLY", "20260305", "25820601", "25830305"},
        {"FREQ=YEARLY;INTERVAL=3", "20260305", "90000101", "90010305"},
        {"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "20240229", "78970101", "79040229"},
        {"FREQ=MONTHLY;BYDAY=-1FR", "20260101", "99990101", "99990129"},
        {"FREQ=MONTHLY;BYDAY=1MO", "02000101", "02000102", "02000106"},
        {"FREQ=DAILY;INTERVAL=3", "20260101", "99980101", "99980104"},
    };
    struct bel_zone_when when = {.zone = bel_zone_utc()};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_rrule *rrule = parse(rows[i].rule, rows[i].start);
        int64_t next;
        CHECK(bel_rrule_next(rrule, &when, utc(rows[i].after), &next) == 0);
        CHECK_NOTE("%s: got %" PRId64, rows[i].rule, next);
        CHECK(next == utc(rows[i].next));
        bel_rrule_destroy(rrule);
    }
}

static void the_year_10000_does_not_come(void)
{
    struct bel_zone_when when = {.zone = zone("America/New_York")};
    struct bel_rrule *rrule = parse("FREQ=DAILY", "20260305");
    int64_t next = 0;
    CHECK(bel_rrule_next(rrule, &when, utc("99991231"), &next) == BEL_ERANGE);
    CHECK(bel_rrule_next(rrule, &when, INT64_MAX, &next) == BEL_ERANGE);
    CHECK(next == 0);
    bel_rrule_destroy(rrule);
}

struct follower {
    pthread_t thread;
    const struct bel_rrule *rrule;
    int64_t sum; /* of the times that it found */
};

static void *follow(void *argument)
{
    struct follower *follower = argument;
    struct bel_zone_when when = {.zone = bel_zone_utc()};
    int64_t at = 0;
    for (unsigned i = 0; i < 500; i++) {
        CHECK(bel_rrule_next(follower->rrule, &when, at, &at) == 0);
        follower->sum += at;
    }
    return NULL;
}

static void threads_share_a_rule(void)
{
    struct bel_rrule *rrule = parse("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=8,9", "20260101");
    struct follower followers[4] = {0};
    for (unsigned i = 0; i < 4; i++) {
        followers[i].rrule = rrule;
        CHECK(pthread_create(&followers[i].thread, NULL, follow, &followers[i]) == 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK(pthread_join(followers[i].thread, NULL) == 0);
        CHECK(followers[i].sum == followers[0].sum);
    }
    bel_rrule_destroy(rrule);
}

static void what_is_wrong_is_refused(void)
{
    static const struct {
        const char *text;
        size_t position;
        const char *expected; /* a part of it */
    } rows[] = {
        {"", 0, "FREQ="},
        {"RRULE:", 6, "FREQ="},
        {"INTERVAL=2", 10, "FREQ="},
        {"FREQ=HOURS", 5, "YEARLY, MONTHLY"},
        {"FREQ=DAILY;", 11, "BY part"},
        {"FREQ=DAILY;RSCALE=GREGORIAN", 11, "BY part"},
        {"FREQ=DAILY;FREQ=DAILY", 11, "FREQ only once"},
        {"FREQ=DAILY,WEEKLY", 10, "the end"},
        {"FREQ=DAILY;INTERVAL=0", 20, "from 1 to 100000"},
        {"FREQ=DAILY;INTERVAL=99999", 11, "up to 36500"},
        {"FREQ=YEARLY;INTERVAL=101", 12, "up to 100"},
        {"FREQ=DAILY;COUNT=10001", 17, "from 1 to 10000"},
        {"FREQ=DAILY;COUNT=99999999999", 17, "from 1 to 10000"},
        {"FREQ=YEARLY;COUNT=500", 12, "within 400 years"},
        {"FREQ=DAILY;INTERVAL=3;BYMONTH=1,2,3,4,5,6,7;COUNT=9999", 44, "a smaller COUNT"},
        {"FREQ=DAILY;COUNT=1;UNTIL=20300101T000000Z", 19, "not both"},
        {"FREQ=DAILY;UNTIL=203001", 23, "20260131T090000"},
        {"FREQ=DAILY;UNTIL=20300230", 17, "a date that exists"},
        {"FREQ=DAILY;UNTIL=20301301", 17, "a date that exists"},
        {"FREQ=DAILY;UNTIL=20300230T000000", 17, "that exists"},
        {"FREQ=DAILY;BYHOUR=24", 18, "an hour from 0 to 23"},
        {"FREQ=DAILY;BYHOUR=-1", 18, "an hour from 0 to 23"},
        {"FREQ=DAILY;BYSECOND=60", 20, "a second from 0 to 59"},
        {"FREQ=MONTHLY;BYMONTHDAY=0", 24, "a day from 1 to 31"},
        {"FREQ=MONTHLY;BYMONTHDAY=1,-32", 26, "a day from 1 to 31"},
        {"FREQ=YEARLY;BYMONTH=13", 20, "a month from 1 to 12"},
        {"FREQ=WEEKLY;BYDAY=MO,XX", 21, "a weekday"},
        {"FREQ=MONTHLY;BYDAY=0MO", 19, "a number from 1 to 53"},
        {"FREQ=MONTHLY;BYDAY=6MO", 13, "1 to 5"},
        {"FREQ=WEEKLY;BYDAY=1MO", 12, "without numbers"},
        {"FREQ=YEARLY;BYMONTHDAY=1;BYDAY=1MO", 25, "without numbers"},
        {"FREQ=HOURLY;BYDAY=1MO", 12, "without numbers"},
        {"FREQ=HOURLY;BYYEARDAY=1", 12, "no BYYEARDAY with FREQ=HOURLY"},
        {"FREQ=WEEKLY;BYMONTHDAY=13", 12, "no BYMONTHDAY with FREQ=WEEKLY"},
        {"FREQ=MONTHLY;BYYEARDAY=100", 13, "no BYYEARDAY with FREQ=MONTHLY"},
        {"FREQ=YEARLY;BYYEARDAY=1;BYMONTH=1", 12, "no BYYEARDAY with"},
        {"FREQ=YEARLY;BYMONTH=1;BYWEEKNO=1", 22, "no BYWEEKNO with"},
        {"FREQ=MONTHLY;BYSETPOS=1", 13, "BYSETPOS with another BY part"},
        {"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367", 31, "a position from 1 to 366"},
        {"FREQ=DAILY EXDATE:20260101", 26, "20260131T090000"},
        {"FREQ=DAILY EXDATE;TZID=UTC:20260101T000000", 11, "EXDATE: or the end"},
        {"FREQ=DAILY RDATE:20260101T000000", 11, "EXDATE: or the end"},
        {"FREQ=DAILY\nRRULE:FREQ=DAILY", 11, "EXDATE: or the end"},
    };
    struct bel_civil start = civil("20260101");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bel_rrule *rrule = NULL;
        struct bel_text_error why;
        size_t bytes = strlen(rows[i].text);
        int err = bel_rrule_parse(rows[i].text, bytes, &start, &rrule, &why);
        CHECK_NOTE("%s", rows[i].text);
        CHECK(err == BEL_EINVAL && rrule == NULL);
        CHECK_NOTE("%.90s: at %zu: %s", rows[i].text, why.position, why.expected);
        CHECK_EQ(why.position, rows[i].position);
        CHECK(strstr(why.expected, rows[i].expected) != NULL);
        CHECK(bel_rrule_parse(rows[i].text, bytes, &start, &rrule, NULL) == BEL_EINVAL);
    }
}

static void what_never_comes_is_refused(void)
{
    static const char *const rules[] = {
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=4,6;BYMONTHDAY=31",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=-30",
        "FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=20",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
        "FREQ=MONTHLY;BYDAY=MO,TU;BYMONTHDAY=1,2,3;BYSETPOS=-4",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
        "FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=DAILY;INTERVAL=14;BYDAY=MO",
        "FREQ=WEEKLY;INTERVAL=5200;BYMONTH=3",
        "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1,3,5",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=10",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMINUTE=1,2;BYSETPOS=3",
        "FREQ=DAILY;BYHOUR=9;BYSETPOS=2",
        "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=-3",
        "FREQ=YEARLY;BYDAY=MO;BYSETPOS=54",
    };
    struct bel_civil start = civil("20270101"); /* a Friday in an odd year */
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct bel_rrule *rrule = NULL;
        struct bel_text_error why;
        CHECK_NOTE("%s", rules[i]);
        CHECK(bel_rrule_parse(rules[i], strlen(rules[i]), &start, &rrule, &why) == BEL_EINVAL);
        CHECK_EQ(why.position, 0);
        CHECK(strstr(why.expected, "a rule ") != NULL);
    }
}

static void too_much_is_refused(void)
{
    static char text[BEL_RRULE_TEXT_MAX + 2];
    struct bel_civil start = civil("20260101"), no_date = {.year = 2026, .month = 2, .day = 30};
    struct bel_rrule *rrule = NULL;
    struct bel_text_error why;
    size_t bytes = (size_t)snprintf(text, sizeof text, "FREQ=DAILY EXDATE:20260101T090000");
    for (unsigned i = 1; i <= BEL_RRULE_EXDATES_MAX; i++) {
        CHECK(bel_rrule_parse(text, bytes, &start, &rrule, &why) == 0);
        bel_rrule_destroy(rrule);
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, ",20260101T090000");
    }
    CHECK(bel_rrule_parse(text, bytes, &start, &rrule, &why) == BEL_EINVAL);
    CHECK(strstr(why.expected, "at most 256 exceptions") != NULL);
    memset(text, ' ', sizeof text);
    memcpy(text, "FREQ=DAILY", 10);
    CHECK(bel_rrule_parse(text, BEL_RRULE_TEXT_MAX + 1, &start, &rrule, &why) == BEL_EINVAL);
    CHECK_EQ(why.position, BEL_RRULE_TEXT_MAX);
    CHECK(bel_rrule_parse(text, 10, &no_date, &rrule, &why) == BEL_EINVAL);
    CHECK(strstr(why.expected, "a start") != NULL);
    bel_rrule_destroy(NULL);
}

int main(void)
{
    if (!bel_rrule_is_supported()) {
        struct bel_civil start = civil("20260101");
        struct bel_rrule *rrule = NULL;
        struct bel_text_error why;
        CHECK(bel_rrule_parse("FREQ=DAILY", 10, &start, &rrule, &why) == BEL_EINVAL);
        CHECK(strstr(why.expected, "not in this build") != NULL);
        printf("SKIPPED: this build has no libical\n");
        return SKIPPED;
    }
    CHECK(bel_zones_open(NULL, &zones) == 0);
    RUN(days_and_weeks_of_the_rfc);
    RUN(long_lists_of_the_rfc);
    RUN(months_of_the_rfc);
    RUN(years_of_the_rfc);
    RUN(hours_and_minutes_of_the_rfc);
    RUN(parts_come_in_any_order_and_case);
    RUN(the_start_comes_only_if_it_is_named);
    RUN(exceptions_are_left_out);
    RUN(until_includes_its_own_time);
    RUN(clock_changes_follow_the_policies);
    RUN(hours_follow_real_time);
    RUN(weeks_have_the_numbers_of_iso_8601);
    RUN(far_years_are_like_near_ones);
    RUN(the_year_10000_does_not_come);
    RUN(threads_share_a_rule);
    RUN(what_is_wrong_is_refused);
    RUN(what_never_comes_is_refused);
    RUN(too_much_is_refused);
    bel_zones_close(zones);
    return EXIT_SUCCESS;
}
