/* SPDX-License-Identifier: MIT */
#ifndef BEL_CLI_OPTIONS_H
#define BEL_CLI_OPTIONS_H

/*
 * options - parses the arguments of a verb that is not a server command: words, the options of the
 * verb, and the options of every verb that connects to a server (connect.h).
 *
 *     belfry bench --timers 1000 -c4 --json
 */

#include "cli/connect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_option_kind {
    CLI_OPTION_FLAG,   /* sets `flag` */
    CLI_OPTION_TEXT,   /* sets `text` */
    CLI_OPTION_NUMBER, /* sets `number`, from `min` to `max` */
    CLI_OPTION_SPAN,   /* a duration; sets `number` to ms, from `min` to `max` */
};

struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum cli_option_kind kind;
    uint64_t min, max;
    union {
        bool *flag;
        const char **text;
        uint64_t *number;
    } out;
};

struct cli_options {
    const char *verb;
    const char *usage; /* the help text; --help prints it, then bel__connect_help if it connects */
    const struct cli_option *items;
    size_t count;
    struct cli_connect *connect; /* NULL: the verb does not connect */
    bool needs_server;           /* the verb does not work on a store */
    const char **words;          /* an array of `words_max`, filled by bel__options_read() */
    size_t words_max, words_count;
};

/* Parses the arguments; argv[0] is the verb. Returns -1 on success. Otherwise returns the exit
 * status, after the help or an error was printed. */
int bel__options_read(struct cli_options *options, int argc, char **argv);

/* Prints a usage error, formatted as by printf, and how to get help. Returns CLI_USAGE. */
int bel__options_complain(const char *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints that an option is unknown, and the one that may be meant, unless it is NULL. Returns
 * CLI_USAGE. */
int bel__options_unknown(const char *verb, const char *name, const char *similar);

#endif
