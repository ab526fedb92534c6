/* SPDX-License-Identifier: MIT */

/*
 * What may come next is one byte of state (`expects`), and whether the innermost level is an object
 * is one bit. A string can be as long as the text, so reading one can stop inside: `start` and
 * `escaped` remember what has been read. All other tokens are short, or too long to be valid.
 */
#include "core/json_reader.h"

#include "core/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    NUMBER_BYTES_MAX = 1000,
};

enum expects {
    EXPECTS_VALUE,
    EXPECTS_VALUE_OR_END, /* after [ */
    EXPECTS_NAME,
    EXPECTS_NAME_OR_END, /* after { */
    EXPECTS_COLON,
    EXPECTS_COMMA_OR_END,
    EXPECTS_NOTHING, /* the value is complete */
};

static const char *const wanteds[] = {
    [EXPECTS_VALUE] = "a JSON value",
    [EXPECTS_VALUE_OR_END] = "a JSON value or ]",
    [EXPECTS_NAME] = "a name in quotes",
    [EXPECTS_NAME_OR_END] = "a name in quotes or }",
    [EXPECTS_COLON] = "a colon",
    [EXPECTS_COMMA_OR_END] = "a comma or the end of the array or object",
    [EXPECTS_NOTHING] = "the end of the text",
};

void bel__json_reader_init(struct bel_json_reader *reader, struct bel_view text, uint32_t depth_max)
{
    assert(depth_max <= BEL_JSON_READER_DEPTH_MAX);
    *reader =
        (struct bel_json_reader){.text = text.data, .bytes = text.bytes, .depth_max = depth_max};
}

static int refuse(struct bel_json_reader *reader, const char *wanted)
{
    reader->wanted = wanted;
    return BEL_EINVAL;
}

static bool is_in_object(const struct bel_json_reader *reader)
{
    uint32_t level = reader->depth - 1;
    return reader->depth > 0 && (reader->objects[level / 64] >> level % 64 & 1) != 0;
}

/* --- strings --- */

static int hex_of(unsigned char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the code of the four hexadecimal digits at `text`, or -1. */
static int32_t code_of(const unsigned char *text, size_t bytes)
{
    int32_t code = 0;
    if (bytes < 4) return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_of(text[i]);
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* An escape: its length in the text, 2, 6 or 12; and its character. */
struct escape {
    size_t bytes; /* 0: invalid */
    uint32_t code;
};

static struct escape escape_at(const unsigned char *text, size_t bytes)
{
    static const char plain[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (bytes < 2) return (struct escape){0};
    const char *found = memchr(plain, text[1], sizeof plain - 1);
    if (found != NULL) return (struct escape){2, (unsigned char)codes[found - plain]};
    int32_t code = text[1] == 'u' ? code_of(text + 2, bytes - 2) : -1;
    if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return (struct escape){0};
    if (code < 0xd800 || code >= 0xe000) return (struct escape){6, (uint32_t)code};
    if (bytes < 12 || text[6] != '\\' || text[7] != 'u') return (struct escape){0};
    int32_t low = code_of(text + 8, bytes - 8);
    if (low < 0xdc00 || low >= 0xe000) return (struct escape){0};
    return (struct escape){12,
                           0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)(low - 0xdc00)};
}

static size_t utf8_length(uint32_t code)
{
    if (code < 0x80) return 1;
    if (code < 0x800) return 2;
    return code < 0x10000 ? 3 : 4;
}

static size_t utf8_put(unsigned char *out, uint32_t code)
{
    size_t bytes = utf8_length(code);
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; code >>= 6) {
        out[i] = (unsigned char)(0x80 | (code & 0x3f));
    }
    out[0] = (unsigned char)(leads[bytes] | code);
    return bytes;
}

static bool is_plain(unsigned char c)
{
    return c >= ' ' && c < 0x80 && c != '"' && c != '\\';
}

/* Reads a string up to `stop`, or a character further. */
static int read_string(struct bel_json_reader *reader, size_t stop, struct bel_json_token *out)
{
    const unsigned char *text = reader->text;
    while (reader->at < stop) {
        size_t left = reader->bytes - reader->at;
        unsigned char c = text[reader->at];
        if (is_plain(c)) {
            reader->at++;
        } else if (c == '"') {
            size_t bytes = reader->at - reader->start;
            out->raw = (struct bel_view){text + reader->start, bytes};
            out->decoded_bytes = bytes - reader->escaped;
            reader->at++;
            reader->is_in_string = false;
            return 0;
        } else if (c == '\\') {
            struct escape escape = escape_at(text + reader->at, left);
            if (escape.bytes == 0) return refuse(reader, "a valid escape");
            reader->escaped += escape.bytes - utf8_length(escape.code);
            reader->at += escape.bytes;
        } else {
            size_t bytes = c < 0x80 ? 0 : bel__utf8_bytes(text + reader->at, left);
            if (bytes == 0) return refuse(reader, "text in UTF-8 without control characters");
            reader->at += bytes;
        }
    }
    if (reader->at < reader->bytes) return BEL_JSON_READER_MORE;
    return refuse(reader, "the end of the string");
}

static int begin_string(struct bel_json_reader *reader, size_t stop, struct bel_json_token *out)
{
    reader->start = ++reader->at;
    reader->escaped = 0;
    reader->is_in_string = true;
    return read_string(reader, stop, out);
}

/* --- other scalars --- */

static size_t digits_at(const unsigned char *text, size_t bytes)
{
    size_t count = 0;
    while (count < bytes && text[count] >= '0' && text[count] <= '9') {
        count++;
    }
    return count;
}

/* Returns the length of the number at `text`; 0 if there is none. */
static size_t number_at(const unsigned char *text, size_t bytes)
{
    size_t at = bytes > 0 && text[0] == '-';
    size_t digits = digits_at(text + at, bytes - at);
    if (digits == 0 || (digits > 1 && text[at] == '0')) return 0;
    at += digits;
    if (at < bytes && text[at] == '.') {
        digits = digits_at(text + at + 1, bytes - at - 1);
        if (digits == 0) return 0;
        at += 1 + digits;
    }
    if (at < bytes && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < bytes && (text[at] == '+' || text[at] == '-')) at++;
        digits = digits_at(text + at, bytes - at);
        if (digits == 0) return 0;
        at += digits;
    }
    return at;
}

static int read_number(struct bel_json_reader *reader, struct bel_json_token *out)
{
    const unsigned char *text = reader->text + reader->at;
    size_t left = reader->bytes - reader->at;
    size_t bytes = number_at(text, left < NUMBER_BYTES_MAX + 1 ? left : NUMBER_BYTES_MAX + 1);
    if (bytes == 0) return refuse(reader, "a number");
    if (bytes > NUMBER_BYTES_MAX) return refuse(reader, "a number of at most 1000 digits");
    out->kind = BEL_JSON_NUMBER;
    out->raw = (struct bel_view){text, bytes};
    reader->at += bytes;
    return 0;
}

static int read_literal(struct bel_json_reader *reader, struct bel_json_token *out)
{
    static const struct {
        const char *text;
        enum bel_json_token_kind kind;
    } literals[] = {{"true", BEL_JSON_TRUE}, {"false", BEL_JSON_FALSE}, {"null", BEL_JSON_NULL}};
    const unsigned char *text = reader->text + reader->at;
    size_t left = reader->bytes - reader->at;
    for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
        size_t bytes = strlen(literals[i].text);
        if (left < bytes || memcmp(text, literals[i].text, bytes) != 0) continue;
        out->kind = literals[i].kind;
        out->raw = (struct bel_view){text, bytes};
        reader->at += bytes;
        return 0;
    }
    return refuse(reader, wanteds[reader->expects]);
}

/* --- structure --- */

static void end_value(struct bel_json_reader *reader)
{
    reader->expects = reader->depth > 0 ? EXPECTS_COMMA_OR_END : EXPECTS_NOTHING;
}

static int begin_level(struct bel_json_reader *reader, bool is_object, struct bel_json_token *out)
{
    uint64_t bit = UINT64_C(1) << reader->depth % 64;
    if (reader->depth == reader->depth_max) {
        reader->wanted = "fewer levels of arrays and objects";
        return BEL_EFULL;
    }
    if (is_object) reader->objects[reader->depth / 64] |= bit;
    if (!is_object) reader->objects[reader->depth / 64] &= ~bit;
    out->kind = is_object ? BEL_JSON_BEGIN_OBJECT : BEL_JSON_BEGIN_ARRAY;
    reader->expects = is_object ? EXPECTS_NAME_OR_END : EXPECTS_VALUE_OR_END;
    reader->depth++;
    reader->at++;
    return 0;
}

static int end_level(struct bel_json_reader *reader, struct bel_json_token *out)
{
    out->kind = is_in_object(reader) ? BEL_JSON_END_OBJECT : BEL_JSON_END_ARRAY;
    reader->depth--;
    reader->at++;
    end_value(reader);
    return 0;
}

/* Returns whether the byte ends the innermost array or object, and may. */
static bool is_end(const struct bel_json_reader *reader, unsigned char c)
{
    if (c == ']') {
        return !is_in_object(reader) && (reader->expects == EXPECTS_VALUE_OR_END ||
                                         (reader->expects == EXPECTS_COMMA_OR_END));
    }
    return c == '}' && is_in_object(reader) &&
           (reader->expects == EXPECTS_NAME_OR_END || reader->expects == EXPECTS_COMMA_OR_END);
}

static int read_value(struct bel_json_reader *reader, size_t stop, struct bel_json_token *out)
{
    unsigned char c = reader->text[reader->at];
    int err;
    if (c == '{' || c == '[') return begin_level(reader, c == '{', out);
    if (c == '"') {
        out->kind = BEL_JSON_STRING;
        err = begin_string(reader, stop, out);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        err = read_number(reader, out);
    } else {
        err = read_literal(reader, out);
    }
    if (err == 0) end_value(reader);
    return err;
}

/* Skips space, colons and commas, up to the byte that a token begins with. Returns 0, or
 * BEL_JSON_READER_MORE, or BEL_EINVAL. */
static int skip(struct bel_json_reader *reader, size_t stop)
{
    for (; reader->at < stop; reader->at++) {
        unsigned char c = reader->text[reader->at];
        if (c == '\n') { /* a string has none, so that all of them are between tokens */
            reader->line++;
            reader->line_start = reader->at + 1;
        }
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
        if (reader->expects == EXPECTS_COLON) {
            if (c != ':') return refuse(reader, wanteds[EXPECTS_COLON]);
            reader->expects = EXPECTS_VALUE;
        } else if (reader->expects == EXPECTS_COMMA_OR_END && c == ',') {
            reader->expects = is_in_object(reader) ? EXPECTS_NAME : EXPECTS_VALUE;
        } else {
            return 0;
        }
    }
    return reader->at < reader->bytes ? BEL_JSON_READER_MORE : 0;
}

static int read_token(struct bel_json_reader *reader, size_t stop, struct bel_json_token *out)
{
    int err = skip(reader, stop);
    if (err) return err;
    if (reader->at == reader->bytes) {
        out->kind = BEL_JSON_END;
        return reader->expects == EXPECTS_NOTHING ? 0 : refuse(reader, wanteds[reader->expects]);
    }
    unsigned char c = reader->text[reader->at];
    if (is_end(reader, c)) return end_level(reader, out);
    switch (reader->expects) {
    case EXPECTS_VALUE:
    case EXPECTS_VALUE_OR_END:
        return read_value(reader, stop, out);
    case EXPECTS_NAME:
    case EXPECTS_NAME_OR_END:
        if (c != '"') break;
        out->kind = BEL_JSON_NAME;
        err = begin_string(reader, stop, out);
        if (err == 0) reader->expects = EXPECTS_COLON;
        return err;
    default:
        break;
    }
    return refuse(reader, wanteds[reader->expects]);
}

/* Continues a string that an earlier call has begun. */
static int continue_string(struct bel_json_reader *reader, size_t stop, struct bel_json_token *out)
{
    bool is_name = reader->expects == EXPECTS_NAME || reader->expects == EXPECTS_NAME_OR_END;
    int err = read_string(reader, stop, out);
    if (err) return err;
    out->kind = is_name ? BEL_JSON_NAME : BEL_JSON_STRING;
    if (is_name) {
        reader->expects = EXPECTS_COLON;
    } else {
        end_value(reader);
    }
    return 0;
}

int bel__json_next(struct bel_json_reader *reader, uint32_t *work, struct bel_json_token *out)
{
    size_t start = reader->at, left = reader->bytes - start;
    size_t stop = left < *work ? reader->bytes : start + *work;
    *out = (struct bel_json_token){0};
    int err =
        reader->is_in_string ? continue_string(reader, stop, out) : read_token(reader, stop, out);
    size_t used = reader->at - start + 1;
    *work = used < *work ? *work - (uint32_t)used : 0;
    return err;
}

/* --- copies --- */

/* Copies a character of a string that is not plain, with its escape decoded. */
static void copy_decoded(struct bel_json_copy *copy)
{
    size_t left = (size_t)(copy->end - copy->from);
    if (*copy->from == '\\') {
        struct escape escape = escape_at(copy->from, left);
        assert(escape.bytes > 0);
        copy->to += utf8_put(copy->to, escape.code);
        copy->from += escape.bytes;
    } else {
        *copy->to++ = *copy->from++;
    }
}

/* Copies a byte of a JSON value unless it is space outside of strings. */
static void copy_compact(struct bel_json_copy *copy)
{
    unsigned char c = *copy->from++;
    if (copy->is_in_string) {
        *copy->to++ = c;
        if (c == '\\') *copy->to++ = *copy->from++;
        if (c == '"') copy->is_in_string = false;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        *copy->to++ = c;
        if (c == '"') copy->is_in_string = true;
    }
}

bool bel__json_copy(struct bel_json_copy *copy, uint32_t *work)
{
    const unsigned char *start = copy->from;
    size_t left = (size_t)(copy->end - start);
    const unsigned char *stop = start + (left < *work ? left : *work);
    while (copy->from < stop) {
        if (copy->is_string) {
            copy_decoded(copy);
        } else {
            copy_compact(copy);
        }
    }
    size_t used = (size_t)(copy->from - start);
    *work = used < *work ? *work - (uint32_t)used : 0;
    return copy->from == copy->end;
}
