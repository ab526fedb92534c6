/* SPDX-License-Identifier: MIT */
#ifndef BEL_COMMANDS_COMMANDS_H
#define BEL_COMMANDS_COMMANDS_H

/*
 * commands - the one table of what can be said to a server: each command, its arguments, what
 * they are and what they are for. The server parses by it, refuses by it and documents by it; the
 * command line has its help and its completion from it.
 *
 *     SCHEDULE topic payload [ID id] [IN dur | AT time ...] [HEADER name value]...
 *
 * Arguments come by position first, then options by name, in any order and case.
 */

#include "belfry/view.h"

#include <stdbool.h>
#include <stddef.h>

/* What an argument is. */
enum bel_argument_type {
    BEL_ARGUMENT_TOPIC,
    BEL_ARGUMENT_ID,
    BEL_ARGUMENT_BYTES, /* any */
    BEL_ARGUMENT_TEXT,  /* for people */
    BEL_ARGUMENT_TOKEN,
    BEL_ARGUMENT_DURATION, /* belfry/duration.h */
    BEL_ARGUMENT_TIME,     /* belfry/instant.h */
    BEL_ARGUMENT_NUMBER,
    BEL_ARGUMENT_WORD, /* one of `words` */
    BEL_ARGUMENT_STATE,
    BEL_ARGUMENT_POLICY, /* belfry/backoff.h */
    BEL_ARGUMENT_RULE,   /* cron or a recurrence rule */
    BEL_ARGUMENT_ZONE,
    BEL_ARGUMENT_FLAG, /* an option that has no value */
    BEL_ARGUMENT_PAIR, /* an option that has a name and a value */
};

struct bel_argument {
    const char *name; /* letters: in capitals for an option: ID; in small ones by position: topic */
    const char *help; /* one line */
    const char *const *words; /* of a word, ends in NULL */
    enum bel_argument_type type;
    bool is_optional; /* by position: only at the end */
    bool is_repeated; /* by position: the last; an option: may come again */
};

/* Who may. */
enum bel_permission {
    BEL_PERMISSION_NONE,  /* anyone, before AUTH too */
    BEL_PERMISSION_KNOWN, /* anyone, after AUTH */
    BEL_PERMISSION_READ,  /* looks */
    BEL_PERMISSION_WRITE, /* schedules, cancels */
    BEL_PERMISSION_WORK,  /* claims, acks */
    BEL_PERMISSION_ADMIN, /* settings, purges, the server itself */
};

struct bel_command_entry {
    const char *name; /* letters, in capitals */
    const char *help; /* one line */
    enum bel_permission permission;
    const struct bel_argument *arguments; /* by position, then options */
    size_t arguments_count;
};

/* The table, in the order in which it is to be read. */
extern const struct bel_command_entry bel__commands[];
extern const size_t bel__commands_count;

/* Whether a word is a name in capitals, in any case. */
static inline bool bel__name_is(const char *name, struct bel_view word)
{
    const char *text = word.data;
    size_t i = 0;
    while (i < word.bytes && name[i] != 0 && (text[i] & ~0x20) == name[i]) {
        i++;
    }
    return i == word.bytes && name[i] == 0;
}

/* Finds a command by its name, in any case; NULL if there is none. */
const struct bel_command_entry *bel__command_find(struct bel_view name);

/* "SCHEDULE topic payload [ID id] ..." Returns the length it needs, as snprintf does. */
size_t bel__command_usage(const struct bel_command_entry *entry, char *out, size_t room);

#endif
