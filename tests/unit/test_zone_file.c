/* SPDX-License-Identifier: MIT */

/* The source is compiled in, with memory that can run out. */
#include "../memory.h"

#include "plan/zone_parse.c" /* NOLINT(bugprone-suspicious-include) */

#include "../check.h"
#include "../zone_file.h"

#define HOUR  INT64_C(3600)
#define DAY   INT64_C(86400)
#define Y2024 INT64_C(1704067200)
#define Y2025 INT64_C(1735689600)
#define Y9999 INT64_C(253370764800)

static struct zone_file file;
static struct bel_zone *zone;

static int parse(void)
{
    struct bel_zone *made = NULL;
    int err = bel__zone_parse("test", file.bytes, file.count, &made);
    CHECK((err == 0) == (made != NULL));
    bel__zone_destroy(zone);
    zone = made;
    return err;
}

/* A zone that has only a rule. */
static int parse_rule(const char *rule)
{
    const struct zone_change first = {0, 0};
    CHECK_NOTE("%s", rule);
    zone_file_make(&file, '3', &first, 1, rule);
    return parse();
}

/* A zone that has two changes and a rule. */
static int parse_changes(char version, const char *rule)
{
    static const struct zone_change changes[] = {{0, 60}, {-DAY, 3600}, {DAY, 7200}};
    zone_file_make(&file, version, changes, 3, rule);
    return parse();
}

static void every_version_is_read(void)
{
    static const char versions[] = {0, '2', '3', '4'};
    for (size_t i = 0; i < sizeof versions; i++) {
        CHECK_NOTE("version %d", versions[i]);
        CHECK(parse_changes(versions[i], "AAA-2") == 0);
        CHECK(bel_zone_offset(zone, -DAY - 1) == 60);
        CHECK(bel_zone_offset(zone, -DAY) == 3600);
        CHECK(bel_zone_offset(zone, DAY - 1) == 3600);
        CHECK(bel_zone_offset(zone, DAY) == 7200);
        CHECK(bel_zone_offset(zone, INT64_MAX) == 7200);
    }
    CHECK(parse_changes('1', "AAA-2") == BEL_ECORRUPT);
    CHECK(parse_changes('5', "AAA-2") == BEL_ECORRUPT);
}

static void without_a_rule_the_last_change_stays(void)
{
    int64_t change;
    CHECK(parse_changes('2', "") == 0);
    CHECK(bel_zone_offset(zone, Y9999) == 7200);
    CHECK(bel_zone_next_change(zone, 0, &change) && change == DAY);
    CHECK(!bel_zone_next_change(zone, DAY, &change));
}

static void the_list_counts_until_the_rule_changes_something(void)
{
    int64_t change;
    CHECK(parse_changes('2', "AAA-2") == 0);
    CHECK(parse_changes('2', "AAA-3") == BEL_ECORRUPT);
    CHECK(parse_changes('2', "AAA-3BBB,J60/0,J300/0") == 0); /* at +3 in January */
    CHECK(bel_zone_offset(zone, 30 * DAY) == 7200);
    CHECK(bel_zone_next_change(zone, DAY, &change));
    CHECK(change == 59 * DAY - 3 * HOUR);
    CHECK(bel_zone_offset(zone, change) == 4 * HOUR);
}

static void a_rule_alone_holds_at_all_times(void)
{
    int64_t change;
    CHECK(parse_rule("AAA-1BBB,M3.5.0,M10.5.0/3") == 0);
    CHECK(bel_zone_offset(zone, Y2024) == 3600);
    CHECK(bel_zone_offset(zone, Y2024 + 180 * DAY) == 7200);
    CHECK(bel_zone_offset(zone, Y9999 + 180 * DAY) == 7200);
    CHECK(bel_zone_offset(zone, -Y9999) == bel_zone_offset(zone, -Y9999 + BEL_ZONE_CYCLE));
    CHECK(bel_zone_next_change(zone, INT64_MIN, &change));
    CHECK(change - DAY * 366 < INT64_MIN + DAY);
    CHECK(!bel_zone_next_change(zone, INT64_MAX, &change));
}

static void dst_may_be_all_year_or_never(void)
{
    static const char *const all_year[] = {"EST5EDT,0/0,J365/25", "XXX3EDT4,0/0,J365/23"};
    int64_t change;
    for (int i = 0; i < 2; i++) {
        CHECK(parse_rule(all_year[i]) == 0);
        CHECK(bel_zone_offset(zone, Y2024) == -4 * HOUR);
        CHECK(bel_zone_offset(zone, Y2025 + 5 * HOUR - 1) == -4 * HOUR);
        CHECK(bel_zone_offset(zone, INT64_MAX) == -4 * HOUR);
        CHECK(!bel_zone_next_change(zone, 0, &change));
    }
    CHECK(parse_rule("EST5EDT4,J100/0,J100/1") == 0);
    CHECK(bel_zone_offset(zone, Y2024) == -5 * HOUR);
    CHECK(!bel_zone_next_change(zone, 0, &change));
}

static void dst_may_begin_in_the_year_before(void)
{
    CHECK(parse_rule("AAA0BBB,0/-24,J31/0") == 0);
    CHECK(bel_zone_offset(zone, Y2025 - DAY - 1) == 0);
    CHECK(bel_zone_offset(zone, Y2025 - DAY) == HOUR);
    CHECK(bel_zone_offset(zone, Y2025) == HOUR);
    CHECK(parse_rule("AAA0BBB,J300/0,J365/167") == 0);
    CHECK(bel_zone_offset(zone, Y2025 + 5 * DAY) == HOUR);
    CHECK(bel_zone_offset(zone, Y2025 + 7 * DAY) == 0);
}

static void a_change_may_come_only_in_leap_years(void)
{
    int64_t change = Y2024;
    CHECK(parse_rule("AAA0BBB0,0/0,365/0") == 0); /* day 365 is that after a short year */
    CHECK(parse_rule("AAA0BBB,0/0,365/1") == 0);
    for (int i = 0; i < 98; i++) { /* 97 of 400 years are, so over the end of the cycle */
        CHECK(bel_zone_next_change(zone, change, &change));
        CHECK(bel_zone_offset(zone, change) == 0);
        CHECK(bel_zone_next_change(zone, change, &change));
        CHECK(bel_zone_offset(zone, change) == HOUR);
    }
    CHECK(change == Y2025 + BEL_ZONE_CYCLE);
}

static void rules_that_are_none_are_refused(void)
{
    static const char *const wrong[] = {
        "AA0",
        "AAA",
        "0",
        "<AA>0",
        "<AAA0",
        "<A*A>0",
        "AAA25",
        "AAA0:60",
        "AAA0:0:60",
        "AAA0:",
        "AAA0BBB",
        "AAA0BBB,",
        "AAA0BBB,0",
        "AAA0BBB,0,",
        "AAA0BBB,J0,J1",
        "AAA0BBB,366,1",
        "AAA0BBB,J366,1",
        "AAA0BBB,M0.1.0,1",
        "AAA0BBB,M13.1.0,1",
        "AAA0BBB,M1.0.0,1",
        "AAA0BBB,M1.6.0,1",
        "AAA0BBB,M1.1.7,1",
        "AAA0BBB,M1.1,1",
        "AAA0BBB,0/168,1",
        "AAA0BBB,0/-168,1",
        "AAA0BBB,0/,1",
        "AAA0BBB,0,1 ",
        "AAA0 ",
        "AAA0BBB,0,1,2",
        "AAA++0",
        "AAA-24:59:59BBB-25,0,1",
        "AAA0000",
        ":AAA0",
        "AAA0BBB0",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(parse_rule(wrong[i]) == BEL_ECORRUPT);
    }
    CHECK(parse_rule("AAA-24:59:59<+b-1>+24:59:59,0/-167:59:59,M12.5.6/+167") == 0);
}

/* A file with any byte missing, or with an extra byte, is rejected. */
static void a_file_that_is_cut_off_is_refused(void)
{
    CHECK(parse_changes('2', "AAA-2") == 0);
    size_t whole = file.count;
    for (file.count = 0; file.count < whole; file.count++) {
        CHECK(parse() == BEL_ECORRUPT);
    }
    file.bytes[file.count++] = '\n';
    CHECK(parse() == BEL_ECORRUPT);
    CHECK(parse_changes(0, "") == 0);
    whole = file.count;
    for (file.count = 0; file.count < whole; file.count++) {
        CHECK(parse() == BEL_ECORRUPT);
    }
    file.bytes[file.count++] = 0;
    CHECK(parse() == BEL_ECORRUPT);
}

/* Changes a byte of a version 1 file with two changes. */
static int parse_with(size_t at, uint8_t byte)
{
    CHECK_NOTE("%u at %zu", byte, at);
    CHECK(parse_changes(0, "") == 0);
    file.bytes[at] = byte;
    return parse();
}

static void every_number_of_a_file_is_checked(void)
{
    enum {
        TIMES = ZONE_FILE_HEADER,
        INDEXES = TIMES + 8,
        TYPES = INDEXES + 2,
        NAMES = TYPES + 18,
    };
    CHECK(parse_with(0, 't') == BEL_ECORRUPT);
    CHECK(parse_with(23, 3) == BEL_ECORRUPT); /* three marks that are not there */
    CHECK(parse_with(27, 1) == BEL_ECORRUPT);
    CHECK(parse_with(31, 1) == BEL_ECORRUPT); /* a leap second */
    CHECK(parse_with(32, 255) == BEL_ECORRUPT);
    CHECK(parse_with(36, 255) == BEL_ECORRUPT);
    CHECK(parse_with(39, 0) == BEL_ECORRUPT);
    CHECK(parse_with(40, 255) == BEL_ECORRUPT);
    CHECK(parse_with(43, 0) == BEL_ECORRUPT);
    CHECK(parse_with(TIMES, 0) == BEL_ECORRUPT); /* after the second */
    CHECK(parse_with(INDEXES, 3) == BEL_ECORRUPT);
    CHECK(parse_with(TYPES, 1) == BEL_ECORRUPT);
    CHECK(parse_with(TYPES, 255) == BEL_ECORRUPT);
    CHECK(parse_with(TYPES + 4, 2) == BEL_ECORRUPT);
    CHECK(parse_with(TYPES + 5, 4) == BEL_ECORRUPT);
    CHECK(parse_with(NAMES + 3, 'T') == BEL_ECORRUPT);
}

static void files_with_leap_seconds_are_refused(void)
{
    static const struct zone_change first = {0, 0};
    zone_file_make(&file, 0, &first, 1, "");
    CHECK(parse() == 0);
    file.bytes[31] = 1;
    zone_file_put(&file, 78796800, 4);
    zone_file_put(&file, 1, 4);
    CHECK(parse() == BEL_ECORRUPT);
}

static void instants_before_the_earth_are_refused(void)
{
    struct zone_change changes[] = {{0, 0}, {-TZIF_TIME_MAX, 60}, {TZIF_TIME_MAX, 0}};
    static const char rule[] = "AAA0BBB,J60,J300";
    int64_t change;
    zone_file_make(&file, '2', changes, 2, rule); /* a rule from the beginning */
    CHECK(parse() == 0);
    CHECK(bel_zone_offset(zone, Y2024 + 180 * DAY) == HOUR);
    zone_file_make(&file, '2', changes, 3, rule);
    CHECK(parse() == 0);
    CHECK(bel_zone_offset(zone, Y2024 + 180 * DAY) == 60);
    CHECK(bel_zone_next_change(zone, INT64_MAX - 300 * DAY, &change));
    changes[1].time--;
    zone_file_make(&file, '2', changes, 3, rule);
    CHECK(parse() == BEL_ECORRUPT);
}

static void without_memory_there_is_no_zone(void)
{
    CHECK(parse_changes('2', "AAA-2") == 0);
    for (memory_left = 0; memory_left < 4;) {
        uint64_t allocations = memory_left;
        CHECK(parse() == BEL_ENOMEM);
        memory_left = allocations + 1;
    }
    CHECK(parse() == 0);
    memory_left = UINT64_MAX;
}

static void zones_of_the_same_changes_are_the_same(void)
{
    struct bel_zone *other;
    CHECK(parse_changes('2', "AAA-2") == 0);
    CHECK(bel__zone_parse("other", file.bytes, file.count, &other) == 0);
    CHECK(bel__zone_is_same(zone, other));
    CHECK(parse_changes('2', "AAA-2BBB,J60,J300") == 0);
    CHECK(!bel__zone_is_same(zone, other));
    bel__zone_destroy(other);
}

int main(void)
{
    RUN(every_version_is_read);
    RUN(without_a_rule_the_last_change_stays);
    RUN(the_list_counts_until_the_rule_changes_something);
    RUN(a_rule_alone_holds_at_all_times);
    RUN(dst_may_be_all_year_or_never);
    RUN(dst_may_begin_in_the_year_before);
    RUN(a_change_may_come_only_in_leap_years);
    RUN(rules_that_are_none_are_refused);
    RUN(a_file_that_is_cut_off_is_refused);
    RUN(every_number_of_a_file_is_checked);
    RUN(files_with_leap_seconds_are_refused);
    RUN(instants_before_the_earth_are_refused);
    RUN(without_memory_there_is_no_zone);
    RUN(zones_of_the_same_changes_are_the_same);
    bel__zone_destroy(zone);
    return 0;
}
