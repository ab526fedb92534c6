/* SPDX-License-Identifier: MIT */
#include "redis/token.h"

#include "../check.h"

#include <stdlib.h>
#include <string.h>

static struct bel_token make(const char *topic, const char *id)
{
    struct bel_token token = {.topic_bytes = strlen(topic), .id_bytes = strlen(id)};
    memcpy(token.topic, topic, token.topic_bytes);
    memcpy(token.id, id, token.id_bytes);
    for (size_t i = 0; i < sizeof token.prefix; i++) {
        token.prefix[i] = (uint8_t)(250 + i);
    }
    for (size_t i = 0; i < sizeof token.secret; i++) {
        token.secret[i] = (uint8_t)(17 * i);
    }
    return token;
}

static bool is_same(const struct bel_token *a, const struct bel_token *b)
{
    return a->topic_bytes == b->topic_bytes && a->id_bytes == b->id_bytes &&
           memcmp(a->topic, b->topic, b->topic_bytes) == 0 &&
           memcmp(a->id, b->id, b->id_bytes) == 0 &&
           memcmp(a->prefix, b->prefix, sizeof b->prefix) == 0 &&
           memcmp(a->secret, b->secret, sizeof b->secret) == 0;
}

static void check_both_ways(const char *topic, const char *id)
{
    struct bel_token token = make(topic, id), again;
    char text[BEL_TOKEN_BYTES_MAX];
    size_t bytes = bel__lease_token_print(&token, text);
    CHECK(bytes <= sizeof text);
    memset(&again, 0, sizeof again);
    CHECK(bel__lease_token_parse((struct bel_view){text, bytes}, &again));
    CHECK(is_same(&again, &token));
}

static void what_is_printed_is_parsed(void)
{
    check_both_ways("a", "b");
    check_both_ways("mail/v1.2:x_y-z", "0123456789");
    check_both_ways("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz@1767225600000");
}

static void names_of_every_length_fit(void)
{
    char topic[BEL_TOPIC_BYTES_MAX + 1] = {0}, id[BEL_ID_BYTES + 1] = {0};
    for (size_t i = 0; i < BEL_TOPIC_BYTES_MAX; i++) {
        topic[i] = '@'; /* the digit of the highest value */
        check_both_ways(topic, "id");
    }
    for (size_t i = 0; i < BEL_ID_BYTES; i++) {
        id[i] = '@';
        check_both_ways(topic, id);
    }
}

static void every_other_text_is_refused(void)
{
    struct bel_token token = make("mail", "a"), other;
    char text[BEL_TOKEN_BYTES_MAX + 1];
    size_t bytes = bel__lease_token_print(&token, text);
    for (size_t i = 0; i < bytes; i++) {
        CHECK(!bel__lease_token_parse((struct bel_view){text, i}, &other));
        char kept = text[i];
        text[i] = '.';
        CHECK(!bel__lease_token_parse((struct bel_view){text, bytes}, &other));
        text[i] = kept;
    }
    text[bytes] = '0';
    CHECK(!bel__lease_token_parse((struct bel_view){text, bytes + 1}, &other));
    CHECK(!bel__lease_token_parse((struct bel_view){NULL, 0}, &other));
}

/* A changed character is another token, or none: two texts are never the same token. */
static void no_two_texts_are_one_token(void)
{
    static const char digits[] = "0123456789ABCabc-_";
    struct bel_token token = make("mail", "a"), other;
    char text[BEL_TOKEN_BYTES_MAX];
    size_t bytes = bel__lease_token_print(&token, text);
    for (size_t i = 0; i < bytes; i++) {
        char kept = text[i];
        for (size_t k = 0; k < sizeof digits - 1; k++) {
            if (digits[k] == kept) continue;
            text[i] = digits[k];
            memset(&other, 0, sizeof other);
            if (!bel__lease_token_parse((struct bel_view){text, bytes}, &other)) continue;
            CHECK(!is_same(&other, &token));
        }
        text[i] = kept;
    }
}

int main(void)
{
    RUN(what_is_printed_is_parsed);
    RUN(names_of_every_length_fit);
    RUN(every_other_text_is_refused);
    RUN(no_two_texts_are_one_token);
    return EXIT_SUCCESS;
}
