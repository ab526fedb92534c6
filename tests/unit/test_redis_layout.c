/* SPDX-License-Identifier: MIT */

/*
 * The layout faststream without a server: keys, settings as lines, tokens.
 */
#include "redis/faststream_token.h"
#include "redis/layout.h"
#include "redis/token.h"

#include "../check.h"

#include "core/view.h"

#include <stdlib.h>
#include <string.h>

static const char revision[] = "0123456789abcdef";

static struct bel_layout_settings with(const char *name, const char *value)
{
    struct bel_layout_settings settings = *bel__layout_settings_default();
    struct bel_setting setting = {{name, strlen(name)}, {value, strlen(value)}};
    char why[200];
    CHECK(bel__layout_set(&settings, &setting, why, sizeof why) == 0);
    return settings;
}

static bool is_refused(const char *name, const char *value)
{
    struct bel_layout_settings settings = *bel__layout_settings_default();
    struct bel_setting setting = {{name, strlen(name)}, {value, strlen(value)}};
    char why[200] = "";
    int err = bel__layout_set(&settings, &setting, why, sizeof why);
    return err == BEL_EINVAL && why[0] != 0;
}

static struct bel_layout *make(const struct bel_layout_settings *settings, struct bel_view topic)
{
    struct bel_layout *layout = bel__layout_create(settings, revision, "ns", topic);
    CHECK(layout != NULL);
    return layout;
}

static void keys_are_those_of_the_package(void)
{
    struct bel_layout_settings settings = with("prefix", "svc:");
    struct bel_layout *layout = make(&settings, BEL_VIEW("a b"));
    CHECK(bel__view_is(layout->keys[0], "timers_timeline:svc:a b"));
    CHECK(bel__view_is(layout->keys[1], "timers_payloads:svc:a b"));
    CHECK(bel__view_is(layout->keys[2], "ns:faststream-state:timers_timeline:svc:a b"));
    CHECK(layout->is_split); /* on a Cluster */
    bel__layout_release(layout);
}

static void a_hash_tag_keeps_the_keys_together(void)
{
    struct bel_layout_settings prefixed = with("prefix", "{svc}:");
    struct bel_layout *layout = make(bel__layout_settings_default(), BEL_VIEW("{inv}"));
    CHECK(!layout->is_split);
    bel__layout_release(layout);
    layout = make(&prefixed, BEL_VIEW("inv"));
    CHECK(!layout->is_split);
    bel__layout_release(layout);
    layout = make(bel__layout_settings_default(), BEL_VIEW("{}inv"));
    CHECK(layout->is_split);
    bel__layout_release(layout);
}

static void settings_survive_as_lines(void)
{
    static const char *const settings[][2] = {
        {"lease", "1h30m"},      {"LAYOUT", "faststream"},
        {"timeline_key", "t l"}, {"payloads_key", "größe {x}"},
        {"prefix", "a b c "},    {"poll_min", "1ms"},
        {"poll_max", "1d"},      {"prefix", ""},
        {"layout", "native"},
    };
    char lines[4096], again[BEL_LAYOUT_REVISION_BYTES + 1];
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct bel_layout_settings one = with(settings[i][0], settings[i][1]), two;
        struct bel_layout *layout = make(&one, BEL_VIEW("t"));
        size_t bytes = bel__layout_pack(layout, lines, sizeof lines);
        CHECK(bel__layout_unpack((struct bel_view){lines, bytes}, &two, again) == 0);
        CHECK(strcmp(again, revision) == 0);
        for (unsigned k = 0; k < BEL_LAYOUT_SETTINGS; k++) {
            char first[BEL_LAYOUT_VALUE_MAX], second[BEL_LAYOUT_VALUE_MAX];
            size_t count = bel__layout_print(&one, k, first);
            CHECK(bel__layout_print(&two, k, second) == count);
            CHECK(memcmp(first, second, count) == 0);
        }
        for (size_t cut = 0; cut < bytes; cut++) {
            CHECK(lines[cut] == '\n' || cut == 0 || lines[cut - 1] == '\n' ||
                  bel__layout_unpack((struct bel_view){lines, cut}, &two, again) != 0);
        }
        bel__layout_release(layout);
    }
    CHECK(bel__layout_unpack(BEL_VIEW("lease 5s\n"), &(struct bel_layout_settings){0}, again) != 0);
}

static void wrong_settings_are_refused(void)
{
    char wide[BEL_LAYOUT_VALUE_MAX + 2];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    CHECK(is_refused("retry", "5s") && is_refused("layout", "other") && is_refused("layout", ""));
    CHECK(is_refused("lease", "0") && is_refused("lease", "soon") && is_refused("poll_max", "8d"));
    CHECK(is_refused("timeline_key", "") && is_refused("timeline_key", wide));
    CHECK(is_refused("prefix", "a\nb") && is_refused("prefix", "\xff") &&
          is_refused("prefix", wide));
    struct bel_layout_settings settings = with("poll_min", "6s");
    CHECK(bel__layout_check(&settings) != NULL);
    settings = with("timeline_key", "timers_payloads");
    CHECK(bel__layout_check(&settings) != NULL);
    CHECK(bel__layout_check(bel__layout_settings_default()) == NULL);
}

static struct bel_faststream_token token_of(const char *topic)
{
    struct bel_faststream_token token = {.topic_bytes = strlen(topic)};
    memcpy(token.topic, topic, token.topic_bytes);
    for (size_t i = 0; i < sizeof token.secret; i++) {
        token.secret[i] = (uint8_t)(29 * i + 3);
    }
    return token;
}

static bool is_same(const struct bel_faststream_token *a, const struct bel_faststream_token *b)
{
    return a->topic_bytes == b->topic_bytes && memcmp(a->topic, b->topic, b->topic_bytes) == 0 &&
           memcmp(a->secret, b->secret, sizeof b->secret) == 0;
}

static void tokens_have_any_topic(void)
{
    char topic[BEL_TOPIC_BYTES_MAX + 1] = {0}, text[BEL_TOKEN_BYTES_MAX];
    for (size_t i = 0; i < BEL_TOPIC_BYTES_MAX; i++) {
        topic[i] = (char)(i % 255 + 1);
        struct bel_faststream_token token = token_of(topic), again;
        struct bel_token native;
        size_t bytes = bel__faststream_token_print(&token, text);
        struct bel_view view = {text, bytes};
        CHECK(bel__faststream_token_is_likely(view));
        CHECK(bel__faststream_token_parse(view, &again));
        CHECK(again.topic_bytes == i + 1 && memcmp(again.topic, topic, i + 1) == 0);
        CHECK(memcmp(again.secret, token.secret, sizeof token.secret) == 0);
        CHECK(!bel__lease_token_parse(view, &native));
    }
}

static void a_changed_text_is_another_token_or_none(void)
{
    struct bel_faststream_token token = token_of("naïve"), other;
    char text[BEL_TOKEN_BYTES_MAX];
    size_t bytes = bel__faststream_token_print(&token, text);
    for (size_t i = 0; i < bytes; i++) {
        char kept = text[i];
        CHECK(!bel__faststream_token_parse((struct bel_view){text, i}, &other));
        for (int c = 0; c < 256; c++) {
            text[i] = (char)c;
            if (text[i] == kept) continue;
            if (!bel__faststream_token_parse((struct bel_view){text, bytes}, &other)) continue;
            CHECK(!is_same(&other, &token));
        }
        text[i] = kept;
    }
}

/* Of the shortest names, and of ids of every length. */
static void native_tokens_are_not_of_this_layout(void)
{
    struct bel_token native = {.topic_bytes = 1, .topic = "t"};
    char text[BEL_TOKEN_BYTES_MAX];
    for (size_t i = 0; i < BEL_ID_BYTES; i++) {
        native.id[i] = '0';
        native.id_bytes = i + 1;
        size_t bytes = bel__lease_token_print(&native, text);
        CHECK(!bel__faststream_token_is_likely((struct bel_view){text, bytes}));
    }
}

int main(void)
{
    RUN(keys_are_those_of_the_package);
    RUN(a_hash_tag_keeps_the_keys_together);
    RUN(settings_survive_as_lines);
    RUN(wrong_settings_are_refused);
    RUN(tokens_have_any_topic);
    RUN(a_changed_text_is_another_token_or_none);
    RUN(native_tokens_are_not_of_this_layout);
    return EXIT_SUCCESS;
}
