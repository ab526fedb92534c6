/* SPDX-License-Identifier: MIT */

/*
 * JSON that is made in slices: the text does not depend on the size of the slices, and no slice
 * takes more work than it may. The checker of payloads agrees with the parser of the JSON library,
 * also on texts that a random number generator has changed.
 */
#include "core/utf8.h"
#include "http/json_stream.h"

#include "../check.h"
#include "../random.h"

#include <jansson.h>
#include <string.h>

enum {
    OUT_BYTES_MAX = 1 << 24,
    CHANGES = 200000,
};

static const char *const texts[] = {
    "{}",
    "[]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "12",
    "-1.5",
    "1e9",
    "1E+9",
    "0.1e-2",
    "\"\"",
    "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
    "\"\\ud83d\\ude00\"",
    "\"gr\xc3\xbc\xc3\x9f\"",
    "{\"a\":1,\"b\":[true,null,{\"c\":\"d\"}],\"e\":{}}",
    " [ 1 , 2 ] ",
    "[[[[]]],{\"x\":[{}]}]",
    "\n\t{ \"a\" : \r\"b\" }",
    /* wrong */
    "",
    " ",
    "{",
    "}",
    "[1,]",
    "[,1]",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{\"a\":1,}",
    "01",
    "-",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "tru",
    "truex",
    "nul",
    "\"",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800\\n\"",
    "\"\x01\"",
    "1 2",
    "[1 2]",
    "[1}",
    "{\"a\":1]",
    "{} {}",
    "\xef\xbb\xbf{}",
    "NaN",
    "'a'",
    "/**/1",
};
static const size_t texts_count = sizeof texts / sizeof texts[0];

/* Checks a text in parts. */
static bool is_json(const char *text, size_t bytes, size_t part_bytes)
{
    struct bel_json_check check = {0};
    for (size_t at = 0; at < bytes; at += part_bytes) {
        size_t left = bytes - at;
        struct bel_view part = {text + at, left < part_bytes ? left : part_bytes};
        if (!bel__json_check_take(&check, part)) return false;
    }
    return bel__json_check_end(&check);
}

/* Returns what the library says. Its numbers are limited; ours are not. */
static bool is_json_by_library(const char *text, size_t bytes, bool *is_number)
{
    json_error_t error;
    json_t *json = json_loadb(text, bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    *is_number = json == NULL && json_error_code(&error) == json_error_numeric_overflow;
    json_decref(json);
    return json != NULL;
}

static void the_checker_agrees_with_the_library(void)
{
    uint64_t random = 7;
    uint64_t rights = 0;
    for (unsigned i = 0; i < CHANGES; i++) {
        static const char alphabet[] = "{}[]\",:\\u0123456789abdefntrx+-.E \x01/";
        char text[128];
        const char *from = texts[(size_t)random_below(&random, texts_count)];
        size_t bytes = strlen(from);
        memcpy(text, from, bytes + 1);
        for (uint64_t k = random_below(&random, 4); k > 0 && i >= texts_count; k--) {
            size_t at = (size_t)random_below(&random, bytes + 1);
            bool is_insert = random_below(&random, 2) == 0 || at == bytes;
            if (is_insert) memmove(text + at + 1, text + at, bytes++ - at);
            text[at] = alphabet[random_below(&random, sizeof alphabet - 1)];
        }
        if (i < texts_count) {
            bytes = strlen(texts[i]);
            memcpy(text, texts[i], bytes);
        }
        if (!bel__utf8_is_text((struct bel_view){text, bytes})) continue;
        bool is_number, wanted = is_json_by_library(text, bytes, &is_number);
        bool got = is_json(text, bytes, 1 + (size_t)random_below(&random, 8));
        CHECK_NOTE("%.*s", (int)bytes, text);
        CHECK(got == wanted || (is_number && got));
        rights += got;
    }
    CHECK(rights > CHANGES / 20 && rights < CHANGES / 2 + CHANGES / 4);
}

static void depth_is_limited(void)
{
    static char text[2 * BEL_JSON_DEPTH_MAX + 2];
    for (size_t depth = BEL_JSON_DEPTH_MAX; depth <= BEL_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth < sizeof text - depth ? depth : sizeof text - depth);
        CHECK(is_json(text, 2 * depth < sizeof text ? 2 * depth : sizeof text, 100) ==
              (depth == BEL_JSON_DEPTH_MAX));
    }
}

/* Records the same members each time. */
static void record(struct bel_json_stream *stream, struct bel_view large)
{
    bel__json_init(stream);
    bel__json_open(stream, '{');
    bel__json_name(stream, BEL_VIEW("a\n\"b"));
    bel__json_text(stream, BEL_VIEW("c\x01\\d/\x7f"));
    bel__json_bytes(stream, BEL_VIEW("text"), large, BEL_JSON_NEVER);
    bel__json_bytes(stream, BEL_VIEW("perhaps"), large, BEL_JSON_PERHAPS);
    bel__json_bytes(stream, BEL_VIEW("json"), BEL_VIEW("[1, {\"a\": 19.99}]"), BEL_JSON_PERHAPS);
    bel__json_bytes(stream, BEL_VIEW("no"), BEL_VIEW("[1"), BEL_JSON_PERHAPS);
    bel__json_bytes(stream, BEL_VIEW("bytes"), BEL_VIEW("\xff\xfe\xfd\xfc"), BEL_JSON_PERHAPS);
    bel__json_bytes(stream, BEL_VIEW("empty"), (struct bel_view){0}, BEL_JSON_PERHAPS);
    bel__json_name_with(stream, BEL_VIEW("x\t"), "_base64");
    bel__json_base64(stream, BEL_VIEW("hello"));
    bel__json_name(stream, BEL_VIEW("list"));
    bel__json_open(stream, '[');
    bel__json_number(stream, -5);
    bel__json_word(stream, "null");
    bel__json_open(stream, '[');
    bel__json_close(stream, ']');
    bel__json_close(stream, ']');
    bel__json_close(stream, '}');
    CHECK(!stream->is_lost);
}

/* Reads a stream in slices. Returns how many there were. */
static size_t read_all(struct bel_json_stream *stream, struct bel_buffer *out, size_t work_max)
{
    size_t slices = 0;
    for (; !bel__json_is_over(stream); slices++) {
        size_t before = out->count;
        CHECK(bel__buffer_reserve(out, work_max + BEL_JSON_SLACK) == 0);
        size_t work = bel__json_read(stream, out, work_max);
        CHECK(work > 0 && work <= work_max + BEL_JSON_SLACK);
        CHECK(out->count - before <= work);
    }
    return slices;
}

static void slices_make_the_same_text(void)
{
    struct bel_json_stream stream;
    struct bel_buffer first, other;
    char large[3000];
    for (size_t i = 0; i < sizeof large; i++) {
        large[i] = (char)(i % 127 + 1);
    }
    struct bel_view view = {large, sizeof large};
    bel__buffer_init(&first, OUT_BYTES_MAX);
    record(&stream, view);
    CHECK(read_all(&stream, &first, 1 << 20) == 1);
    bel__json_finish(&stream);
    json_error_t error;
    json_t *json =
        json_loadb((char *)bel__buffer_data(&first), first.count, JSON_REJECT_DUPLICATES, &error);
    CHECK_NOTE("%s at %d", error.text, error.position);
    CHECK(json != NULL);
    CHECK_EQ(json_string_length(json_object_get(json, "text")), sizeof large);
    CHECK(memcmp(json_string_value(json_object_get(json, "text")), large, sizeof large) == 0);
    CHECK(strcmp(json_string_value(json_object_get(json, "a\n\"b")), "c\x01\\d/\x7f") == 0);
    CHECK(json_is_array(json_object_get(json, "json")));
    CHECK(strcmp(json_string_value(json_object_get(json, "no")), "[1") == 0);
    CHECK(strcmp(json_string_value(json_object_get(json, "bytes_base64")), "//79/A==") == 0);
    CHECK(strcmp(json_string_value(json_object_get(json, "x\t_base64")), "aGVsbG8=") == 0);
    json_decref(json);
    for (size_t work_max = 1; work_max < 300; work_max++) {
        bel__buffer_init(&other, OUT_BYTES_MAX);
        record(&stream, view);
        CHECK(read_all(&stream, &other, work_max) > 1);
        CHECK_EQ(other.count, first.count);
        CHECK(memcmp(bel__buffer_data(&other), bel__buffer_data(&first), first.count) == 0);
        bel__json_finish(&stream);
        bel__buffer_finish(&other);
    }
    bel__buffer_finish(&first);
}

int main(void)
{
    RUN(the_checker_agrees_with_the_library);
    RUN(depth_is_limited);
    RUN(slices_make_the_same_text);
    return 0;
}
