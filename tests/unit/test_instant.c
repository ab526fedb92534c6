/* SPDX-License-Identifier: MIT */
#include "belfry/instant.h"

#include "../check.h"

#include <string.h>

static struct bel_zones *zones;

struct row {
    const char *text;
    int64_t ms;
};

struct refusal {
    const char *text;
    size_t position;
    const char *expected; /* a part of it */
};

static int64_t parse(const char *text, enum bel_gap gap, enum bel_fold fold)
{
    struct bel_instant_options options = {.zones = zones, .gap = gap, .fold = fold};
    struct bel_text_error why = {0};
    struct bel_wall instant = {7777};
    int err = bel_instant_parse(text, strlen(text), &options, &instant, &why);
    CHECK_NOTE("parsing '%s': %d %zu %s", text, err, why.position, why.expected);
    CHECK(err == 0);
    return instant.ms;
}

static int64_t seconds(const char *text)
{
    int64_t ms = parse(text, BEL_GAP_NEXT, BEL_FOLD_FIRST);
    CHECK(ms % 1000 == 0);
    return ms / 1000;
}

static void expect_all(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t ms = parse(rows[i].text, BEL_GAP_NEXT, BEL_FOLD_FIRST);
        CHECK_NOTE("'%s' is %" PRId64 ", not %" PRId64, rows[i].text, ms, rows[i].ms);
        CHECK(ms == rows[i].ms);
    }
}

static void refuse(const struct refusal *row, const struct bel_instant_options *options)
{
    struct bel_text_error why = {.position = 9999};
    struct bel_wall instant = {7777};
    size_t bytes = strlen(row->text);
    int err = bel_instant_parse(row->text, bytes, options, &instant, &why);
    CHECK_NOTE("parsing '%s': %zu %s", row->text, why.position, why.expected);
    CHECK(err == BEL_EINVAL && instant.ms == 7777);
    CHECK_EQ(why.position, row->position);
    CHECK(strstr(why.expected, row->expected) != NULL);
    CHECK(bel_instant_parse(row->text, bytes, options, &instant, NULL) == BEL_EINVAL);
}

static void refuse_all(const struct refusal *rows, size_t count)
{
    struct bel_instant_options options = {.zones = zones};
    for (size_t i = 0; i < count; i++) {
        refuse(&rows[i], &options);
    }
}

#define EXPECT_ALL(rows) expect_all((rows), sizeof(rows) / sizeof((rows)[0]))
#define REFUSE_ALL(rows) refuse_all((rows), sizeof(rows) / sizeof((rows)[0]))

static void rfc_3339_is_read(void)
{
    static const struct row rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00+00:00", 0},
        {"1970-01-01T00:00:00-00:00", 0},
        {"1970-01-01t00:00:00z", 0},
        {"2026-06-01T09:00:00+07:00", INT64_C(1780279200000)},
        {"2026-06-01T02:00:00Z", INT64_C(1780279200000)},
        {"2026-05-31T22:30:00-03:30", INT64_C(1780279200000)},
        {"1985-04-12T23:20:50.52Z", INT64_C(482196050520)},
        {"1996-12-19T16:39:57-08:00", INT64_C(851042397000)},
        {"1937-01-01T12:00:27.87+00:20", INT64_C(-1041337172130)},
        {"2000-02-29T00:00:00Z", INT64_C(951782400000)},
        {"1969-12-31T23:59:59Z", -1000},
        {"1969-12-31T23:59:59.999Z", -1},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000)},
        {"0000-01-01T00:00:00+23:59", INT64_C(-62167305540000)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
        {"9999-12-31T23:59:59-23:59", INT64_C(253402387139000)},
    };
    EXPECT_ALL(rows);
}

static void digits_after_the_milliseconds_are_cut_off(void)
{
    static const struct row rows[] = {
        {"1970-01-01T00:00:00.5Z", 500},
        {"1970-01-01T00:00:00.05Z", 50},
        {"1970-01-01T00:00:00.0009Z", 0},
        {"1970-01-01T00:00:00.999999999Z", 999},
        {"1970-01-01T00:00:00.1239999999999999999999999999999999999999999999999Z", 123},
        {"1969-12-31T23:59:59.9999Z", -1},
        {"1969-12-31T23:59:59.0009Z", -1000},
    };
    EXPECT_ALL(rows);
}

static void a_number_is_milliseconds(void)
{
    static const struct row rows[] = {
        {"0", 0},
        {"-1", -1},
        {"2026", 2026},
        {"-2026", -2026},
        {"20260601", 20260601},
        {"1780279200000", INT64_C(1780279200000)},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const struct refusal refusals[] = {
        {"9223372036854775808", 0, "64 bits"},
        {"-9223372036854775809", 0, "64 bits"},
        {"1780279200000.5", 0, "a time, such as"},
        {"+5", 0, "a time, such as"},
        {"1e3", 0, "a time, such as"},
        {"-", 0, "a time, such as"},
        {"--5", 0, "a time, such as"},
    };
    EXPECT_ALL(rows);
    REFUSE_ALL(refusals);
}

static void a_local_time_alone_is_refused(void)
{
    static const struct refusal refusals[] = {
        {"2026-06-01T09:00:00", 19, "an offset or a zone"},
        {"2026-06-01T09:00", 16, "an offset or a zone"},
        {"2026-06-01T09:00:00.5", 21, "an offset or a zone"},
        {"2026-06-01T09:00:00[u-ca=gregory]", 19, "an offset or a zone"},
        {"2026-06-01", 10, "T and a time of day"},
    };
    REFUSE_ALL(refusals);
}

static void what_is_no_time_is_refused_where_it_begins(void)
{
    static const struct refusal refusals[] = {
        {"", 0, "a time, such as"},
        {"tomorrow", 0, "a time, such as"},
        {"26-06-01T09:00:00Z", 0, "a time, such as"},
        {" 2026-06-01T09:00:00Z", 0, "a time, such as"},
        {"-2026-06-01T09:00:00Z", 0, "a time, such as"},
        {"20x6-06-01T09:00:00Z", 0, "a year from 0000 to 9999"},
        {"2026-13-01T09:00:00Z", 5, "a month from 01 to 12"},
        {"2026-00-01T09:00:00Z", 5, "a month"},
        {"2026-6-01T09:00:00Z", 5, "a month"},
        {"2026/06-01T09:00:00Z", 0, "a time, such as"},
        {"2026-06/01T09:00:00Z", 7, "'-'"},
        {"2026-06-31T09:00:00Z", 8, "from 01 to 30"},
        {"2026-02-29T09:00:00Z", 8, "from 01 to 28"},
        {"2100-02-29T09:00:00Z", 8, "from 01 to 28"},
        {"2024-02-30T09:00:00Z", 8, "from 01 to 29"},
        {"2026-06-00T09:00:00Z", 8, "a day"},
        {"2026-06-01 09:00:00Z", 10, "T and a time"},
        {"2026-06-01T24:00:00Z", 11, "an hour from 00 to 23"},
        {"2026-06-01T9:00:00Z", 11, "an hour"},
        {"2026-06-01T09-00:00Z", 13, "':'"},
        {"2026-06-01T09:60:00Z", 14, "a minute from 00 to 59"},
        {"2026-06-01T09:00:61Z", 17, "a second from 00 to 59"},
        {"2016-12-31T23:59:60Z", 17, "no leap seconds"},
        {"2026-06-01T09:00:00.Z", 20, "digits"},
        {"2026-06-01T09:00:00,5Z", 19, "an offset"},
        {"2026-06-01T09:00Z", 16, "seconds"},
        {"2026-06-01T09:00+07:00", 16, "seconds"},
        {"2026-06-01T09:00Z[u-ca=gregory]", 16, "seconds"},
        {"2026-06-01T09:00:00+7:00", 20, "an hour"},
        {"2026-06-01T09:00:00+07", 22, "':'"},
        {"2026-06-01T09:00:00+0700", 22, "':'"},
        {"2026-06-01T09:00:00+24:00", 20, "an hour"},
        {"2026-06-01T09:00:00+07:60", 23, "a minute"},
        {"2026-06-01T09:00:00Z ", 20, "nothing more"},
        {"2026-06-01T09:00:00ZZ", 20, "nothing more"},
        {"2026-06-01T09:00:00+07:00:00", 25, "nothing more"},
        {"2026-06-01T09:00:00 +07:00", 19, "an offset"},
    };
    struct bel_wall instant = {7777};
    REFUSE_ALL(refusals);
    CHECK(bel_instant_parse(NULL, 0, NULL, &instant, NULL) == BEL_EINVAL);
    CHECK(bel_instant_parse("2026-06-01T09:00:00Z\0", 21, NULL, &instant, NULL) == BEL_EINVAL);
    CHECK(bel_instant_parse("2026-06-01T09:00:00Z", 19, NULL, &instant, NULL) == BEL_EINVAL);
    CHECK(instant.ms == 7777);
}

static void a_local_time_in_a_zone_is_read(void)
{
    CHECK(seconds("2026-06-01T09:00[Asia/Bangkok]") == seconds("2026-06-01T02:00:00Z"));
    CHECK(seconds("2026-06-01T09:00:30[Asia/Bangkok]") == seconds("2026-06-01T02:00:30Z"));
    CHECK(seconds("2026-07-01T12:00[Europe/Berlin]") == seconds("2026-07-01T10:00:00Z"));
    CHECK(seconds("2026-01-01T12:00[!Europe/Berlin]") == seconds("2026-01-01T11:00:00Z"));
    CHECK(seconds("2026-06-01T09:00[UTC]") == seconds("2026-06-01T09:00:00Z"));
    CHECK(parse("2026-06-01T09:00:00.25[UTC]", BEL_GAP_NEXT, BEL_FOLD_FIRST) ==
          parse("2026-06-01T09:00:00.25Z", BEL_GAP_NEXT, BEL_FOLD_FIRST));
    CHECK(seconds("2026-06-01T09:00[+07:00]") == seconds("2026-06-01T02:00:00Z"));
    CHECK(seconds("2026-06-01T09:00[-00:00]") == seconds("2026-06-01T09:00:00Z"));
}

static void a_gap_is_passed_over_or_refused(void)
{
    static const char *const text = "2026-03-29T02:30:00.5[Europe/Berlin]";
    static const struct refusal refusal = {"2026-03-29T02:30:00.5[Europe/Berlin]", 0, "exists"};
    struct bel_instant_options skip = {.zones = zones, .gap = BEL_GAP_SKIP};
    int64_t end = 1000 * seconds("2026-03-29T01:00:00Z");
    CHECK(parse(text, BEL_GAP_NEXT, BEL_FOLD_FIRST) == end);
    CHECK(parse(text, BEL_GAP_NEXT, BEL_FOLD_SECOND) == end);
    CHECK(seconds("2026-03-29T03:00[Europe/Berlin]") == end / 1000);
    CHECK(seconds("2026-03-29T01:59:59[Europe/Berlin]") == end / 1000 - 1);
    refuse(&refusal, &skip);
}

static void a_fold_is_the_first_or_the_second(void)
{
    static const char *const text = "2026-10-25T02:30[Europe/Berlin]";
    int64_t first = 1000 * seconds("2026-10-25T00:30:00Z");
    CHECK(parse(text, BEL_GAP_SKIP, BEL_FOLD_FIRST) == first);
    CHECK(parse(text, BEL_GAP_SKIP, BEL_FOLD_SECOND) == first + 3600000);
    CHECK(parse(text, BEL_GAP_SKIP, BEL_FOLD_BOTH) == first);
}

static void an_offset_says_which_and_must_be_the_zone_s(void)
{
    static const struct refusal refusals[] = {
        {"2026-07-01T12:00:00+01:00[Europe/Berlin]", 19, "an offset that the zone has"},
        {"2026-07-01T12:00:00+01:00[!Europe/Berlin]", 19, "an offset that the zone has"},
        {"2026-07-01T12:00:00+00:00[Europe/Berlin]", 19, "an offset that the zone has"},
        {"2026-03-29T02:30+01:00[Europe/Berlin]", 16, "an offset that the zone has"},
        {"2026-03-29T02:30+02:00[Europe/Berlin]", 16, "an offset that the zone has"},
        {"2026-10-25T02:30+03:00[Europe/Berlin]", 16, "an offset that the zone has"},
        {"2026-06-01T09:00+06:00[+07:00]", 16, "the same offset"},
    };
    CHECK(seconds("2026-10-25T02:30+02:00[Europe/Berlin]") == seconds("2026-10-25T00:30:00Z"));
    CHECK(seconds("2026-10-25T02:30+01:00[Europe/Berlin]") == seconds("2026-10-25T01:30:00Z"));
    CHECK(seconds("2026-07-01T12:00+02:00[Europe/Berlin]") == seconds("2026-07-01T10:00:00Z"));
    CHECK(seconds("2026-06-01T09:00+07:00[+07:00]") == seconds("2026-06-01T02:00:00Z"));
    CHECK(seconds("2026-06-01T09:00+00:00[UTC]") == seconds("2026-06-01T09:00:00Z"));
    REFUSE_ALL(refusals);
}

static void z_is_utc_in_any_zone(void)
{
    CHECK(seconds("2026-07-01T12:00:00Z[Europe/Berlin]") == seconds("2026-07-01T12:00:00Z"));
    CHECK(seconds("2026-07-01T12:00-00:00[Europe/Berlin]") == seconds("2026-07-01T12:00:00Z"));
    CHECK(seconds("2026-03-29T02:30Z[Europe/Berlin]") == seconds("2026-03-29T02:30:00Z"));
    CHECK(seconds("2026-06-01T09:00Z[+07:00]") == seconds("2026-06-01T09:00:00Z"));
}

static void suffixes_are_passed_over_unless_critical(void)
{
    static const struct refusal refusals[] = {
        {"2026-06-01T09:00:00Z[!u-ca=gregory]", 22, "no suffix with a '!'"},
        {"2026-06-01T09:00[UTC][!u-ca=gregory]", 23, "no suffix with a '!'"},
        {"2026-06-01T09:00[UTC][Europe/Berlin]", 22, "a key and a value"},
        {"2026-06-01T09:00[u-ca=gregory][UTC]", 31, "a key and a value"},
        {"2026-06-01T09:00[UTC][]", 22, "a key and a value"},
        {"2026-06-01T09:00[UTC][=x]", 22, "a key and a value"},
        {"2026-06-01T09:00[UTC][x=]", 22, "a key and a value"},
        {"2026-06-01T09:00[UTC][X=y]", 22, "a key and a value"},
        {"2026-06-01T09:00[UTC][x=y=z]", 22, "a key and a value"},
        {"2026-06-01T09:00[UTC]x", 21, "'['"},
        {"2026-06-01T09:00[UTC", 20, "']'"},
        {"2026-06-01T09:00[]", 17, "a zone"},
        {"2026-06-01T09:00[!]", 18, "a zone"},
        {"2026-06-01T09:00[Mars/Olympus]", 17, "a known time zone"},
        {"2026-06-01T09:00Z[Mars/Olympus]", 18, "a known time zone"},
        {"2026-06-01T09:00[Berlin]", 17, "a known time zone: did you mean Europe/Berlin?"},
        {"2026-06-01T09:00[america/new_york]", 17,
         "a known time zone: did you mean America/New_York?"},
        {"2026-06-01T09:00[../../etc/passwd]", 17, "a known time zone"},
        {"2026-06-01T09:00[+07]", 20, "':'"},
        {"2026-06-01T09:00[+07:00:00]", 23, "']'"},
    };
    CHECK(seconds("2026-06-01T09:00:00Z[u-ca=gregory]") == seconds("2026-06-01T09:00:00Z"));
    CHECK(seconds("2026-06-01T09:00[UTC][u-ca=gregory][_x-1=aB-9]") ==
          seconds("2026-06-01T09:00:00Z"));
    REFUSE_ALL(refusals);
}

static void without_zones_only_offsets_are_known(void)
{
    static const struct refusal refusal = {"2026-06-01T09:00[Asia/Bangkok]", 17, "no zone"};
    struct bel_wall instant = {0};
    refuse(&refusal, NULL);
    CHECK(bel_instant_parse("2026-06-01T09:00[+07:00]", 24, NULL, &instant, NULL) == 0);
    CHECK(instant.ms == INT64_C(1780279200000));
}

static void printing_gives_utc(void)
{
    static const struct row rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1969-12-31T23:59:59.999Z", -1},
        {"2026-06-01T02:00:00Z", INT64_C(1780279200000)},
        {"2026-06-01T02:00:00.050Z", INT64_C(1780279200050)},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000)},
        {"-62167219200001", INT64_C(-62167219200001)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
        {"253402300800000", INT64_C(253402300800000)},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[BEL_INSTANT_BYTES], cut[4];
        struct bel_wall instant = {rows[i].ms};
        CHECK_NOTE("printing %" PRId64, rows[i].ms);
        CHECK_EQ(bel_instant_print(instant, text, sizeof text), strlen(rows[i].text));
        CHECK(strcmp(text, rows[i].text) == 0);
        CHECK_EQ(bel_instant_print(instant, NULL, 0), strlen(rows[i].text));
        CHECK_EQ(bel_instant_print(instant, cut, sizeof cut), strlen(rows[i].text));
        CHECK(memcmp(cut, text, 3) == 0 && cut[3] == '\0');
    }
}

static void expect_zoned(const char *utc, const char *name, const char *want)
{
    char text[BEL_INSTANT_BYTES];
    const struct bel_zone *zone = NULL;
    struct bel_wall instant = {parse(utc, BEL_GAP_NEXT, BEL_FOLD_FIRST)};
    CHECK(bel_zones_find(zones, name, strlen(name), &zone) == 0);
    size_t bytes = bel_instant_print_zoned(instant, zone, text, sizeof text);
    CHECK_NOTE("%s in %s is %s", utc, name, text);
    CHECK(bytes == strlen(want) && strcmp(text, want) == 0);
    CHECK(parse(text, BEL_GAP_SKIP, BEL_FOLD_FIRST) == instant.ms);
}

static void printing_in_a_zone_names_it(void)
{
    expect_zoned("2026-06-01T02:00:00Z", "Asia/Bangkok", "2026-06-01T09:00:00+07:00[Asia/Bangkok]");
    expect_zoned("2026-06-01T02:00:00.007Z", "America/St_Johns",
                 "2026-05-31T23:30:00.007-02:30[America/St_Johns]");
    expect_zoned("2026-10-25T00:30:00Z", "Europe/Berlin",
                 "2026-10-25T02:30:00+02:00[Europe/Berlin]");
    expect_zoned("2026-10-25T01:30:00Z", "Europe/Berlin",
                 "2026-10-25T02:30:00+01:00[Europe/Berlin]");
    expect_zoned("2026-06-01T02:00:00Z", "UTC", "2026-06-01T02:00:00+00:00[UTC]");
    expect_zoned("9999-12-31T23:00:00Z", "Asia/Bangkok", "253402297200000");
}

/* Before 1972 Liberia was 44 minutes and 30 seconds behind. */
static void seconds_of_an_offset_are_rounded_and_not_lost(void)
{
    expect_zoned("1960-01-01T00:00:00Z", "Africa/Monrovia",
                 "1959-12-31T23:15:30-00:44[Africa/Monrovia]");
}

int main(void)
{
    if (bel_zones_open(NULL, &zones) != 0) return 77;
    RUN(rfc_3339_is_read);
    RUN(digits_after_the_milliseconds_are_cut_off);
    RUN(a_number_is_milliseconds);
    RUN(a_local_time_alone_is_refused);
    RUN(what_is_no_time_is_refused_where_it_begins);
    RUN(a_local_time_in_a_zone_is_read);
    RUN(a_gap_is_passed_over_or_refused);
    RUN(a_fold_is_the_first_or_the_second);
    RUN(an_offset_says_which_and_must_be_the_zone_s);
    RUN(z_is_utc_in_any_zone);
    RUN(suffixes_are_passed_over_unless_critical);
    RUN(without_zones_only_offsets_are_known);
    RUN(printing_gives_utc);
    RUN(printing_in_a_zone_names_it);
    RUN(seconds_of_an_offset_are_rounded_and_not_lost);
    bel_zones_close(zones);
    return 0;
}
