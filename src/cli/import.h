/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_IMPORT_H
#define BEL_CLI_IMPORT_H

/*
 * import - converts lines of a file to SCHEDULE commands. A JSON line has the fields that belfry
 * export prints, or the options of SCHEDULE in lower case. A line of a crontab is a plan.
 *
 *     {"id": "a", "topic": "mail", "payload": "hi", "due_ms": 1893484800000, "headers": {...}}
 *     {"topic": "mail", "payload": {"to": "ann"}, "in": "5m"}
 *     30 9 * * 1-5  /usr/bin/report
 *
 * A line without an id gets one made of its number and a hash of its text, so that importing the
 * same file again schedules nothing twice. Lines are sent in batches (import_batch.c): the timers
 * that exist already are compared with their lines first (import_compare.c).
 */

#include "belfry/client.h"
#include "belfry/error.h"
#include "belfry/view.h"
#include "belfry/zone.h"
#include "core/why.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    IMPORT_HEADERS_MAX = 100,
    IMPORT_ARGS_MAX = 64 + 3 * IMPORT_HEADERS_MAX,
    IMPORT_TEXTS_MAX = 40, /* numbers of one line that are printed as text */
    IMPORT_TEXT_BYTES = 32,
    IMPORT_ID_BYTES = 129,
    IMPORT_ZONE_BYTES = 128,
};

/* Settings of all lines. */
struct import_rules {
    const char *topic;            /* overrides the topic of a line; or NULL */
    const char *conflict;         /* the value of CONFLICT, or "update" */
    bool has_users;               /* a system crontab: each line has a user */
    char zone[IMPORT_ZONE_BYTES]; /* of a crontab; a line CRON_TZ= changes it */
};

/* The places of arguments that every command has; the last argument is the value of CONFLICT. */
enum {
    IMPORT_TOPIC = 1,
    IMPORT_PAYLOAD = 2,
    IMPORT_ID = 4,
    IMPORT_OPTIONS = 5, /* the first option after ID */
};

/* The command of a line. */
struct import_command {
    struct bel_view args[IMPORT_ARGS_MAX];
    size_t count;
    struct bel_why problem; /* why the line is bad or left out; or a warning */
    json_t *root;           /* this and all below is private: memory of `args` */
    char *made[8];
    size_t made_count;
    char texts[IMPORT_TEXTS_MAX][IMPORT_TEXT_BYTES];
    size_t texts_count;
    char id[IMPORT_ID_BYTES];
    char zone[IMPORT_ZONE_BYTES];
};

enum import_verdict {
    IMPORT_GOOD,     /* the command is valid */
    IMPORT_BLANK,    /* an empty line, a comment, or CRON_TZ= */
    IMPORT_LEFT_OUT, /* a finished timer, or not a timer; `problem` is the reason */
    IMPORT_BAD,      /* `problem` is the error */
};

/* Convert a line. The command borrows the line, the topic and the conflict word until it is
 * cleared. A 0 follows the last byte of `line`. */
enum import_verdict bel__import_json(struct import_command *command, struct bel_view line,
                                     uint64_t number, const struct import_rules *rules);
enum import_verdict bel__import_crontab(struct import_command *command, struct bel_view line,
                                        struct import_rules *rules);

/* Clears a command and frees its memory. */
void bel__import_clear(struct import_command *command);

/* Returns whether a timer, as GET shows it, is as its line says. The time that IN names is not
 * compared, nor is the start of a plan, because both pass. */
bool bel__import_is_same(const struct import_command *command, const struct bel_value *timer,
                         struct bel_zones *zones);

/* Used by both conversions: add an argument; make an id from a hash of `text`; set the problem and
 * return `verdict`. */
void bel__import_add(struct import_command *command, struct bel_view word);
struct bel_view bel__import_id(struct import_command *command, const char *prefix, uint64_t number,
                               struct bel_view text);
enum import_verdict bel__import_refuse(struct import_command *command, enum import_verdict verdict,
                                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
