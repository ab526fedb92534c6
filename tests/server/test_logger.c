/* SPDX-License-Identifier: MIT */

/* Log lines as text and as JSON, with arbitrary values. */
#include "server/logger.h"

#include "../check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char line[BEL_LOG_LINE_BYTES_MAX + 1];

static const char *print(enum bel_log_format format, const char *message,
                         const struct bel_log_field *fields, size_t count)
{
    struct bel_log_event event = {{1780279200123}, BEL_LOG_WARN, message, fields, count};
    size_t bytes = bel__logger_format_line(format, &event, line);
    line[bytes] = 0;
    CHECK_NOTE("%.200s", line);
    return line;
}

static bool is(const char *got, const char *wanted)
{
    return strcmp(got, wanted) == 0;
}

static void a_line_for_people(void)
{
    struct bel_log_field fields[] = {BEL_LOG_TEXT("a", "plain"), BEL_LOG_TEXT("b", "two words"),
                                     BEL_LOG_NUMBER("n", -7), BEL_LOG_TEXT("e", "")};
    CHECK(is(print(BEL_LOG_AS_TEXT, "it happened", fields, 4),
             "2026-06-01T02:00:00.123Z warn  it happened a=plain b=\"two words\" n=-7 e=\"\"\n"));
}

static void a_line_for_programs(void)
{
    struct bel_log_field fields[] = {BEL_LOG_TEXT("a", "say \"x\\y\""), BEL_LOG_NUMBER("n", 7)};
    CHECK(
        is(print(BEL_LOG_AS_JSON, "it happened", fields, 2),
           "{\"time\":\"2026-06-01T02:00:00.123Z\",\"level\":\"warn\",\"message\":\"it happened\","
           "\"a\":\"say \\\"x\\\\y\\\"\",\"n\":7}\n"));
}

static void no_byte_ends_a_line_or_moves_a_cursor(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[] = {'<', (char)byte, '>'};
        struct bel_log_field field = {.name = "x", .text = {text, sizeof text}};
        for (int format = BEL_LOG_AS_TEXT; format <= BEL_LOG_AS_JSON; format++) {
            const char *got = print((enum bel_log_format)format, "m", &field, 1);
            size_t bytes = strlen(got);
            CHECK(got[bytes - 1] == '\n');
            for (size_t i = 0; i + 1 < bytes; i++) {
                CHECK((unsigned char)got[i] >= ' ' && (unsigned char)got[i] < 0x7f);
            }
        }
    }
}

static void characters_stay_and_what_is_none_goes(void)
{
    struct bel_log_field good[] = {BEL_LOG_TEXT("x", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x94")};
    const char *got = print(BEL_LOG_AS_JSON, "m", good, 1);
    CHECK(strstr(got, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x94") != NULL);
    static const char *const bad[] = {"\xc3", "\xc0\xaf",     "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xff", "\xe2\x80\xa8", "\xc2\x9b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bel_log_field field[] = {BEL_LOG_TEXT("x", bad[i])};
        CHECK(strstr(print(BEL_LOG_AS_JSON, "m", field, 1), "\"x\":\"\\ufffd") != NULL);
        CHECK(strstr(print(BEL_LOG_AS_TEXT, "m", field, 1), "x=\"\\x") != NULL);
    }
}

static void the_longest_line_fits(void)
{
    char text[4096];
    struct bel_log_field fields[BEL_LOG_FIELDS_MAX];
    memset(text, 1, sizeof text);
    for (unsigned i = 0; i < BEL_LOG_FIELDS_MAX; i++) {
        fields[i] = (struct bel_log_field){.name = "name", .text = {text, sizeof text}};
    }
    const char *got = print(BEL_LOG_AS_JSON, "m", fields, BEL_LOG_FIELDS_MAX);
    CHECK(strstr(got, "\\u0001...\"}\n") != NULL);
}

static void only_what_is_wanted_is_written(void)
{
    int fds[2];
    char got[256];
    CHECK(pipe(fds) == 0);
    struct bel_logger log = {.clock = bel_clock_system(), .level = BEL_LOG_WARN, .fd = fds[1]};
    bel__logger_write(&log, BEL_LOG_INFO, "quiet", NULL, 0);
    bel__logger_write(&log, BEL_LOG_ERROR, "loud", NULL, 0);
    ssize_t bytes = read(fds[0], got, sizeof got - 1);
    CHECK(bytes > 0);
    got[bytes] = 0;
    CHECK(strstr(got, "error loud\n") != NULL && strstr(got, "quiet") == NULL);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int main(void)
{
    RUN(a_line_for_people);
    RUN(a_line_for_programs);
    RUN(no_byte_ends_a_line_or_moves_a_cursor);
    RUN(characters_stay_and_what_is_none_goes);
    RUN(the_longest_line_fits);
    RUN(only_what_is_wanted_is_written);
    return 0;
}
