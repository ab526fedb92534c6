/* SPDX-License-Identifier: MIT */
#include "belfry/duration.h"

#include "../check.h"

#include <string.h>

#define SECOND  UINT64_C(1000)
#define MINUTE  (60 * SECOND)
#define HOUR    (60 * MINUTE)
#define DAY     (24 * HOUR)
#define WEEK    (7 * DAY)
#define LARGEST "18446744073709551615"

struct row {
    const char *text;
    uint64_t ms;
};

struct refusal {
    const char *text;
    size_t position;
    const char *expected; /* a part of it */
};

static void expect_all(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t ms = 7777;
        CHECK_NOTE("parsing '%s'", rows[i].text);
        CHECK(bel_duration_parse(rows[i].text, strlen(rows[i].text), &ms, NULL) == 0);
        CHECK_EQ(ms, rows[i].ms);
    }
}

static void refuse_all(const struct refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bel_text_error why = {.position = 9999};
        uint64_t ms = 7777;
        size_t bytes = strlen(rows[i].text);
        int err = bel_duration_parse(rows[i].text, bytes, &ms, &why);
        CHECK_NOTE("parsing '%s': %zu %s", rows[i].text, why.position, why.expected);
        CHECK(err == BEL_EINVAL && ms == 7777);
        CHECK_EQ(why.position, rows[i].position);
        CHECK(strstr(why.expected, rows[i].expected) != NULL);
        CHECK(bel_duration_parse(rows[i].text, bytes, &ms, NULL) == BEL_EINVAL);
    }
}

#define EXPECT_ALL(rows) expect_all((rows), sizeof(rows) / sizeof((rows)[0]))
#define REFUSE_ALL(rows) refuse_all((rows), sizeof(rows) / sizeof((rows)[0]))

static void numbers_with_units_are_added(void)
{
    static const struct row rows[] = {
        {"500ms", 500},
        {"30s", 30 * SECOND},
        {"5m", 5 * MINUTE},
        {"1h30m", HOUR + 30 * MINUTE},
        {"30d", 30 * DAY},
        {"2w", 2 * WEEK},
        {"1w2d3h4m5s6ms", WEEK + 2 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND + 6},
        {"1h1ms", HOUR + 1},
        {"90m", 90 * MINUTE},
        {"1h90m", 150 * MINUTE},
        {"0s", 0},
        {"0h0m", 0},
        {"007m", 7 * MINUTE},
        {LARGEST "ms", UINT64_MAX},
        {"213503982334d14h25m51s615ms", UINT64_MAX},
    };
    EXPECT_ALL(rows);
}

static void a_number_alone_is_milliseconds(void)
{
    static const struct row rows[] = {
        {"0", 0}, {"1500", 1500}, {"00", 0}, {LARGEST, UINT64_MAX}, {"00" LARGEST, UINT64_MAX},
    };
    EXPECT_ALL(rows);
}

static void iso_8601_is_read(void)
{
    static const struct row rows[] = {
        {"PT1H30M", 90 * MINUTE},
        {"P1DT2H", DAY + 2 * HOUR},
        {"P2W", 2 * WEEK},
        {"P30D", 30 * DAY},
        {"PT36H", 36 * HOUR},
        {"PT5M", 5 * MINUTE},
        {"PT0S", 0},
        {"P1DT1H1M1S", DAY + HOUR + MINUTE + SECOND},
        {"PT18446744073709551.615S", UINT64_MAX},
    };
    EXPECT_ALL(rows);
}

static void a_last_fraction_may_give_whole_milliseconds(void)
{
    static const struct row rows[] = {
        {"1.5s", 1500},        {"PT0.5S", 500},
        {"1.5h", 90 * MINUTE}, {"1h0.25m", HOUR + 15 * SECOND},
        {"0.001s", 1},         {"0.0010000000000000000000000000s", 1},
        {"1.0ms", 1},          {"0.0009765625w", 590625},
        {"P0.5D", 12 * HOUR},  {"P0.5W", WEEK / 2},
    };
    static const struct refusal refusals[] = {
        {"0.0001s", 0, "whole milliseconds"},
        {"1h0.0005s", 2, "whole milliseconds"},
        {"1.5ms", 0, "whole milliseconds"},
        {"0.00048828125w", 0, "whole milliseconds"},
        {"0.99999999999999999999w", 0, "whole milliseconds"},
        {"0.333h2m", 6, "nothing after"},
        {"1.5h30m", 4, "nothing after"},
        {"1.0h30m", 4, "nothing after"},
        {"PT1.5H30M", 6, "nothing after"},
        {"1.5", 3, "a unit"},
        {"1.s", 2, "digits"},
        {".5s", 0, "a number"},
        {"1.5.5s", 3, "a unit"},
        {"1,5s", 1, "a unit"},
        {"PT0,5S", 3, "H, M or S"},
        {"18446744073709551.616s", 0, "at most " LARGEST},
    };
    EXPECT_ALL(rows);
    REFUSE_ALL(refusals);
}

static void units_come_once_and_from_large_to_small(void)
{
    static const struct refusal refusals[] = {
        {"30m1h", 4, "smaller unit"},   {"1h1h", 3, "smaller unit"},   {"1ms1s", 4, "smaller unit"},
        {"PT30M1H", 6, "smaller unit"}, {"PT1S1S", 5, "smaller unit"}, {"P1D1D", 4, "smaller unit"},
        {"P1W1D", 4, "weeks alone"},    {"P1D1W", 4, "smaller unit"},  {"P1WT1H", 5, "weeks alone"},
    };
    REFUSE_ALL(refusals);
}

static void years_and_months_are_refused_with_the_reason(void)
{
    static const struct refusal refusals[] = {
        {"P1Y", 2, "the length of years and months varies"},
        {"P1M", 2, "the length of years and months varies"},
        {"P1D2M", 4, "the length of years and months varies"},
    };
    REFUSE_ALL(refusals);
}

static void anything_else_is_refused_where_it_begins(void)
{
    static const struct refusal refusals[] = {
        {"", 0, "a duration"},        {"-1s", 0, "not negative"},   {"-5", 0, "not negative"},
        {"1h-5m", 2, "not negative"}, {"PT-5M", 2, "not negative"}, {"-PT5M", 0, "not negative"},
        {"+1s", 0, "a number"},       {" 1s", 0, "a number"},       {"1s ", 2, "a number"},
        {"1 s", 1, "a unit"},         {"1h30", 4, "a unit"},        {"5M", 1, "a unit"},
        {"5min", 1, "a unit"},        {"5sec", 1, "a unit"},        {"5us", 1, "a unit"},
        {"1e3s", 1, "a unit"},        {"0x10", 1, "a unit"},        {"s", 0, "a number"},
        {"abc", 0, "a number"},       {"P", 1, "a number"},         {"PT", 2, "a number"},
        {"P1DT", 4, "a number"},      {"PT1HT1M", 4, "a number"},   {"P1", 2, "W or D"},
        {"PT1", 3, "H, M or S"},      {"P1H", 2, "after a T"},      {"PT1D", 3, "H, M or S"},
        {"pt1h", 0, "a number"},      {"PT1h", 3, "H, M or S"},     {"PP1D", 1, "a number"},
    };
    uint64_t ms = 7777;
    REFUSE_ALL(refusals);
    CHECK(bel_duration_parse("1s\0", 3, &ms, NULL) == BEL_EINVAL);
    CHECK(bel_duration_parse("PT1\0", 4, &ms, NULL) == BEL_EINVAL);
    CHECK(bel_duration_parse("5\0", 2, &ms, NULL) == BEL_EINVAL);
    CHECK(bel_duration_parse(NULL, 0, &ms, NULL) == BEL_EINVAL);
    CHECK_EQ(ms, 7777);
}

static void what_does_not_fit_is_refused(void)
{
    static const struct refusal refusals[] = {
        {"18446744073709551616", 0, "at most " LARGEST},
        {"18446744073709551616ms", 0, "at most"},
        {"99999999999999999999999999999999s", 0, "at most"},
        {"18446744073709552s", 0, "at most"},
        {"30500568905w", 0, "at most"},
        {"213503982334d14h25m51s616ms", 22, "at most"},
        {"P213503982335D", 1, "at most"},
    };
    REFUSE_ALL(refusals);
}

static void the_text_ends_where_its_length_says(void)
{
    uint64_t ms = 0;
    CHECK(bel_duration_parse("5ms", 2, &ms, NULL) == 0 && ms == 5 * MINUTE);
    CHECK(bel_duration_parse("5ms", 1, &ms, NULL) == 0 && ms == 5);
}

static void printing_gives_the_usual_form(void)
{
    static const struct row rows[] = {
        {"0s", 0},
        {"1ms", 1},
        {"1s500ms", 1500},
        {"1h30m", 90 * MINUTE},
        {"1d", DAY},
        {"1w", WEEK},
        {"30d", 30 * DAY},
        {"7d1ms", WEEK + 1},
        {"1h", 60 * MINUTE},
        {"1h1s", HOUR + SECOND},
        {"213503982334d14h25m51s615ms", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[BEL_DURATION_BYTES];
        CHECK_NOTE("printing %" PRIu64, rows[i].ms);
        CHECK_EQ(bel_duration_print(rows[i].ms, text, sizeof text), strlen(rows[i].text));
        CHECK(strcmp(text, rows[i].text) == 0);
    }
}

static void printing_writes_what_fits_and_says_what_is_needed(void)
{
    char text[8];
    CHECK_EQ(bel_duration_print(90 * MINUTE, NULL, 0), 5);
    for (size_t room = 1; room <= sizeof text; room++) {
        memset(text, '#', sizeof text);
        CHECK_EQ(bel_duration_print(90 * MINUTE, text, room), 5);
        size_t written = room > 5 ? 5 : room - 1;
        CHECK(memcmp(text, "1h30m", written) == 0 && text[written] == '\0');
        CHECK(room == sizeof text || text[room] == '#');
    }
}

int main(void)
{
    RUN(numbers_with_units_are_added);
    RUN(a_number_alone_is_milliseconds);
    RUN(iso_8601_is_read);
    RUN(a_last_fraction_may_give_whole_milliseconds);
    RUN(units_come_once_and_from_large_to_small);
    RUN(years_and_months_are_refused_with_the_reason);
    RUN(anything_else_is_refused_where_it_begins);
    RUN(what_does_not_fit_is_refused);
    RUN(the_text_ends_where_its_length_says);
    RUN(printing_gives_the_usual_form);
    RUN(printing_writes_what_fits_and_says_what_is_needed);
    return 0;
}
