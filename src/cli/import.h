/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_IMPORT_H
#define BEL_CLI_IMPORT_H

/*
 * import - lines of a file as SCHEDULE commands. A line of JSON has what belfry export prints, or
 * what SCHEDULE takes, by the same names in small letters; a line of a crontab is a plan.
 *
 *     {"id": "a", "topic": "mail", "payload": "hi", "due_ms": 1893484800000, "headers": {...}}
 *     {"topic": "mail", "payload": {"to": "ann"}, "in": "5m"}
 *     30 9 * * 1-5  /usr/bin/report
 *
 * A line without an id gets one that follows from its number and what it says, so that the same
 * file can be imported again and schedules nothing twice.
 */

#include "belfry/error.h"
#include "belfry/view.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    IMPORT_HEADERS_MAX = 100,
    IMPORT_ARGS_MAX = 64 + 3 * IMPORT_HEADERS_MAX,
    IMPORT_TEXTS_MAX = 40, /* numbers that are printed, for one line */
    IMPORT_TEXT_BYTES = 32,
    IMPORT_ID_BYTES = 129,
    IMPORT_ZONE_BYTES = 128,
    IMPORT_PROBLEM_BYTES = 200,
};

/* What holds for all lines. */
struct import_rules {
    const char *topic;            /* instead of a line's own; or NULL */
    const char *conflict;         /* what becomes of an id that is taken */
    char zone[IMPORT_ZONE_BYTES]; /* of a crontab; a line CRON_TZ= changes it */
};

/* A line as a command. */
struct import_command {
    struct bel_view args[IMPORT_ARGS_MAX];
    size_t count;
    char problem[IMPORT_PROBLEM_BYTES]; /* what is wrong with the line, or why it is left out */
    json_t *root;                       /* private, as is all the rest: what args point to */
    char *made[5];
    size_t made_count;
    char texts[IMPORT_TEXTS_MAX][IMPORT_TEXT_BYTES];
    size_t texts_count;
    char id[IMPORT_ID_BYTES];
};

enum import_verdict {
    IMPORT_GOOD,     /* there is a command */
    IMPORT_BLANK,    /* nothing to say: a comment, an empty line */
    IMPORT_LEFT_OUT, /* has ended already, or cannot be one; `problem` says why */
    IMPORT_BAD,      /* `problem` says what is wrong */
};

/* Reads a line, which must stay where it is until the command is cleared, and so must the rules;
 * `line` ends in a 0 that does not count. */
enum import_verdict bel__import_json(struct import_command *command, struct bel_view line,
                                     uint64_t number, const struct import_rules *rules);
enum import_verdict bel__import_crontab(struct import_command *command, struct bel_view line,
                                        struct import_rules *rules);

/* Forgets a command. */
void bel__import_clear(struct import_command *command);

/* For both: adds a word; makes an id of a hash; says what is wrong. */
void bel__import_add(struct import_command *command, struct bel_view word);
struct bel_view bel__import_id(struct import_command *command, const char *prefix, uint64_t number,
                               struct bel_view text);
enum import_verdict bel__import_refuse(struct import_command *command, enum import_verdict verdict,
                                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
