/* SPDX-License-Identifier: MIT */
#ifndef BEL_SERVER_LOGGER_H
#define BEL_SERVER_LOGGER_H

/*
 * log - what happened, one line each, for people or for programs:
 *
 *     2026-06-01T09:00:00.123Z info  listening address=127.0.0.1:7878 data="my data"
 *     {"time":"2026-06-01T09:00:00.123Z","level":"info","message":"listening","address":"..."}
 *
 * The message is always the same for the same event; what differs is in fields. Nothing that came
 * from outside can end a line, start another or move a cursor: control bytes and what is not
 * UTF-8 are escaped, and long values are cut.
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
    BEL_LOG_VALUE_BYTES_MAX = 256,     /* what is longer is cut */
    BEL_LOG_LINE_BYTES_MAX = 16 << 10, /* more than any line needs */
};

struct bel_logger {
    const struct bel_clock *clock; /* borrowed */
    enum bel_log_level level;      /* and those before it are written */
    enum bel_log_format format;
    int fd;
};

struct bel_log_field {
    const char *name;
    struct bel_view text; /* if it has data; else the number */
    int64_t number;
};

#define BEL_LOG_NUMBER(name_, number_)                                                             \
    ((struct bel_log_field){.name = (name_), .number = (int64_t)(number_)})
#define BEL_LOG_TEXT(name_, text_) bel__logger_text((name_), (text_))

struct bel_log_field bel__logger_text(const char *name, const char *text);

/* Writes a line, with one call, if its level is wanted. There may be no fields. */
void bel__logger_write(const struct bel_logger *log, enum bel_log_level level, const char *message,
                       const struct bel_log_field *fields, size_t fields_count);

/* bel__logger_write() with the fields behind the message, at least one. */
#define BEL_LOG(log, level, message, ...)                                                          \
    bel__logger_write((log), (level), (message), (const struct bel_log_field[]){__VA_ARGS__},      \
                      sizeof((const struct bel_log_field[]){__VA_ARGS__}) /                        \
                          sizeof(struct bel_log_field))

/* What a line says. */
struct bel_log_event {
    struct bel_wall time;
    enum bel_log_level level;
    const char *message;
    const struct bel_log_field *fields;
    size_t fields_count;
};

/* The line for an event, with its end of line; returns its length. */
size_t bel__logger_format_line(enum bel_log_format format, const struct bel_log_event *event,
                               char out[BEL_LOG_LINE_BYTES_MAX]);

/* Finds a level or format by its name: error, warn, info, debug; text, json. */
bool bel__logger_level_find(const char *name, enum bel_log_level *out);
bool bel__logger_format_find(const char *name, enum bel_log_format *out);

#endif
