/* SPDX-License-Identifier: MIT */

/*
 * The parser is at `position` in the request, and its state says what it expects there:
 *
 *     *2\r\n  $3\r\n  GET\r\n  $4\r\n  mail\r\n
 *     ^START  ^SIZE   ^BODY    ^SIZE   ^BODY      END
 *
 * The parser advances past each complete argument and stores its position in a slot. The content of
 * an argument is not examined, so a large argument that arrives in pieces costs nothing until it is
 * complete. A request that exceeds a limit gets no slots: its bytes are counted and dropped.
 *
 * Nearly all arguments are complete and well-formed. A fast loop, pass_plain(), handles them and
 * stops before the first argument that is incomplete, too large or malformed. The state machine
 * handles that argument, so all errors are reported in one place.
 */
#include "session/resp.h"

#include "core/parse.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state {
    START, /* the first byte decides between SIZE and WORDS */
    WORDS, /* a line of words */
    SIZE,  /* $3 */
    BODY,
    END,
};

enum {
    HEAD_BYTES_MAX = 24,             /* of *2\r\n and $3\r\n: a mark, digits, CR and LF */
    END_BYTES = 2,                   /* CR and LF */
    PLAIN_BYTES_MAX = 10,            /* of 3\r\n on the fast path: up to 99999999 */
    SLOTS_KEPT = 64,                 /* a larger array of slots is freed after its request */
    ANNOUNCED_BYTES_MAX = 512 << 20, /* of an argument, even of a skipped request */
    ANNOUNCED_ARGUMENTS_MAX = 1024 * 1024,
};

/* Results of a step; 0 means continue. */
enum {
    SHORT = 1, /* incomplete: needs more bytes */
    BAD,       /* malformed: the reason is in parser->why */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int bad(struct bel_resp_parser *parser, const char *why)
{
    parser->why = why;
    return BAD;
}

void bel__resp_init(struct bel_resp_parser *parser, const struct bel_resp_limits *limits)
{
    assert(limits->arguments_max > 0);
    *parser = (struct bel_resp_parser){.limits = *limits, .state = START};
}

void bel__resp_finish(struct bel_resp_parser *parser)
{
    free(parser->slots);
    parser->slots = NULL;
    parser->slots_capacity = 0;
}

static void begin(struct bel_resp_parser *parser)
{
    if (parser->slots_capacity > SLOTS_KEPT) bel__resp_finish(parser);
    parser->state = START;
    parser->count = 0;
    parser->position = 0;
    parser->is_over = false;
    parser->why = NULL;
    parser->head[0] = '\0';
}

/* --- slots --- */

static struct bel_resp_slot *slots_of(struct bel_resp_parser *parser)
{
    return parser->slots != NULL ? parser->slots : parser->few;
}

static size_t capacity_of(const struct bel_resp_parser *parser)
{
    return parser->slots != NULL ? parser->slots_capacity : BEL_RESP_SLOTS;
}

static int grow(struct bel_resp_parser *parser)
{
    size_t capacity = 2 * capacity_of(parser);
    assert(parser->count < capacity);
    struct bel_resp_slot *slots = realloc(parser->slots, capacity * sizeof *slots);
    if (slots == NULL) return bad(parser, "out of memory");
    if (parser->slots == NULL) memcpy(slots, parser->few, sizeof parser->few);
    parser->slots = slots;
    parser->slots_capacity = capacity;
    return 0;
}

static int add(struct bel_resp_parser *parser, size_t start, size_t bytes)
{
    if (parser->is_over) return 0;
    if (parser->count == capacity_of(parser)) {
        int err = grow(parser);
        if (err) return err;
    }
    slots_of(parser)[parser->count++] = (struct bel_resp_slot){start, bytes};
    return 0;
}

/* --- limits --- */

/* The request exceeds a limit: starts skipping it, or fails if the limits are not lenient. */
static int go_over(struct bel_resp_parser *parser, const char *why)
{
    assert(why != NULL);
    if (!parser->limits.is_lenient) return bad(parser, why);
    if (!parser->is_over) parser->why = why;
    parser->is_over = true;
    parser->count = 0;
    return 0;
}

/* --- arrays --- */

static bool is_end(const char *at)
{
    return memcmp(at, "\r\n", END_BYTES) == 0;
}

/* Fast path: parses "3\r\n" if it is complete and has at most 8 digits. Returns the position after
 * it, otherwise NULL. */
static inline const char *read_plain(const char *at, const char *end, size_t *out)
{
    size_t number = 0, room = (size_t)(end - at);
    if (room < 1 + END_BYTES) return NULL;
    const char *start = at, *last = at + least(room, PLAIN_BYTES_MAX) - END_BYTES;
    for (; at < last; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit > 9) break;
        number = 10 * number + digit;
    }
    if (at == start || !is_end(at)) return NULL;
    *out = number;
    return at + END_BYTES;
}

/* Slow path: parses "*2\r\n" or "$3\r\n" at the position, or reports the error. */
static int read_any_head(struct bel_resp_parser *parser, const char *text, size_t bytes,
                         int64_t *out)
{
    const char *start = text + parser->position;
    size_t left = bytes - parser->position;
    const char *end = memchr(start, '\n', least(left, HEAD_BYTES_MAX));
    if (end == NULL) return left < HEAD_BYTES_MAX ? SHORT : bad(parser, "the number is too long");
    size_t line_bytes = (size_t)(end - start);
    if (line_bytes < 2 || start[line_bytes - 1] != '\r') return bad(parser, "expected CR and LF");
    int err = bel__parse_i64(start + 1, line_bytes - 2, INT64_MIN, INT64_MAX, out);
    if (err) return bad(parser, "expected a number");
    parser->position += line_bytes + 1;
    return 0;
}

static int read_head(struct bel_resp_parser *parser, const char *text, size_t bytes, int64_t *out)
{
    size_t number;
    assert(parser->position < bytes); /* the mark: '*' or '$' */
    const char *end = read_plain(text + parser->position + 1, text + bytes, &number);
    if (end == NULL) return read_any_head(parser, text, bytes, out);
    parser->position = (size_t)(end - text);
    *out = (int64_t)number;
    return 0;
}

static int read_array(struct bel_resp_parser *parser, const char *text, size_t bytes)
{
    int64_t count = 0;
    int err = read_head(parser, text, bytes, &count);
    if (err) return err;
    if (count > ANNOUNCED_ARGUMENTS_MAX) return bad(parser, "invalid multibulk length");
    parser->arguments_left = count > 0 ? (uint64_t)count : 0;
    parser->state = count > 0 ? SIZE : END;
    if (parser->arguments_left <= parser->limits.arguments_max) return 0;
    return go_over(parser, "too many arguments");
}

/* Fast path: stores the complete and well-formed arguments. Stops before the first argument that is
 * incomplete, malformed or too large, or when there is no free slot. */
static void pass_plain(struct bel_resp_parser *parser, const char *text, size_t bytes)
{
    const char *at = text + parser->position;
    const char *end = text + least(bytes, parser->limits.request_bytes_max);
    size_t slots_left = capacity_of(parser) - parser->count;
    struct bel_resp_slot *first = slots_of(parser) + parser->count, *slot = first;
    const struct bel_resp_slot *last = first + least(slots_left, parser->arguments_left);
    while (slot < last && at < end && *at == '$') {
        size_t size;
        const char *body = read_plain(at + 1, end, &size);
        if (body == NULL || size > parser->limits.argument_bytes_max) break;
        if (size + END_BYTES > (size_t)(end - body) || !is_end(body + size)) break;
        *slot++ = (struct bel_resp_slot){(size_t)(body - text), size};
        at = body + size + END_BYTES;
    }
    parser->position = (size_t)(at - text);
    parser->count += (size_t)(slot - first);
    parser->arguments_left -= (size_t)(slot - first);
    if (parser->arguments_left == 0) parser->state = END;
}

/* Keeps the first two arguments of a request that is going to be skipped. */
static void keep_head(struct bel_resp_parser *parser, const char *text)
{
    const struct bel_resp_slot *slots = slots_of(parser);
    if (parser->count < 2) return;
    if (slots[0].bytes + 1 + slots[1].bytes >= sizeof parser->head) return;
    (void)snprintf(parser->head, sizeof parser->head, "%.*s %.*s", (int)slots[0].bytes,
                   text + slots[0].start, (int)slots[1].bytes, text + slots[1].start);
}

static int read_size(struct bel_resp_parser *parser, const char *text, size_t bytes)
{
    int64_t size = 0;
    if (!parser->is_over) pass_plain(parser, text, bytes);
    if (parser->state == END) return 0;
    if (parser->position == bytes) return SHORT;
    if (text[parser->position] != '$') return bad(parser, "expected '$'");
    int err = read_head(parser, text, bytes, &size);
    if (err) return err;
    if (size < 0 || size > ANNOUNCED_BYTES_MAX) return bad(parser, "invalid bulk length");
    parser->argument_bytes = (size_t)size;
    parser->state = BODY;
    bool fits = parser->argument_bytes <= parser->limits.argument_bytes_max &&
                parser->position + parser->argument_bytes <= parser->limits.request_bytes_max;
    if (fits) return 0;
    if (!parser->is_over) keep_head(parser, text);
    return go_over(parser, "too many bytes");
}

static int end_body(struct bel_resp_parser *parser)
{
    assert(parser->state == BODY && parser->arguments_left > 0);
    parser->state = --parser->arguments_left > 0 ? SIZE : END;
    return 0;
}

/* Skips the received part of an argument and of its CR and LF. */
static int skip_body(struct bel_resp_parser *parser, size_t bytes)
{
    assert(parser->is_over && parser->count == 0);
    size_t left = bytes - parser->position, wanted = parser->argument_bytes + 2;
    size_t passed = least(left, wanted);
    parser->position += passed;
    if (passed == wanted) return end_body(parser);
    if (passed > parser->argument_bytes) {
        parser->position--; /* keep the CR until the LF arrives */
        passed--;
    }
    parser->argument_bytes -= passed;
    return SHORT;
}

static int read_body(struct bel_resp_parser *parser, const char *text, size_t bytes)
{
    if (parser->is_over) return skip_body(parser, bytes);
    size_t size = parser->argument_bytes;
    if (bytes - parser->position < size + 2) return SHORT;
    const char *end = text + parser->position + size;
    if (end[0] != '\r' || end[1] != '\n') return bad(parser, "a bulk string ends in CR and LF");
    int err = add(parser, parser->position, size);
    if (err) return err;
    parser->position += size + 2;
    return end_body(parser);
}

/* --- lines --- */

/* An inline command, unescaped in place: `written` never exceeds `read`. */
struct line {
    char *text;
    size_t read, end, written;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Reads an escape sequence after its backslash, within double quotes. */
static char unescape(struct line *line)
{
    static const char letters[] = "nrtba", meanings[] = "\n\r\t\b\a";
    char c = line->text[line->read++];
    if (c == 'x' && line->end - line->read >= 2) {
        int high = hex_digit(line->text[line->read]), low = hex_digit(line->text[line->read + 1]);
        if (high < 0 || low < 0) return c;
        line->read += 2;
        return (char)((unsigned)high << 4 | (unsigned)low);
    }
    const char *letter = memchr(letters, c, sizeof letters - 1);
    if (letter == NULL) return c;
    return meanings[letter - letters];
}

/* Reads up to the closing quote. Returns false if it is missing, or not followed by a space. */
static bool read_quoted(struct line *line, char quote)
{
    while (line->read < line->end) {
        char c = line->text[line->read++];
        if (c == quote) return line->read == line->end || is_space(line->text[line->read]);
        if (c == '\\' && line->read < line->end) {
            if (quote == '"') {
                c = unescape(line);
            } else if (line->text[line->read] == '\'') {
                c = line->text[line->read++];
            }
        }
        line->text[line->written++] = c;
    }
    return false;
}

static bool read_word(struct line *line)
{
    while (line->read < line->end && !is_space(line->text[line->read])) {
        char c = line->text[line->read++];
        if (c == '"' || c == '\'') return read_quoted(line, c);
        line->text[line->written++] = c;
    }
    return true;
}

static int read_words(struct bel_resp_parser *parser, struct line *line)
{
    for (;;) {
        while (line->read < line->end && is_space(line->text[line->read])) {
            line->read++;
        }
        if (line->read == line->end) return 0;
        size_t start = line->written;
        if (!read_word(line)) return bad(parser, "unbalanced quotes in request");
        if (parser->count == parser->limits.arguments_max) return bad(parser, "too many arguments");
        int err = add(parser, start, line->written - start);
        if (err) return err;
    }
}

/* Reads a line of words once it is complete. Searches only new bytes for the end of the line. */
static int read_line(struct bel_resp_parser *parser, char *text, size_t bytes)
{
    size_t max = parser->limits.argument_bytes_max;
    if (max > BEL_RESP_INLINE_BYTES_MAX) max = BEL_RESP_INLINE_BYTES_MAX;
    char *end = memchr(text + parser->position, '\n', bytes - parser->position);
    size_t line_bytes = end != NULL ? (size_t)(end - text) : bytes;
    if (line_bytes > max) return bad(parser, "too big inline request");
    parser->position = line_bytes;
    if (end == NULL) return SHORT;
    parser->position++;
    parser->state = END;
    struct line line = {.text = text, .end = line_bytes};
    return read_words(parser, &line);
}

/* --- the state machine --- */

static int step(struct bel_resp_parser *parser, char *text, size_t bytes)
{
    switch ((enum state)parser->state) {
    case START:
        if (bytes == 0) return SHORT;
        if (text[0] == '*') return read_array(parser, text, bytes);
        parser->state = WORDS;
        return 0;
    case WORDS:
        return read_line(parser, text, bytes);
    case SIZE:
        return read_size(parser, text, bytes);
    case BODY:
        return read_body(parser, text, bytes);
    case END:
    default:
        assert(parser->state == END);
        return SHORT;
    }
}

/* Returns how many bytes of a request that is being skipped the caller can drop. */
static size_t drop_passed(struct bel_resp_parser *parser)
{
    size_t passed = parser->is_over ? parser->position : 0;
    parser->position -= passed;
    return passed;
}

size_t bel__resp_missing(const struct bel_resp_parser *parser, size_t bytes)
{
    if (parser->state != BODY || parser->position > bytes) return 0;
    size_t has = bytes - parser->position, wanted = parser->argument_bytes + END_BYTES;
    return has < wanted ? wanted - has : 0;
}

enum bel_resp_event bel__resp_parse(struct bel_resp_parser *parser, void *data, size_t bytes,
                                    size_t *out_used)
{
    int err = 0;
    if (parser->state == END) begin(parser);
    *out_used = 0;
    while (err == 0 && parser->state != END) {
        assert(parser->position <= bytes);
        err = step(parser, data, bytes);
    }
    if (err == BAD) return BEL_RESP_BROKEN;
    if (err == SHORT) {
        *out_used = drop_passed(parser);
        return BEL_RESP_MORE;
    }
    *out_used = parser->position;
    assert(*out_used <= bytes && parser->arguments_left == 0);
    return parser->is_over ? BEL_RESP_REFUSED : BEL_RESP_REQUEST;
}
