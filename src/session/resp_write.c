/* SPDX-License-Identifier: MIT */

/*
 * Replies consist mostly of lengths and numbers. The number of their digits is computed before they
 * are printed. The buffer is therefore extended once per value, by the exact size, and the value is
 * printed in place.
 */
#include "core/parse.h"
#include "core/utf8.h"
#include "session/resp.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    END_BYTES = 2, /* CR and LF */
};

static void put(struct bel_resp_writer *writer, const void *data, size_t bytes)
{
    if (writer->err == 0) writer->err = bel__buffer_append(writer->out, data, bytes);
}

/* Extends the output by `bytes` bytes, which the caller writes. Returns NULL after an error. */
static inline char *take(struct bel_resp_writer *writer, size_t bytes)
{
    uint8_t *at = NULL;
    if (writer->err == 0) writer->err = bel__buffer_extend(writer->out, bytes, &at);
    return (char *)at;
}

static char *print_end(char *at)
{
    memcpy(at, "\r\n", END_BYTES);
    return at + END_BYTES;
}

/* Prints a mark, a number and the line end. Returns the position after them. */
static char *print_head(char *at, char mark, uint64_t number, size_t digits)
{
    *at++ = mark;
    bel__print_digits(at, number, digits);
    return print_end(at + digits);
}

static void put_number(struct bel_resp_writer *writer, char mark, uint64_t number)
{
    size_t digits = bel__count_digits(number);
    char *at = take(writer, 1 + digits + END_BYTES);
    if (at != NULL) (void)print_head(at, mark, number, digits);
}

static void put_negative(struct bel_resp_writer *writer, char mark, int64_t number)
{
    char head[1 + BEL_PRINT_BYTES_MAX + END_BYTES] = {mark};
    size_t bytes = 1 + bel__print_i64(head + 1, number);
    (void)print_end(head + bytes);
    put(writer, head, bytes + END_BYTES);
}

/* Writes a mark and a line of text, cut after a character. Control characters are replaced by
 * spaces, and bytes that are not UTF-8 by question marks, because many clients decode lines. */
static void put_line(struct bel_resp_writer *writer, char mark, const char *text)
{
    char line[BEL_RESP_ERROR_BYTES_MAX + 3];
    size_t bytes = 0, left = strlen(text);
    const unsigned char *at = (const unsigned char *)text;
    line[bytes++] = mark;
    while (left > 0) {
        size_t whole = bel__utf8_bytes(at, left), taken = whole > 0 ? whole : 1;
        if (bytes + taken > BEL_RESP_ERROR_BYTES_MAX + 1) break;
        memcpy(line + bytes, at, taken);
        if (whole == 0) line[bytes] = '?';
        if (whole == 1 && bel__utf8_is_control(at, whole)) line[bytes] = ' ';
        bytes += taken;
        at += taken;
        left -= taken;
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
    writer->code = code;
}

void bel__resp_integer(struct bel_resp_writer *writer, int64_t number)
{
    if (number >= 0) {
        put_number(writer, ':', (uint64_t)number);
    } else {
        put_negative(writer, ':', number);
    }
}

void bel__resp_count(struct bel_resp_writer *writer, uint64_t number)
{
    put_number(writer, ':', number <= INT64_MAX ? number : INT64_MAX);
}

void bel__resp_bulk(struct bel_resp_writer *writer, struct bel_view bytes)
{
    size_t digits = bel__count_digits(bytes.bytes);
    char *at = take(writer, 1 + digits + END_BYTES + bytes.bytes + END_BYTES);
    if (at == NULL) return;
    at = print_head(at, '$', bytes.bytes, digits);
    if (bytes.bytes > 0) memcpy(at, bytes.data, bytes.bytes);
    (void)print_end(at + bytes.bytes);
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
        put(writer, "$-1\r\n", 5);
    }
}

void bel__resp_null_array(struct bel_resp_writer *writer)
{
    if (writer->version >= 3) {
        put(writer, "_\r\n", 3);
    } else {
        put(writer, "*-1\r\n", 5);
    }
}

void bel__resp_array(struct bel_resp_writer *writer, size_t count)
{
    put_number(writer, '*', count);
}

void bel__resp_map(struct bel_resp_writer *writer, size_t pairs)
{
    if (writer->version >= 3) {
        put_number(writer, '%', pairs);
    } else {
        put_number(writer, '*', 2 * pairs);
    }
}

void bel__resp_boolean(struct bel_resp_writer *writer, bool is_true)
{
    if (writer->version >= 3) {
        put(writer, is_true ? "#t\r\n" : "#f\r\n", 4);
    } else {
        put_number(writer, ':', is_true);
    }
}
