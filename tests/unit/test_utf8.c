/* SPDX-License-Identifier: MIT */

/* Texts that are shortened keep whole characters; other bytes are cut anywhere. */
#include "core/utf8.h"

#include "../check.h"

#include <string.h>

/* What a reader finds who goes from character to character, as far as the room goes. */
static size_t walk(struct bel_view text, size_t bytes_max)
{
    const unsigned char *bytes = text.data;
    size_t at = 0;
    while (at < text.bytes) {
        size_t whole = bel__utf8_bytes(bytes + at, text.bytes - at);
        size_t next = at + (whole > 0 ? whole : 1);
        if (next > bytes_max) break;
        at = next;
    }
    return at;
}

static void a_head_has_whole_characters(void)
{
    static const char *const texts[] = {
        "",
        "plain",
        "\xc3\xa4\xc3\xb6",
        "x\xe2\x82\xacy\xe2\x82\xac",
        "\xf0\x9f\x94\x94\xf0\x9f\x94\x94",
        "\xf0\x9f\x94",         /* a half */
        "\x80\x80\x80\x80\x80", /* no text */
        "\xe2\x82x\xe2\x82\xac",
        "\xff\xfe\xf0\x9f\x94\x94",
        "\xed\xa0\x80\xed\xa0\x80", /* surrogates */
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bel_view text = {texts[i], strlen(texts[i])};
        for (size_t max = 0; max <= text.bytes + 1; max++) {
            CHECK_NOTE("text %zu, %zu bytes", i, max);
            CHECK_EQ(bel__utf8_head(text, max).bytes, walk(text, max));
        }
    }
}

static void a_half_at_the_end_is_left_out(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {"", 0},
        {"plain", 5},
        {"a\xc3\xa4", 3},
        {"a\xc3", 1},
        {"a\xe2\x82\xac", 4},
        {"a\xe2\x82", 1},
        {"a\xe2", 1},
        {"\xf0\x9f\x94\x94", 4},
        {"\xf0\x9f\x94", 0},
        {"\x80\x80\x80\x80", 4},
        {"a\xff", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_NOTE("row %zu", i);
        struct bel_view text = {rows[i].text, strlen(rows[i].text)};
        CHECK_EQ(bel__utf8_whole(text).bytes, rows[i].bytes);
    }
}

int main(void)
{
    RUN(a_head_has_whole_characters);
    RUN(a_half_at_the_end_is_left_out);
    return 0;
}
