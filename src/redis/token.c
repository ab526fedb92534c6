/* SPDX-License-Identifier: MIT */

/*
 * A token is a string of bits, six in each character:
 *
 *     prefix 64 | secret 96 | bytes of the topic 8 | bytes of the id 8 | topic and id | zeros
 *
 * Names have 68 different characters, so ten of them are a number below 68^10, which has 61 bits: a
 * sixth of a character per name character would be lost otherwise, and the longest names would not
 * fit into a token.
 */
#include "redis/token.h"

#include <assert.h>
#include <string.h>

enum {
    BITS_PER_CHARACTER = 6,
    GROUP = 10,      /* name characters in a number */
    GROUP_BITS = 61, /* of such a number */
    HEAD_BITS = 8 * (BEL_TOKEN_PREFIX_BYTES + BEL_TOKEN_SECRET_BYTES + 2),
    NAMES_BYTES_MAX = BEL_TOPIC_BYTES_MAX + BEL_ID_BYTES,
    GROUPS_MAX = (NAMES_BYTES_MAX + GROUP - 1) / GROUP,
    BITS_MAX = HEAD_BITS + GROUPS_MAX * GROUP_BITS,
};
static_assert((BITS_MAX + BITS_PER_CHARACTER - 1) / BITS_PER_CHARACTER <= BEL_TOKEN_BYTES_MAX,
              "the longest names fit");

static const char token_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
static const char name_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.:/@";

enum {
    NAME_DIGITS = sizeof name_digits - 1,
};

static int digit_of(const char *digits, char c)
{
    const char *found = c == 0 ? NULL : strchr(digits, c);
    return found == NULL ? -1 : (int)(found - digits);
}

struct bits {
    char *text; /* written, or read from */
    size_t at;  /* the next bit */
};

static void put_bit(struct bits *bits, unsigned bit)
{
    size_t character = bits->at / BITS_PER_CHARACTER, shift = bits->at % BITS_PER_CHARACTER;
    if (shift == 0) bits->text[character] = 0;
    bit <<= BITS_PER_CHARACTER - 1 - shift;
    bits->text[character] = (char)((unsigned)bits->text[character] | bit);
    bits->at++;
}

static void put(struct bits *bits, uint64_t value, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        put_bit(bits, (unsigned)(value >> i) & 1);
    }
}

static uint64_t get(struct bits *bits, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++, bits->at++) {
        size_t character = bits->at / BITS_PER_CHARACTER, shift = bits->at % BITS_PER_CHARACTER;
        unsigned bit = ((unsigned)bits->text[character] >> (BITS_PER_CHARACTER - 1 - shift)) & 1;
        value = value << 1 | bit;
    }
    return value;
}

static size_t names_bytes(const struct bel_token *token)
{
    return token->topic_bytes + token->id_bytes;
}

/* Returns a character of topic and id together. */
static char *name_at(struct bel_token *token, size_t index)
{
    bool is_topic = index < token->topic_bytes;
    return is_topic ? &token->topic[index] : &token->id[index - token->topic_bytes];
}

static void put_names(struct bits *bits, struct bel_token *token)
{
    size_t count = names_bytes(token);
    for (size_t i = 0; i < count; i += GROUP) {
        uint64_t number = 0;
        for (size_t k = i; k < i + GROUP; k++) {
            int digit = k < count ? digit_of(name_digits, *name_at(token, k)) : 0;
            assert(digit >= 0);
            number = number * NAME_DIGITS + (uint64_t)digit;
        }
        put(bits, number, GROUP_BITS);
    }
}

static void get_names(struct bits *bits, struct bel_token *token)
{
    size_t count = names_bytes(token);
    for (size_t i = 0; i < count; i += GROUP) {
        uint64_t number = get(bits, GROUP_BITS);
        for (size_t k = i + GROUP; k-- > i;) {
            if (k < count) *name_at(token, k) = name_digits[number % NAME_DIGITS];
            number /= NAME_DIGITS;
        }
    }
}

static size_t characters_of(const struct bel_token *token)
{
    size_t groups = (names_bytes(token) + GROUP - 1) / GROUP;
    return (HEAD_BITS + groups * GROUP_BITS + BITS_PER_CHARACTER - 1) / BITS_PER_CHARACTER;
}

size_t bel__lease_token_print(const struct bel_token *token, char out[BEL_TOKEN_BYTES_MAX])
{
    struct bits bits = {.text = out};
    struct bel_token copy = *token;
    size_t count = characters_of(token);
    for (size_t i = 0; i < BEL_TOKEN_PREFIX_BYTES; i++) {
        put(&bits, token->prefix[i], 8);
    }
    for (size_t i = 0; i < BEL_TOKEN_SECRET_BYTES; i++) {
        put(&bits, token->secret[i], 8);
    }
    put(&bits, token->topic_bytes, 8);
    put(&bits, token->id_bytes, 8);
    put_names(&bits, &copy);
    while (bits.at < count * BITS_PER_CHARACTER) {
        put_bit(&bits, 0);
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = token_digits[(unsigned char)out[i]];
    }
    return count;
}

static void get_head(struct bits *bits, struct bel_token *out)
{
    for (size_t i = 0; i < BEL_TOKEN_PREFIX_BYTES; i++) {
        out->prefix[i] = (uint8_t)get(bits, 8);
    }
    for (size_t i = 0; i < BEL_TOKEN_SECRET_BYTES; i++) {
        out->secret[i] = (uint8_t)get(bits, 8);
    }
    out->topic_bytes = (size_t)get(bits, 8);
    out->id_bytes = (size_t)get(bits, 8);
}

bool bel__lease_token_parse(struct bel_view text, struct bel_token *out)
{
    char sextets[BEL_TOKEN_BYTES_MAX], again[BEL_TOKEN_BYTES_MAX];
    const char *data = text.data;
    if (text.bytes > sizeof sextets || text.bytes * BITS_PER_CHARACTER < HEAD_BITS) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        int digit = digit_of(token_digits, data[i]);
        if (digit < 0) return false;
        sextets[i] = (char)digit;
    }
    struct bits bits = {.text = sextets};
    get_head(&bits, out);
    if (out->topic_bytes > sizeof out->topic || out->id_bytes > sizeof out->id) return false;
    if (out->topic_bytes == 0 || out->id_bytes == 0) return false;
    if (text.bytes != characters_of(out)) return false;
    get_names(&bits, out);
    return bel__lease_token_print(out, again) == text.bytes && memcmp(again, data, text.bytes) == 0;
}
