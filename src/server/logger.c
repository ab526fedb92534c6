/* SPDX-License-Identifier: MIT */

/*
 * A line is built in a buffer that is larger than any line, because the number of fields and the
 * length of values are limited; so no escape sequence is cut. The line is written with one call. A
 * failed write loses it: a server does not wait for its log.
 */
#include "server/logger.h"

#include "belfry/instant.h"
#include "core/parse.h"
#include "core/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const format_names[] = {"text", "json"};

struct line {
    char *text;
    size_t bytes;
};

static void put(struct line *line, const void *data, size_t bytes)
{
    assert(bytes <= BEL_LOG_LINE_BYTES_MAX - line->bytes);
    if (bytes > 0) memcpy(line->text + line->bytes, data, bytes);
    line->bytes += bytes;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Returns the length of the UTF-8 character at `at` if it is valid and printable; otherwise 0. */
static size_t shown_bytes(const unsigned char *at, size_t bytes)
{
    size_t count = bel__utf8_bytes(at, bytes);
    bool is_separator =
        count == 3 && at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae;
    return bel__utf8_is_control(at, count) || is_separator ? 0 : count;
}

static void put_escape(struct line *line, enum bel_log_format format, unsigned char byte)
{
    char escape[8];
    /* JSON cannot represent an invalid byte; write U+FFFD, the replacement character. */
    unsigned number = byte < 0x80 ? byte : 0xfffd;
    int bytes = format == BEL_LOG_AS_JSON
                    ? snprintf(escape, sizeof escape, "\\u%04x", number)
                    : snprintf(escape, sizeof escape, "\\x%02x", (unsigned)byte);
    put(line, escape, (size_t)bytes);
}

/* Appends a value, escaped and cut to BEL_LOG_VALUE_BYTES_MAX, without quotes. */
static void put_escaped(struct line *line, enum bel_log_format format, struct bel_view text)
{
    const unsigned char *bytes = text.data;
    size_t end = text.bytes <= BEL_LOG_VALUE_BYTES_MAX ? text.bytes : BEL_LOG_VALUE_BYTES_MAX;
    for (size_t at = 0; at < end;) {
        size_t shown = shown_bytes(bytes + at, end - at);
        if (shown == 0) {
            put_escape(line, format, bytes[at++]);
            continue;
        }
        if (bytes[at] == '"' || bytes[at] == '\\') put_text(line, "\\");
        put(line, bytes + at, shown);
        at += shown;
    }
    if (end < text.bytes) put_text(line, "...");
}

/* Returns whether a value needs no quotes in the text format. */
static bool is_plain(struct bel_view text)
{
    const unsigned char *bytes = text.data;
    for (size_t i = 0; i < text.bytes; i++) {
        if (bytes[i] <= ' ' || bytes[i] >= 0x7f || strchr("\"\\=", bytes[i]) != NULL) return false;
    }
    return text.bytes > 0;
}

static void put_value(struct line *line, enum bel_log_format format,
                      const struct bel_log_field *field)
{
    char number[BEL_PRINT_BYTES_MAX];
    if (field->text.data == NULL) {
        put(line, number, bel__print_i64(number, field->number));
        return;
    }
    bool is_quoted = format == BEL_LOG_AS_JSON || !is_plain(field->text);
    if (is_quoted) put_text(line, "\"");
    put_escaped(line, format, field->text);
    if (is_quoted) put_text(line, "\"");
}

static void put_head(struct line *line, enum bel_log_format format,
                     const struct bel_log_event *event)
{
    char instant[BEL_INSTANT_BYTES], head[BEL_INSTANT_BYTES + 64];
    (void)bel_instant_print(event->time, instant, sizeof instant);
    bool is_json = format == BEL_LOG_AS_JSON;
    int bytes = snprintf(head, sizeof head,
                         is_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"" : "%s %-5s ",
                         instant, level_names[event->level]);
    put(line, head, (size_t)bytes);
    put_escaped(line, format, (struct bel_view){event->message, strlen(event->message)});
    if (is_json) put_text(line, "\"");
}

size_t bel__logger_format_line(enum bel_log_format format, const struct bel_log_event *event,
                               char out[BEL_LOG_LINE_BYTES_MAX])
{
    struct line line = {.text = out};
    out[0] = 0;
    bool is_json = format == BEL_LOG_AS_JSON;
    assert(event->fields_count <= BEL_LOG_FIELDS_MAX);
    put_head(&line, format, event);
    for (size_t i = 0; i < event->fields_count; i++) {
        put_text(&line, is_json ? ",\"" : " ");
        put_text(&line, event->fields[i].name);
        put_text(&line, is_json ? "\":" : "=");
        put_value(&line, format, &event->fields[i]);
    }
    put_text(&line, is_json ? "}\n" : "\n");
    return line.bytes;
}

void bel__logger_write(const struct bel_logger *log, enum bel_log_level level, const char *message,
                       const struct bel_log_field *fields, size_t fields_count)
{
    char line[BEL_LOG_LINE_BYTES_MAX];
    if (level > log->level) return;
    struct bel_log_event event = {bel_clock_wall(log->clock), level, message, fields, fields_count};
    size_t bytes = bel__logger_format_line(log->format, &event, line);
    ssize_t written = write(log->fd, line, bytes);
    (void)written;
}

struct bel_log_field bel__logger_text(const char *name, const char *text)
{
    return (struct bel_log_field){.name = name, .text = {text, strlen(text)}};
}

bool bel__logger_level_find(const char *name, enum bel_log_level *out)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(level_names[i], name) != 0) continue;
        *out = (enum bel_log_level)i;
        return true;
    }
    return false;
}

bool bel__logger_format_find(const char *name, enum bel_log_format *out)
{
    for (unsigned i = 0; i < sizeof format_names / sizeof format_names[0]; i++) {
        if (strcmp(format_names[i], name) != 0) continue;
        *out = (enum bel_log_format)i;
        return true;
    }
    return false;
}
