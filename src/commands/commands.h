/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_COMMANDS_H
#define BEL_COMMANDS_COMMANDS_H

/*
 * commands - the table of the server's commands: names, arguments, types, help texts, permissions.
 * The server parses, validates and documents requests with it (COMMAND DOCS, OpenAPI); the command
 * line takes its help and its shell completion from it.
 *
 *     SCHEDULE topic payload [ID id] [IN dur | AT time ...] [HEADER name value]...
 *
 * Positional arguments come first. Options follow, in any order, with names in any case.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of an argument. */
enum bel_argument_type {
    BEL_ARGUMENT_TOPIC,
    BEL_ARGUMENT_ID,
    BEL_ARGUMENT_BYTES, /* arbitrary bytes */
    BEL_ARGUMENT_TEXT,  /* for people, not interpreted */
    BEL_ARGUMENT_TOKEN,
    BEL_ARGUMENT_DURATION, /* belfry/duration.h */
    BEL_ARGUMENT_TIME,     /* belfry/instant.h */
    BEL_ARGUMENT_NUMBER,
    BEL_ARGUMENT_WORD, /* one of `words` */
    BEL_ARGUMENT_STATE,
    BEL_ARGUMENT_POLICY, /* belfry/backoff.h */
    BEL_ARGUMENT_RULE,   /* a cron rule or a recurrence rule */
    BEL_ARGUMENT_ZONE,
    BEL_ARGUMENT_FLAG, /* an option without a value */
    BEL_ARGUMENT_PAIR, /* two words: a name and a value */
};

struct bel_argument {
    const char *name;         /* an option is in upper case (ID), a positional argument in lower */
    const char *help;         /* one line */
    const char *const *words; /* of a WORD: its values; ends with NULL */
    enum bel_argument_type type;
    bool is_optional; /* positional: only the last ones */
    bool is_repeated; /* positional: only the last; an option may be given again */
    bool yields;      /* positional and optional: left out if the word names an option */
    bool may_be_off;  /* a NUMBER or TEXT: the word off removes what it sets; in JSON, null too */
    bool refuses_seconds; /* a TIME: a small number is refused, since it is a time in seconds */
    uint32_t max;         /* bytes of a text, value of a NUMBER, or how many PAIRs; 0: no limit */
};

/* The permission that a command needs. */
enum bel_permission {
    BEL_PERMISSION_NONE,  /* none, allowed before AUTH */
    BEL_PERMISSION_KNOWN, /* any key */
    BEL_PERMISSION_READ,  /* queries */
    BEL_PERMISSION_WRITE, /* schedule, cancel, reschedule, revive */
    BEL_PERMISSION_WORK,  /* claim, ack, fail, release, extend */
    BEL_PERMISSION_ADMIN, /* settings, purge, backup, shutdown */
};

struct bel_command_entry {
    const char *name; /* upper-case letters; with a subcommand two words: "JOB SUBMIT" */
    const char *help; /* one line */
    enum bel_permission permission;
    const struct bel_argument *arguments; /* positional arguments, then options */
    size_t arguments_count;
};

/* Returns "read" and so on. */
const char *bel__permission_name(enum bel_permission permission);

/* The table, indexed by enum bel_command_place. */
extern const struct bel_command_entry bel__commands[];
extern const size_t bel__commands_count;

/* Returns whether `word`, in any case, equals `name`, which is in upper case. */
static inline bool bel__name_is(const char *name, struct bel_view word)
{
    const char *text = word.data;
    size_t i = 0;
    while (i < word.bytes && name[i] != 0 && (text[i] & ~0x20) == name[i]) {
        i++;
    }
    return i == word.bytes && name[i] == 0;
}

/* Finds a command by its name, in any case; "JOB SUBMIT" and "job|submit" are names of a command
 * with a subcommand. Returns NULL if it is unknown. */
const struct bel_command_entry *bel__command_find(struct bel_view name);

/* Finds a command with a subcommand by its two words, in any case; NULL if it is unknown. */
const struct bel_command_entry *bel__command_find_pair(struct bel_view group, struct bel_view word);

/* Returns whether a word, in any case, is the first of commands with subcommands: JOB. */
bool bel__command_is_group(struct bel_view word);

/* Writes "SCHEDULE topic payload [ID id] ...". Returns the length of the whole text, like
 * snprintf. */
size_t bel__command_usage(const struct bel_command_entry *entry, char *out, size_t room);

#endif
