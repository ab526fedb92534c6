/* SPDX-License-Identifier: MIT */

/*
 * What a server says. Lengths and numbers are printed by hand into a few bytes, because they are
 * most of what is written; everything else is a copy.
 */
#include "core/bug.h"
#include "core/parse.h"
#include "server/resp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    HEAD_BYTES = 1 + BEL_PRINT_BYTES_MAX + 2,
    DOUBLE_BYTES = 32,
};

static void put(struct bel_resp_writer *writer, const void *data, size_t bytes)
{
    if (writer->err == 0) writer->err = bel__buffer_append(writer->out, data, bytes);
}

/* A mark, a number and the end of the line. */
static void put_head(struct bel_resp_writer *writer, char mark, int64_t number)
{
    char head[HEAD_BYTES];
    head[0] = mark;
    size_t bytes = 1 + bel__print_i64(head + 1, number);
    head[bytes++] = '\r';
    head[bytes++] = '\n';
    put(writer, head, bytes);
}

/* A mark and a line of text, with what would end it replaced. */
static void put_line(struct bel_resp_writer *writer, char mark, const char *text)
{
    char line[BEL_RESP_ERROR_BYTES_MAX + 3];
    size_t bytes = 0;
    line[bytes++] = mark;
    for (; *text != 0 && bytes <= BEL_RESP_ERROR_BYTES_MAX; text++) {
        char c = *text;
        if ((unsigned char)c < ' ' || c == 0x7f) c = ' ';
        line[bytes++] = c;
    }
    line[bytes++] = '\r';
    line[bytes++] = '\n';
    put(writer, line, bytes);
}

void bel__resp_simple(struct bel_resp_writer *writer, const char *text)
{
    put_line(writer, '+', text);
}

void bel__resp_error(struct bel_resp_writer *writer, const char *code, const char *text)
{
    char line[BEL_RESP_ERROR_BYTES_MAX + 1];
    (void)snprintf(line, sizeof line, "%s %s", code, text);
    put_line(writer, '-', line);
}

void bel__resp_integer(struct bel_resp_writer *writer, int64_t number)
{
    put_head(writer, ':', number);
}

void bel__resp_count(struct bel_resp_writer *writer, uint64_t number)
{
    put_head(writer, ':', number <= INT64_MAX ? (int64_t)number : INT64_MAX);
}

void bel__resp_bulk(struct bel_resp_writer *writer, struct bel_view bytes)
{
    put_head(writer, '$', (int64_t)bytes.bytes);
    put(writer, bytes.data, bytes.bytes);
    put(writer, "\r\n", 2);
}

void bel__resp_text(struct bel_resp_writer *writer, const char *text)
{
    bel__resp_bulk(writer, (struct bel_view){text, strlen(text)});
}

void bel__resp_null(struct bel_resp_writer *writer)
{
    if (writer->version >= 3) {
        put(writer, "_\r\n", 3);
    } else {
        put_head(writer, '$', -1);
    }
}

void bel__resp_null_array(struct bel_resp_writer *writer)
{
    if (writer->version >= 3) {
        put(writer, "_\r\n", 3);
    } else {
        put_head(writer, '*', -1);
    }
}

void bel__resp_array(struct bel_resp_writer *writer, size_t count)
{
    put_head(writer, '*', (int64_t)count);
}

void bel__resp_map(struct bel_resp_writer *writer, size_t pairs)
{
    if (writer->version >= 3) {
        put_head(writer, '%', (int64_t)(BEL_BUG(BEL_BUG_MAP_SIZE) ? 2 * pairs : pairs));
    } else {
        put_head(writer, '*', (int64_t)(2 * pairs));
    }
}

void bel__resp_boolean(struct bel_resp_writer *writer, bool is_true)
{
    if (writer->version >= 3) {
        put(writer, is_true ? "#t\r\n" : "#f\r\n", 4);
    } else {
        put_head(writer, ':', is_true);
    }
}

/* With as many digits as it takes to read the same number. */
void bel__resp_double(struct bel_resp_writer *writer, double number)
{
    char text[DOUBLE_BYTES];
    int bytes = snprintf(text, sizeof text, "%.17g", number);
    assert(bytes > 0 && bytes < DOUBLE_BYTES);
    if (writer->version >= 3) {
        put_line(writer, ',', text);
    } else {
        bel__resp_text(writer, text);
    }
}
