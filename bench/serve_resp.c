/* SPDX-License-Identifier: MIT */

/*
 * A minimal RESP parser for two of the servers. A reply is read piece by piece, without recursion
 * or copying.
 */
#include "serve.h"

#include <stdio.h>

enum {
    ECHO_BYTES = 1000,
};

/* Reads the number of a line, after its type character. */
static bool read_number(struct serve_reader *reader, int64_t *out)
{
    const char *at = reader->at;
    int64_t number = 0;
    bool is_negative = at < reader->end && *at == '-';
    if (is_negative) at++;
    while (at < reader->end && *at >= '0' && *at <= '9') {
        number = number * 10 + (*at++ - '0');
    }
    if (reader->end - at < 2) return false;
    if (at[0] != '\r' || at[1] != '\n') bench_fail("invalid number in a reply");
    reader->at = at + 2;
    *out = is_negative ? -number : number;
    return true;
}

static bool read_line(struct serve_reader *reader, struct serve_piece *out)
{
    const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    if (end == NULL) return false;
    out->text = reader->at;
    out->bytes = (size_t)(end - reader->at) - 1;
    reader->at = end + 1;
    return true;
}

static bool read_text(struct serve_reader *reader, struct serve_piece *out)
{
    if (!read_number(reader, &out->number)) return false;
    if (out->number < 0) return true;
    if (reader->end - reader->at < out->number + 2) return false;
    out->text = reader->at;
    out->bytes = (size_t)out->number;
    reader->at += out->number + 2;
    return true;
}

bool serve_read_piece(struct serve_reader *reader, struct serve_piece *out)
{
    if (reader->at >= reader->end) return false;
    *out = (struct serve_piece){.type = *reader->at++};
    switch (out->type) {
    case '$':
        return read_text(reader, out);
    case ':':
    case '*':
        return read_number(reader, &out->number);
    case '+':
    case '-':
        return read_line(reader, out);
    default:
        bench_fail("a reply that is not RESP");
    }
}

bool serve_skip(struct serve_reader *reader, unsigned values)
{
    struct serve_piece piece;
    for (uint64_t left = values; left > 0; left--) {
        if (!serve_read_piece(reader, &piece)) return false;
        if (piece.type == '-') (void)serve_is_refusal(&piece);
        if (piece.type == '*' && piece.number > 0) left += (uint64_t)piece.number;
    }
    return true;
}

bool serve_is_refusal(const struct serve_piece *piece)
{
    if (piece->type != '-') return false;
    if (piece->bytes >= 4 && memcmp(piece->text, "FULL", 4) == 0) return true;
    if (piece->bytes >= 7 && memcmp(piece->text, "LOADING", 7) == 0) return true;
    (void)fprintf(stderr, "%.*s\n", (int)piece->bytes, piece->text);
    bench_fail("the server replied with an error");
}

void serve_put_bulk(struct serve_buffer *buffer, const char *data, size_t bytes)
{
    SERVE_PUT(buffer, "$");
    serve_put_number(buffer, bytes);
    SERVE_PUT(buffer, "\r\n");
    serve_put(buffer, data, bytes);
    SERVE_PUT(buffer, "\r\n");
}

void serve_put_bulk_number(struct serve_buffer *buffer, uint64_t number)
{
    struct serve_buffer text = {.data = (char[20]){0}, .room = 20};
    serve_put_number(&text, number);
    serve_put_bulk(buffer, text.data, text.count);
}

void serve_put_array(struct serve_buffer *buffer, uint64_t items)
{
    SERVE_PUT(buffer, "*");
    serve_put_number(buffer, items);
    SERVE_PUT(buffer, "\r\n");
}

void serve_put_echo(struct serve_buffer *buffer)
{
    char text[ECHO_BYTES];
    memset(text, 'x', sizeof text);
    SERVE_PUT(buffer, "*2\r\n$4\r\nECHO\r\n");
    serve_put_bulk(buffer, text, sizeof text);
}
