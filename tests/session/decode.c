/* SPDX-License-Identifier: MIT */

/*
 * A reader of replies that believes nothing: lines end in CR and LF, lengths are right, and there
 * is no control byte in a line.
 */
#include "decode.h"

#include "../check.h"
#include "core/parse.h"

#include <string.h>

enum {
    DEPTH_MAX = 8,
};

/* Where it reads; `at` is past the end if bytes are missing. */
struct reader {
    const char *bytes;
    size_t count, at;
};

static bool read_line(struct reader *reader, struct bel_view *out)
{
    const char *start = reader->bytes + reader->at;
    const char *end = memchr(start, '\r', reader->count - reader->at);
    if (end == NULL || end + 1 == reader->bytes + reader->count) return false;
    CHECK(end[1] == '\n');
    *out = (struct bel_view){start, (size_t)(end - start)};
    for (size_t i = 0; i < out->bytes; i++) {
        CHECK((unsigned char)start[i] >= ' ' && start[i] != 0x7f);
    }
    reader->at += out->bytes + 2;
    return true;
}

static bool read_bulk(struct reader *reader, struct answer *out)
{
    if (out->number < 0) {
        CHECK(out->number == -1);
        out->kind = ANSWER_NIL;
        return true;
    }
    size_t bytes = (size_t)out->number;
    if (reader->count - reader->at < bytes + 2) return false;
    out->text = (struct bel_view){reader->bytes + reader->at, bytes};
    CHECK(memcmp(reader->bytes + reader->at + bytes, "\r\n", 2) == 0);
    reader->at += bytes + 2;
    return true;
}

static bool read_answer(struct reader *reader, unsigned depth, struct answer *out);

static bool read_items(struct reader *reader, unsigned depth, struct answer *out)
{
    if (out->number < 0) {
        CHECK(out->number == -1 && out->kind == ANSWER_ARRAY);
        out->kind = ANSWER_NIL;
        return true;
    }
    size_t count = (size_t)out->number * (out->kind == ANSWER_MAP ? 2 : 1);
    out->items = calloc(count + 1, sizeof *out->items);
    CHECK(out->items != NULL);
    for (out->count = 0; out->count < count; out->count++) {
        if (!read_answer(reader, depth + 1, &out->items[out->count])) return false;
    }
    return true;
}

static enum answer_kind kind_of(char mark)
{
    static const char marks[] = "+-:$_*%#";
    const char *found = memchr(marks, mark, sizeof marks - 1);
    CHECK_NOTE("a reply begins with %c", mark);
    CHECK(found != NULL);
    return (enum answer_kind)(found - marks);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEPTH_MAX */
static bool read_answer(struct reader *reader, unsigned depth, struct answer *out)
{
    struct bel_view line;
    *out = (struct answer){0};
    CHECK(depth < DEPTH_MAX);
    if (reader->at == reader->count || !read_line(reader, &line)) return false;
    const char *text = line.data;
    out->kind = kind_of(text[0]);
    out->mark = text[0];
    out->text = (struct bel_view){text + 1, line.bytes - 1};
    if (out->kind == ANSWER_SIMPLE || out->kind == ANSWER_ERROR) return true;
    if (out->kind == ANSWER_NIL) return true;
    if (out->kind == ANSWER_BOOLEAN) {
        out->number = text[1] == 't';
        return true;
    }
    CHECK(bel__parse_i64(text + 1, line.bytes - 1, INT64_MIN, INT64_MAX, &out->number) == 0);
    if (out->kind == ANSWER_INTEGER) return true;
    if (out->kind == ANSWER_BULK) return read_bulk(reader, out);
    return read_items(reader, depth, out);
}

size_t answer_decode(struct bel_view bytes, struct answer *out)
{
    struct reader reader = {.bytes = bytes.data, .count = bytes.bytes};
    if (read_answer(&reader, 0, out)) return reader.at;
    answer_free(out);
    return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
void answer_free(struct answer *answer)
{
    for (size_t i = 0; i <= answer->count && answer->items != NULL; i++) {
        answer_free(&answer->items[i]);
    }
    free(answer->items);
    answer->items = NULL;
}

const struct answer *answer_field(const struct answer *map, const char *name)
{
    CHECK(map->kind == ANSWER_MAP || map->kind == ANSWER_ARRAY);
    CHECK(map->count % 2 == 0);
    for (size_t i = 0; i < map->count; i += 2) {
        struct bel_view text = map->items[i].text;
        if (text.bytes == strlen(name) && memcmp(text.data, name, text.bytes) == 0) {
            return &map->items[i + 1];
        }
    }
    return NULL;
}

static void show_text(struct bel_view text, FILE *out)
{
    const unsigned char *bytes = text.data;
    (void)fputc('"', out);
    for (size_t i = 0; i < text.bytes; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') {
            (void)fprintf(out, "\\%c", bytes[i]);
        } else if (bytes[i] < ' ' || bytes[i] >= 0x7f) {
            (void)fprintf(out, "\\x%02x", bytes[i]);
        } else {
            (void)fputc(bytes[i], out);
        }
    }
    (void)fputc('"', out);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void show_items(const struct answer *answer, FILE *out)
{
    bool is_map = answer->kind == ANSWER_MAP;
    (void)fputc(is_map ? '{' : '[', out);
    for (size_t i = 0; i < answer->count; i++) {
        if (i > 0) (void)fputs(is_map && i % 2 == 1 ? ": " : ", ", out);
        answer_show(&answer->items[i], out);
    }
    (void)fputc(is_map ? '}' : ']', out);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
void answer_show(const struct answer *answer, FILE *out)
{
    switch (answer->kind) {
    case ANSWER_ERROR:
        (void)fputc('-', out);
        (void)fwrite(answer->text.data, 1, answer->text.bytes, out);
        break;
    case ANSWER_SIMPLE:
        (void)fwrite(answer->text.data, 1, answer->text.bytes, out);
        break;
    case ANSWER_INTEGER:
        (void)fprintf(out, "%" PRId64, answer->number);
        break;
    case ANSWER_BULK:
        show_text(answer->text, out);
        break;
    case ANSWER_NIL:
        (void)fputs("nil", out);
        break;
    case ANSWER_BOOLEAN:
        (void)fputs(answer->number ? "true" : "false", out);
        break;
    case ANSWER_ARRAY:
    case ANSWER_MAP:
        show_items(answer, out);
        break;
    }
}
