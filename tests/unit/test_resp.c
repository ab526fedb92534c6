/* SPDX-License-Identifier: MIT */

/*
 * The codec: every request whole and split at every byte, invalid requests and those that end the
 * connection, and every kind of reply in both versions.
 */
#include "../check.h"
#include "session/resp.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    ROOM = 1 << 16,
    ARGUMENTS_MAX = 40,
};

static const struct bel_resp_limits known = {.arguments_max = ARGUMENTS_MAX,
                                             .argument_bytes_max = 4000,
                                             .request_bytes_max = 4096,
                                             .is_lenient = true};
static const struct bel_resp_limits unknown = {
    .arguments_max = 10, .argument_bytes_max = 24, .request_bytes_max = 400};

/* The parsed stream: requests as "[GET][mail]", refusals as "!", a broken connection as "#why". */
struct heard {
    char text[ROOM];
    size_t bytes;
};

static void hear(struct heard *heard, const void *data, size_t bytes)
{
    CHECK(heard->bytes + bytes < sizeof heard->text);
    memcpy(heard->text + heard->bytes, data, bytes);
    heard->bytes += bytes;
    heard->text[heard->bytes] = 0;
}

static void hear_request(struct heard *heard, const struct bel_resp_parser *parser,
                         const void *data)
{
    for (size_t i = 0; i < parser->count; i++) {
        struct bel_view argument = bel__resp_argument(parser, data, i);
        hear(heard, "[", 1);
        hear(heard, argument.data, argument.bytes);
        hear(heard, "]", 1);
    }
    hear(heard, ";", 1);
}

/* Parses the available bytes. Returns false if the connection is broken. */
static bool drain(struct bel_resp_parser *parser, struct bel_buffer *in, struct heard *heard)
{
    for (;;) {
        size_t used;
        enum bel_resp_event event = bel__resp_parse(parser, bel__buffer_data(in), in->count, &used);
        CHECK(used <= in->count);
        if (event == BEL_RESP_REQUEST) hear_request(heard, parser, bel__buffer_data(in));
        if (event == BEL_RESP_REFUSED) hear(heard, "!", 1);
        if (event == BEL_RESP_BROKEN) {
            hear(heard, "#", 1);
            hear(heard, parser->why, strlen(parser->why));
            return false;
        }
        bel__buffer_consume(in, used);
        if (event == BEL_RESP_MORE) return true;
    }
}

/* Feeds text in two pieces, or in single bytes if it is split at 0. */
static void feed(const struct bel_resp_limits *limits, struct bel_view text, size_t split,
                 struct heard *heard)
{
    struct bel_resp_parser parser;
    struct bel_buffer in;
    const char *bytes = text.data;
    bel__resp_init(&parser, limits);
    bel__buffer_init(&in, ROOM);
    heard->bytes = 0;
    heard->text[0] = 0;
    bool is_well = true;
    for (size_t at = 0; at < text.bytes && is_well;) {
        size_t piece = split == 0 ? 1 : at == 0 ? split : text.bytes - split;
        CHECK(bel__buffer_append(&in, bytes + at, piece) == 0);
        at += piece;
        is_well = drain(&parser, &in, heard);
    }
    if (is_well) CHECK(in.count <= parser.limits.request_bytes_max + 32);
    bel__buffer_finish(&in);
    bel__resp_finish(&parser);
}

static void expect_as(const struct bel_resp_limits *limits, struct bel_view text,
                      struct bel_view want)
{
    static struct heard heard;
    for (size_t split = 0; split <= text.bytes; split++) {
        feed(limits, text, split, &heard);
        CHECK_NOTE("%.100s, split at %zu: heard %.100s", (const char *)text.data, split,
                   heard.text);
        CHECK(heard.bytes == want.bytes && memcmp(heard.text, want.data, want.bytes) == 0);
    }
}

#define expect(text, want) expect_as(&known, BEL_VIEW(text), BEL_VIEW(want))

static void arrays_of_strings_are_requests(void)
{
    expect("*1\r\n$4\r\nPING\r\n", "[PING];");
    expect("*2\r\n$3\r\nGET\r\n$4\r\nmail\r\n", "[GET][mail];");
    expect("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "[ECHO][];");
    expect("*2\r\n$4\r\nECHO\r\n$7\r\na\r\nb\0\xff$\r\n", "[ECHO][a\r\nb\0\xff$];");
    expect("*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n", "[a];[b];");
    expect("*1\r\n$01\r\na\r\n", "[a];");
    expect("*01\r\n$00000001\r\na\r\n", "[a];");
    expect("*000000001\r\n$000000001\r\na\r\n", "[a];");
    expect("*1\r\n$00000000000000000001\r\na\r\n", "[a];");
    expect("*1\r\n$-0\r\n\r\n", "[];");
}

static void empty_requests_are_passed(void)
{
    expect("*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n", ";;;;;[PING];");
}

static void lines_are_split_into_words(void)
{
    expect("PING\r\n", "[PING];");
    expect("PING\n", "[PING];");
    expect("  GET\tmail  a \r\n", "[GET][mail][a];");
    expect("GET \"a b\" 'c d'\r\n", "[GET][a b][c d];");
    expect("ECHO \"\"\r\nECHO ''\r\n", "[ECHO][];[ECHO][];");
    expect("ECHO \"\\x00\\xff\\xZZ\\n\\r\\t\\b\\a\\\"\\q\"\r\n", "[ECHO][\0\xffxZZ\n\r\t\b\a\"q];");
    expect("ECHO 'it\\'s \\n'\r\n", "[ECHO][it's \\n];");
    expect("ECHO a\"b c\"\r\n", "[ECHO][ab c];");
    expect("PING\r\n*1\r\n$1\r\na\r\nPING\r\n", "[PING];[a];[PING];");
}

static void quotes_are_balanced(void)
{
    expect("ECHO \"a\r\nPING\r\n", "#unbalanced quotes in request");
    expect("ECHO 'a\r\n", "#unbalanced quotes in request");
    expect("ECHO \"a\"b\r\n", "#unbalanced quotes in request");
    expect("ECHO \"a\\\r\n", "#unbalanced quotes in request");
}

static void what_is_no_request_breaks_the_connection(void)
{
    expect("*x\r\n", "#expected a number");
    expect("*\r\n", "#expected a number");
    expect("*+1\r\n", "#expected a number");
    expect("*1 \r\n", "#expected a number");
    expect("*1\n", "#expected CR and LF");
    expect("*1\r\nPING\r\n", "#expected '$'");
    expect("*1\r\n:1\r\n", "#expected '$'");
    expect("*1\r\n$-1\r\n", "#invalid bulk length");
    expect("*1\r\n$a\r\n", "#expected a number");
    expect("*1\r\n$4\r\nPINGPONG\r\n", "#a bulk string ends in CR and LF");
    expect("*99999999999999999999999999\r\n", "#the number is too long");
    expect("*9999999999999999999\r\n", "#expected a number");
    expect("*1048577\r\n", "#invalid multibulk length");
    expect("*1\r\n$536870913\r\n", "#invalid bulk length");
}

/* Memory is not allocated by announced sizes. */
static void huge_announcements_cost_nothing(void)
{
    struct bel_resp_parser parser;
    size_t used;
    char text[] = "*1048576\r\n$536870912\r\nabc";
    bel__resp_init(&parser, &known);
    CHECK(bel__resp_parse(&parser, text, sizeof text - 1, &used) == BEL_RESP_MORE);
    CHECK_EQ(used, sizeof text - 1);
    CHECK(parser.slots == NULL && parser.count == 0);
    bel__resp_finish(&parser);
}

static void what_is_too_large_is_passed_over(void)
{
    static char text[3 * ROOM];
    size_t bytes = (size_t)snprintf(text, sizeof text, "*3\r\n$1\r\na\r\n$5000\r\n");
    memset(text + bytes, '*', 5000);
    bytes += 5000;
    bytes += (size_t)snprintf(text + bytes, 100, "\r\n$1\r\nb\r\n*1\r\n$4\r\nPING\r\n");
    expect_as(&known, (struct bel_view){text, bytes}, BEL_VIEW("![PING];"));
}

/* Each argument is small, but the total is too large. */
static void all_arguments_together_have_a_limit(void)
{
    static char text[ROOM];
    size_t bytes = (size_t)snprintf(text, sizeof text, "*20\r\n");
    for (int i = 0; i < 20; i++) {
        bytes += (size_t)snprintf(text + bytes, 300, "$250\r\n%0250d\r\n", i);
    }
    bytes += (size_t)snprintf(text + bytes, 100, "PING\r\n");
    expect_as(&known, (struct bel_view){text, bytes}, BEL_VIEW("![PING];"));
}

static void too_many_are_passed_over(void)
{
    static char text[ROOM];
    size_t bytes = (size_t)snprintf(text, sizeof text, "*%d\r\n", ARGUMENTS_MAX + 1);
    for (int i = 0; i <= ARGUMENTS_MAX; i++) {
        bytes += (size_t)snprintf(text + bytes, 100, "$1\r\na\r\n");
    }
    bytes += (size_t)snprintf(text + bytes, 100, "*1\r\n$4\r\nPING\r\n");
    expect_as(&known, (struct bel_view){text, bytes}, BEL_VIEW("![PING];"));
}

static void as_many_as_allowed_are_taken(void)
{
    char text[ROOM], want[ROOM];
    size_t bytes = (size_t)snprintf(text, sizeof text, "*%d\r\n", ARGUMENTS_MAX), wanted = 0;
    for (int i = 0; i < ARGUMENTS_MAX; i++) {
        bytes += (size_t)snprintf(text + bytes, 100, "$2\r\n%02d\r\n", i);
        wanted += (size_t)snprintf(want + wanted, 100, "[%02d]", i);
    }
    want[wanted++] = ';';
    expect_as(&known, (struct bel_view){text, bytes}, (struct bel_view){want, wanted});
}

static void strangers_are_told_less(void)
{
#define stranger(text, want) expect_as(&unknown, BEL_VIEW(text), BEL_VIEW(want))
    stranger("*2\r\n$4\r\nAUTH\r\n$24\r\n0123456789abcdef01234567\r\n",
             "[AUTH][0123456789abcdef01234567];");
    stranger("*2\r\n$4\r\nAUTH\r\n$25\r\n0123456789abcdef012345678\r\n", "#too many bytes");
    stranger("*11\r\n$4\r\nAUTH\r\n", "#too many arguments");
    stranger("a b c d e f g h i j\r\n", "[a][b][c][d][e][f][g][h][i][j];");
    stranger("a b c d e f g h i j k\r\n", "#too many arguments");
    stranger("AUTH 0123456789abcdefghij\r\n", "#too big inline request");
    stranger("AUTH 0123456789abcdefghij", "#too big inline request");
#undef stranger
}

/* --- replies --- */

static void expect_written(struct bel_buffer *out, struct bel_view want)
{
    CHECK_NOTE("wrote %.*s", (int)out->count, (const char *)bel__buffer_data(out));
    CHECK_EQ(out->count, want.bytes);
    CHECK(memcmp(bel__buffer_data(out), want.data, want.bytes) == 0);
    bel__buffer_consume(out, out->count);
}

static void write_all(struct bel_resp_writer *writer)
{
    bel__resp_simple(writer, "OK");
    bel__resp_integer(writer, INT64_MIN);
    bel__resp_count(writer, UINT64_MAX);
    bel__resp_bulk(writer, BEL_VIEW("a\r\nb"));
    bel__resp_bulk(writer, (struct bel_view){NULL, 0});
    bel__resp_text(writer, "text");
    bel__resp_array(writer, 3);
    bel__resp_null(writer);
    bel__resp_null_array(writer);
    bel__resp_map(writer, 2);
    bel__resp_boolean(writer, true);
    bel__resp_boolean(writer, false);
}

static void replies_of_version_2(void)
{
    struct bel_buffer out;
    bel__buffer_init(&out, ROOM);
    struct bel_resp_writer writer = {.out = &out, .version = 2};
    write_all(&writer);
    CHECK(writer.err == 0);
    expect_written(&out, BEL_VIEW("+OK\r\n:-9223372036854775808\r\n:9223372036854775807\r\n"
                                  "$4\r\na\r\nb\r\n$0\r\n\r\n$4\r\ntext\r\n*3\r\n$-1\r\n*-1\r\n"
                                  "*4\r\n:1\r\n:0\r\n"));
    bel__buffer_finish(&out);
}

static void replies_of_version_3(void)
{
    struct bel_buffer out;
    bel__buffer_init(&out, ROOM);
    struct bel_resp_writer writer = {.out = &out, .version = 3};
    write_all(&writer);
    CHECK(writer.err == 0);
    expect_written(&out, BEL_VIEW("+OK\r\n:-9223372036854775808\r\n:9223372036854775807\r\n"
                                  "$4\r\na\r\nb\r\n$0\r\n\r\n$4\r\ntext\r\n*3\r\n_\r\n_\r\n"
                                  "%2\r\n#t\r\n#f\r\n"));
    bel__buffer_finish(&out);
}

static void an_error_is_one_line(void)
{
    struct bel_buffer out;
    char text[2000];
    bel__buffer_init(&out, ROOM);
    struct bel_resp_writer writer = {.out = &out, .version = 2};
    bel__resp_error(&writer, "ERR", "a\r\n+OK\r\n\tb\x7f\x1b[2J\xc3\xa9");
    expect_written(&out, BEL_VIEW("-ERR a  +OK   b  [2J\xc3\xa9\r\n"));
    bel__resp_simple(&writer, "a\r\nb");
    expect_written(&out, BEL_VIEW("+a  b\r\n"));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    bel__resp_error(&writer, "ERR", text);
    CHECK_EQ(out.count, 1 + BEL_RESP_ERROR_BYTES_MAX + 2);
    bel__buffer_finish(&out);
}

/* A value is written completely or not at all, and the last byte of the room can be used. */
static void what_just_fits_is_written(void)
{
    static const uint64_t numbers[] = {0, 9, 10, 99, 100, 1000, 9999, 10000, 99999, INT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char want[64];
        size_t bytes = (size_t)snprintf(want, sizeof want, ":%llu\r\n$1\r\na\r\n",
                                        (unsigned long long)numbers[i]);
        for (size_t room = 0; room <= bytes; room++) {
            struct bel_buffer out;
            bel__buffer_init(&out, room);
            struct bel_resp_writer writer = {.out = &out, .version = 2};
            bel__resp_count(&writer, numbers[i]);
            bel__resp_bulk(&writer, BEL_VIEW("a"));
            size_t fits = room == bytes ? bytes : room >= bytes - 7 ? bytes - 7 : 0;
            CHECK((writer.err == BEL_EFULL) == (room < bytes));
            if (fits > 0) expect_written(&out, (struct bel_view){want, fits});
            CHECK_EQ(out.count, 0);
            bel__buffer_finish(&out);
        }
    }
}

static void the_first_error_sticks(void)
{
    struct bel_buffer out;
    bel__buffer_init(&out, 8);
    struct bel_resp_writer writer = {.out = &out, .version = 2};
    bel__resp_simple(&writer, "OK");
    bel__resp_simple(&writer, "much too long");
    CHECK(writer.err == BEL_EFULL);
    bel__resp_array(&writer, 0);
    CHECK(writer.err == BEL_EFULL);
    expect_written(&out, BEL_VIEW("+OK\r\n"));
    bel__buffer_finish(&out);
}

int main(void)
{
    RUN(arrays_of_strings_are_requests);
    RUN(empty_requests_are_passed);
    RUN(lines_are_split_into_words);
    RUN(quotes_are_balanced);
    RUN(what_is_no_request_breaks_the_connection);
    RUN(huge_announcements_cost_nothing);
    RUN(what_is_too_large_is_passed_over);
    RUN(all_arguments_together_have_a_limit);
    RUN(too_many_are_passed_over);
    RUN(as_many_as_allowed_are_taken);
    RUN(strangers_are_told_less);
    RUN(replies_of_version_2);
    RUN(replies_of_version_3);
    RUN(an_error_is_one_line);
    RUN(what_just_fits_is_written);
    RUN(the_first_error_sticks);
    return 0;
}
