/* SPDX-License-Identifier: MIT */

/*
 * Every RESP value starts with a type character and a line:
 *
 *     + - : , ( _ #   the line is the value
 *     $ = !           the line is the length of a string, which follows with a line end
 *     * ~ > % |       the line is the number of values, or of pairs, that follow
 *
 * A reply is read in two passes. The scan skips over the bytes that have arrived and counts the
 * values outstanding at each depth. It allocates nothing: a length in the reply is a claim, until
 * the bytes are there. When the reply is complete the number of values is known. Then the build
 * allocates them in one array, the items of a list side by side:
 *
 *     [ list | a | list | c | x | y ]        for  * a * c  with the inner list x y
 *        '---->^     '--------->^
 *
 * Streamed strings and lists ($? and *?) fail with BEL_EINVAL: no server sends them unasked.
 */
#include "resp/reader.h"

#include "core/parse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A decoded type character and line. */
struct head {
    char letter;
    enum bel_value_type type;
    struct bel_view line;
    size_t bytes;    /* length of letter, line and line end */
    uint64_t blob;   /* length of the string that follows, without its line end */
    uint64_t values; /* number of values that follow */
    bool has_blob, has_values;
};

void bel__reader_init(struct bel_reader *reader, size_t bytes_max, size_t values_max)
{
    assert(bytes_max > 0 && values_max > 0);
    *reader = (struct bel_reader){.bytes_max = bytes_max, .values_max = values_max};
    bel__reader_reset(reader);
}

void bel__reader_finish(struct bel_reader *reader)
{
    free(reader->nodes);
    *reader = (struct bel_reader){.bytes_max = reader->bytes_max};
}

void bel__reader_reset(struct bel_reader *reader)
{
    reader->bytes = reader->at = reader->searched = reader->values = 0;
    reader->is_aside = false;
    reader->depth = 0;
    reader->left[0] = 1;
}

/* --- one line --- */

static int read_size(struct bel_view line, uint64_t max, uint64_t *out)
{
    int err = bel__parse_u64(line.data, line.bytes, 0, max, out);
    return err == BEL_ERANGE ? BEL_EFULL : err;
}

static bool is_nil(struct bel_view line)
{
    return line.bytes == 2 && memcmp(line.data, "-1", 2) == 0;
}

static int read_blob(const struct bel_reader *reader, struct head *head)
{
    if (head->letter == '$' && is_nil(head->line)) {
        head->type = BEL_VALUE_NIL;
        return 0;
    }
    head->has_blob = true;
    head->type = head->letter == '!' ? BEL_VALUE_ERROR : BEL_VALUE_TEXT;
    return read_size(head->line, reader->bytes_max, &head->blob);
}

static int read_list(const struct bel_reader *reader, struct head *head)
{
    bool is_map = head->letter == '%' || head->letter == '|';
    if (head->letter == '*' && is_nil(head->line)) {
        head->type = BEL_VALUE_NIL;
        return 0;
    }
    head->has_values = true;
    head->type = is_map ? BEL_VALUE_MAP : BEL_VALUE_LIST;
    int err = read_size(head->line, reader->values_max / (is_map ? 2 : 1), &head->values);
    if (is_map) head->values *= 2;
    return err;
}

static int read_number(struct head *head)
{
    int64_t number;
    head->type = BEL_VALUE_NUMBER;
    int err = bel__parse_i64(head->line.data, head->line.bytes, INT64_MIN, INT64_MAX, &number);
    return err ? BEL_EINVAL : 0;
}

static int read_boolean(struct head *head)
{
    const char *text = head->line.data;
    head->type = BEL_VALUE_BOOLEAN;
    return head->line.bytes == 1 && (text[0] == 't' || text[0] == 'f') ? 0 : BEL_EINVAL;
}

/* Decodes a complete line. Returns 0, BEL_EINVAL or BEL_EFULL. */
static int read_head(const struct bel_reader *reader, const uint8_t *data, size_t line_bytes,
                     struct head *out)
{
    *out = (struct head){.letter = (char)data[0],
                         .line = {(const char *)data + 1, line_bytes},
                         .bytes = 1 + line_bytes + 2};
    switch (out->letter) {
    case '+':
        out->type = BEL_VALUE_STATUS;
        return 0;
    case '-':
        out->type = BEL_VALUE_ERROR;
        return 0;
    case ':':
        return read_number(out);
    case ',':
    case '(':
        out->type = BEL_VALUE_DECIMAL;
        return line_bytes > 0 ? 0 : BEL_EINVAL;
    case '_':
        out->type = BEL_VALUE_NIL;
        return line_bytes == 0 ? 0 : BEL_EINVAL;
    case '#':
        return read_boolean(out);
    case '$':
    case '=':
    case '!':
        return read_blob(reader, out);
    case '*':
    case '~':
    case '>':
    case '%':
    case '|':
        return read_list(reader, out);
    default:
        return BEL_EINVAL;
    }
}

/* Finds the end of the line that starts after the letter at `at`. Returns 0 and sets `*out` to its
 * length, BEL_EBUSY if the line is incomplete, or BEL_EINVAL. */
static int find_line(struct bel_reader *reader, const uint8_t *data, size_t bytes, size_t *out)
{
    size_t from = reader->searched > reader->at + 1 ? reader->searched : reader->at + 1;
    if (from >= bytes) return BEL_EBUSY;
    const uint8_t *end = memchr(data + from, '\n', bytes - from);
    size_t line = (end == NULL ? bytes : (size_t)(end - data)) - reader->at - 1;
    if (line > BEL_READER_LINE_BYTES) return BEL_EINVAL;
    reader->searched = end == NULL ? bytes : 0;
    if (end == NULL) return BEL_EBUSY;
    if (line == 0 || end[-1] != '\r') return BEL_EINVAL;
    *out = line - 1;
    return memchr(data + reader->at + 1, '\r', line - 1) == NULL ? 0 : BEL_EINVAL;
}

/* --- the scan --- */

/* Checks the string that follows a line. Returns 0, BEL_EBUSY if incomplete, or BEL_EINVAL. */
static int skip_blob(const struct bel_reader *reader, const struct head *head, const uint8_t *data,
                     size_t bytes)
{
    size_t start = reader->at + head->bytes;
    if (bytes - start < head->blob + 2) return BEL_EBUSY;
    const uint8_t *blob = data + start;
    if (head->letter == '=' && (head->blob < 4 || blob[3] != ':')) return BEL_EINVAL;
    return memcmp(blob + head->blob, "\r\n", 2) == 0 ? 0 : BEL_EINVAL;
}

/* Counts a value that is complete. A list with `values` items goes one level deeper. The last item
 * of a list returns to the level above, perhaps through several. */
static void count_value(struct bel_reader *reader, uint64_t values)
{
    reader->values++;
    reader->left[reader->depth]--;
    if (values > 0) {
        reader->left[++reader->depth] = values;
        return;
    }
    while (reader->depth > 0 && reader->left[reader->depth] == 0) {
        reader->depth--;
    }
}

static int skip_value(struct bel_reader *reader, const uint8_t *data, size_t bytes)
{
    struct head head;
    size_t line;
    int err = find_line(reader, data, bytes, &line);
    if (err) return err;
    err = read_head(reader, data + reader->at, line, &head);
    if (err == 0 && head.has_blob) err = skip_blob(reader, &head, data, bytes);
    if (err) return err;

    bool is_aside = head.letter == '>' || head.letter == '|';
    if (is_aside && reader->at > 0) return BEL_EINVAL;
    if (is_aside) reader->is_aside = true;
    if (head.values > reader->values_max - reader->values - 1) return BEL_EFULL;
    if (head.values > 0 && reader->depth + 1 == BEL_READER_DEPTH_MAX) return BEL_EINVAL;
    reader->at += head.bytes + (head.has_blob ? head.blob + 2 : 0);
    count_value(reader, head.values);
    return reader->at <= reader->bytes_max ? 0 : BEL_EFULL;
}

int bel__reader_scan(struct bel_reader *reader, const uint8_t *data, size_t bytes)
{
    assert(reader->bytes == 0);
    assert(reader->at <= bytes);
    while (reader->depth > 0 || reader->left[0] > 0) {
        if (reader->values >= reader->values_max) return BEL_EFULL;
        int err = skip_value(reader, data, bytes);
        if (err == BEL_EBUSY && bytes - reader->at > reader->bytes_max) return BEL_EFULL;
        if (err) return err;
    }
    reader->bytes = reader->at;
    return 0;
}

/* --- the build --- */

static struct bel_value value_of(const struct head *head, const uint8_t *data)
{
    struct bel_value value = {.type = head->type};
    int err = 0;
    if (head->has_blob) {
        size_t skipped = head->letter == '=' ? 4 : 0; /* "txt:" */
        value.text.data = data + head->bytes + skipped;
        value.text.bytes = (size_t)head->blob - skipped;
    } else if (head->type == BEL_VALUE_NUMBER) {
        err =
            bel__parse_i64(head->line.data, head->line.bytes, INT64_MIN, INT64_MAX, &value.number);
    } else if (head->type == BEL_VALUE_BOOLEAN) {
        value.number = *(const char *)head->line.data == 't';
    } else if (head->type != BEL_VALUE_NIL && !head->has_values) {
        value.text = head->line;
    }
    assert(!err); /* the scan has checked it */
    (void)err;
    return value;
}

static int make_room(struct bel_reader *reader)
{
    if (reader->values <= reader->nodes_capacity) return 0;
    free(reader->nodes);
    reader->nodes_capacity = 0;
    reader->nodes = calloc(reader->values, sizeof reader->nodes[0]);
    if (reader->nodes == NULL) return BEL_ENOMEM;
    reader->nodes_capacity = reader->values;
    return 0;
}

int bel__reader_build(struct bel_reader *reader, const uint8_t *data, const struct bel_value **out)
{
    struct {
        struct bel_value *next, *end;
    } stack[BEL_READER_DEPTH_MAX] = {{NULL, NULL}};
    assert(reader->bytes > 0);
    int err = make_room(reader);
    if (err) return err;

    size_t used = 1, at = 0;
    unsigned depth = 0;
    stack[0].next = reader->nodes;
    stack[0].end = reader->nodes + 1;
    for (size_t i = 0; i < reader->values; i++) {
        struct head head;
        const uint8_t *end = memchr(data + at, '\n', reader->bytes - at);
        assert(end != NULL);
        err = read_head(reader, data + at, (size_t)(end - data) - at - 2, &head);
        assert(!err);
        while (stack[depth].next == stack[depth].end) {
            depth--;
        }
        struct bel_value *value = stack[depth].next++;
        *value = value_of(&head, data + at);
        at += head.bytes + (head.has_blob ? head.blob + 2 : 0);
        if (head.values == 0) continue;
        value->count = (size_t)head.values;
        value->items = reader->nodes + used;
        depth++;
        assert(depth < BEL_READER_DEPTH_MAX);
        stack[depth].next = reader->nodes + used;
        used += value->count;
        stack[depth].end = reader->nodes + used;
        assert(used <= reader->values);
    }
    assert(used == reader->values && at == reader->bytes);
    *out = reader->nodes;
    return 0;
}
