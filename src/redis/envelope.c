/* SPDX-License-Identifier: MIT */

/*
 * Lengths of headers are read as bytes, and if these do not end exactly where the body starts, as
 * characters. If neither fits, the headers up to the first broken one count. The body starts at
 * data_start in any case.
 *
 * The JSON of older versions, of which other values of the object are ignored:
 *
 *     {"b": "<hex>", "ct": "<content type>"}
 *     {"data": "<text>", "headers": {"<name>": "<text>", ...}}
 */
#include "redis/envelope.h"

#include "redis/cursor.h"

#include "core/json_reader.h"
#include "core/utf8.h"
#include "core/view.h"

#include <assert.h>
#include <string.h>

enum {
    VERSION = 1,
    HEAD_BYTES = 18, /* up to the number of headers */
    LENGTH_BYTES = 2,
    LEADING = 3, /* headers that come first */
};

static const char magic[] = "\x89"
                            "BIN\r\n\x1a\n";
static const char *const leading[LEADING] = {"correlation_id", "content-type", "reply_to"};

/* --- Writing --- */

static bool fits(struct bel_view text)
{
    return text.bytes <= BEL_ENVELOPE_TEXT_MAX && bel__utf8_is_text(text);
}

/* Sets a header of a list: replaces the value of one with this name, or adds it. */
static void set_header(struct bel_header *list, size_t *count, const struct bel_header *header)
{
    for (size_t i = 0; i < *count; i++) {
        if (!bel__view_equal(list[i].name, header->name)) continue;
        list[i].value = header->value;
        return;
    }
    list[(*count)++] = *header;
}

static int leading_place(struct bel_view name)
{
    for (int i = 0; i < LEADING; i++) {
        if (bel__view_is(name, leading[i])) return i;
    }
    return LEADING;
}

int bel__envelope_arrange(struct bel_envelope *envelope, struct bel_view correlation,
                          const struct bel_header *headers, size_t count, struct bel_arena *arena)
{
    struct bel_header *list = bel__arena_take(arena, (count + 1) * sizeof *list);
    struct bel_header first = {{leading[0], strlen(leading[0])}, correlation};
    size_t listed = 0;
    if (list == NULL) return BEL_ENOMEM;
    if (!fits(correlation)) return BEL_EINVAL;
    set_header(list, &listed, &first);
    for (int place = 0; place <= LEADING; place++) {
        for (size_t i = 0; i < count; i++) {
            if (!fits(headers[i].name) || !fits(headers[i].value)) return BEL_EINVAL;
            if (leading_place(headers[i].name) == place) set_header(list, &listed, &headers[i]);
        }
    }
    assert(listed <= count + 1);
    if (listed > UINT16_MAX) return BEL_EINVAL;
    envelope->headers = list;
    envelope->headers_count = listed;
    return 0;
}

static size_t headers_bytes(const struct bel_envelope *envelope)
{
    size_t bytes = LENGTH_BYTES;
    for (size_t i = 0; i < envelope->headers_count; i++) {
        const struct bel_header *header = &envelope->headers[i];
        bytes += 2 * (size_t)LENGTH_BYTES + header->name.bytes + header->value.bytes;
    }
    return bytes;
}

size_t bel__envelope_bytes(const struct bel_envelope *envelope)
{
    return HEAD_BYTES + headers_bytes(envelope) + envelope->body.bytes;
}

void bel__envelope_write(const struct bel_envelope *envelope, uint8_t *out)
{
    uint8_t *at = bel__put_view(out, (struct bel_view){magic, sizeof magic - 1});
    at = bel__put_number(at, VERSION, 2);
    at = bel__put_number(at, HEAD_BYTES, 4);
    at = bel__put_number(at, HEAD_BYTES + headers_bytes(envelope), 4);
    at = bel__put_number(at, envelope->headers_count, LENGTH_BYTES);
    for (size_t i = 0; i < envelope->headers_count; i++) {
        const struct bel_header *header = &envelope->headers[i];
        assert(header->name.bytes <= UINT16_MAX && header->value.bytes <= UINT16_MAX);
        at = bel__put_number(at, header->name.bytes, LENGTH_BYTES);
        at = bel__put_view(at, header->name);
        at = bel__put_number(at, header->value.bytes, LENGTH_BYTES);
        at = bel__put_view(at, header->value);
    }
    at = bel__put_view(at, envelope->body);
    assert((size_t)(at - out) == bel__envelope_bytes(envelope));
}

/* --- Reading the binary form --- */

typedef struct bel_view take_text(struct bel_cursor *cursor);

static struct bel_view take_bytes(struct bel_cursor *cursor)
{
    return bel__take(cursor, (size_t)bel__take_number(cursor, LENGTH_BYTES));
}

/* Takes a text whose length is in characters. */
static struct bel_view take_characters(struct bel_cursor *cursor)
{
    size_t left = (size_t)bel__take_number(cursor, LENGTH_BYTES), bytes = 0;
    for (; left > 0 && !cursor->is_bad; left--) {
        size_t next =
            bytes == cursor->left ? 0 : bel__utf8_bytes(cursor->at + bytes, cursor->left - bytes);
        if (next == 0) cursor->is_bad = true;
        bytes += next;
    }
    return bel__take(cursor, bytes);
}

/* Reads headers up to the first broken one. Returns whether none is broken and nothing is left. */
static bool read_headers(struct bel_cursor cursor, size_t count, take_text *take,
                         struct bel_envelope *out, struct bel_header *list)
{
    out->headers = list;
    out->headers_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct bel_view name = take(&cursor), value = take(&cursor);
        if (cursor.is_bad || !bel__utf8_is_text(name) || !bel__utf8_is_text(value)) return false;
        list[out->headers_count++] = (struct bel_header){name, value};
    }
    return cursor.left == 0;
}

/* Reads the headers between two places of a value, which may be any. */
static int read_region(struct bel_view value, size_t from, size_t to, struct bel_arena *arena,
                       struct bel_envelope *out)
{
    if (from < HEAD_BYTES || from > to) return 0;
    struct bel_cursor cursor =
        bel__cursor_of((struct bel_view){(const uint8_t *)value.data + from, to - from});
    size_t count = (size_t)bel__take_number(&cursor, LENGTH_BYTES);
    size_t most = cursor.left / (2 * (size_t)LENGTH_BYTES); /* that can be there */
    if (cursor.is_bad || count == 0) return 0;
    struct bel_header *list = bel__arena_take(arena, (most + 1) * sizeof *list);
    if (list == NULL) return BEL_ENOMEM;
    if (read_headers(cursor, count, take_bytes, out, list)) return 0;
    if (read_headers(cursor, count, take_characters, out, list)) return 0;
    (void)read_headers(cursor, count, take_bytes, out, list);
    return 0;
}

/* Returns whether a value is of the binary form, and then sets where its headers and its body
 * start. */
static bool is_binary(struct bel_view value, size_t *headers_start, size_t *data_start)
{
    struct bel_cursor cursor = bel__cursor_of(value);
    struct bel_view head = bel__take(&cursor, sizeof magic - 1);
    uint64_t version = bel__take_number(&cursor, 2);
    *headers_start = (size_t)bel__take_number(&cursor, 4);
    *data_start = (size_t)bel__take_number(&cursor, 4);
    return !cursor.is_bad && memcmp(head.data, magic, sizeof magic - 1) == 0 &&
           version == VERSION && *data_start >= HEAD_BYTES && *data_start <= value.bytes;
}

/* --- Reading JSON --- */

/* What an object may have. Later values of a name replace earlier ones. */
struct object {
    struct bel_json_token hex, content_type, data; /* BEL_JSON_END: it has none */
    struct json_header {
        struct bel_json_token name, value;
    } * headers; /* NULL: only to be counted */
    size_t headers_count;
};

static void reset(struct object *object)
{
    const struct bel_json_token none = {.kind = BEL_JSON_END};
    object->hex = object->content_type = object->data = none;
    object->headers_count = 0;
}

static bool is_named(const struct bel_json_token *name, const char *text)
{
    return bel__view_is(name->raw, text);
}

/* Takes over a value, or the beginning of one, of the object itself. */
static void take_value(struct object *object, const struct bel_json_token *name,
                       const struct bel_json_token *value)
{
    if (is_named(name, "b")) object->hex = *value;
    if (is_named(name, "ct")) object->content_type = *value;
    if (is_named(name, "data")) object->data = *value;
    if (is_named(name, "headers")) object->headers_count = 0;
}

static void take_header(struct object *object, const struct bel_json_token *name,
                        const struct bel_json_token *value)
{
    if (object->headers != NULL) {
        object->headers[object->headers_count] = (struct json_header){*name, *value};
    }
    object->headers_count++;
}

static bool is_value(enum bel_json_token_kind kind)
{
    return kind != BEL_JSON_NAME && kind != BEL_JSON_END_OBJECT && kind != BEL_JSON_END_ARRAY;
}

/* Reads a JSON object. Returns false if the text is something else. */
static bool read_object(struct bel_view text, struct object *object)
{
    struct bel_json_reader reader;
    struct bel_json_token token, names[3] = {{.kind = BEL_JSON_END}};
    bool is_in_headers = false, is_object = false;
    reset(object);
    bel__json_reader_init(&reader, text, BEL_JSON_READER_DEPTH_MAX);
    do {
        uint32_t work = UINT32_MAX, before = reader.depth;
        int err = bel__json_next(&reader, &work, &token);
        if (err == BEL_JSON_READER_MORE) continue;
        if (err) return false;
        if (before == 0 && token.kind == BEL_JSON_BEGIN_OBJECT) is_object = true;
        if (!is_object) return false;
        if (token.kind == BEL_JSON_NAME && before <= 2) names[before] = token;
        if (before == 1 && is_value(token.kind)) {
            is_in_headers = token.kind == BEL_JSON_BEGIN_OBJECT && is_named(&names[1], "headers");
            take_value(object, &names[1], &token);
        }
        if (before == 2 && is_in_headers && token.kind == BEL_JSON_STRING) {
            take_header(object, &names[2], &token);
        }
    } while (token.kind != BEL_JSON_END);
    return true;
}

/* Copies a string or a name without its escapes. Returns NULL if memory has run out. */
static struct bel_view decode(const struct bel_json_token *token, struct bel_arena *arena)
{
    unsigned char *text = bel__arena_take(arena, token->decoded_bytes + 1);
    const unsigned char *raw = token->raw.data;
    struct bel_json_copy copy = {
        .from = raw, .end = raw + token->raw.bytes, .to = text, .is_string = true};
    if (text == NULL) return (struct bel_view){NULL, 0};
    for (bool is_complete = token->raw.bytes == 0; !is_complete;) {
        uint32_t work = UINT32_MAX;
        is_complete = bel__json_copy(&copy, &work);
    }
    return (struct bel_view){text, token->decoded_bytes};
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Decodes pairs of digits in place, as bytes.fromhex() of Python does: there may be space between
 * them. Returns false if the text is something else. */
static bool decode_hex(struct bel_view text, uint8_t *out, size_t *out_bytes)
{
    const unsigned char *from = text.data;
    *out_bytes = 0;
    for (size_t at = 0; at < text.bytes;) {
        if (is_space(from[at])) {
            at++;
            continue;
        }
        int high = hex_digit(from[at]), low = at + 1 < text.bytes ? hex_digit(from[at + 1]) : -1;
        if (high < 0 || low < 0) return false;
        out[(*out_bytes)++] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    return true;
}

/* Reads {"b": ..., "ct": ...}. A value that is not hexadecimal stays the body as a whole. */
static int read_hex(const struct object *object, struct bel_arena *arena, struct bel_envelope *out)
{
    struct bel_view text = decode(&object->hex, arena);
    struct bel_header *header = bel__arena_take(arena, sizeof *header);
    uint8_t *body = bel__arena_take(arena, text.bytes / 2 + 1);
    size_t bytes;
    if (text.data == NULL || header == NULL || body == NULL) return BEL_ENOMEM;
    if (!decode_hex(text, body, &bytes)) return 0;
    out->body = (struct bel_view){body, bytes};
    if (object->content_type.kind != BEL_JSON_STRING) return 0;
    *header =
        (struct bel_header){{leading[1], strlen(leading[1])}, decode(&object->content_type, arena)};
    if (header->value.data == NULL) return BEL_ENOMEM;
    out->headers = header;
    out->headers_count = header->value.bytes > 0;
    return 0;
}

/* Reads {"data": ..., "headers": ...}. */
static int read_data(struct bel_view value, struct object *object, struct bel_arena *arena,
                     struct bel_envelope *out)
{
    size_t count = object->headers_count;
    struct bel_header *list = bel__arena_take(arena, (count + 1) * sizeof *list);
    object->headers = bel__arena_take(arena, (count + 1) * sizeof *object->headers);
    if (list == NULL || object->headers == NULL) return BEL_ENOMEM;
    bool is_object = read_object(value, object); /* again, for the headers */
    assert(is_object && object->headers_count == count);
    (void)is_object;
    struct bel_view body = decode(&object->data, arena);
    if (body.data == NULL) return BEL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        list[i].name = decode(&object->headers[i].name, arena);
        list[i].value = decode(&object->headers[i].value, arena);
        if (list[i].name.data == NULL || list[i].value.data == NULL) return BEL_ENOMEM;
    }
    *out = (struct bel_envelope){body, list, count};
    return 0;
}

int bel__envelope_read(struct bel_view value, struct bel_arena *arena, struct bel_envelope *out)
{
    size_t headers_start, data_start;
    struct object object = {.headers = NULL};
    const uint8_t *bytes = value.data;
    *out = (struct bel_envelope){.body = value};
    if (is_binary(value, &headers_start, &data_start)) {
        out->body = (struct bel_view){bytes + data_start, value.bytes - data_start};
        return read_region(value, headers_start, data_start, arena, out);
    }
    if (value.bytes == 0 || !read_object(value, &object)) return 0;
    if (bytes[0] == '{' && object.hex.kind != BEL_JSON_END) {
        return object.hex.kind == BEL_JSON_STRING ? read_hex(&object, arena, out) : 0;
    }
    return object.data.kind == BEL_JSON_STRING ? read_data(value, &object, arena, out) : 0;
}
