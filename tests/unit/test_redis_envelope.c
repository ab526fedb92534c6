/* SPDX-License-Identifier: MIT */

/*
 * The envelope against values that faststream-redis-timers 0.4.0 and 0.5.4 have written, and what
 * they make of broken and older ones. (Two differences: see broken_hex_is_kept and
 * lengths_in_characters_are_read.)
 */
#include "redis/envelope.h"

#include "../check.h"

#include "core/view.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROOM = 4096,
};

static struct bel_arena arena;
static struct bel_envelope envelope;

static unsigned nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct bel_view unhex(const char *hex)
{
    static uint8_t bytes[ROOM];
    size_t count = strlen(hex) / 2;
    CHECK(count <= sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    }
    return (struct bel_view){bytes, count};
}

static void read_view(struct bel_view value)
{
    bel__arena_reset(&arena);
    CHECK(bel__envelope_read(value, &arena, &envelope) == 0);
}

static void read_text(const char *text)
{
    read_view((struct bel_view){text, strlen(text)});
}

static void check_header(size_t index, const char *name, const char *value)
{
    CHECK(index < envelope.headers_count);
    CHECK(bel__view_is(envelope.headers[index].name, name));
    CHECK(bel__view_is(envelope.headers[index].value, value));
}

static void check_body(const char *text)
{
    CHECK(bel__view_is(envelope.body, text));
}

/* Reads what the package has written, and writes the same bytes. */
static void check_both_ways(const char *hex)
{
    static uint8_t out[ROOM];
    struct bel_envelope again = {0};
    read_view(unhex(hex));
    CHECK(envelope.headers_count > 0);
    again.body = envelope.body;
    CHECK(bel__envelope_arrange(&again, envelope.headers[0].value, envelope.headers + 1,
                                envelope.headers_count - 1, &arena) == 0);
    CHECK(bel__envelope_bytes(&again) == strlen(hex) / 2);
    bel__envelope_write(&again, out);
    CHECK(memcmp(out, unhex(hex).data, strlen(hex) / 2) == 0);
}

#define HEAD        "8942494e0d0a1a0a0001"
#define CORRELATION "000e636f7272656c6174696f6e5f6964"

static void a_text(void)
{
    static const char hex[] = HEAD "00000012000000490002" CORRELATION
                                   "000974726163652d313233000c636f6e74656e742d74797065000a"
                                   "746578742f706c61696e6869";
    check_both_ways(hex);
    CHECK(strlen(hex) == 150);
    check_body("hi");
    check_header(0, "correlation_id", "trace-123");
    check_header(1, "content-type", "text/plain");
}

static void bytes_without_a_content_type(void)
{
    check_both_ways(HEAD "00000012000000280001" CORRELATION "000263317b00ff0102");
    CHECK(envelope.headers_count == 1 && envelope.body.bytes == 5);
    CHECK(memcmp(envelope.body.data, "\x7b\x00\xff\x01\x02", 5) == 0);
}

static void nothing(void)
{
    check_both_ways(HEAD "00000012000000280001" CORRELATION "00026332");
    CHECK(envelope.headers_count == 1 && envelope.body.bytes == 0);
}

static void json_with_all_headers(void)
{
    check_both_ways(HEAD "000000120000007c0005" CORRELATION
                         "000174000c636f6e74656e742d7479706500106170706c69636174696f6e2f6a736f6e"
                         "00087265706c795f746f0007616e73776572730008782d74656e616e74000461636d65"
                         "000a782d7072696f726974790004686967687b226f726465725f6964223a2034327d");
    check_body("{\"order_id\": 42}");
    CHECK(envelope.headers_count == 5);
    check_header(2, "reply_to", "answers");
    check_header(3, "x-tenant", "acme");
    check_header(4, "x-priority", "high");
}

/* A user's header of one of the first names replaces it in place. */
static void a_header_replaces_its_namesake_in_place(void)
{
    static const char hex[] = HEAD "00000012000000560004" CORRELATION
                                   "00046d696e65000c636f6e74656e742d747970650009746578742f68746d6c"
                                   "00087265706c795f746f00017200017800017978";
    const struct bel_header headers[] = {
        {BEL_VIEW("x"), BEL_VIEW("z")},
        {BEL_VIEW("reply_to"), BEL_VIEW("r")},
        {BEL_VIEW("content-type"), BEL_VIEW("text/html")},
        {BEL_VIEW("correlation_id"), BEL_VIEW("mine")},
        {BEL_VIEW("x"), BEL_VIEW("y")},
    };
    static uint8_t out[ROOM];
    struct bel_envelope made = {.body = BEL_VIEW("x")};
    bel__arena_reset(&arena);
    CHECK(bel__envelope_arrange(&made, BEL_VIEW("c"), headers, 5, &arena) == 0);
    CHECK(bel__envelope_bytes(&made) == strlen(hex) / 2);
    bel__envelope_write(&made, out);
    CHECK(memcmp(out, unhex(hex).data, strlen(hex) / 2) == 0);
    check_both_ways(hex);
}

/* The package writes lengths in characters, and cannot read them itself. */
static void lengths_in_characters_are_read(void)
{
    read_view(unhex(HEAD "000000120000005c0004" CORRELATION
                         "00056e61c3af7665000c636f6e74656e742d74797065000a746578742f706c61696e"
                         "00056772c3b6c39f650002c3bce282ac000162000163c3bc"));
    check_body("ü");
    CHECK(envelope.headers_count == 4);
    check_header(0, "correlation_id", "naïve");
    check_header(2, "größe", "ü€");
    check_header(3, "b", "c");
}

static void lengths_are_written_in_bytes(void)
{
    const struct bel_header header = {BEL_VIEW("größe"), BEL_VIEW("ü€")};
    uint8_t out[ROOM];
    struct bel_envelope made = {.body = BEL_VIEW("x")};
    bel__arena_reset(&arena);
    CHECK(bel__envelope_arrange(&made, BEL_VIEW("naïve"), &header, 1, &arena) == 0);
    bel__envelope_write(&made, out);
    CHECK(out[18 + 2 + 2 + 14 + 1] == 6); /* the length of naïve */
    read_view((struct bel_view){out, bel__envelope_bytes(&made)});
    CHECK(envelope.headers_count == 2);
    check_header(0, "correlation_id", "naïve");
    check_header(1, "größe", "ü€");
}

static void broken_headers_leave_the_body(void)
{
    /* the second length is beyond the headers */
    read_view(unhex(HEAD "000000120000001c0002000161000162ffff6869"));
    check_body("hi");
    CHECK(envelope.headers_count == 1);
    check_header(0, "a", "b");
    /* the name is not UTF-8 */
    read_view(unhex(HEAD "000000120000001a00010001ff0001626869"));
    check_body("hi");
    CHECK(envelope.headers_count == 0);
    /* the headers start behind the body */
    read_view(unhex(HEAD "00000040000000140000"
                         "6869"));
    check_body("hi");
    CHECK(envelope.headers_count == 0);
    /* the headers start later than usual */
    read_view(unhex(HEAD "000000140000001c0000"
                         "0001000161000162"
                         "6869"));
    CHECK(envelope.headers_count == 1);
    check_header(0, "a", "b");
    check_body("hi");
}

/* Such a value is the body as a whole. */
static void what_does_not_parse_is_a_body(void)
{
    static const char *const hexes[] = {
        "",
        "89",
        "8942494e0d0a1a0a",
        "8942494e0d0a1a0a0002000000120000001400006869", /* another version */
        HEAD "00000012000000490000",                    /* the body would start behind the end */
        HEAD "00000012000000020000",                    /* or in the head */
        HEAD "0000001200",
    };
    static const char *const texts[] = {
        "plain",         "{",
        "[1]",           "7",
        "\"x\"",         "{}",
        "{\"a\":1}",     "{\"data\":7}",
        "{\"data\":{}}", "{\"data\":\"x\"",
    };
    for (size_t i = 0; i < sizeof hexes / sizeof hexes[0]; i++) {
        struct bel_view value = unhex(hexes[i]);
        read_view(value);
        CHECK(bel__view_equal(envelope.body, value) && envelope.headers_count == 0);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i]);
        check_body(texts[i]);
        CHECK(envelope.headers_count == 0);
    }
}

static void older_versions_wrote_hexadecimal(void)
{
    read_text("{\"b\": \"6869\", \"ct\": \"text/plain\"}");
    check_body("hi");
    CHECK(envelope.headers_count == 1);
    check_header(0, "content-type", "text/plain");
    read_text("{\"ct\":\"\",\"b\":\"7b 00FF\\t0102\"}");
    CHECK(envelope.body.bytes == 5 && envelope.headers_count == 0);
    CHECK(memcmp(envelope.body.data, "\x7b\x00\xff\x01\x02", 5) == 0);
    read_text("{\"b\":\"\",\"ct\":null}");
    CHECK(envelope.body.bytes == 0 && envelope.headers_count == 0);
    read_text("{\"b\":\"68\",\"data\":\"x\",\"c\":[{\"b\":\"69\"}]}");
    check_body("h");
}

/* Versions up to 0.5.0 deliver an empty body, later ones remove the timer. */
static void broken_hex_is_kept(void)
{
    static const char *const texts[] = {
        "{\"b\":\"6\",\"ct\":\"text/plain\"}",
        "{\"b\":\"zz\",\"data\":\"x\"}",
        "{\"b\":7}",
        "{\"b\":\"6 869\"}",
        "{\"b\":null}",
        "{\"b\":[\"68\"]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        read_text(texts[i]);
        check_body(texts[i]);
        CHECK(envelope.headers_count == 0);
    }
}

static void older_versions_wrote_json(void)
{
    read_text("{\"data\":\"h\\u00fc\",\"headers\":{\"correlation_id\":\"c\",\"n\":1,"
              "\"deep\":{\"a\":\"b\"},\"reply_to\":\"r\"}}");
    check_body("hü");
    CHECK(envelope.headers_count == 2);
    check_header(0, "correlation_id", "c");
    check_header(1, "reply_to", "r");
    read_text(" {\"data\":\"\"}");
    CHECK(envelope.body.bytes == 0 && envelope.headers_count == 0);
    read_text("{\"headers\":{\"a\":\"b\"},\"data\":\"x\",\"headers\":[\"c\"]}");
    check_body("x");
    CHECK(envelope.headers_count == 0);
}

static void headers_must_be_text(void)
{
    static char wide[BEL_ENVELOPE_TEXT_MAX + 1];
    struct bel_envelope made = {0};
    memset(wide, 'x', sizeof wide);
    struct bel_header header = {BEL_VIEW("a"), {wide, sizeof wide - 1}};
    bel__arena_reset(&arena);
    CHECK(bel__envelope_arrange(&made, BEL_VIEW(""), &header, 1, &arena) == 0);
    header.value.bytes++;
    CHECK(bel__envelope_arrange(&made, BEL_VIEW(""), &header, 1, &arena) == BEL_EINVAL);
    header.value = BEL_VIEW("\xff");
    CHECK(bel__envelope_arrange(&made, BEL_VIEW(""), &header, 1, &arena) == BEL_EINVAL);
    header = (struct bel_header){BEL_VIEW("\xc3"), BEL_VIEW("x")};
    CHECK(bel__envelope_arrange(&made, BEL_VIEW(""), &header, 1, &arena) == BEL_EINVAL);
    CHECK(bel__envelope_arrange(&made, BEL_VIEW("\xff"), NULL, 0, &arena) == BEL_EINVAL);
}

int main(void)
{
    RUN(a_text);
    RUN(bytes_without_a_content_type);
    RUN(nothing);
    RUN(json_with_all_headers);
    RUN(a_header_replaces_its_namesake_in_place);
    RUN(lengths_in_characters_are_read);
    RUN(lengths_are_written_in_bytes);
    RUN(broken_headers_leave_the_body);
    RUN(what_does_not_parse_is_a_body);
    RUN(older_versions_wrote_hexadecimal);
    RUN(broken_hex_is_kept);
    RUN(older_versions_wrote_json);
    RUN(headers_must_be_text);
    bel__arena_finish(&arena);
    return EXIT_SUCCESS;
}
