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

/* Returns the place of a character in name_digits, which begin with token_digits; -1: none. */
static int digit_of(char c)
{
    static const char others[] = "-_.:/@";
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
    if (c >= 'a' && c <= 'z') return c - 'a' + 36;
    const char *found = c == 0 ? NULL : strchr(others, c);
    return found == NULL ? -1 : (int)(found - others) + 62;
}

struct bits {
    char *text; /* written, or read from */
    size_t at;  /* the next bit */
};

/* Returns how many of `count` bits are in the current character, from the next bit on. */
static unsigned share_of(const struct bits *bits, unsigned count)
{
    unsigned room = (unsigned)(BITS_PER_CHARACTER - bits->at % BITS_PER_CHARACTER);
    unsigned share = count < room ? count : room;
    assert(share > 0 && share <= BITS_PER_CHARACTER);
    return share;
}

/* Returns how far these are from the end of the character. */
static unsigned shift_of(const struct bits *bits, unsigned share)
{
    return (unsigned)(BITS_PER_CHARACTER - bits->at % BITS_PER_CHARACTER) - share;
}

static void put(struct bits *bits, uint64_t value, unsigned count)
{
    while (count > 0) {
        char *character = &bits->text[bits->at / BITS_PER_CHARACTER];
        unsigned share = share_of(bits, count), mask = (1U << share) - 1;
        unsigned piece = (unsigned)(value >> (count - share)) & mask;
        if (bits->at % BITS_PER_CHARACTER == 0) *character = 0;
        *character = (char)((unsigned)*character | piece << shift_of(bits, share));
        bits->at += share;
        count -= share;
    }
}

static uint64_t get(struct bits *bits, unsigned count)
{
    uint64_t value = 0;
    while (count > 0) {
        unsigned character = (unsigned char)bits->text[bits->at / BITS_PER_CHARACTER];
        unsigned share = share_of(bits, count), mask = (1U << share) - 1;
        value = value << share | ((character >> shift_of(bits, share)) & mask);
        bits->at += share;
        count -= share;
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
            int digit = k < count ? digit_of(*name_at(token, k)) : 0;
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
    put(&bits, 0, (unsigned)(count * BITS_PER_CHARACTER - bits.at));
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
    char sextets[BEL_TOKEN_BYTES_MAX] = {0}, again[BEL_TOKEN_BYTES_MAX];
    const char *data = text.data;
    if (text.bytes > sizeof sextets || text.bytes * BITS_PER_CHARACTER < HEAD_BITS) return false;
    for (size_t i = 0; i < text.bytes; i++) {
        int digit = digit_of(data[i]);
        if (digit < 0 || digit >= 1 << BITS_PER_CHARACTER) return false;
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
