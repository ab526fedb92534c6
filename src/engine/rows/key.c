/* SPDX-License-Identifier: MIT */

/*
 * A made id is 130 bits, five a digit: time 64, priority 8, sequence 56, lane 2. The digits of base
 * 32 with the extended hex alphabet sort as their values do. Eight digits are printed or parsed at
 * once, each in one byte of a word:
 *
 *     digits 0 to 7     8 to 15          16 to 23           24, 25
 *     time 63 to 24     time 23 to 0,    sequence 47 to 8   sequence 7 to 0,
 *                       priority,                           lane
 *                       sequence 55 to 48
 */
#include "engine/rows/key.h"
#include "core/endian.h"

#include <assert.h>
#include <string.h>

enum {
    TOKEN_KEY_BYTES = 21, /* topic to sequence; the table is always TIMERS */
    TOKEN_RAW_BYTES = TOKEN_KEY_BYTES + BEL_TOKEN_SECRET_BYTES,
};

static_assert(TOKEN_RAW_BYTES % 3 == 0 && TOKEN_RAW_BYTES / 3 * 4 == BEL_TOKEN_BYTES,
              "a token needs no padding");

static const char digits32[] = "0123456789abcdefghijklmnopqrstuv";
static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* A word with `number` in each byte. */
#define EACH(number) (UINT64_C(0x0101010101010101) * (number))

struct bel_key bel__key_after(const struct bel_key *key)
{
    struct bel_key next = *key;
    for (int i = 2; i >= 0 && ++next.words[i] == 0; i--) {}
    return next;
}

struct bel_key bel__key_alias(const struct bel_siphash_key secrets[2], uint32_t topic,
                              struct bel_view id)
{
    uint8_t text[sizeof topic + 256];
    assert(id.bytes <= sizeof text - sizeof topic);
    memcpy(text, &topic, sizeof topic);
    if (id.bytes > 0) memcpy(text + sizeof topic, id.data, id.bytes);
    uint64_t high = bel__siphash(secrets[0], text, sizeof topic + id.bytes);
    uint64_t low = bel__siphash(secrets[1], text, sizeof topic + id.bytes);
    return (struct bel_key){{
        (uint64_t)BEL_TABLE_ALIASES << 56 | high >> 8,
        high << 56 | low >> 8,
        low << 56,
    }};
}

/* Returns a word with 1 in each byte where `bytes` is at least `least`, else 0. All bytes must be
 * below 128. */
static uint64_t not_below(uint64_t bytes, unsigned least)
{
    return (bytes + EACH(128 - least)) >> 7 & EACH(1);
}

/* Prints 40 bits as eight digits: moves halves apart until each byte has five bits. */
static void print_eight(uint64_t bits, char out[8])
{
    bits = (bits & 0x000000fffff00000) << 12 | (bits & 0x00000000000fffff);
    bits = (bits & 0x000ffc00000ffc00) << 6 | (bits & 0x000003ff000003ff);
    bits = (bits & 0x03e003e003e003e0) << 3 | (bits & 0x001f001f001f001f);
    uint64_t letters = not_below(bits, 10);
    bel__store_be64(out, bits + EACH('0') + letters * ('a' - '0' - 10));
}

/* Parses eight digits into 40 bits. Returns false if a character is not a digit. */
static bool parse_eight(const char text[8], uint64_t *out)
{
    uint64_t bits = bel__load_be64(text);
    if ((bits & EACH(128)) != 0) return false;
    uint64_t letters = not_below(bits, 'a') & ~not_below(bits, 'v' + 1);
    uint64_t figures = not_below(bits, '0') & ~not_below(bits, '9' + 1);
    if ((letters | figures) != EACH(1)) return false;
    bits -= EACH('0') + letters * ('a' - '0' - 10);
    bits = (bits & 0x1f001f001f001f00) >> 3 | (bits & 0x001f001f001f001f);
    bits = (bits & 0x03ff000003ff0000) >> 6 | (bits & 0x000003ff000003ff);
    *out = (bits & 0x000fffff00000000) >> 12 | (bits & 0x00000000000fffff);
    return true;
}

void bel__made_id(const struct bel_place *place, char out[BEL_MADE_ID_BYTES])
{
    uint64_t time = place->time, rest = (uint64_t)place->priority << 56 | place->sequence;
    unsigned last = (unsigned)(rest & 0xff) << 2 | place->lane;
    assert(place->lane < 4 && place->sequence <= BEL_SEQUENCE_MAX);
    print_eight(time >> 24, out);
    print_eight((time & 0xffffff) << 16 | rest >> 48, out + 8);
    print_eight(rest >> 8 & 0xffffffffff, out + 16);
    out[24] = digits32[last >> 5];
    out[25] = digits32[last & 31];
}

bool bel__made_id_place(struct bel_view id, uint32_t topic, struct bel_place *out)
{
    char last[8] = "000000";
    uint64_t parts[4];
    if (id.bytes != BEL_MADE_ID_BYTES) return false;
    const char *text = id.data;
    memcpy(last + 6, text + 24, 2);
    for (unsigned i = 0; i < 4; i++) {
        if (!parse_eight(i < 3 ? text + (size_t)8 * i : last, &parts[i])) return false;
    }
    uint64_t rest = parts[1] << 48 | parts[2] << 8 | parts[3] >> 2;
    *out = (struct bel_place){.table = BEL_TABLE_TIMERS,
                              .topic = topic,
                              .lane = parts[3] & 3,
                              .priority = (uint8_t)(rest >> 56),
                              .time = parts[0] << 24 | parts[1] >> 16,
                              .sequence = rest & BEL_SEQUENCE_MAX};
    return true;
}

void bel__token_print(const struct bel_key *key, const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                      char out[BEL_TOKEN_BYTES])
{
    uint8_t bytes[24], raw[TOKEN_RAW_BYTES];
    for (unsigned i = 0; i < 3; i++) {
        bel__store_be64(bytes + (size_t)8 * i, key->words[i]);
    }
    assert(bytes[22] == 0 && bytes[23] == 0);
    memcpy(raw, bytes + 1, TOKEN_KEY_BYTES);
    memcpy(raw + TOKEN_KEY_BYTES, secret, BEL_TOKEN_SECRET_BYTES);
    for (unsigned i = 0; i < TOKEN_RAW_BYTES; i += 3, out += 4) {
        unsigned bits = (unsigned)raw[i] << 16 | (unsigned)raw[i + 1] << 8 | raw[i + 2];
        out[0] = digits64[bits >> 18];
        out[1] = digits64[bits >> 12 & 63];
        out[2] = digits64[bits >> 6 & 63];
        out[3] = digits64[bits & 63];
    }
}

/* The values of base 64 digits plus 1; 0 for all other characters. */
static const uint8_t values64[UINT8_MAX + 1] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64};

/* Returns the value of a digit, all ones for any other character. */
static unsigned value64(uint8_t digit)
{
    return values64[digit] - 1U;
}

bool bel__token_parse(struct bel_view token, struct bel_key *out,
                      uint8_t out_secret[BEL_TOKEN_SECRET_BYTES])
{
    uint8_t raw[TOKEN_RAW_BYTES], bytes[24] = {BEL_TABLE_TIMERS};
    if (token.bytes != BEL_TOKEN_BYTES) return false;
    const uint8_t *text = token.data;
    for (unsigned i = 0; i < TOKEN_RAW_BYTES; i += 3, text += 4) {
        unsigned bits = value64(text[0]) << 18 | value64(text[1]) << 12 | value64(text[2]) << 6 |
                        value64(text[3]);
        if (bits >> 24 != 0) return false;
        raw[i] = (uint8_t)(bits >> 16);
        raw[i + 1] = (uint8_t)(bits >> 8);
        raw[i + 2] = (uint8_t)bits;
    }
    memcpy(bytes + 1, raw, TOKEN_KEY_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        out->words[i] = bel__load_be64(bytes + (size_t)8 * i);
    }
    memcpy(out_secret, raw + TOKEN_KEY_BYTES, BEL_TOKEN_SECRET_BYTES);
    return true;
}
