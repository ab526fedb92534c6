/* SPDX-License-Identifier: MIT */

/*
 * Random headers and bodies: what is written is read as it was, also if the lengths are rewritten
 * in characters, as faststream-redis-timers does.
 */
#include "property.h"

#include "core/view.h"
#include "redis/envelope.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEADERS_MAX = 8,
    PIECES_MAX = 6,
    TEXT_ROOM = PIECES_MAX * 4 + 1,
    BODY_MAX = 64,
    ROOM = 4096,
};

static uint64_t rng;
static struct bel_arena arena;

struct text {
    char bytes[TEXT_ROOM];
    size_t count, characters;
};

static void make_text(struct text *text)
{
    static const char *const pieces[] = {"a", "z-", "ü", "€", "𝄞", " ", "\xc3\xa9"};
    static const size_t characters[] = {1, 2, 1, 1, 1, 1, 1};
    text->count = text->characters = 0;
    for (uint64_t left = random_below(&rng, PIECES_MAX); left > 0; left--) {
        size_t piece = (size_t)random_below(&rng, 7), bytes = strlen(pieces[piece]);
        memcpy(text->bytes + text->count, pieces[piece], bytes);
        text->count += bytes;
        text->characters += characters[piece];
    }
}

static struct bel_view view_of(const struct text *text)
{
    return (struct bel_view){text->bytes, text->count};
}

static uint8_t *put_number(uint8_t *at, uint64_t number, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        *at++ = (uint8_t)(number >> (8 * i));
    }
    return at;
}

static uint8_t *put_text(uint8_t *at, const struct text *text)
{
    at = put_number(at, text->characters, 2);
    memcpy(at, text->bytes, text->count);
    return at + text->count;
}

/* Writes an envelope as the package does. Returns its size. */
static size_t write_as_package(uint8_t *out, const struct text *names, const struct text *values,
                               size_t count, struct bel_view body)
{
    static const uint8_t head[] = {0x89, 'B', 'I', 'N', '\r', '\n', 0x1a, '\n', 0, 1, 0, 0, 0, 18};
    uint8_t *at = out + 18;
    memcpy(out, head, sizeof head);
    at = put_number(at, count, 2);
    for (size_t i = 0; i < count; i++) {
        at = put_text(at, &names[i]);
        at = put_text(at, &values[i]);
    }
    (void)put_number(out + 14, (uint64_t)(at - out), 4);
    if (body.bytes > 0) memcpy(at, body.data, body.bytes);
    return (size_t)(at - out) + body.bytes;
}

static void check_is(const struct bel_envelope *read, const struct bel_header *headers,
                     size_t count, struct bel_view body)
{
    CHECK(bel__view_equal(read->body, body));
    CHECK_EQ(read->headers_count, count);
    for (size_t i = 0; i < count; i++) {
        CHECK(bel__view_equal(read->headers[i].name, headers[i].name));
        CHECK(bel__view_equal(read->headers[i].value, headers[i].value));
    }
}

static void run_case(uint64_t seed)
{
    static struct text names[HEADERS_MAX], values[HEADERS_MAX];
    struct bel_header headers[HEADERS_MAX];
    uint8_t body[BODY_MAX], out[ROOM];
    rng = seed;
    size_t count = (size_t)random_below(&rng, HEADERS_MAX);
    struct bel_view payload = {body, (size_t)random_below(&rng, BODY_MAX)};
    struct bel_envelope made = {.body = payload}, read;
    for (size_t i = 0; i < payload.bytes; i++) {
        body[i] = (uint8_t)random_below(&rng, 256);
    }
    for (size_t i = 0; i < count; i++) {
        make_text(&names[i]);
        make_text(&values[i]);
        names[i].bytes[names[i].count++] = (char)('0' + i); /* no name occurs twice */
        names[i].characters++;
        headers[i] = (struct bel_header){view_of(&names[i]), view_of(&values[i])};
    }
    bel__arena_reset(&arena);
    CHECK(bel__envelope_arrange(&made, BEL_VIEW("c"), headers, count, &arena) == 0);
    CHECK(bel__envelope_bytes(&made) <= sizeof out);
    bel__envelope_write(&made, out);
    struct bel_view value = {out, bel__envelope_bytes(&made)};
    CHECK(bel__envelope_read(value, &arena, &read) == 0);
    check_is(&read, made.headers, count + 1, payload);
    value.bytes = write_as_package(out, names, values, count, payload);
    CHECK(bel__envelope_read(value, &arena, &read) == 0);
    check_is(&read, headers, count, payload);
}

int main(int argc, char **argv)
{
    int status = run_cases(argc, argv, 20000, run_case, "envelopes");
    bel__arena_finish(&arena);
    return status;
}
