/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOGGER_H
#define BEL_SERVER_LOGGER_H

/*
 * logger - log lines, as text or as JSON:
 *
 *     2026-06-01T09:00:00.123Z info  listening address=127.0.0.1:7878 data="my data"
 *     {"time":"2026-06-01T09:00:00.123Z","level":"info","message":"listening","address":"..."}
 *
 * The message is constant per kind of event; details are in fields. Untrusted values cannot end a
 * line, start another or move a cursor: control characters and invalid UTF-8 are escaped, and long
 * values are cut.
 */

#include "belfry/clock.h"
#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bel_log_level {
    BEL_LOG_ERROR,
    BEL_LOG_WARN,
    BEL_LOG_INFO,
    BEL_LOG_DEBUG,
};

enum bel_log_format {
    BEL_LOG_AS_TEXT,
    BEL_LOG_AS_JSON,
};

enum {
    BEL_LOG_FIELDS_MAX = 8,
    BEL_LOG_VALUE_BYTES_MAX = 256,     /* longer values are cut */
    BEL_LOG_LINE_BYTES_MAX = 16 << 10, /* larger than any line */
};

struct bel_logger {
    const struct bel_clock *clock; /* borrowed */
    enum bel_log_level level;      /* the least severe level that is written */
    enum bel_log_format format;
    int fd;
};

struct bel_log_field {
    const char *name;
    struct bel_view text; /* the value; if its data is NULL, `number` is */
    int64_t number;
};

#define BEL_LOG_NUMBER(name_, number_)                                                             \
    ((struct bel_log_field){.name = (name_), .number = (int64_t)(number_)})
#define BEL_LOG_TEXT(name_, text_) bel__logger_text((name_), (text_))

struct bel_log_field bel__logger_text(const char *name, const char *text);

/* Writes a line with one write(), if its level is enabled. `fields_count` may be 0. */
void bel__logger_write(const struct bel_logger *log, enum bel_log_level level, const char *message,
                       const struct bel_log_field *fields, size_t fields_count);

/* bel__logger_write() with one or more fields as arguments after the message. */
#define BEL_LOG(log, level, message, ...)                                                          \
    bel__logger_write((log), (level), (message), (const struct bel_log_field[]){__VA_ARGS__},      \
                      sizeof((const struct bel_log_field[]){__VA_ARGS__}) /                        \
                          sizeof(struct bel_log_field))

/* The content of a line. */
struct bel_log_event {
    struct bel_wall time;
    enum bel_log_level level;
    const char *message;
    const struct bel_log_field *fields;
    size_t fields_count;
};

/* Formats the line of an event, with a line end. Returns its length. */
size_t bel__logger_format_line(enum bel_log_format format, const struct bel_log_event *event,
                               char out[BEL_LOG_LINE_BYTES_MAX]);

/* Finds a level or format by its name: error, warn, info, debug; text, json. */
bool bel__logger_level_find(const char *name, enum bel_log_level *out);
bool bel__logger_format_find(const char *name, enum bel_log_format *out);

#endif
