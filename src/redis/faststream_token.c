/* SPDX-License-Identifier: MIT */

/*
 * Six bits in each character, and zeros up to the next one:
 *
 *     secret 112, in 19 characters | bytes of the topic 8, in 2 | nine characters 0 | topic
 *
 * A token of token.h has the length of its id in the last two of the nine characters. It is never
 * 0.
 */
#include "redis/faststream_token.h"

#include <assert.h>
#include <string.h>

enum {
    SECRET_CHARACTERS = 19,
    LENGTH_CHARACTERS = 2,
    ZEROS = 9,
    HEAD_CHARACTERS = SECRET_CHARACTERS + LENGTH_CHARACTERS + ZEROS,
};
static_assert(HEAD_CHARACTERS + (BEL_TOPIC_BYTES_MAX * 8 + 5) / 6 <= BEL_TOKEN_BYTES_MAX,
              "the longest topic fits");

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

static size_t characters_of(size_t bytes)
{
    return (bytes * 8 + 5) / 6;
}

/* Encodes bytes. Returns the place after them. */
static char *encode(char *out, const void *data, size_t bytes)
{
    const uint8_t *in = data;
    unsigned bits = 0, count = 0;
    for (size_t i = 0; i < bytes; i++) {
        bits = bits << 8 | in[i];
        count += 8;
        while (count >= 6) {
            count -= 6;
            *out++ = digits[(bits >> count) & 63];
        }
    }
    if (count > 0) *out++ = digits[(bits << (6 - count)) & 63];
    return out;
}

/* Decodes bytes. Returns false if a character is none of the digits. */
static bool decode(const char *text, void *data, size_t bytes)
{
    uint8_t *out = data;
    unsigned bits = 0, count = 0;
    for (size_t i = 0; i < bytes;) {
        const char *found = *text == 0 ? NULL : strchr(digits, *text);
        if (found == NULL) return false;
        text++;
        bits = bits << 6 | (unsigned)(found - digits);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out[i++] = (uint8_t)(bits >> count);
    }
    return true;
}

size_t bel__faststream_token_print(const struct bel_faststream_token *token,
                                   char out[BEL_TOKEN_BYTES_MAX])
{
    uint8_t length = (uint8_t)token->topic_bytes;
    assert(token->topic_bytes > 0 && token->topic_bytes <= sizeof token->topic);
    char *at = encode(out, token->secret, sizeof token->secret);
    at = encode(at, &length, sizeof length);
    memset(at, '0', ZEROS);
    at = encode(at + ZEROS, token->topic, token->topic_bytes);
    return (size_t)(at - out);
}

bool bel__faststream_token_is_likely(struct bel_view text)
{
    const char *data = text.data;
    if (text.bytes <= HEAD_CHARACTERS) return false;
    for (size_t i = HEAD_CHARACTERS; i-- > HEAD_CHARACTERS - ZEROS;) {
        if (data[i] != '0') return false;
    }
    return true;
}

bool bel__faststream_token_parse(struct bel_view text, struct bel_faststream_token *out)
{
    const char *data = text.data;
    char again[BEL_TOKEN_BYTES_MAX];
    uint8_t length;
    if (!bel__faststream_token_is_likely(text)) return false;
    if (!decode(data, out->secret, sizeof out->secret)) return false;
    if (!decode(data + SECRET_CHARACTERS, &length, sizeof length)) return false;
    if (length == 0 || length > sizeof out->topic) return false;
    out->topic_bytes = length;
    if (text.bytes != HEAD_CHARACTERS + characters_of(length)) return false;
    if (!decode(data + HEAD_CHARACTERS, out->topic, length)) return false;
    return bel__faststream_token_print(out, again) == text.bytes &&
           memcmp(again, data, text.bytes) == 0;
}
