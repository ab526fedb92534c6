/* SPDX-License-Identifier: MIT */

/*
 * Keys are words, so fields are put in and taken out by shifting:
 *
 *     word 0    table 8 | topic 32 | lane 8 | time, upper 16
 *     word 1    time, lower 48 | priority 8 | sequence, upper 8
 *     word 2    sequence, lower 48 | 0
 *
 * A made id is 130 bits, five a digit: time 64, priority 8, sequence 56, lane 2. The digits of base
 * 32 with extended hex alphabet sort as their values do. It is two halves of 65 bits, each twelve
 * digits off the top of a word and one that joins what is left to what follows:
 *
 *     digits 0 to 11   12                    13 to 24                25
 *     time 63 to 4     time 3 to 0, prio 7   prio 6 to sequence 3    sequence 2 to 0, lane
 */
#include "engine/key.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum {
    TOKEN_KEY_BYTES = 21, /* topic to sequence: the table is known */
    TOKEN_RAW_BYTES = TOKEN_KEY_BYTES + BEL_TOKEN_SECRET_BYTES,
    HALF_DIGITS = 12, /* of half a made id, besides the one that joins */
    NO_DIGIT = 32,
};

static_assert(TOKEN_RAW_BYTES % 3 == 0 && TOKEN_RAW_BYTES / 3 * 4 == BEL_TOKEN_BYTES,
              "a token needs no padding");

static const char digits32[] = "0123456789abcdefghijklmnopqrstuv";
static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct bel_key bel__key_of(const struct bel_place *place)
{
    assert(place->sequence <= BEL_SEQUENCE_MAX);
    return (struct bel_key){{
        (uint64_t)place->table << 56 | (uint64_t)place->topic << 24 | (uint64_t)place->lane << 16 |
            place->time >> 48,
        place->time << 16 | (uint64_t)place->priority << 8 | place->sequence >> 48,
        place->sequence << 16,
    }};
}

struct bel_place bel__place_of(const struct bel_key *key)
{
    const uint64_t *words = key->words;
    return (struct bel_place){
        .table = (enum bel_table)(words[0] >> 56),
        .topic = (uint32_t)(words[0] >> 24),
        .lane = (uint8_t)(words[0] >> 16),
        .priority = (uint8_t)(words[1] >> 8),
        .time = words[0] << 48 | words[1] >> 16,
        .sequence = (words[1] & 0xff) << 48 | words[2] >> 16,
    };
}

struct bel_key bel__key_in(const struct bel_key *key, enum bel_table table)
{
    struct bel_key other = *key;
    other.words[0] = (other.words[0] & (UINT64_MAX >> 8)) | (uint64_t)table << 56;
    return other;
}

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

/* Prints the upper 60 bits of a word. */
static void print_half(uint64_t word, char out[HALF_DIGITS])
{
    for (unsigned i = 0; i < HALF_DIGITS; i++) {
        out[i] = digits32[word >> 59];
        word <<= 5;
    }
}

void bel__made_id(const struct bel_place *place, char out[BEL_MADE_ID_BYTES])
{
    uint64_t rest = (uint64_t)place->priority << 56 | place->sequence;
    assert(place->lane < 4 && place->sequence <= BEL_SEQUENCE_MAX);
    print_half(place->time, out);
    out[HALF_DIGITS] = digits32[(place->time & 15) << 1 | rest >> 63];
    print_half(rest << 1, out + HALF_DIGITS + 1);
    out[2 * HALF_DIGITS + 1] = digits32[(rest & 7) << 2 | place->lane];
}

/* The value of a digit; a bit above all of them if it is none. */
static unsigned digit32(char c)
{
    if (c >= '0' && c <= '9') return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'v') return (unsigned)(c - 'a' + 10);
    return NO_DIGIT;
}

/* Reads the upper 60 bits of a word. Adds to `*bad` what is no digit. */
static uint64_t parse_half(const char *text, unsigned *bad)
{
    uint64_t word = 0;
    for (unsigned i = 0; i < HALF_DIGITS; i++) {
        unsigned digit = digit32(text[i]);
        *bad |= digit & NO_DIGIT;
        word = word << 5 | (digit & 31);
    }
    return word << 4;
}

bool bel__made_id_place(struct bel_view id, uint32_t topic, struct bel_place *out)
{
    if (id.bytes != BEL_MADE_ID_BYTES) return false;
    const char *text = id.data;
    unsigned middle = digit32(text[HALF_DIGITS]), last = digit32(text[2 * HALF_DIGITS + 1]);
    unsigned bad = (middle | last) & NO_DIGIT;
    uint64_t time = parse_half(text, &bad) | middle >> 1;
    uint64_t rest = parse_half(text + HALF_DIGITS + 1, &bad) >> 1 | last >> 2;
    if (bad) return false;
    rest |= (uint64_t)(middle & 1) << 63;
    *out = (struct bel_place){.table = BEL_TABLE_TIMERS,
                              .topic = topic,
                              .lane = last & 3,
                              .priority = (uint8_t)(rest >> 56),
                              .time = time,
                              .sequence = rest & BEL_SEQUENCE_MAX};
    return true;
}

static void store_word(uint8_t *out, uint64_t word)
{
    word = htobe64(word);
    memcpy(out, &word, sizeof word);
}

static uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return be64toh(word);
}

void bel__token_print(const struct bel_key *key, const uint8_t secret[BEL_TOKEN_SECRET_BYTES],
                      char out[BEL_TOKEN_BYTES])
{
    uint8_t bytes[24], raw[TOKEN_RAW_BYTES];
    for (unsigned i = 0; i < 3; i++) {
        store_word(bytes + (size_t)8 * i, key->words[i]);
    }
    assert(bytes[22] == 0 && bytes[23] == 0);
    memcpy(raw, bytes + 1, TOKEN_KEY_BYTES);
    memcpy(raw + TOKEN_KEY_BYTES, secret, BEL_TOKEN_SECRET_BYTES);
    for (unsigned i = 0, o = 0; i < TOKEN_RAW_BYTES; i += 3) {
        unsigned bits = (unsigned)raw[i] << 16 | (unsigned)raw[i + 1] << 8 | raw[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) {
            out[o++] = digits64[bits >> shift & 63];
        }
    }
}

/* Their values plus 1; 0 for what is no digit. */
static const uint8_t values64[UINT8_MAX + 1] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64};

bool bel__token_parse(struct bel_view token, struct bel_key *out,
                      uint8_t out_secret[BEL_TOKEN_SECRET_BYTES])
{
    uint8_t raw[TOKEN_RAW_BYTES], bytes[24] = {BEL_TABLE_TIMERS};
    if (token.bytes != BEL_TOKEN_BYTES) return false;
    const uint8_t *text = token.data;
    for (unsigned i = 0, o = 0; i < BEL_TOKEN_BYTES; i += 4, o += 3) {
        unsigned bits = 0;
        for (unsigned k = 0; k < 4; k++) {
            unsigned value = values64[text[i + k]];
            if (value == 0) return false;
            bits = bits << 6 | (value - 1);
        }
        raw[o] = (uint8_t)(bits >> 16);
        raw[o + 1] = (uint8_t)(bits >> 8);
        raw[o + 2] = (uint8_t)bits;
    }
    memcpy(bytes + 1, raw, TOKEN_KEY_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        out->words[i] = load_word(bytes + (size_t)8 * i);
    }
    memcpy(out_secret, raw + TOKEN_KEY_BYTES, BEL_TOKEN_SECRET_BYTES);
    return true;
}
